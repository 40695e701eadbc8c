DROP STREAM alerts.public.orders;
DROP DATABASE alerts;
DROP ENTITY "alerts.orders" IN STORE embedded;

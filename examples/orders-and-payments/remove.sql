DROP STREAM orders_and_payments.public.payments;
DROP STREAM orders_and_payments.public.orders;
DROP DATABASE orders_and_payments;
DROP ENTITY "payments.payments" IN STORE embedded;
DROP ENTITY "payments.orders" IN STORE embedded;

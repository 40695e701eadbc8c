DROP STREAM deduplication.public.orders;
DROP DATABASE deduplication;
DROP ENTITY "deduplication.orders" IN STORE embedded;

DROP STREAM s3_landing.public.orders;
DROP DATABASE s3_landing;
DROP ENTITY "landing.orders" IN STORE embedded;
-- The files.
DROP ENTITY orders IN STORE lake;
DROP STORE lake;

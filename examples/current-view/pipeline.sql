-- Views that always have the current rows of a PostgreSQL table.
CREATE DATABASE current_view;
USE DATABASE current_view;

-- The table's rows, and then each change from the database's log.
CREATE CHANGELOG customers (id BIGINT, name VARCHAR, city VARCHAR, PRIMARY KEY (id))
  WITH ('store' = 'shop_db', 'postgresql.table.name' = 'customers');

CREATE MATERIALIZED VIEW customers_now AS
  SELECT id, name, city FROM customers;

CREATE MATERIALIZED VIEW customers_by_city AS
  SELECT city, count(*) AS customers FROM customers GROUP BY city;

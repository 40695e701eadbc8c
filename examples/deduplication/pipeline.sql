-- Each order once, although its producer repeats records, and the items by their revenue.
CREATE DATABASE deduplication;
USE DATABASE deduplication;
-- `leat dev` declares its own Kafka as the store embedded.
USE STORE embedded;

CREATE STREAM orders (id BIGINT, item VARCHAR, amount DECIMAL(10, 2), at TIMESTAMP_LTZ)
  WITH ('topic' = 'deduplication.orders', 'topic.partitions' = 3, 'topic.replicas' = 1,
    'value.format' = 'json', 'timestamp' = 'at');

-- One row for each id. A repeated record changes nothing: max takes the same value from each copy.
CREATE CHANGELOG orders_once WITH ('topic' = 'deduplication.orders_once') AS
  SELECT id, max(item) AS item, max(amount) AS amount
  FROM orders
  GROUP BY id;

CREATE MATERIALIZED VIEW revenue_per_item AS
  SELECT item, count(*) AS orders, sum(amount) AS revenue
  FROM orders_once
  GROUP BY item;

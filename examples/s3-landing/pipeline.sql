-- Orders of a topic as Parquet files in S3, one directory for each day, each order in exactly one file.
CREATE DATABASE s3_landing;
USE DATABASE s3_landing;
-- `leat dev` declares its own Kafka as the store embedded.
USE STORE embedded;

CREATE STREAM orders (id BIGINT, item VARCHAR, amount DECIMAL(10, 2), at TIMESTAMP_LTZ)
  WITH ('topic' = 'landing.orders', 'topic.partitions' = 3, 'topic.replicas' = 1,
    'value.format' = 'json', 'timestamp' = 'at');

-- Five minutes (300000) make fewer and larger files than these ten seconds.
CREATE STREAM orders_in_lake WITH (
    'store' = 'lake', 'topic' = 'orders', 'value.format' = 'parquet',
    's3.partition.by' = 'day', 's3.interval.millis' = 10000) AS
  SELECT id, item, amount, at, CAST(at AS DATE) AS day
  FROM orders WITH ('starting.position' = 'earliest');

-- An alert for each item that is ordered more than three times in five minutes.
CREATE DATABASE alerts;
USE DATABASE alerts;
-- `leat dev` declares its own Kafka as the store embedded.
USE STORE embedded;

CREATE STREAM orders (id BIGINT, item VARCHAR, at TIMESTAMP_LTZ)
  WITH ('topic' = 'alerts.orders', 'topic.partitions' = 3, 'topic.replicas' = 1,
    'value.format' = 'json', 'timestamp' = 'at');

-- The window moves on every minute.
CREATE STREAM rushes WITH ('topic' = 'alerts.rushes', 'key.format' = 'primitive', 'key.columns' = 'item') AS
  SELECT item, window_end AS until, count(*) AS orders
  FROM HOP(orders, SIZE 5 MINUTES, ADVANCE BY 1 MINUTE)
  GROUP BY window_start, window_end, item
  HAVING count(*) > 3;

-- Orders joined with their payments, and the orders that nobody has paid.
CREATE DATABASE orders_and_payments;
USE DATABASE orders_and_payments;
-- `leat dev` declares its own Kafka as the store embedded.
USE STORE embedded;

CREATE STREAM orders (id BIGINT, customer VARCHAR, amount DECIMAL(10, 2), at TIMESTAMP_LTZ)
  WITH ('topic' = 'payments.orders', 'topic.partitions' = 3, 'topic.replicas' = 1,
    'value.format' = 'json', 'timestamp' = 'at');

CREATE STREAM payments (order_id BIGINT, paid DECIMAL(10, 2), at TIMESTAMP_LTZ)
  WITH ('topic' = 'payments.payments', 'topic.partitions' = 3, 'topic.replicas' = 1,
    'value.format' = 'json', 'timestamp' = 'at');

-- A payment arrives up to an hour after its order. An unpaid order is written when no payment can arrive any more.
CREATE STREAM orders_with_payments WITH ('topic' = 'payments.orders_with_payments') AS
  SELECT o.id AS id, o.customer, o.amount, p.paid
  FROM orders o
  LEFT JOIN payments p WITHIN (AFTER 1 HOUR) ON o.id = p.order_id;

CREATE STREAM unpaid_orders WITH ('topic' = 'payments.unpaid_orders') AS
  SELECT id, customer, amount FROM orders_with_payments WHERE paid IS NULL;

-- A stream over a topic, and a query that filters it until it is terminated.
CREATE DATABASE IF NOT EXISTS demo;
CREATE SCHEMA IF NOT EXISTS demo.shop;
USE SCHEMA demo.shop;
-- `leat dev` declares its own Kafka as the store embedded.
USE STORE embedded;

CREATE STREAM IF NOT EXISTS pageviews (viewtime BIGINT, userid VARCHAR, pageid VARCHAR)
  WITH ('topic' = 'pageviews', 'value.format' = 'json', 'timestamp' = 'viewtime');

CREATE STREAM IF NOT EXISTS pageviews_one_user AS
  SELECT viewtime, userid, pageid FROM pageviews WHERE userid = 'User_6';

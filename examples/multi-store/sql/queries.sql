-- Kinesis to Kafka.
CREATE STREAM pageviews_kafka
  WITH ('store' = 'kafka_store', 'topic.partitions' = 1, 'topic.replicas' = 1) AS
  SELECT * FROM pageviews_kinesis;

-- Kinesis joined with Kafka, into Kinesis; topic.shards is that of pageviews_kinesis, the left-most source.
CREATE STREAM pageviews_enriched WITH ('store' = 'kinesis_store') AS
  SELECT p.viewtime, p.userid AS userid, p.pageid, u.regionid, u.gender
  FROM pageviews_kinesis p JOIN users_kafka u WITHIN 5 MINUTES ON p.userid = u.userid;

-- Kafka to Kafka, into the session's store: partitions and replicas come from users_kafka.
USE STORE kafka_store;
CREATE STREAM users_regions AS
  SELECT userid, regionid FROM users_kafka;

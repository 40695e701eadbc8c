-- Refused: a Kinesis stream knows no partitions and replicas, so nothing tells them for the new topic.
CREATE STREAM pageviews_kafka WITH ('store' = 'kafka_store') AS
  SELECT * FROM pageviews_kinesis;

-- Refused: the left-most source is a Kafka topic, which has no shards.
CREATE STREAM pageviews_enriched WITH ('store' = 'kinesis_store') AS
  SELECT p.viewtime, p.userid AS userid, p.pageid, u.regionid, u.gender
  FROM users_kafka u JOIN pageviews_kinesis p WITHIN 5 MINUTES ON p.userid = u.userid;

-- Write your addresses in; those of `leat dev --kinesis` are in .leatstream/ready.json.
CREATE STORE MSK WITH ('type' = KAFKA, 'uris' = '127.0.0.1:9092', 'tls.disabled' = TRUE);
-- A second name for the same cluster: the store that new Kafka topics go to.
CREATE STORE kafka_store WITH ('type' = KAFKA, 'uris' = '127.0.0.1:9092', 'tls.disabled' = TRUE);
CREATE STORE kinesis_store WITH (
  'type' = KINESIS, 'uris' = 'http://127.0.0.1:4566', 'kinesis.region' = 'us-east-1',
  'kinesis.access_key_id' = 'LOCAL', 'kinesis.secret_access_key' = 'local'
);

CREATE DATABASE multi_store;
CREATE SCHEMA multi_store.shop;
USE SCHEMA multi_store.shop;

CREATE STREAM pageviews_kinesis (viewtime BIGINT, userid VARCHAR, pageid VARCHAR)
  WITH ('store' = 'kinesis_store', 'topic' = 'pageviews', 'value.format' = 'json', 'timestamp' = 'viewtime');
CREATE STREAM users_kafka (registertime BIGINT, userid VARCHAR, regionid VARCHAR, gender VARCHAR)
  WITH ('store' = 'MSK', 'topic' = 'ds_users', 'value.format' = 'json', 'timestamp' = 'registertime');

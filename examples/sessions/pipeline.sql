-- Sessions of visitors: clicks without a pause of half an hour or more.
CREATE DATABASE sessions;
USE DATABASE sessions;
-- `leat dev` declares its own Kafka as the store embedded.
USE STORE embedded;

CREATE STREAM clicks (visitor VARCHAR, page VARCHAR, at TIMESTAMP_LTZ)
  WITH ('topic' = 'sessions.clicks', 'topic.partitions' = 3, 'topic.replicas' = 1,
    'value.format' = 'json', 'key.format' = 'primitive', 'key.columns' = 'visitor', 'timestamp' = 'at');

-- Each session is written once, when it has ended.
CREATE STREAM visits WITH ('topic' = 'sessions.visits') AS
  SELECT visitor, window_start AS began, max(at) AS last_click, count(*) AS clicks
  FROM SESSION(clicks, GAP 30 MINUTES)
  GROUP BY window_start, window_end, visitor;

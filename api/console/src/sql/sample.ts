/** The statements that `leat dev` prints at its start (SAMPLE_SQL of dev/samples.py; a test compares them). */
export const SAMPLE = `\
CREATE DATABASE play; USE DATABASE play;
CREATE STREAM pageviews
  (viewtime BIGINT, userid VARCHAR, pageid VARCHAR)
  WITH ('topic' = 'pageviews', 'value.format' = 'json',
        'key.format' = 'primitive', 'key.type' = 'VARCHAR',
        'timestamp' = 'viewtime');
CREATE STREAM pageviews_6 AS
  SELECT * FROM pageviews WHERE userid = 'User_6';`;

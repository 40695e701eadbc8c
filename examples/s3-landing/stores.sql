-- Write the address of your bucket and its keys in.
CREATE STORE lake WITH (
  'type' = S3, 'uris' = 'http://127.0.0.1:4566/landing', 'aws.region' = 'us-east-1',
  'aws.access_key_id' = 'LOCAL', 'aws.secret_access_key' = 'local'
);

-- Write your address, user and password in. The server has wal_level = logical, the user the attribute REPLICATION.
CREATE STORE shop_db WITH (
  'type' = POSTGRESQL, 'uris' = 'postgresql://127.0.0.1:5432/shop', 'tls.disabled' = TRUE,
  'postgres.username' = 'shop', 'postgres.password' = 'secret'
);
-- The shop has this table already; elsewhere it is created.
CREATE ENTITY IF NOT EXISTS customers IN STORE shop_db WITH (
  'table.columns' = 'id BIGINT, name VARCHAR, city VARCHAR, PRIMARY KEY (id)', 'postgresql.replica.identity' = 'full'
);

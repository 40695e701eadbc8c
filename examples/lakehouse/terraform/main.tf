# Page views from Kafka, kept in an Iceberg table and counted in a ClickHouse view.

terraform {
  required_version = ">= 1.11"
  required_providers {
    leatstream = {
      source = "leatstream.dev/leatstream/leatstream"
    }
  }
}

provider "leatstream" {}

resource "leatstream_store" "kafka" {
  name  = "kafka_store"
  kafka = { bootstrap_servers = var.kafka_bootstrap_servers }
}

resource "leatstream_store" "lake" {
  name = "lake"
  iceberg_rest = {
    uri              = var.catalog_uri
    warehouse        = var.catalog_warehouse
    client_id        = var.catalog_client_id
    client_secret_wo = var.catalog_client_secret
    scope            = var.catalog_scope
  }
}

resource "leatstream_store" "clickhouse" {
  name = "clickhouse"
  clickhouse = {
    host        = var.clickhouse.host
    port        = var.clickhouse.port
    secure      = var.clickhouse.secure
    username    = var.clickhouse.username
    database    = var.clickhouse.database
    password_wo = var.clickhouse_password
  }
}

resource "leatstream_database" "lakehouse" {
  name = "lakehouse"
}

resource "leatstream_schema" "shop" {
  database = leatstream_database.lakehouse.name
  name     = "shop"
}

# The topic exists already: `leat dev` produces sample records into it.
resource "leatstream_stream" "pageviews" {
  database     = leatstream_database.lakehouse.name
  schema       = leatstream_schema.shop.name
  name         = "pageviews"
  store        = leatstream_store.kafka.name
  topic        = "pageviews"
  value_format = "json"
  timestamp    = "viewtime"

  columns = [
    { name = "viewtime", type = "BIGINT" },
    { name = "userid", type = "VARCHAR" },
    { name = "pageid", type = "VARCHAR" },
  ]
}

# Every page view once: files of a batch and its number are one commit of the catalog.
resource "leatstream_query" "pageviews_kept" {
  name               = "pageviews_kept"
  database           = leatstream_database.lakehouse.name
  schema             = leatstream_schema.shop.name
  delete_sink_entity = true
  sql                = <<-SQL
    CREATE TABLE pageviews_kept WITH (
      'store' = '${leatstream_store.lake.name}', 'iceberg.namespace' = 'shop', 'iceberg.interval.millis' = 5000
    ) AS
    SELECT viewtime, userid, pageid
    FROM ${leatstream_stream.pageviews.fqn} WITH ('starting.position' = 'earliest');
  SQL
  timeouts           = { create = "5m" }
}

# A plain view in ClickHouse, for dashboards: SELECT * FROM views_per_page ORDER BY views DESC.
resource "leatstream_query" "views_per_page" {
  name     = "views_per_page"
  database = leatstream_database.lakehouse.name
  schema   = leatstream_schema.shop.name
  sql      = <<-SQL
    CREATE MATERIALIZED VIEW views_per_page WITH ('store' = '${leatstream_store.clickhouse.name}') AS
    SELECT pageid, count(*) AS views
    FROM ${leatstream_stream.pageviews.fqn} WITH ('starting.position' = 'earliest')
    GROUP BY pageid;
  SQL
  timeouts = { create = "5m" }
}

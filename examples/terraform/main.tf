# Page views and users in one Kafka cluster: a filter and a join, each a query that runs until it is destroyed.

terraform {
  required_version = ">= 1.11"
  required_providers {
    leatstream = {
      source = "leatstream.dev/leatstream/leatstream"
    }
  }
}

provider "leatstream" {
  url   = var.url
  token = var.token
}

resource "leatstream_store" "kafka" {
  name    = "kafka_store"
  comment = "The cluster that holds the topics."

  kafka = {
    bootstrap_servers = var.kafka_bootstrap_servers
  }
}

resource "leatstream_database" "demo" {
  name = "demo"
}

resource "leatstream_schema" "shop" {
  database = leatstream_database.demo.name
  name     = "shop"
}

# Both topics exist already: `leat dev` produces sample records into them.
resource "leatstream_stream" "pageviews" {
  database     = leatstream_database.demo.name
  schema       = leatstream_schema.shop.name
  name         = "pageviews"
  store        = leatstream_store.kafka.name
  topic        = "pageviews"
  value_format = "json"
  key_format   = "primitive"
  key_type     = "VARCHAR"
  timestamp    = "viewtime"

  columns = [
    { name = "viewtime", type = "BIGINT" },
    { name = "userid", type = "VARCHAR" },
    { name = "pageid", type = "VARCHAR" },
  ]
}

resource "leatstream_stream" "users" {
  database     = leatstream_database.demo.name
  schema       = leatstream_schema.shop.name
  name         = "users"
  store        = leatstream_store.kafka.name
  topic        = "users"
  value_format = "json"
  key_format   = "primitive"
  key_type     = "VARCHAR"
  timestamp    = "registertime"

  columns = [
    { name = "registertime", type = "BIGINT" },
    { name = "userid", type = "VARCHAR" },
    { name = "regionid", type = "VARCHAR" },
    { name = "gender", type = "VARCHAR" },
  ]
}

# The sink's partitions and replicas are inferred from pageviews; `terraform plan` shows them.
resource "leatstream_query" "one_user" {
  name     = "one_user"
  database = leatstream_database.demo.name
  schema   = leatstream_schema.shop.name
  store    = leatstream_store.kafka.name

  sql = <<-SQL
    CREATE STREAM pageviews_one_user AS
    SELECT viewtime, userid, pageid
    FROM ${leatstream_stream.pageviews.fqn} WITH ('starting.position' = 'earliest')
    WHERE userid = '${var.userid}';
  SQL
}

resource "leatstream_query" "enriched" {
  name     = "enriched"
  database = leatstream_database.demo.name
  schema   = leatstream_schema.shop.name
  store    = leatstream_store.kafka.name

  # Destroying the query deletes its topic too; without this it stays.
  delete_sink_entity = true

  sql = <<-SQL
    CREATE STREAM pageviews_enriched AS
    SELECT p.userid AS userid, p.pageid, u.regionid, u.gender
    FROM ${leatstream_stream.pageviews.fqn} p WITH ('starting.position' = 'earliest')
    JOIN ${leatstream_stream.users.fqn} u WITH ('starting.position' = 'earliest')
      WITHIN 5 MINUTES ON p.userid = u.userid;
  SQL

  timeouts = {
    create = "3m"
  }
}

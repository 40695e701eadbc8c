# A stream over a topic, and a query that filters it until it is destroyed.

terraform {
  required_version = ">= 1.11"
  required_providers {
    leatstream = {
      source = "leatstream.dev/leatstream/leatstream"
    }
  }
}

# The address and the token come from LEATSTREAM_URL and LEATSTREAM_TOKEN.
provider "leatstream" {}

resource "leatstream_database" "demo" {
  name = "demo"
}

resource "leatstream_schema" "shop" {
  database = leatstream_database.demo.name
  name     = "shop"
}

resource "leatstream_stream" "pageviews" {
  database     = leatstream_database.demo.name
  schema       = leatstream_schema.shop.name
  name         = "pageviews"
  store        = var.store
  topic        = "pageviews"
  value_format = "json"
  timestamp    = "viewtime"

  columns = [
    { name = "viewtime", type = "BIGINT" },
    { name = "userid", type = "VARCHAR" },
    { name = "pageid", type = "VARCHAR" },
  ]
}

resource "leatstream_query" "one_user" {
  name     = "one_user"
  database = leatstream_database.demo.name
  schema   = leatstream_schema.shop.name
  store    = var.store

  sql = <<-SQL
    CREATE STREAM pageviews_one_user AS
    SELECT viewtime, userid, pageid
    FROM ${leatstream_stream.pageviews.fqn}
    WHERE userid = 'User_6';
  SQL
}

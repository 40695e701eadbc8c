# Two kinds of store in one set of queries: page views live in Kinesis, users in Kafka.

terraform {
  required_version = ">= 1.11"
  required_providers {
    leatstream = {
      source = "leatstream.dev/leatstream/leatstream"
    }
  }
}

provider "leatstream" {}

resource "leatstream_store" "msk" {
  name  = "MSK"
  kafka = { bootstrap_servers = var.kafka_bootstrap_servers }
}

# A second name for the same cluster: the store that new Kafka topics go to.
resource "leatstream_store" "kafka" {
  name  = "kafka_store"
  kafka = { bootstrap_servers = var.kafka_bootstrap_servers }
}

resource "leatstream_store" "kinesis" {
  name = "kinesis_store"
  kinesis = {
    region               = var.region
    endpoint_url         = var.kinesis_endpoint
    access_key_id        = var.access_key_id
    secret_access_key_wo = var.secret_access_key
  }
}

resource "leatstream_database" "demo" {
  name = "multi_store"
}

resource "leatstream_schema" "shop" {
  database = leatstream_database.demo.name
  name     = "shop"
}

resource "leatstream_stream" "pageviews_kinesis" {
  database     = leatstream_database.demo.name
  schema       = leatstream_schema.shop.name
  name         = "pageviews_kinesis"
  store        = leatstream_store.kinesis.name
  topic        = "pageviews"
  value_format = "json"
  timestamp    = "viewtime"

  columns = [
    { name = "viewtime", type = "BIGINT" },
    { name = "userid", type = "VARCHAR" },
    { name = "pageid", type = "VARCHAR" },
  ]
}

resource "leatstream_stream" "users_kafka" {
  database     = leatstream_database.demo.name
  schema       = leatstream_schema.shop.name
  name         = "users_kafka"
  store        = leatstream_store.msk.name
  topic        = "ds_users"
  value_format = "json"
  timestamp    = "registertime"

  columns = [
    { name = "registertime", type = "BIGINT" },
    { name = "userid", type = "VARCHAR" },
    { name = "regionid", type = "VARCHAR" },
    { name = "gender", type = "VARCHAR" },
  ]
}

locals {
  # A Kinesis stream knows no partitions and replicas, so a Kafka topic made from one must be told.
  new_topic = var.new_topic == null ? "" : ", 'topic.partitions' = ${var.new_topic.partitions}, 'topic.replicas' = ${var.new_topic.replicas}"
  pageviews = "${leatstream_stream.pageviews_kinesis.fqn} p"
  users     = "${leatstream_stream.users_kafka.fqn} u"
}

# Kinesis to Kafka. Without topic.partitions and topic.replicas the plan fails and says why. The store's name stands in
# double quotes: SQL folds one in single quotes to lower case.
resource "leatstream_query" "pageviews_kafka" {
  name               = "pageviews_kafka"
  database           = leatstream_database.demo.name
  schema             = leatstream_schema.shop.name
  delete_sink_entity = true
  sql                = <<-SQL
    CREATE STREAM pageviews_kafka WITH ('store' = "${leatstream_store.kafka.name}"${local.new_topic}) AS
    SELECT * FROM ${leatstream_stream.pageviews_kinesis.fqn};
  SQL
  timeouts           = { create = "5m" }
}

# Kinesis joined with Kafka, into Kinesis. topic.shards is that of pageviews_kinesis, the left-most source; with the
# users on the left it would have to be given.
resource "leatstream_query" "pageviews_enriched" {
  name               = "pageviews_enriched"
  database           = leatstream_database.demo.name
  schema             = leatstream_schema.shop.name
  delete_sink_entity = true
  sql                = <<-SQL
    CREATE STREAM pageviews_enriched WITH ('store' = "${leatstream_store.kinesis.name}") AS
    SELECT p.viewtime, p.userid AS userid, p.pageid, u.regionid, u.gender
    FROM ${var.left_most == "pageviews" ? local.pageviews : local.users}
    JOIN ${var.left_most == "pageviews" ? local.users : local.pageviews}
      WITHIN 5 MINUTES ON p.userid = u.userid;
  SQL
  timeouts           = { create = "5m" }
}

# Kafka to Kafka: partitions and replicas come from users_kafka, and the store, which the statement does not name, is
# the query's own, as it is the session's in SQL.
resource "leatstream_query" "users_regions" {
  name               = "users_regions"
  database           = leatstream_database.demo.name
  schema             = leatstream_schema.shop.name
  store              = leatstream_store.kafka.name
  delete_sink_entity = true
  sql                = "CREATE STREAM users_regions AS SELECT userid, regionid FROM ${leatstream_stream.users_kafka.fqn}"
  timeouts           = { create = "5m" }
}

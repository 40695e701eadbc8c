# Each order once, although its producer repeats records, and the items by their revenue.

terraform {
  required_version = ">= 1.11"
  required_providers {
    leatstream = {
      source = "leatstream.dev/leatstream/leatstream"
    }
  }
}

# LEATSTREAM_URL and LEATSTREAM_TOKEN are its address and its token.
provider "leatstream" {}

variable "kafka" {
  description = "The store of the topics. `leat dev` declares its own Kafka as embedded."
  type        = string
  default     = "embedded"
}

resource "leatstream_database" "deduplication" {
  name = "deduplication"
}

resource "leatstream_entity" "orders" {
  store = var.kafka
  name  = "deduplication.orders"
  kafka = { partitions = 3, replicas = 1 }
}

resource "leatstream_stream" "orders" {
  database     = leatstream_database.deduplication.name
  schema       = "public"
  name         = "orders"
  store        = var.kafka
  topic        = leatstream_entity.orders.name
  value_format = "json"
  timestamp    = "at"

  columns = [
    { name = "id", type = "BIGINT" },
    { name = "item", type = "VARCHAR" },
    { name = "amount", type = "DECIMAL(10, 2)" },
    { name = "at", type = "TIMESTAMP_LTZ" },
  ]
}

# One row for each id. A repeated record changes nothing: max takes the same value from each copy.
resource "leatstream_query" "orders_once" {
  name               = "orders_once"
  database           = leatstream_database.deduplication.name
  schema             = "public"
  store              = var.kafka
  delete_sink_entity = true

  sql = <<-SQL
    CREATE CHANGELOG orders_once WITH ('topic' = 'deduplication.orders_once') AS
    SELECT id, max(item) AS item, max(amount) AS amount
    FROM ${leatstream_stream.orders.fqn}
    GROUP BY id;
  SQL
}

resource "leatstream_query" "revenue_per_item" {
  name     = "revenue_per_item"
  database = leatstream_database.deduplication.name
  schema   = "public"

  sql = <<-SQL
    CREATE MATERIALIZED VIEW revenue_per_item AS
    SELECT item, count(*) AS orders, sum(amount) AS revenue
    FROM ${leatstream_query.orders_once.sink}
    GROUP BY item;
  SQL
}

# An alert for each item that is ordered more than three times in five minutes.

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

resource "leatstream_database" "alerts" {
  name = "alerts"
}

resource "leatstream_entity" "orders" {
  store = var.kafka
  name  = "alerts.orders"
  kafka = { partitions = 3, replicas = 1 }
}

resource "leatstream_stream" "orders" {
  database     = leatstream_database.alerts.name
  schema       = "public"
  name         = "orders"
  store        = var.kafka
  topic        = leatstream_entity.orders.name
  value_format = "json"
  timestamp    = "at"

  columns = [
    { name = "id", type = "BIGINT" },
    { name = "item", type = "VARCHAR" },
    { name = "at", type = "TIMESTAMP_LTZ" },
  ]
}

# The window moves on every minute.
resource "leatstream_query" "rushes" {
  name               = "rushes"
  database           = leatstream_database.alerts.name
  schema             = "public"
  store              = var.kafka
  delete_sink_entity = true

  sql = <<-SQL
    CREATE STREAM rushes WITH ('topic' = 'alerts.rushes', 'key.format' = 'primitive', 'key.columns' = 'item') AS
    SELECT item, window_end AS until, count(*) AS orders
    FROM HOP(${leatstream_stream.orders.fqn}, SIZE 5 MINUTES, ADVANCE BY 1 MINUTE)
    GROUP BY window_start, window_end, item
    HAVING count(*) > 3;
  SQL
}

# Sessions of visitors: clicks without a pause of half an hour or more.

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

resource "leatstream_database" "sessions" {
  name = "sessions"
}

resource "leatstream_entity" "clicks" {
  store = var.kafka
  name  = "sessions.clicks"
  kafka = { partitions = 3, replicas = 1 }
}

resource "leatstream_stream" "clicks" {
  database     = leatstream_database.sessions.name
  schema       = "public"
  name         = "clicks"
  store        = var.kafka
  topic        = leatstream_entity.clicks.name
  value_format = "json"
  key_format   = "primitive"
  properties   = { "key.columns" = "visitor" }
  timestamp    = "at"

  columns = [
    { name = "visitor", type = "VARCHAR" },
    { name = "page", type = "VARCHAR" },
    { name = "at", type = "TIMESTAMP_LTZ" },
  ]
}

# Each session is written once, when it has ended.
resource "leatstream_query" "visits" {
  name               = "visits"
  database           = leatstream_database.sessions.name
  schema             = "public"
  store              = var.kafka
  delete_sink_entity = true

  sql = <<-SQL
    CREATE STREAM visits WITH ('topic' = 'sessions.visits') AS
    SELECT visitor, window_start AS began, max(at) AS last_click, count(*) AS clicks
    FROM SESSION(${leatstream_stream.clicks.fqn}, GAP 30 MINUTES)
    GROUP BY window_start, window_end, visitor;
  SQL
}

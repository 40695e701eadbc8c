# Orders of a topic as Parquet files in S3, one directory for each day, each order in exactly one file.

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

variable "s3" {
  description = "The bucket. `endpoint_url` is for servers other than Amazon's, such as MinIO."
  type = object({
    bucket       = optional(string, "landing")
    region       = optional(string, "us-east-1")
    endpoint_url = optional(string)
  })
  default = {}
}

variable "access_key_id" {
  description = "Access key of the bucket."
  type        = string
}

variable "secret_access_key" {
  description = "Its secret."
  type        = string
  sensitive   = true
  ephemeral   = true # never in a plan or state file
}

resource "leatstream_store" "lake" {
  name = "lake"
  s3 = {
    bucket               = var.s3.bucket
    region               = var.s3.region
    endpoint_url         = var.s3.endpoint_url
    access_key_id        = var.access_key_id
    secret_access_key_wo = var.secret_access_key
  }
}

resource "leatstream_database" "s3_landing" {
  name = "s3_landing"
}

resource "leatstream_entity" "orders" {
  store = var.kafka
  name  = "landing.orders"
  kafka = { partitions = 3, replicas = 1 }
}

resource "leatstream_stream" "orders" {
  database     = leatstream_database.s3_landing.name
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

# Five minutes (300000) make fewer and larger files than these ten seconds.
resource "leatstream_query" "orders_in_lake" {
  name               = "orders_in_lake"
  database           = leatstream_database.s3_landing.name
  schema             = "public"
  delete_sink_entity = true

  sql = <<-SQL
    CREATE STREAM orders_in_lake WITH (
        'store' = '${leatstream_store.lake.name}', 'topic' = 'orders', 'value.format' = 'parquet',
        's3.partition.by' = 'day', 's3.interval.millis' = 10000) AS
    SELECT id, item, amount, at, CAST(at AS DATE) AS day
    FROM ${leatstream_stream.orders.fqn} WITH ('starting.position' = 'earliest');
  SQL
}

# Orders joined with their payments, and the orders that nobody has paid.

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

resource "leatstream_database" "orders_and_payments" {
  name = "orders_and_payments"
}

resource "leatstream_entity" "orders" {
  store = var.kafka
  name  = "payments.orders"
  kafka = { partitions = 3, replicas = 1 }
}

resource "leatstream_stream" "orders" {
  database     = leatstream_database.orders_and_payments.name
  schema       = "public"
  name         = "orders"
  store        = var.kafka
  topic        = leatstream_entity.orders.name
  value_format = "json"
  timestamp    = "at"

  columns = [
    { name = "id", type = "BIGINT" },
    { name = "customer", type = "VARCHAR" },
    { name = "amount", type = "DECIMAL(10, 2)" },
    { name = "at", type = "TIMESTAMP_LTZ" },
  ]
}

resource "leatstream_entity" "payments" {
  store = var.kafka
  name  = "payments.payments"
  kafka = { partitions = 3, replicas = 1 }
}

resource "leatstream_stream" "payments" {
  database     = leatstream_database.orders_and_payments.name
  schema       = "public"
  name         = "payments"
  store        = var.kafka
  topic        = leatstream_entity.payments.name
  value_format = "json"
  timestamp    = "at"

  columns = [
    { name = "order_id", type = "BIGINT" },
    { name = "paid", type = "DECIMAL(10, 2)" },
    { name = "at", type = "TIMESTAMP_LTZ" },
  ]
}

# A payment arrives up to an hour after its order. An unpaid order is written when no payment can arrive any more.
resource "leatstream_query" "orders_with_payments" {
  name               = "orders_with_payments"
  database           = leatstream_database.orders_and_payments.name
  schema             = "public"
  store              = var.kafka
  delete_sink_entity = true

  sql = <<-SQL
    CREATE STREAM orders_with_payments WITH ('topic' = 'payments.orders_with_payments') AS
    SELECT o.id AS id, o.customer, o.amount, p.paid
    FROM ${leatstream_stream.orders.fqn} o
    LEFT JOIN ${leatstream_stream.payments.fqn} p WITHIN (AFTER 1 HOUR) ON o.id = p.order_id;
  SQL
}

resource "leatstream_query" "unpaid_orders" {
  name               = "unpaid_orders"
  database           = leatstream_database.orders_and_payments.name
  schema             = "public"
  store              = var.kafka
  delete_sink_entity = true

  sql = <<-SQL
    CREATE STREAM unpaid_orders WITH ('topic' = 'payments.unpaid_orders') AS
    SELECT id, customer, amount FROM ${leatstream_query.orders_with_payments.sink} WHERE paid IS NULL;
  SQL
}

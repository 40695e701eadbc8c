# Views that always have the current rows of a PostgreSQL table.

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

variable "postgres" {
  description = "The shop's database. Its server has wal_level = logical, the user the attribute REPLICATION."
  type = object({
    host     = optional(string, "127.0.0.1")
    port     = optional(number, 5432)
    database = optional(string, "shop")
    username = optional(string, "shop")
    ssl_mode = optional(string, "disable") # verify_full across networks that are not your own
  })
  default = {}
}

variable "postgres_password" {
  description = "Password of that user."
  type        = string
  sensitive   = true
  ephemeral   = true # never in a plan or state file
}

resource "leatstream_store" "shop" {
  name = "shop_db"
  postgres = {
    host        = var.postgres.host
    port        = var.postgres.port
    database    = var.postgres.database
    username    = var.postgres.username
    ssl_mode    = var.postgres.ssl_mode
    password_wo = var.postgres_password
  }
}

# The shop has this table already. Here it is created, and deleted by `terraform destroy`.
resource "leatstream_entity" "customers" {
  store = leatstream_store.shop.name
  name  = "customers"
  postgres = {
    columns = [
      { name = "id", type = "BIGINT" },
      { name = "name", type = "VARCHAR" },
      { name = "city", type = "VARCHAR" },
    ]
    primary_key      = ["id"]
    replica_identity = "full"
  }
}

resource "leatstream_database" "current_view" {
  name = "current_view"
}

# The table's rows, and then each change from the database's log.
resource "leatstream_changelog" "customers" {
  database    = leatstream_database.current_view.name
  schema      = "public"
  name        = "customers"
  store       = leatstream_store.shop.name
  topic       = leatstream_entity.customers.name
  primary_key = ["id"]

  columns = [
    { name = "id", type = "BIGINT" },
    { name = "name", type = "VARCHAR" },
    { name = "city", type = "VARCHAR" },
  ]
}

resource "leatstream_query" "customers_now" {
  name     = "customers_now"
  database = leatstream_database.current_view.name
  schema   = "public"

  sql = <<-SQL
    CREATE MATERIALIZED VIEW customers_now AS
    SELECT id, name, city FROM ${leatstream_changelog.customers.fqn};
  SQL
}

resource "leatstream_query" "customers_by_city" {
  name     = "customers_by_city"
  database = leatstream_database.current_view.name
  schema   = "public"

  sql = <<-SQL
    CREATE MATERIALIZED VIEW customers_by_city AS
    SELECT city, count(*) AS customers FROM ${leatstream_changelog.customers.fqn} GROUP BY city;
  SQL
}

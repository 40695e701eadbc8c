variable "kafka_bootstrap_servers" {
  description = "The Kafka cluster, as the leatstream service reaches it. `leat dev` prints the address of its own."
  type        = string
}

variable "catalog_uri" {
  description = "Address of the Iceberg REST catalog, without /v1."
  type        = string
}

variable "catalog_warehouse" {
  description = "Warehouse or catalog to use, where the server has several."
  type        = string
  default     = null
}

variable "catalog_client_id" {
  description = "OAuth2 client of the catalog."
  type        = string
}

variable "catalog_client_secret" {
  description = "Secret of the OAuth2 client."
  type        = string
  sensitive   = true
  ephemeral   = true # never in a plan or state file
}

variable "catalog_scope" {
  description = "OAuth2 scope, such as PRINCIPAL_ROLE:ALL for Polaris."
  type        = string
  default     = "PRINCIPAL_ROLE:ALL"
}

variable "clickhouse" {
  description = "The ClickHouse server, by its HTTP interface."
  type = object({
    host     = string
    port     = optional(number)
    secure   = optional(bool, true)
    username = optional(string, "default")
    database = optional(string, "default")
  })
}

variable "clickhouse_password" {
  description = "Password of the ClickHouse user."
  type        = string
  sensitive   = true
  ephemeral   = true
}

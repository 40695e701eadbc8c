variable "url" {
  description = "Address of the leatstream service; null takes the environment variable LEATSTREAM_URL."
  type        = string
  default     = null
}

variable "token" {
  description = "API token; null takes the environment variable LEATSTREAM_TOKEN."
  type        = string
  default     = null
  sensitive   = true
  ephemeral   = true # never in a plan or state file
}

variable "kafka_bootstrap_servers" {
  description = "The Kafka cluster, as the leatstream service reaches it. `leat dev` prints the address of its own."
  type        = string
}

variable "userid" {
  description = "Whose page views the filter query lets through."
  type        = string
  default     = "User_6"
}

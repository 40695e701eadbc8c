variable "store" {
  description = "Store that holds the topics; `leat dev` declares its own Kafka as embedded."
  type        = string
  default     = "embedded"
}

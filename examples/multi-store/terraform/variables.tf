variable "kafka_bootstrap_servers" {
  description = "The Kafka cluster, as the leatstream service reaches it."
  type        = string
}

variable "kinesis_endpoint" {
  description = "Another address than the region's own, such as that of `leat dev --kinesis`."
  type        = string
  default     = null
}

variable "region" {
  description = "AWS region of the Kinesis streams."
  type        = string
  default     = "us-east-1"
}

variable "access_key_id" {
  description = "Access key; null takes the leatstream server's own AWS credentials."
  type        = string
  default     = null
}

variable "secret_access_key" {
  description = "Its secret."
  type        = string
  default     = null
  sensitive   = true
  ephemeral   = true # never in a plan or state file
}

variable "new_topic" {
  description = "Properties of the topic pageviews_kafka. With null the plan fails: nothing could tell them."
  type        = object({ partitions = number, replicas = number })
  default     = { partitions = 1, replicas = 1 }
}

variable "left_most" {
  description = "The left side of the join: pageviews or users. With users the plan demands topic.shards."
  type        = string
  default     = "pageviews"

  validation {
    condition     = contains(["pageviews", "users"], var.left_most)
    error_message = "Give pageviews or users."
  }
}

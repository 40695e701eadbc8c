output "one_user_sink" {
  description = "What the filter query writes, with the properties of its topic and where each came from."
  value = {
    relation   = leatstream_query.one_user.sink
    properties = leatstream_query.one_user.effective
  }
}

output "enriched_mode" {
  description = "How Spark runs the join, and why."
  value       = "${leatstream_query.enriched.plan.mode}: ${leatstream_query.enriched.plan.mode_reason}"
}

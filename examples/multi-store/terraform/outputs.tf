output "sinks" {
  description = "What each query writes: its relation, and the sink's properties with where each came from."
  value = {
    for query in [
      leatstream_query.pageviews_kafka, leatstream_query.pageviews_enriched, leatstream_query.users_regions
    ] : query.name => { relation = query.sink, properties = query.effective }
  }
}

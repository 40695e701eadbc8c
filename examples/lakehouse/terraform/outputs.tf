output "kept" {
  description = "The Iceberg table, and what it was made with."
  value       = leatstream_query.pageviews_kept.status.state
}

output "counted" {
  description = "The query behind the ClickHouse view."
  value       = leatstream_query.views_per_page.status.state
}

"""ClickHouse: tables as sinks and for lookups."""

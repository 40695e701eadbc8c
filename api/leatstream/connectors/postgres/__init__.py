"""PostgreSQL: tables as sinks and for lookups, and their changes as sources."""

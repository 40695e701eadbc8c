"""The catalog as code: which objects are exported, in which order, and as which SQL statements."""

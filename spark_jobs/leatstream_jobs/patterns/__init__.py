"""MATCH_RECOGNIZE: row patterns, batch by batch."""

"""Joins with changelogs and tables, and aggregates over changelogs, on keyed snapshots."""

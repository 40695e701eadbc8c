"""Bounds that the service enforces and the command line shows. Imports nothing, so that it loads fast."""

LOG_LINES = 200
"""Last log lines of a query's job that are kept, and so the most that can be asked for."""

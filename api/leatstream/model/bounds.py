"""Bounds that the service keeps and the command line tells; it imports nothing, so that it starts fast."""

LOG_LINES = 200
"""Last log lines of a query's job that are kept, and so the most that can be asked for."""

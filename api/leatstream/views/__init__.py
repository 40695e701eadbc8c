"""Materialized views: where their rows are kept, written by a job and read by the API."""

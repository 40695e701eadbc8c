"""Brings the jobs of queries to what users want."""

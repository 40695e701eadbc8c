"""Databricks: Delta tables of a Unity Catalog whose files lie in a bucket of the user's."""

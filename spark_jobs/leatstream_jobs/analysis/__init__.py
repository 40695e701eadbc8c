"""Checks of SQL by Spark's own analyzer."""

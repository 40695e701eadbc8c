"""Queries that run batch by batch in Python: what their batches share."""

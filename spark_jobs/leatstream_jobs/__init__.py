"""The data plane: one driver process per query, which pulls its work and runs it with PySpark."""

"""The embedded stack: a real broker, the jars, tools, sample data. Production needs none of it."""

"""Applications: statements that are created, changed and deleted together."""

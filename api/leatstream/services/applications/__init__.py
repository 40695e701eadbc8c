"""Applications: statements that are made, changed and taken away together."""

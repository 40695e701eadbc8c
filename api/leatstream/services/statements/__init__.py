"""SQL statements: what they do, what they answer, and their dry run."""

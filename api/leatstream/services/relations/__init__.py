"""Relations, and the entities that hold their records."""

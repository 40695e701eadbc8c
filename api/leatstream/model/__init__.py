"""Domain objects: names, types, stores, relations, queries. Frozen, without I/O."""

"""A query whose statement changes: in place, or beside the old one until it takes over."""

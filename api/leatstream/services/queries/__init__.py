"""Queries and their lives: what users want of them, what drivers do, how the two are brought together."""

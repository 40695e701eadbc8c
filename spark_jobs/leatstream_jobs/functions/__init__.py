"""Users' functions in Python and Java."""

"""One module per noun; each has a ``router``."""

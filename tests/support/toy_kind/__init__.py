"""A store kind for tests: all that a kind needs, in one folder. ``connector.py`` is what the registry lists."""

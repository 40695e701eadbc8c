"""Oracle Database."""

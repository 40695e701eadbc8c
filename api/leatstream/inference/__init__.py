"""Sink-property inference: the left-most-source rule."""

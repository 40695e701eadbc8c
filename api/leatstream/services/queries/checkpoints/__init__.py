"""Checkpoints: what a new query begins with, savepoints, copies, and the removal of unused ones."""

"""Text to logical plan: dialect, parser, binder, passes."""

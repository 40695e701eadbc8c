"""What the stores of Amazon share."""

"""What a statement means and the one document handed to Spark."""

"""From a source of a job to the view that the compiled SQL reads."""

"""One attempt of a query: starting it, watching it, and explaining why it failed."""

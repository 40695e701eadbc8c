"""Store kinds, one folder each; ``registry`` lists them."""

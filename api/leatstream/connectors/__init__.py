"""Store kinds, one file each; ``registry`` lists them."""

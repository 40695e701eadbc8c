"""What is particular to each kind of store: a package a kind, listed in ``registry``."""

"""What each kind of store takes and shows, a module a kind."""

"""Record formats, orthogonal to the connectors."""

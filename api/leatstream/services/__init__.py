"""What the product does, without a face. Every function takes the environment and a principal."""

"""The catalog as it will be: objects that a dry run assumes, and changes that are kept all or not at all."""

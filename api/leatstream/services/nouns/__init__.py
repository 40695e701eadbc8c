"""Objects that name no other object's columns: databases, schemas, stores, secrets and registries."""

"""The REST face: reads requests, calls the services, writes answers. Holds no rule of its own."""

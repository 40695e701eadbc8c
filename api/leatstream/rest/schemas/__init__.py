"""Bodies and answers of the REST contract; ``from_domain`` maps the services' objects onto them."""

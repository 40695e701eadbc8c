"""What flows where: from stores over entities, relations and queries."""

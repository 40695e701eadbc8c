"""GraphQL at ``/graphql``: reading the catalog, following streams, running statements, over the services."""

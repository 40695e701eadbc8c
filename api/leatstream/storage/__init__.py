"""The catalog on disk: tables, repositories, units of work, migrations and the secret box."""

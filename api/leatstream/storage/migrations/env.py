"""Run by alembic: migrations on the connection that ``migrate`` gives, inside its transaction."""

from __future__ import annotations

from alembic import context

from leatstream.storage.tables import metadata

connection = context.config.attributes.get("connection")
if connection is None:
    raise SystemExit("Run migrations with leatstream.storage.migrate.migrate(url).")
context.configure(connection=connection, target_metadata=metadata, render_as_batch=True, compare_type=True)
with context.begin_transaction():
    context.run_migrations()

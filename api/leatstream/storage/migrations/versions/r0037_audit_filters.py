"""Columns of the audit log to look up by, which the database makes of each document."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0037"
down_revision = "r0036"
branch_labels = None
depends_on = None

_MEMBERS = ("operation", "kind", "name", "outcome")
_INDEXED = ("operation", "kind", "outcome")


def upgrade() -> None:
    """Add the columns and their indexes."""
    postgresql = op.get_bind().dialect.name == "postgresql"
    form = "(document ->> '{}')" if postgresql else "json_extract(document, '$.{}')"
    for name in _MEMBERS:
        # SQLite adds virtual columns only, PostgreSQL indexes stored ones only.
        computed = sa.Computed(form.format(name), persisted=postgresql)
        op.add_column("audit_events", sa.Column(name, sa.Text(), computed))
    for name in _INDEXED:
        op.create_index(f"ix_audit_events_{name}", "audit_events", [name, "id"])
    op.create_index("ix_audit_events_at", "audit_events", ["at"])


def downgrade() -> None:
    """Drop them."""
    op.drop_index("ix_audit_events_at", table_name="audit_events")
    for name in _INDEXED:
        op.drop_index(f"ix_audit_events_{name}", table_name="audit_events")
    for name in _MEMBERS:
        op.drop_column("audit_events", name)

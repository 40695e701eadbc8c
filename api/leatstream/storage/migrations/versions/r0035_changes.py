"""The feed of changes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0035"
down_revision = "r0034"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "changes",
        sa.Column("id", _key(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        _text("type"),
        _text("kind"),
        sa.Column("key", _key(), nullable=False),
        _text("object_id"),
        _text("owner"),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=True),
        sa.Column("message", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_changes"),
    )
    op.create_index("ix_changes_kind", "changes", ["kind", "key", "id"])


def downgrade() -> None:
    """Drop it."""
    op.drop_index("ix_changes_kind", table_name="changes")
    op.drop_table("changes")


def _key() -> sa.types.TypeEngine[str]:
    return sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def _text(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.Text(), nullable=False)

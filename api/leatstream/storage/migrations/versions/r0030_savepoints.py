"""Savepoints."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0030"
down_revision = "r0023"
branch_labels = None
depends_on = None

_NOUNS = ("savepoints",)


def upgrade() -> None:
    """Make the table, shaped like every noun's."""
    for noun in _NOUNS:
        op.create_table(
            noun,
            sa.Column("id", sa.Text(), nullable=False),
            sa.Column("key", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
            sa.Column("generation", sa.Integer(), nullable=False),
            sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
            sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
            sa.Column("created_by", sa.Text(), nullable=False),
            sa.Column("owner", sa.Text(), nullable=False),
            sa.Column("document", sa.JSON(), nullable=False),
            sa.PrimaryKeyConstraint("id", name=f"pk_{noun}"),
            sa.UniqueConstraint("key", name=f"uq_{noun}_key"),
        )


def downgrade() -> None:
    """Drop it."""
    for noun in reversed(_NOUNS):
        op.drop_table(noun)

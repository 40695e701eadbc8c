"""Invitations, and the principals of identity providers that act as a user."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0038"
down_revision = "r0037"
branch_labels = None
depends_on = None

_NOUNS = ("invitations", "linked_identities")


def upgrade() -> None:
    """Make the tables."""
    for noun in _NOUNS:
        op.create_table(
            noun,
            _text("id"),
            sa.Column("key", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
            sa.Column("generation", sa.Integer(), nullable=False),
            _moment("created_at"),
            _moment("updated_at"),
            _text("created_by"),
            _text("owner"),
            sa.Column("document", sa.JSON(), nullable=False),
            sa.PrimaryKeyConstraint("id", name=f"pk_{noun}"),
            sa.UniqueConstraint("key", name=f"uq_{noun}_key"),
        )


def downgrade() -> None:
    """Drop them; users and their tokens stay."""
    for noun in _NOUNS:
        op.drop_table(noun)


def _text(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.Text(), nullable=False)


def _moment(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=False)

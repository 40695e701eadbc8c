"""The first catalog: five nouns, secrets, tokens and drivers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0001"
down_revision = None
branch_labels = None
depends_on = None

_NOUNS = ("databases", "schemas", "stores", "relations", "queries")


def _key() -> sa.types.TypeEngine[str]:
    return sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def _moment() -> sa.DateTime:
    return sa.DateTime(timezone=True)


def upgrade() -> None:
    """Make every table."""
    for noun in _NOUNS:
        op.create_table(
            noun,
            sa.Column("id", sa.Text(), nullable=False),
            sa.Column("key", _key(), nullable=False),
            sa.Column("generation", sa.Integer(), nullable=False),
            sa.Column("created_at", _moment(), nullable=False),
            sa.Column("updated_at", _moment(), nullable=False),
            sa.Column("created_by", sa.Text(), nullable=False),
            sa.Column("owner", sa.Text(), nullable=False),
            sa.Column("document", sa.JSON(), nullable=False),
            sa.PrimaryKeyConstraint("id", name=f"pk_{noun}"),
            sa.UniqueConstraint("key", name=f"uq_{noun}_key"),
        )
    op.create_table(
        "secrets",
        sa.Column("reference", _key(), nullable=False),
        sa.Column("envelope", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("reference", name="pk_secrets"),
    )
    op.create_table(
        "tokens",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("created_at", _moment(), nullable=False),
        sa.Column("expires_at", _moment(), nullable=True),
        sa.Column("last_used", _moment(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_tokens"),
        sa.UniqueConstraint("hash", name="uq_tokens_hash"),
    )
    op.create_table(
        "drivers",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("token_hash", sa.Text(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("started_at", sa.Double(), nullable=False),
        sa.Column("query_id", sa.Text(), nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=True),
        sa.Column("created_at", _moment(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_drivers"),
    )


def downgrade() -> None:
    """Drop every table."""
    for table in ("drivers", "tokens", "secrets", *reversed(_NOUNS)):
        op.drop_table(table)

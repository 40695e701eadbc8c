"""Roles, accounts, names and scopes of tokens, and the audit log.

The tokens of before are dropped: there was one, the administrator's, which each start writes again.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0034"
down_revision = "r0033"
branch_labels = None
depends_on = None

_NOUNS = ("roles", "accounts")


def upgrade() -> None:
    """Make the tables."""
    for noun in _NOUNS:
        op.create_table(
            noun,
            _text("id"),
            sa.Column("key", _key(), nullable=False),
            sa.Column("generation", sa.Integer(), nullable=False),
            _moment("created_at"),
            _moment("updated_at"),
            _text("created_by"),
            _text("owner"),
            sa.Column("document", sa.JSON(), nullable=False),
            sa.PrimaryKeyConstraint("id", name=f"pk_{noun}"),
            sa.UniqueConstraint("key", name=f"uq_{noun}_key"),
        )
    op.drop_table("tokens")
    _make_tokens(
        sa.Column("name", _key(), nullable=False),
        _text("scope"),
        _text("created_by"),
        sa.Column("comment", sa.Text(), nullable=True),
        _moment("last_used_at", nullable=True),
    )
    op.create_index("ix_tokens_name", "tokens", ["name"])
    op.create_table(
        "audit_events",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False, autoincrement=True
        ),
        _moment("at"),
        _text("principal"),
        sa.Column("document", sa.JSON(), nullable=False),
        _text("hash"),
        sa.PrimaryKeyConstraint("id", name="pk_audit_events"),
    )
    op.create_index("ix_audit_events_principal", "audit_events", ["principal", "id"])


def downgrade() -> None:
    """Drop them, and make the tokens as they were."""
    op.drop_index("ix_audit_events_principal", table_name="audit_events")
    op.drop_table("audit_events")
    op.drop_index("ix_tokens_name", table_name="tokens")
    op.drop_table("tokens")
    _make_tokens()
    for noun in _NOUNS:
        op.drop_table(noun)


def _make_tokens(*more: sa.Column[object]) -> None:
    op.create_table(
        "tokens",
        _text("id"),
        _text("hash"),
        _text("principal"),
        _text("role"),
        _moment("created_at"),
        _moment("expires_at", nullable=True),
        *more,
        sa.PrimaryKeyConstraint("id", name="pk_tokens"),
        sa.UniqueConstraint("hash", name="uq_tokens_hash"),
    )


def _key() -> sa.types.TypeEngine[str]:
    return sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def _text(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.Text(), nullable=False)


def _moment(name: str, *, nullable: bool = False) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)

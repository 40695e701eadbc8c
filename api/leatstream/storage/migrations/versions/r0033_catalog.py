"""The catalog's first schema.

It replaces the steps r0001 to r0033 of the time before the first release, and makes the same tables.
So it keeps the number of the last one: a catalog of that time with this number is up to date.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0033"
down_revision = None
branch_labels = None
depends_on = None

_NOUNS = (
    "databases",
    "schemas",
    "stores",
    "relations",
    "queries",
    "named_secrets",
    "schema_registries",
    "descriptor_sources",
    "function_sources",
    "functions",
    "session_defaults",
    "applications",
    "savepoints",
    "entity_drops",
)
_OTHERS = ("secrets", "tokens", "drivers", "servers", "query_leases", "query_log")


def upgrade() -> None:
    """Make every table."""
    for noun in _NOUNS:
        _make_noun(noun)
    _make_secrets()
    _make_servers()
    _make_query_log()


def downgrade() -> None:
    """Drop every table."""
    op.drop_index("ix_query_log_query_id", table_name="query_log")
    for table in (*_OTHERS, *_NOUNS):
        op.drop_table(table)


def _key() -> sa.types.TypeEngine[str]:
    return sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False)


def _moment(name: str, *, nullable: bool = False) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)


def _make_noun(noun: str) -> None:
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


def _make_secrets() -> None:
    op.create_table(
        "secrets",
        sa.Column("reference", _key(), nullable=False),
        sa.Column("envelope", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("reference", name="pk_secrets"),
    )
    op.create_table(
        "tokens",
        _text("id"),
        _text("hash"),
        _text("principal"),
        _text("role"),
        _moment("created_at"),
        _moment("expires_at", nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_tokens"),
        sa.UniqueConstraint("hash", name="uq_tokens_hash"),
    )


def _make_servers() -> None:
    op.create_table(
        "drivers",
        _text("id"),
        _text("role"),
        _text("token_hash"),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("started_at", sa.Double(), nullable=False),
        sa.Column("query_id", sa.Text(), nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=True),
        _moment("created_at"),
        sa.Column("server", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_drivers"),
    )
    op.create_table(
        "servers",
        _text("id"),
        _text("checkpoints"),
        _moment("seen_at"),
        sa.PrimaryKeyConstraint("id", name="pk_servers"),
    )
    op.create_table(
        "query_leases",
        _text("query_id"),
        _text("server"),
        _moment("expires_at"),
        sa.PrimaryKeyConstraint("query_id", name="pk_query_leases"),
    )


def _make_query_log() -> None:
    # PostgreSQL's plain integers end after two billion entries; those of SQLite have no bound.
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "query_log",
        sa.Column("id", number, nullable=False, autoincrement=True),
        _text("query_id"),
        _text("topic"),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_query_log"),
    )
    op.create_index("ix_query_log_query_id", "query_log", ["query_id", "topic", "id"])

"""The catalog's tables: one per noun, columns to look up by, and a JSON document for the rest."""

from __future__ import annotations

from datetime import UTC, datetime

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles

NAMING = {
    "ix": "ix_%(column_0_label)s",
    "uq": "uq_%(table_name)s_%(column_0_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}
metadata = sa.MetaData(naming_convention=NAMING)


class UtcDateTime(sa.types.TypeDecorator[datetime]):
    """A moment with time zone UTC; SQLite keeps no zone, so it is taken off and put back there."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        """Turn any aware moment into UTC."""
        if value is None:
            return None
        value = value.astimezone(UTC)
        return value.replace(tzinfo=None) if dialect.name == "sqlite" else value

    def process_result_value(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        """Give the moment its zone back."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def key_type() -> sa.types.TypeEngine[str]:
    """Text compared by code point on every database, so that names are exact and pages have one order."""
    return sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


# SQLite counts by itself only where the type is plainly an integer, which has no bound there.
_COUNTER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _noun(name: str) -> sa.Table:
    return sa.Table(
        name,
        metadata,
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("key", key_type(), nullable=False, unique=True),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("updated_at", UtcDateTime(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("document", sa.JSON(), nullable=False),
    )


databases = _noun("databases")
schemas = _noun("schemas")
stores = _noun("stores")
relations = _noun("relations")
queries = _noun("queries")
named_secrets = _noun("named_secrets")
schema_registries = _noun("schema_registries")
descriptor_sources = _noun("descriptor_sources")
function_sources = _noun("function_sources")
functions = _noun("functions")
session_defaults = _noun("session_defaults")
applications = _noun("applications")
savepoints = _noun("savepoints")
entity_drops = _noun("entity_drops")
roles = _noun("roles")
accounts = _noun("accounts")
invitations = _noun("invitations")
linked_identities = _noun("linked_identities")

secrets = sa.Table(
    "secrets",
    metadata,
    sa.Column("reference", key_type(), primary_key=True),
    sa.Column("envelope", sa.LargeBinary(), nullable=False),
)

tokens = sa.Table(
    "tokens",
    metadata,
    sa.Column("id", sa.Text(), primary_key=True),
    sa.Column("hash", sa.Text(), nullable=False, unique=True),
    sa.Column("name", key_type(), nullable=False),
    sa.Column("principal", sa.Text(), nullable=False),
    sa.Column("role", sa.Text(), nullable=False),
    sa.Column("scope", sa.Text(), nullable=False),
    sa.Column("created_at", UtcDateTime(), nullable=False),
    sa.Column("created_by", sa.Text(), nullable=False),
    sa.Column("expires_at", UtcDateTime(), nullable=True),
    sa.Column("comment", sa.Text(), nullable=True),
    sa.Column("last_used_at", UtcDateTime(), nullable=True),
    sa.Index("ix_tokens_name", "name"),
)


class Member(sa.ColumnElement[str]):
    """A text member of the column ``document``, in the words of each database."""

    inherit_cache = True
    type = sa.Text()

    def __init__(self, name: str) -> None:
        self.name = name


@compiles(Member, "sqlite")
def _sqlite_member(element: Member, _compiler: object, **_: object) -> str:
    return f"json_extract(document, '$.{element.name}')"


@compiles(Member, "postgresql")
def _postgresql_member(element: Member, _compiler: object, **_: object) -> str:
    return f"(document ->> '{element.name}')"


def _member(name: str) -> sa.Column[str]:
    # Made by the database: an event's hash is over its document, and older servers write only that.
    return sa.Column(name, sa.Text(), sa.Computed(Member(name)))


audit_events = sa.Table(
    "audit_events",
    metadata,
    sa.Column("id", _COUNTER, primary_key=True, autoincrement=True),
    sa.Column("at", UtcDateTime(), nullable=False),
    sa.Column("principal", sa.Text(), nullable=False),
    sa.Column("document", sa.JSON(), nullable=False),
    sa.Column("hash", sa.Text(), nullable=False),
    *(_member(name) for name in ("operation", "kind", "name", "outcome")),
    sa.Index("ix_audit_events_principal", "principal", "id"),
    *(sa.Index(f"ix_audit_events_{name}", name, "id") for name in ("operation", "kind", "outcome")),
    sa.Index("ix_audit_events_at", "at"),
)

# Ids are compared as positions in the feed, so their order must be that of code points everywhere.
changes = sa.Table(
    "changes",
    metadata,
    sa.Column("id", key_type(), primary_key=True),
    sa.Column("at", UtcDateTime(), nullable=False),
    sa.Column("type", sa.Text(), nullable=False),
    sa.Column("kind", sa.Text(), nullable=False),
    sa.Column("key", key_type(), nullable=False),
    sa.Column("object_id", sa.Text(), nullable=False),
    sa.Column("owner", sa.Text(), nullable=False),
    sa.Column("generation", sa.Integer(), nullable=False),
    sa.Column("state", sa.Text(), nullable=True),
    sa.Column("message", sa.Text(), nullable=True),
    sa.Column("error", sa.Text(), nullable=True),
    sa.Index("ix_changes_kind", "kind", "key", "id"),
)

drivers = sa.Table(
    "drivers",
    metadata,
    sa.Column("id", sa.Text(), primary_key=True),
    sa.Column("role", sa.Text(), nullable=False),
    sa.Column("token_hash", sa.Text(), nullable=False),
    sa.Column("pid", sa.Integer(), nullable=False),
    sa.Column("started_at", sa.Double(), nullable=False),
    sa.Column("query_id", sa.Text(), nullable=True),
    sa.Column("attempt", sa.Integer(), nullable=True),
    sa.Column("created_at", UtcDateTime(), nullable=False),
    sa.Column("server", sa.Text(), nullable=True),
    sa.Column("report", sa.JSON(), nullable=False, server_default="{}"),
)

servers = sa.Table(
    "servers",
    metadata,
    sa.Column("id", sa.Text(), primary_key=True),
    sa.Column("checkpoints", sa.Text(), nullable=False),
    sa.Column("seen_at", UtcDateTime(), nullable=False),
)

query_leases = sa.Table(
    "query_leases",
    metadata,
    sa.Column("query_id", sa.Text(), primary_key=True),
    sa.Column("server", sa.Text(), nullable=False),
    sa.Column("expires_at", UtcDateTime(), nullable=False),
)

query_log = sa.Table(
    "query_log",
    metadata,
    sa.Column("id", _COUNTER, primary_key=True, autoincrement=True),
    sa.Column("query_id", sa.Text(), nullable=False),
    sa.Column("topic", sa.Text(), nullable=False),
    sa.Column("document", sa.JSON(), nullable=False),
    sa.Index("ix_query_log_query_id", "query_id", "topic", "id"),
)

"""Repositories over one open connection; they neither begin nor commit."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, Generic, TypeVar

import sqlalchemy as sa

from leatstream.errors import CatalogError
from leatstream.model.access import Account, Invitation, LinkedIdentity, Role, TokenRow
from leatstream.model.functions import FunctionSource, UserFunction
from leatstream.model.objects import Database, Query, Relation, Schema, Store
from leatstream.model.registered import (
    Application,
    DescriptorSource,
    EntityDrop,
    Savepoint,
    SchemaRegistry,
    Secret,
    SessionDefaults,
)
from leatstream.ports import DriverRow
from leatstream.storage import tables
from leatstream.storage.change_log import NotedChanges, seen
from leatstream.storage.codec import Noun, from_row, to_row

T = TypeVar(
    "T",
    Database,
    Schema,
    Store,
    Relation,
    Query,
    Secret,
    SchemaRegistry,
    DescriptorSource,
    FunctionSource,
    UserFunction,
    SessionDefaults,
    Application,
    Savepoint,
    EntityDrop,
    Role,
    Account,
    Invitation,
    LinkedIdentity,
)

_LAST = chr(0x10FFFF)


def end_of_prefix(prefix: str) -> str | None:
    """The smallest text after all that start with ``prefix``, by code point; None if there is none."""
    kept = prefix.rstrip(_LAST)
    if not kept:
        return None
    following = ord(kept[-1]) + 1
    # Surrogates are no characters of their own and cannot be sent to a database.
    return kept[:-1] + chr(0xE000 if 0xD800 <= following <= 0xDFFF else following)


# Each request looks its token, account and role up, so these statements are built once and not each time.
@functools.cache
def _one_by(column: sa.Column[str]) -> sa.Select[Any]:
    return sa.select(column.table).where(column == sa.bindparam("value"))


@functools.cache
def _version_of(table: sa.Table) -> Any:
    c = table.c
    return sa.select(sa.func.count(), sa.func.sum(c.generation), sa.func.max(c.id), sa.func.max(c.updated_at))


@functools.cache
def _live_token() -> sa.Select[Any]:
    c = tables.tokens.c
    live = sa.or_(c.expires_at.is_(None), c.expires_at > sa.bindparam("at"))
    return sa.select(tables.tokens).where(c.hash == sa.bindparam("value"), live)


class SqlRepository(Generic[T]):
    """Objects of one noun (``ports.Repository``)."""

    def __init__(self, connection: sa.Connection, noun: Noun[T], noted: NotedChanges | None = None) -> None:
        """Over a connection.

        Args:
            connection: in a transaction.
            noun: of the objects.
            noted: takes the changes for the feed; None of nouns that the feed leaves out.
        """
        self._connection = connection
        self._noun: Noun[T] = noun
        self._columns = noun.table.c
        self._noted = noted

    def key(self, item: T) -> str:
        """The object's key: its unique, exact name."""
        return self._noun.key(item)

    def find(self, key: str) -> T | None:
        """The object of exactly this key, or None."""
        return self._find(self._columns.key, key)

    def find_by_id(self, object_id: str) -> T | None:
        """The object of this opaque id, or None."""
        return self._find(self._columns.id, object_id)

    def _find(self, column: sa.Column[str], value: str) -> T | None:
        row = self._connection.execute(_one_by(column), {"value": value}).mappings().first()
        return None if row is None else from_row(self._noun, dict(row))

    def add(self, item: T) -> None:
        """Insert.

        Raises:
            CatalogError: already-exists, if the key is taken.
        """
        row = to_row(self._noun, item)
        taken = sa.select(self._columns.id).where(self._columns.key == row["key"])
        # Write units exclude each other, so looking first cannot race.
        if self._connection.execute(taken).first() is not None:
            raise CatalogError(
                "already-exists",
                f"The {self._noun.word} {row['key']} exists already.",
                hint="Choose another name, or change the existing one.",
                noun=self._noun.word,
            )
        self._connection.execute(sa.insert(self._noun.table), row)
        self._note(item.meta.id, None, item)

    def update(self, item: T) -> None:
        """Replace the object with the same id.

        Raises:
            CatalogError: not-found, if it has been deleted meanwhile.
        """
        row, c = to_row(self._noun, item), self._columns
        statement, old = sa.update(self._noun.table).where(c.id == row["id"]).values(row), None
        if self._noted is not None:
            # What heartbeats write is no change of the feed, and costs no second statement.
            same = statement.where(*(c[name] == row[name] for name in ("generation", "owner", "key")))
            if not isinstance(item, Store | Savepoint) and self._connection.execute(same).rowcount:
                return
            old = self.find_by_id(row["id"])
        if self._connection.execute(statement).rowcount == 0:
            raise CatalogError(
                "not-found", f"The {self._noun.word} {row['key']} is no longer there.", noun=self._noun.word
            )
        self._note(row["id"], old, item)

    def delete(self, object_id: str) -> None:
        """Remove it; nothing happens if it is not there."""
        old = self.find_by_id(object_id) if self._noted is not None else None
        self._connection.execute(sa.delete(self._noun.table).where(self._columns.id == object_id))
        if old is not None:
            self._note(object_id, old, None)

    def _note(self, object_id: str, before: T | None, after: T | None) -> None:
        if self._noted is not None:
            was, now = (None if one is None else seen(self._noun, one) for one in (before, after))
            self._noted.note(object_id, was, now)

    def page(self, *, prefix: str = "", after: str = "", limit: int = 1000) -> Sequence[T]:
        """Objects whose key starts with ``prefix`` and is greater than ``after``, ordered by key."""
        statement = self._range(sa.select(self._noun.table), prefix, after, limit)
        return [from_row(self._noun, dict(row)) for row in self._connection.execute(statement).mappings()]

    def version(self) -> tuple[object, ...]:
        """Changes with every change of any of the objects."""
        return tuple(self._connection.execute(_version_of(self._noun.table)).one())

    def owners(
        self,
        *,
        prefix: str = "",
        after: str = "",
        limit: int = 1000,
        only: tuple[Sequence[str], Sequence[str]] | None = None,
    ) -> Sequence[tuple[str, str]]:
        """Key and owner of the objects that ``page`` would give, whose documents are not read.

        Args:
            prefix: of the keys.
            after: only keys that are greater.
            limit: the most objects.
            only: keys and owners, of which an object has one; None = all objects.
        """
        c = self._columns
        statement = self._range(sa.select(c.key, c.owner), prefix, after, limit)
        if only is not None:
            statement = statement.where(sa.or_(c.key.in_(only[0]), c.owner.in_(only[1])))
        return [(key, owner) for key, owner in self._connection.execute(statement)]

    def find_all(self, keys: Sequence[str]) -> Sequence[T]:
        """The objects of these keys, ordered by key."""
        key = self._columns.key
        statement = sa.select(self._noun.table).where(key.in_(keys)).order_by(key)
        return [from_row(self._noun, dict(row)) for row in self._connection.execute(statement).mappings()]

    def _range(self, statement: Any, prefix: str, after: str, limit: int) -> Any:
        key = self._columns.key
        statement = statement.order_by(key).limit(limit)
        if prefix:
            statement = statement.where(key >= prefix)
            end = end_of_prefix(prefix)
            statement = statement if end is None else statement.where(key < end)
        return statement.where(key > after) if after else statement


class SqlSecretRows:
    """Enveloped secret values by reference (``ports.SecretRows``)."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def put(self, reference: str, envelope: bytes) -> None:
        """Store or replace."""
        self.delete(reference)
        row = {"reference": reference, "envelope": envelope}
        self._connection.execute(sa.insert(tables.secrets), row)

    def find(self, reference: str) -> bytes | None:
        """The envelope, or None."""
        statement = sa.select(tables.secrets.c.envelope).where(tables.secrets.c.reference == reference)
        found = self._connection.execute(statement).scalar()
        return None if found is None else bytes(found)

    def delete(self, reference: str) -> None:
        """Forget it."""
        statement = sa.delete(tables.secrets).where(tables.secrets.c.reference == reference)
        self._connection.execute(statement)


class SqlTokenRows:
    """API tokens by hash (``ports.TokenRows``)."""

    def __init__(self, connection: sa.Connection, noted: NotedChanges) -> None:
        self._connection = connection
        self._noted = noted

    def add(self, row: TokenRow) -> None:
        """Remember a token's value; one with the same id is replaced."""
        self._noted.note_token(self._connection, row.name)
        self.delete(row.id)
        self._connection.execute(sa.insert(tables.tokens), asdict(row))

    def find(self, token_hash: str, at: datetime) -> TokenRow | None:
        """The value with this hash that has not expired at this moment, or None."""
        row = self._connection.execute(_live_token(), {"value": token_hash, "at": at}).first()
        return None if row is None else TokenRow(**row._mapping)

    def list(self, name: str | None = None) -> Sequence[TokenRow]:
        """Values of one token, or of all, by name and age."""
        c = tables.tokens.c
        statement = sa.select(tables.tokens).order_by(c.name, c.created_at, c.id)
        if name is not None:
            statement = statement.where(c.name == name)
        return [TokenRow(**row._mapping) for row in self._connection.execute(statement)]

    def note_use(self, token_id: str, at: datetime) -> None:
        """Record when a value was used last."""
        statement = sa.update(tables.tokens).where(tables.tokens.c.id == token_id)
        self._connection.execute(statement.values(last_used_at=at))

    def delete(self, token_id: str) -> None:
        """Revoke a value."""
        self._note(tables.tokens.c.id == token_id)
        self._connection.execute(sa.delete(tables.tokens).where(tables.tokens.c.id == token_id))

    def delete_of(self, principal: str) -> None:
        """Revoke every token of a principal."""
        self._note(tables.tokens.c.principal == principal)
        self._connection.execute(sa.delete(tables.tokens).where(tables.tokens.c.principal == principal))

    def _note(self, which: sa.ColumnElement[bool]) -> None:
        for name in self._connection.execute(sa.select(tables.tokens.c.name).where(which)).scalars().all():
            self._noted.note_token(self._connection, name)


class SqlDriverRows:
    """Driver processes (``ports.DriverRows``)."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def add(self, row: DriverRow) -> None:
        """Remember a driver."""
        self._connection.execute(sa.insert(tables.drivers), asdict(row))

    def update(self, row: DriverRow) -> None:
        """Replace what is known of the driver with the same id, except its report.

        Raises:
            CatalogError: not-found, if it has been forgotten meanwhile.
        """
        values = {name: value for name, value in asdict(row).items() if name != "report"}
        statement = sa.update(tables.drivers).where(tables.drivers.c.id == row.id).values(values)
        if self._connection.execute(statement).rowcount == 0:
            raise CatalogError("not-found", f"The driver {row.id} is no longer known.")

    def note(self, driver_id: str, report: Mapping[str, Any]) -> None:
        """Replace the report of a driver; nothing happens if it has been forgotten."""
        statement = sa.update(tables.drivers).where(tables.drivers.c.id == driver_id)
        self._connection.execute(statement.values(report=dict(report)))

    def delete(self, driver_id: str) -> None:
        """Forget it; nothing happens if it is not there."""
        self._connection.execute(sa.delete(tables.drivers).where(tables.drivers.c.id == driver_id))

    def list(self) -> Sequence[DriverRow]:
        """All of them, oldest first."""
        statement = sa.select(tables.drivers).order_by(tables.drivers.c.created_at, tables.drivers.c.id)
        return [_driver(row) for row in self._connection.execute(statement).mappings()]


def _driver(row: Any) -> DriverRow:
    return DriverRow(**row)

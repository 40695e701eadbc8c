"""Asking ClickHouse about tables and changing them; every call ends in time."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from leatstream.connectors.clickhouse.errors import reported
from leatstream.connectors.clickhouse.names import (
    BATCHES,
    SYSTEM,
    entity_name,
    literal,
    place,
    quoted,
    split_entity,
)
from leatstream.connectors.clickhouse.settings import ClickHouseConfig, connect
from leatstream.connectors.clickhouse.types import bare, column_comment, column_type, read_type
from leatstream.connectors.entities import Entity, Table, TableColumn
from leatstream.model.objects import Column

if TYPE_CHECKING:
    from clickhouse_connect.driver.client import Client

VERSION, DELETED = "_leat_version", "_leat_deleted"
WINDOW = 1000
"""Inserts of a table that ClickHouse remembers the tokens of."""
WINDOW_SETTING = "non_replicated_deduplication_window"
_NO_UUID = "00000000-0000-0000-0000-000000000000"
_EXISTS = 57  # TABLE_ALREADY_EXISTS
# Views and dictionaries have no rows of their own, and a table of ``.inner`` is a view's.
_TABLES = (
    "SELECT database, name, engine, engine_full, sorting_key, toString(uuid), total_rows, total_bytes"
    " FROM system.tables WHERE NOT is_temporary AND name NOT LIKE '.inner%' AND name <> {ours:String}"
    " AND has({not:Array(String)}, database) = 0 AND engine NOT LIKE '%View' AND engine <> 'Dictionary'"
)
_COLUMNS = (
    "SELECT name, type, default_kind, comment FROM system.columns"
    " WHERE database = {database:String} AND table = {table:String} ORDER BY position"
)
_REPLACING = re.compile(r"(?:\w+\()?\w*ReplacingMergeTree\(([^()]*(?:\([^()]*\)[^()]*)*)\)")
_SETTING = re.compile(rf"\b{WINDOW_SETTING} = (\d+)")
_REPLICATED_SETTING = re.compile(r"\breplicated_deduplication_window = (\d+)")


@dataclass(frozen=True, slots=True)
class Engine:
    """What a table's engine means for those who write it.

    Attributes:
        name: such as ``ReplacingMergeTree``.
        version: column by which rows of a key replace each other; None where there is none.
        deleted: column that says that a row takes back the rows of its key.
        window: how many inserts the table remembers; None for the server's default of such a table.
    """

    name: str
    version: str | None
    deleted: str | None
    window: int | None

    @property
    def merges(self) -> bool:
        """Whether it is of the MergeTree family."""
        return self.name.endswith("MergeTree")

    @property
    def replaces(self) -> bool:
        """Whether rows of one sorting key become one row: FINAL has a meaning."""
        return self.name.endswith("ReplacingMergeTree")

    @property
    def replicated(self) -> bool:
        """Whether several servers have the table, and remember inserts by default."""
        return self.name.startswith(("Replicated", "Shared"))


def engine_of(name: str, full: str) -> Engine:
    """Read ``engine_full`` of ``system.tables``."""
    found = _REPLACING.match(full)
    # A replicated table names its place in Keeper and its replica first.
    arguments = [part.strip(" `") for part in found[1].split(",")] if found else []
    columns = [one for one in arguments if one and not one.startswith("'")]
    setting = (_REPLICATED_SETTING if name.startswith(("Replicated", "Shared")) else _SETTING).search(full)
    default = None if name.startswith(("Replicated", "Shared")) else 0
    return Engine(
        name,
        columns[0] if columns else None,
        columns[1] if len(columns) > 1 else None,
        int(setting[1]) if setting else default,
    )


def engine_of_table(table: Table) -> Engine:
    """The engine of a table that ``find`` gave."""
    window = table.details.get("deduplication_window")
    return Engine(
        str(table.details["engine"]),
        _text(table.details.get("version_column")),
        _text(table.details.get("deleted_column")),
        window if isinstance(window, int) else None,
    )


def _text(value: str | int | None) -> str | None:
    return None if value is None else str(value)


class ClickHouseAdmin:
    """One ClickHouse server; a client for each call."""

    def __init__(self, store: str, config: ClickHouseConfig) -> None:
        self.store = store
        self.config = config

    @contextlib.contextmanager
    def client(self, what: str, timeout: float, table: str | None = None) -> Iterator[Client]:
        """A client whose errors are reported; see ``clickhouse.errors.store_error``."""
        with reported(self.store, what, self.config.where, timeout, table):
            client = connect(self.config, timeout)
            try:
                yield client
            finally:
                client.close()

    def server(self, timeout: float) -> dict[str, str]:
        """Version and time zone."""
        with self.client("logging in", timeout) as client:
            ((version, zone),) = client.query("SELECT version(), serverTimezone()").result_rows
        return {"server_version": str(version), "timezone": str(zone)}

    def entities(self, timeout: float) -> list[Entity]:
        """All tables by name."""
        with self.client("listing tables", timeout) as client:
            rows = client.query(_TABLES, {"ours": BATCHES, "not": list(SYSTEM)}).result_rows
        # A database's name with a dot would be read as database and table.
        found = [
            Entity(entity_name(row[0], row[1], self.config.home), table=Table((), details={"rows": row[6]}))
            for row in rows
            if "." not in row[0]
        ]
        return sorted(found, key=lambda e: e.name)

    def find(self, entity: str, timeout: float) -> Entity | None:
        """The table with columns and keys, or None."""
        database, table = split_entity(entity, self.config.home)
        with self.client(f"describing table {entity}", timeout) as client:
            head = self._head(client, entity)
            if head is None:
                return None
            columns = client.query(_COLUMNS, {"database": database, "table": table}).result_rows
        engine = engine_of(head[2], head[3])
        ours = {engine.version, engine.deleted}
        sorting = _names(head[4])
        # Rows of a key can only be deleted where there is a column that says so.
        key = sorting if engine.replaces and engine.deleted is not None and sorting else ()
        found = Table(
            columns=tuple(_column(*row) for row in columns if row[0] not in ours and row[2] != "EPHEMERAL"),
            primary_key=key,
            unique=(key,) if key else (),
            details={
                "engine": head[2],
                "rows": head[6],
                "bytes": head[7],
                "sorting_key": head[4] or None,
                "version_column": engine.version,
                "version_type": next((row[1] for row in columns if row[0] == engine.version), None),
                "deleted_column": engine.deleted,
                "deduplication_window": engine.window,
            },
        )
        return Entity(entity_name(database, table, self.config.home), table=found)

    def identity(self, entity: str, timeout: float) -> str | None:
        """What distinguishes the table from a later one of its name."""
        with self.client(f"looking for table {entity}", timeout) as client:
            head = self._head(client, entity)
        # Databases of old engines give none: there the name is all that can be compared.
        return None if head is None else entity if head[5] == _NO_UUID else str(head[5])

    def create(
        self, entity: str, columns: Sequence[Column], primary_key: Sequence[str], timeout: float
    ) -> bool:
        """Create a table and its database; False when there is one of this name already."""
        from clickhouse_connect.driver.exceptions import DatabaseError

        database, _ = split_entity(entity, self.config.home)
        with self.client(f"creating table {entity}", timeout) as client:
            if database != self.config.home:
                client.command(f"CREATE DATABASE IF NOT EXISTS {quoted(database)}")
            try:
                client.command(create_statement(place(entity, self.config.home), columns, primary_key))
            except DatabaseError as error:
                if error.code != _EXISTS:
                    raise
                return False
        return True

    def drop(self, entity: str, timeout: float) -> None:
        """Drop a table; does nothing where there is none."""
        with self.client(f"dropping table {entity}", timeout) as client:
            if self._head(client, entity) is not None:
                client.command(f"DROP TABLE IF EXISTS {place(entity, self.config.home)}")

    def _head(self, client: Client, entity: str) -> Sequence[Any] | None:
        database, table = split_entity(entity, self.config.home)
        wanted = {"ours": BATCHES, "not": list(SYSTEM), "database": database, "table": table}
        text = _TABLES + " AND database = {database:String} AND name = {table:String}"
        rows = client.query(text, wanted).result_rows
        return rows[0] if rows else None


def create_statement(
    table: str,
    columns: Sequence[Column],
    primary_key: Sequence[str],
    more: Sequence[str] = (),
    ttl: str = "",
) -> str:
    """CREATE TABLE of a table whose rows are kept, or replace each other by key.

    Args:
        table: its place, quoted.
        columns: in their order.
        primary_key: names of the key's columns; empty = every row is kept.
        more: declarations of further columns.
        ttl: when rows are deleted, with ``TTL`` before it.
    """
    parts = [
        f"{quoted(column.name)} "
        + (column_type(column.type) if column.not_null else f"Nullable({column_type(column.type)})")
        + (f" COMMENT {literal(comment)}" if (comment := column_comment(column.type)) else "")
        for column in columns
    ]
    parts += more
    if not primary_key:
        return (
            f"CREATE TABLE {table} ({', '.join(parts)}) ENGINE = MergeTree ORDER BY tuple(){ttl}"
            f" SETTINGS {WINDOW_SETTING} = {WINDOW}"
        )
    keys = ", ".join(map(quoted, primary_key))
    parts += [f"{VERSION} UInt64", f"{DELETED} UInt8"]
    return (
        f"CREATE TABLE {table} ({', '.join(parts)}) ENGINE = ReplacingMergeTree({VERSION}, {DELETED})"
        f" ORDER BY ({keys}){ttl} SETTINGS allow_nullable_key = 1"
    )


def _column(name: str, native: str, default_kind: str, comment: str) -> TableColumn:
    inner, nullable = bare(native)
    return TableColumn(
        name,
        read_type(native, comment),
        inner,
        not_null=not nullable,
        filled=default_kind == "DEFAULT",
        generated=default_kind in ("MATERIALIZED", "ALIAS"),
        enum=inner.startswith("Enum"),
        comment=comment or None,
        computed=default_kind in ("MATERIALIZED", "ALIAS"),
    )


def _names(sorting_key: str) -> tuple[str, ...]:
    """The columns of a sorting key; empty where it has an expression."""
    names: list[str] = []
    if sorting_key.startswith("(") and sorting_key.endswith(")"):
        sorting_key = sorting_key[1:-1]
    for part in re.findall(r"`(?:[^`\\]|\\.)*`|[^,`]+", sorting_key):
        text = part.strip()
        if text.startswith("`"):
            names.append(re.sub(r"\\(.)", r"\1", text[1:-1]))
        elif re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text):
            names.append(text)
        elif text:
            return ()
    return tuple(names)

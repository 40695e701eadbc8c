"""Asking Snowflake about tables and changing them. SHOW and DESCRIBE need no warehouse, and cost nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from leatstream.connectors.entities import Entity, Table, TableColumn
from leatstream.connectors.snowflake import session
from leatstream.connectors.snowflake.entity import BATCHES, PUBLIC, STAGED, Place, entity_name, place_of
from leatstream.connectors.snowflake.errors import as_store_errors
from leatstream.connectors.snowflake.session import named_rows, run
from leatstream.connectors.snowflake.settings import SnowflakeConfig
from leatstream.connectors.snowflake.types import column_type, read_type
from leatstream.connectors.upper_names import canonical, quoted, shown, stored
from leatstream.errors import StoreError
from leatstream.model.objects import Column

if TYPE_CHECKING:
    from snowflake.connector import SnowflakeConnection

_OWN = (BATCHES, STAGED)


class SnowflakeAdmin:
    """One account; a session for each call."""

    def __init__(self, store: str, config: SnowflakeConfig) -> None:
        self.store = store
        self.config = config

    @contextlib.contextmanager
    def connection(
        self, what: str, timeout: float, table: str | None = None, place: Place | None = None
    ) -> Iterator[SnowflakeConnection]:
        """A session whose errors are StoreErrors; see ``snowflake.errors``.

        Args:
            what: what is tried.
            timeout: seconds, for the login and for each statement.
            table: the table that rows are written to.
            place: of a table, whose schema becomes the current one.
        """
        current = (place.database, place.schema) if place else (canonical(self.config.database or ""), "")
        with as_store_errors(self.store, what, self.config, timeout, table):
            connection = session.connect(self.config, timeout, *current)
            try:
                yield connection
            finally:
                session.close(connection)

    def _at(
        self, place: Place, what: str, timeout: float
    ) -> contextlib.AbstractContextManager[SnowflakeConnection]:
        # A schema may not exist yet.
        return self.connection(what, timeout, place=Place(place.database, "", ""))

    def place(self, entity: str) -> Place:
        """The table that an entity's name means.

        Raises:
            StoreError: store-rejected, the name lacks a database.
        """
        place = place_of(entity, self.config.database)
        if not place.database:
            raise StoreError(
                "store-rejected",
                f"Table {entity} of store {self.store} is named without its database.",
                hint=f"Write database.schema.table, or give the store a database ({self.store}).",
            )
        return place

    def server(self, timeout: float) -> dict[str, str]:
        """The version of Snowflake."""
        with self.connection("logging in", timeout) as connection:
            rows = run(connection, "SELECT CURRENT_VERSION()")
        return {"server_version": str(rows[0][0])} if rows else {}

    def entities(self, timeout: float) -> list[Entity]:
        """All tables of the store's database by name, of the account where the store has none."""
        database = self.config.database
        within = f"DATABASE {quoted(place_of('t', database).database)}" if database else "ACCOUNT"
        found = []
        with self.connection("listing tables", timeout) as connection:
            for row in named_rows(connection, f"SHOW TERSE TABLES IN {within}"):
                parts = [shown(row[name]) for name in ("database_name", "schema_name", "name")]
                names = [part for part in parts if part is not None and "." not in part]
                # A name with a dot would be read as two, and one in lower case stands for another here.
                if len(names) == 3 and names[1] != "information_schema" and names[2] not in _OWN:
                    found.append(Entity(entity_name(Place(*names), database), table=Table(())))
        return sorted(found, key=lambda entity: entity.name)

    def find(self, entity: str, timeout: float) -> Entity | None:
        """The table with columns and keys, or None."""
        place = self.place(entity)
        with _absent(), self._at(place, f"describing table {entity}", timeout) as connection:
            head = _head(connection, place)
            if head is None:
                return None
            described = named_rows(connection, f"DESCRIBE TABLE {place.statement}")
            primary = _keys(named_rows(connection, f"SHOW PRIMARY KEYS IN TABLE {place.statement}"))
            unique = _keys(named_rows(connection, f"SHOW UNIQUE KEYS IN TABLE {place.statement}"))
            columns = tuple(_column(row) for row in described if shown(row["name"]) is not None)
            hidden = ", ".join(f'"{row["name"]}"' for row in described if shown(row["name"]) is None)
            details = {"rows": _number(head.get("rows")), "bytes": _number(head.get("bytes"))}
            table = Table(
                columns=columns,
                primary_key=primary[0] if primary else (),
                unique=tuple(dict.fromkeys((*primary, *unique))),
                details=details | ({"columns_without_a_name_here": hidden} if hidden else {}),
            )
            return Entity(entity_name(place, self.config.database), table=table)
        return None

    def identity(self, entity: str, timeout: float) -> str | None:
        """When the table was made, which no later one of its name shares."""
        place = self.place(entity)
        with _absent(), self._at(place, f"looking for table {entity}", timeout) as connection:
            head = _head(connection, place)
            return None if head is None else str(head["created_on"])
        return None

    def create(
        self, entity: str, columns: Sequence[Column], primary_key: Sequence[str], timeout: float
    ) -> bool:
        """Create a table and its schema where there is none of this name.

        Args:
            entity: the table.
            columns: its columns.
            primary_key: names of the key's columns; empty = no key.
            timeout: seconds.

        Returns:
            False: Snowflake does not say whether there was one.
        """
        place = self.place(entity)
        parts = [
            f"{quoted(column.name)} {column_type(column.type)}"
            f"{' NOT NULL' if column.not_null or column.name in primary_key else ''}"
            for column in columns
        ]
        if primary_key:
            parts.append(f"PRIMARY KEY ({', '.join(map(quoted, primary_key))})")
        with self._at(place, f"creating table {entity}", timeout) as connection:
            if place.schema != PUBLIC and not _has_schema(connection, place):
                run(connection, f"CREATE SCHEMA IF NOT EXISTS {place.in_schema}")
            run(connection, f"CREATE TABLE IF NOT EXISTS {place.statement} ({', '.join(parts)})")
        return False

    def drop(self, entity: str, timeout: float) -> None:
        """Drop a table; does nothing where there is none."""
        place = self.place(entity)
        with _absent(), self._at(place, f"dropping table {entity}", timeout) as connection:
            run(connection, f"DROP TABLE IF EXISTS {place.statement}")


@contextlib.contextmanager
def _absent() -> Iterator[None]:
    """A schema that is not there has no tables."""
    try:
        yield
    except StoreError as error:
        if error.code != "entity-not-found":
            raise


def _head(connection: SnowflakeConnection, place: Place) -> dict[str, Any] | None:
    # A pattern, in which some characters stand for others: whole names are compared.
    name = stored(place.table)
    text = f"SHOW TABLES LIKE {_literal(name)} IN SCHEMA {place.in_schema}"
    return next((row for row in named_rows(connection, text) if row["name"] == name), None)


def _has_schema(connection: SnowflakeConnection, place: Place) -> bool:
    name = stored(place.schema)
    text = f"SHOW TERSE SCHEMAS LIKE {_literal(name)} IN DATABASE {quoted(place.database)}"
    return any(row["name"] == name for row in named_rows(connection, text))


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def _column(row: dict[str, Any]) -> TableColumn:
    native, computed = str(row["type"]), bool(row.get("expression")) or row.get("kind") != "COLUMN"
    return TableColumn(
        name=str(shown(row["name"])),
        type=read_type(native),
        native=native,
        not_null=row["null?"] == "N",
        filled=row.get("default") is not None,
        generated=computed,
        comment=row.get("comment") or None,
        computed=computed,
    )


def _keys(rows: Sequence[dict[str, Any]]) -> list[tuple[str, ...]]:
    """The columns of each key, in their order; a key with a column that has no name here is left out."""
    found: dict[str, list[tuple[int, str | None]]] = {}
    for row in rows:
        column = (int(row["key_sequence"]), shown(row["column_name"]))
        found.setdefault(row["constraint_name"], []).append(column)
    keys = [[name for _, name in sorted(columns, key=lambda one: one[0])] for columns in found.values()]
    return [tuple(name for name in key if name is not None) for key in keys if None not in key]


def _number(value: Any) -> int | None:
    return None if value is None else int(value)

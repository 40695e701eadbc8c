"""The tables of an Oracle database: listed, described, made and dropped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leatstream.connectors.entities import Entity, Table, TableColumn
from leatstream.connectors.oracle.errors import Place, library, store_error
from leatstream.connectors.oracle.names import entity_name, ours, table_name, table_of
from leatstream.connectors.oracle.session import connected
from leatstream.connectors.oracle.settings import OracleConfig
from leatstream.connectors.oracle.types import column_type, native_type, read_type
from leatstream.connectors.upper_names import canonical, quoted, shown
from leatstream.model.objects import Column

# Temporary ones hold no data that another session sees; those of Oracle's own users are not for queries.
_TABLES = """
SELECT T.OWNER, T.TABLE_NAME, T.NUM_ROWS FROM SYS.ALL_TABLES T
 WHERE T.TEMPORARY = 'N' AND T.NESTED = 'NO' AND T.SECONDARY = 'N' AND T.DROPPED = 'NO'
   AND T.OWNER NOT IN (SELECT U.USERNAME FROM SYS.ALL_USERS U WHERE U.ORACLE_MAINTAINED = 'Y')
 ORDER BY T.OWNER, T.TABLE_NAME
"""
_TABLE = """
SELECT T.NUM_ROWS, O.OBJECT_ID FROM SYS.ALL_TABLES T
  JOIN SYS.ALL_OBJECTS O ON O.OWNER = T.OWNER AND O.OBJECT_NAME = T.TABLE_NAME AND O.OBJECT_TYPE = 'TABLE'
 WHERE T.OWNER = :1 AND T.TABLE_NAME = :2
"""
_COLUMNS = """
SELECT C.COLUMN_NAME, C.DATA_TYPE, C.DATA_PRECISION, C.DATA_SCALE,
       CASE WHEN C.DATA_TYPE = 'RAW' THEN C.DATA_LENGTH ELSE C.CHAR_LENGTH END, C.CHAR_USED,
       C.NULLABLE, C.DEFAULT_LENGTH, C.VIRTUAL_COLUMN, I.GENERATION_TYPE
  FROM SYS.ALL_TAB_COLS C
  LEFT JOIN SYS.ALL_TAB_IDENTITY_COLS I
    ON I.OWNER = C.OWNER AND I.TABLE_NAME = C.TABLE_NAME AND I.COLUMN_NAME = C.COLUMN_NAME
 WHERE C.OWNER = :1 AND C.TABLE_NAME = :2 AND C.HIDDEN_COLUMN = 'NO'
 ORDER BY C.COLUMN_ID
"""
_KEYS = """
SELECT K.CONSTRAINT_TYPE, K.CONSTRAINT_NAME, C.COLUMN_NAME FROM SYS.ALL_CONSTRAINTS K
  JOIN SYS.ALL_CONS_COLUMNS C ON C.OWNER = K.OWNER AND C.CONSTRAINT_NAME = K.CONSTRAINT_NAME
 WHERE K.OWNER = :1 AND K.TABLE_NAME = :2 AND K.CONSTRAINT_TYPE IN ('P', 'U') AND K.STATUS = 'ENABLED'
 ORDER BY K.CONSTRAINT_TYPE, K.CONSTRAINT_NAME, C.POSITION
"""


class OracleAdmin:
    """One service of an Oracle database; a connection for each call."""

    def __init__(self, store: str, config: OracleConfig) -> None:
        self.store = store
        self.config = config

    def place(self, what: str) -> Place:
        """Address of a call, for messages."""
        return Place(self.store, self.config.where, what)

    def server(self, timeout: float) -> dict[str, str]:
        """Log in; the server's version."""
        with connected(self.place("logging in"), self.config, timeout) as connection:
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1 FROM DUAL").fetchone()
            return {"server_version": str(connection.version)}

    def entities(self, timeout: float) -> list[Entity]:
        """All tables by name; those whose names users could not write are left out."""
        rows = self._rows("listing tables", _TABLES, (), timeout)
        found = [
            Entity(entity_name(self.config, owner, name), table=Table((), details=_rows(count)))
            for owner, name, count in rows
            if shown(owner) is not None and shown(name) is not None and "." not in owner and not ours(name)
        ]
        return sorted(found, key=lambda e: e.name)

    def find(self, entity: str, timeout: float) -> Entity | None:
        """The table with columns and keys, or None."""
        place = self.place(f"describing table {entity}")
        table = table_of(self.config, entity)
        with connected(place, self.config, timeout) as connection, connection.cursor() as cursor:
            head = cursor.execute(_TABLE, table).fetchone()
            if head is None:
                return None
            columns = cursor.execute(_COLUMNS, table).fetchall()
            keys = cursor.execute(_KEYS, table).fetchall()
        unique: dict[tuple[str, str], tuple[str, ...]] = {}
        for kind, name, column in keys:
            unique[kind, name] = (*unique.get((kind, name), ()), canonical(column))
        primary = next((names for (kind, _), names in unique.items() if kind == "P"), ())
        described = Table(
            columns=tuple(_column(row) for row in columns if shown(row[0]) is not None),
            primary_key=primary,
            unique=tuple(unique.values()),
            details=_rows(head[0]),
        )
        return Entity(entity_name(self.config, *table), table=described)

    def identity(self, entity: str, timeout: float) -> str | None:
        """An identity that a later table of this name does not share."""
        rows = self._rows(f"looking for table {entity}", _TABLE, table_of(self.config, entity), timeout)
        return str(rows[0][1]) if rows else None

    def create(
        self, entity: str, columns: Sequence[Column], primary_key: Sequence[str], timeout: float
    ) -> bool:
        """Create a table; False when there is an object of this name already.

        Args:
            entity: the table's name.
            columns: its columns.
            primary_key: names of the key's columns; empty = no key.
            timeout: seconds.
        """
        parts = [
            f"{quoted(c.name)} {column_type(c.type)}{' NOT NULL' if c.not_null else ''}" for c in columns
        ]
        if primary_key:
            parts.append(f"PRIMARY KEY ({', '.join(quoted(name) for name in primary_key)})")
        text = f"CREATE TABLE {table_name(self.config, entity)} ({', '.join(parts)})"
        return self._unless(f"creating table {entity}", text, "ORA-00955", timeout)

    def drop(self, entity: str, timeout: float) -> None:
        """Drop a table; does nothing where there is none."""
        text = f"DROP TABLE {table_name(self.config, entity)}"
        self._unless(f"dropping table {entity}", text, "ORA-00942", timeout)

    def drop_own(self, prefix: str, timeout: float) -> None:
        """Drop the user's own temporary tables whose names begin so."""
        text = "SELECT T.TABLE_NAME FROM SYS.ALL_TABLES T WHERE T.OWNER = :1 AND T.TEMPORARY = 'Y'"
        for (name,) in self._rows("listing temporary tables", text, (self.config.own_schema,), timeout):
            if name.startswith(prefix):
                statement = f"DROP TABLE {quoted(self.config.own_schema, name)}"
                self._unless(f"dropping table {name}", statement, "ORA-00942", timeout)

    def _unless(self, what: str, text: str, harmless: str, timeout: float) -> bool:
        """Run a statement; False where it fails with the harmless code."""
        place = self.place(what)
        with connected(place, self.config, timeout) as connection, connection.cursor() as cursor:
            try:
                cursor.execute(text)
            except library().DatabaseError as error:
                code = str(error.args[0].full_code)
                if code == harmless:
                    return False
                raise store_error(place, code, str(error), timeout) from None
        return True

    def _rows(self, what: str, text: str, values: Sequence[Any], timeout: float) -> list[tuple[Any, ...]]:
        with connected(self.place(what), self.config, timeout) as connection, connection.cursor() as cursor:
            found: list[tuple[Any, ...]] = cursor.execute(text, list(values)).fetchall()
            return found


def _column(row: Sequence[Any]) -> TableColumn:
    name, data_type, precision, scale, length, used, nullable, default, virtual, identity = row
    native = native_type(data_type, _whole(precision), _whole(scale), _whole(length), used)
    return TableColumn(
        name=canonical(name),
        type=read_type(native),
        native=native,
        not_null=nullable == "N",
        filled=default is not None or identity is not None,
        generated=identity == "ALWAYS" or virtual == "YES",
        computed=virtual == "YES",
    )


def _whole(number: Any) -> int | None:
    return None if number is None else int(number)


def _rows(estimate: Any) -> Mapping[str, str | int | None]:
    """How many rows Oracle's statistics count; None before they were gathered."""
    return {"rows": _whole(estimate)}

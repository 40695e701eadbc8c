"""A view as a table of the schema ``leatstream_views`` in PostgreSQL 15 or newer."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import psycopg
from psycopg import sql

from leatstream.errors import StoreError, sentence
from leatstream.model.types import DataType
from leatstream.views.base import TIME, Batch, Table, behind, fenced, with_times
from leatstream.views.postgresql_line import line_options

SCHEMA = "leatstream_views"
# NULLS NOT DISTINCT, which keys with NULL need, came with 15.
OLDEST = 15_00_00
LOCK_SECONDS = 60.0
_TYPES = {
    "BOOLEAN": "boolean",
    "TINYINT": "smallint",
    "SMALLINT": "smallint",
    "INTEGER": "integer",
    "BIGINT": "bigint",
    # As in SQLite; a float widened compares as Spark does it.
    "FLOAT": "double precision",
    "DOUBLE": "double precision",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP_LTZ": "timestamptz",
    "BYTES": "bytea",
    "VARBINARY": "bytea",
}
_STATE = f"""
CREATE TABLE IF NOT EXISTS {SCHEMA}.leat_views (
  name text PRIMARY KEY, generation integer NOT NULL, attempt integer NOT NULL,
  batch bigint, batch_time bigint, watermark bigint
)"""
_MAKING = 0x6C766965


def column_type(kind: DataType) -> str:
    """How a column is declared."""
    if kind.kind == "DECIMAL":
        precision, scale = (*kind.parameters, 0)[:2] if kind.parameters else (10, 0)
        return f"numeric({precision}, {scale})"
    return _TYPES.get(kind.kind, 'text COLLATE "C"')


def table_of(name: str) -> sql.Identifier:
    """The view's table."""
    return sql.Identifier(SCHEMA, name)


def index_name(table: str, name: str) -> sql.Identifier:
    """An index of the user's; its name is hashed, as PostgreSQL cuts names after 63 bytes."""
    import hashlib

    return sql.Identifier(f"{table}_{hashlib.sha256(name.encode()).hexdigest()[:16]}")


def index_statement(table: str, name: str, columns: tuple[int, ...]) -> sql.Composed:
    """CREATE INDEX of a user's index."""
    shown = sql.SQL(", ").join(sql.Identifier(f"c{i}") for i in columns)
    statement = sql.SQL("CREATE INDEX IF NOT EXISTS {} ON {} ({})")
    return statement.format(index_name(table, name), table_of(table), shown)


def connect(url: str, password: str | None, lock_seconds: float = LOCK_SECONDS) -> psycopg.Connection[Any]:
    """A connection in UTC whose transactions are begun by hand.

    Args:
        url: of the database.
        password: or None, if the URL or the server asks for none.
        lock_seconds: how long a statement waits for what another session has locked.

    Raises:
        StoreError: the server does not answer or is too old.
    """
    with view_errors():
        options = f"-c TimeZone=UTC -c lock_timeout={int(lock_seconds * 1000)}"
        more = line_options(psycopg.conninfo.conninfo_to_dict(url)) | {"options": options}
        more |= {"password": password} if password else {}
        connection = psycopg.connect(url, autocommit=True, **more)
        if connection.info.server_version < OLDEST:
            connection.close()
            raise StoreError("store-rejected", "Materialized views need PostgreSQL 15 or newer.")
        return connection


class PostgresWriter:
    """Writes one table."""

    native = True

    def __init__(self, url: str, password: str | None, table: Table, attempt: int) -> None:
        self._url, self._password = url, password
        self._table, self._attempt = table, attempt
        self._connection: psycopg.Connection[Any] | None = None
        self._last: int | None = None

    def open(self) -> None:
        """Claim the table for this attempt."""
        with view_errors():
            self._connection = connect(self._url, self._password)
            with self._transaction() as cursor:
                # Two jobs that both make the schema would get in each other's way.
                cursor.execute("SELECT pg_advisory_xact_lock(%s)", (_MAKING,))
                if cursor.execute("SELECT to_regnamespace(%s)", (SCHEMA,)).fetchone() == (None,):
                    cursor.execute(f"CREATE SCHEMA {SCHEMA}")  # else its role may not even ask for it
                cursor.execute(_STATE)
                state = self._state(cursor, "generation, attempt")
                if state is not None and state[1] > self._attempt:
                    raise behind(state[1])
                if state is None or state[0] != self._table.generation:
                    self._make(cursor)
                cursor.execute(
                    f"UPDATE {SCHEMA}.leat_views SET attempt = %s WHERE name = %s",  # noqa: S608 - ours
                    (self._attempt, self._table.name),
                )
                for name, columns in self._table.indexes:
                    cursor.execute(index_statement(self._table.name, name, columns))

                found = self._state(cursor, "batch")
                self._last = found[0] if found is not None else None

    def committed(self) -> int | None:
        """Number of the last batch of this generation that was there at ``open``."""
        return self._last

    def apply(self, batch: Batch) -> bool:
        """Apply a batch, once."""
        with view_errors():
            if self._connection is None or self._connection.closed:
                self._connection = connect(self._url, self._password)
            with self._transaction() as cursor:
                state = self._state(cursor, "attempt, batch")
                if state is None or state[0] != self._attempt:
                    raise fenced()
                if state[1] is not None and state[1] >= batch.number:
                    return False
                self._write(cursor, batch)
                cursor.execute(
                    f"UPDATE {SCHEMA}.leat_views SET batch = %s, batch_time = %s, watermark = %s"  # noqa: S608
                    " WHERE name = %s",
                    (batch.number, batch.time, batch.watermark, self._table.name),
                )
        return True

    def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            self._connection.close()

    def _state(self, cursor: psycopg.Cursor[Any], columns: str) -> tuple[Any, ...] | None:
        return cursor.execute(
            f"SELECT {columns} FROM {SCHEMA}.leat_views WHERE name = %s FOR UPDATE",  # noqa: S608 - ours
            (self._table.name,),
        ).fetchone()

    def _write(self, cursor: psycopg.Cursor[Any], batch: Batch) -> None:
        """Through a temporary table filled by COPY: many times faster than a statement for each row."""
        table, target = self._table, table_of(self._table.name)
        rows = with_times(table, batch)
        names = [sql.Identifier(name) for name in table.columns]
        keys = [names[i] for i in table.keys]
        if batch.gone:
            self._copy(cursor, "leat_gone", table.keys, batch.gone)
            same = sql.SQL(" AND ").join(sql.SQL("t.{0} IS NOT DISTINCT FROM g.{0}").format(k) for k in keys)
            cursor.execute(sql.SQL("DELETE FROM {} t USING leat_gone g WHERE {}").format(target, same))
        if rows:
            self._copy(cursor, "leat_batch", range(len(names)), rows)
            columns = sql.SQL(", ").join(names)
            end: sql.Composable = sql.SQL("")
            if keys:
                rest = [n for i, n in enumerate(names) if i not in table.keys]
                sets = sql.SQL(", ").join(sql.SQL("{0} = excluded.{0}").format(n) for n in rest)
                doing = sql.SQL("UPDATE SET {}").format(sets) if rest else sql.SQL("NOTHING")
                end = sql.SQL(" ON CONFLICT ({}) DO {}").format(sql.SQL(", ").join(keys), doing)
            insert = sql.SQL("INSERT INTO {} ({}) SELECT {} FROM leat_batch")
            cursor.execute(insert.format(target, columns, columns) + end)
        if table.retention_ms is not None:
            oldest = batch.time - table.retention_ms * 1000
            cursor.execute(
                sql.SQL("DELETE FROM {} WHERE {} < %s").format(target, sql.Identifier(TIME)), (oldest,)
            )

    def _copy(self, cursor: psycopg.Cursor[Any], name: str, places: Any, rows: Any) -> None:
        chosen = [sql.Identifier(self._table.columns[i]) for i in places]
        columns = sql.SQL(", ").join(chosen)
        made = sql.SQL("CREATE TEMPORARY TABLE {} ON COMMIT DROP AS SELECT {} FROM {} WITH NO DATA")
        cursor.execute(made.format(sql.Identifier(name), columns, table_of(self._table.name)))
        with cursor.copy(sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(name), columns)) as copy:
            for row in rows:
                copy.write_row(row)

    def _make(self, cursor: psycopg.Cursor[Any]) -> None:
        table = self._table
        target = table_of(table.name)
        cursor.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(target))
        declared = [f"c{i} {column_type(kind)}" for i, kind in enumerate(table.types)]
        declared += [f"{TIME} bigint"] if table.retention_ms is not None else []
        cursor.execute(sql.SQL("CREATE TABLE {} ({})").format(target, sql.SQL(", ".join(declared))))
        if table.keys:
            shown = sql.SQL(", ").join(sql.Identifier(f"c{i}") for i in table.keys)
            unique = sql.SQL("CREATE UNIQUE INDEX ON {} ({}) NULLS NOT DISTINCT")
            cursor.execute(unique.format(target, shown))
        if table.retention_ms is not None:
            cursor.execute(sql.SQL("CREATE INDEX ON {} ({})").format(target, sql.Identifier(TIME)))
        cursor.execute(f"DELETE FROM {SCHEMA}.leat_views WHERE name = %s", (table.name,))  # noqa: S608 - ours
        cursor.execute(
            f"INSERT INTO {SCHEMA}.leat_views (name, generation, attempt) VALUES (%s, %s, %s)",  # noqa: S608
            (table.name, table.generation, self._attempt),
        )

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[psycopg.Cursor[Any]]:
        if self._connection is None:
            raise StoreError("store-rejected", "The materialized view is not open.")
        with self._connection.transaction(), self._connection.cursor() as cursor:
            yield cursor


@contextlib.contextmanager
def view_errors() -> Iterator[None]:
    """PostgreSQL's errors as ours; what it says of values is left out."""
    try:
        yield
    except psycopg.errors.LockNotAvailable:
        raise StoreError(
            "store-unreachable",
            "The database of the materialized views: another session has locked the view's table.",
            hint="Look for long transactions in pg_stat_activity, such as a dump. An index is to be made or"
            " dropped again then; what a query writes and the end of a view are tried again by themselves.",
        ) from None
    except psycopg.OperationalError as error:
        shown = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise StoreError(
            "store-unreachable", sentence(f"The database of the materialized views: {shown}")
        ) from None
    except psycopg.Error as error:
        shown = error.diag.message_primary or type(error).__name__
        raise StoreError("store-rejected", f"The database of the materialized views says: {shown}.") from None

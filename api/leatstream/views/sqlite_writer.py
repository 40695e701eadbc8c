"""A view in a SQLite file of its own, so that views do not wait for each other's writers."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from leatstream.errors import StoreError
from leatstream.model.types import DataType
from leatstream.views.base import TIME, Batch, Table, behind, fenced, with_times

BUSY_SECONDS = 15.0
_STATE = """CREATE TABLE IF NOT EXISTS leat_view (
  one INTEGER PRIMARY KEY CHECK (one = 1), generation INTEGER NOT NULL, attempt INTEGER NOT NULL,
  batch INTEGER, batch_time INTEGER, watermark INTEGER
)"""
_AFFINITY = {
    "BOOLEAN": "INTEGER",
    "TINYINT": "INTEGER",
    "SMALLINT": "INTEGER",
    "INTEGER": "INTEGER",
    "BIGINT": "INTEGER",
    "DATE": "INTEGER",
    "TIMESTAMP": "INTEGER",
    "TIMESTAMP_LTZ": "INTEGER",
    "FLOAT": "REAL",
    "DOUBLE": "REAL",
    "BYTES": "BLOB",
    "VARBINARY": "BLOB",
}


def file_of(directory: str | Path, table: str) -> Path:
    """The file of a view."""
    return Path(directory) / f"{table}.db"


def column_type(kind: DataType) -> str:
    """How a column is declared."""
    return _AFFINITY.get(kind.kind, "TEXT")


def index_name(name: str) -> str:
    """An index in SQLite: the user's name, quoted, out of the way of ours."""
    return '"user_' + name.replace('"', '""') + '"'


def index_statement(name: str, columns: tuple[int, ...]) -> str:
    """CREATE INDEX of a user's index."""
    shown = ", ".join(f"c{i}" for i in columns)
    return f"CREATE INDEX IF NOT EXISTS {index_name(name)} ON leat_rows ({shown})"


class SqliteWriter:
    """Writes one file."""

    native = False

    def __init__(self, directory: str, table: Table, attempt: int) -> None:
        self._path = file_of(directory, table.name)
        self._table = table
        self._attempt = attempt
        self._connection: sqlite3.Connection | None = None
        self._last: int | None = None
        self._upsert, self._forget = _statements(table)

    def open(self) -> None:
        """Claim the file for this attempt."""
        with _told(self._path):
            self._connection = self._connect()
            with self._transaction() as cursor:
                cursor.execute(_STATE)
                state = cursor.execute("SELECT generation, attempt FROM leat_view").fetchone()
                if state is not None and state[1] > self._attempt:
                    raise behind(state[1])
                if state is None or state[0] != self._table.generation:
                    self._make(cursor)
                cursor.execute("UPDATE leat_view SET attempt = ?", (self._attempt,))
                for name, columns in self._table.indexes:
                    cursor.execute(index_statement(name, columns))
                (self._last,) = cursor.execute("SELECT batch FROM leat_view").fetchone()

    def committed(self) -> int | None:
        """Number of the last batch of this generation that was there at ``open``."""
        return self._last

    def apply(self, batch: Batch) -> bool:
        """Apply a batch, once."""
        with _told(self._path), self._transaction() as cursor:
            attempt, done = cursor.execute("SELECT attempt, batch FROM leat_view").fetchone()
            if attempt != self._attempt:
                raise fenced()
            if done is not None and done >= batch.number:
                return False
            if batch.gone:
                cursor.executemany(self._forget, batch.gone)
            self._write(cursor, batch)
            if self._table.retention_ms is not None:
                oldest = batch.time - self._table.retention_ms * 1000
                cursor.execute(f"DELETE FROM leat_rows WHERE {TIME} < ?", (oldest,))  # noqa: S608 - ours
            cursor.execute(
                "UPDATE leat_view SET batch = ?, batch_time = ?, watermark = ?",
                (batch.number, batch.time, batch.watermark),
            )
        return True

    def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _write(self, cursor: sqlite3.Cursor, batch: Batch) -> None:
        rows, keys = with_times(self._table, batch), self._table.keys
        if keys:
            # A unique index takes NULLs for different, so those rows are replaced by hand.
            empty = [key for key in (tuple(row[i] for i in keys) for row in rows) if None in key]
            if empty:
                cursor.executemany(self._forget, empty)
        cursor.executemany(self._upsert, rows)

    def _make(self, cursor: sqlite3.Cursor) -> None:
        table = self._table
        cursor.execute("DROP TABLE IF EXISTS leat_rows")
        declared = [f"c{i} {column_type(kind)}" for i, kind in enumerate(table.types)]
        declared += [f"{TIME} INTEGER"] if table.retention_ms is not None else []
        cursor.execute(f"CREATE TABLE leat_rows ({', '.join(declared)})")
        if table.keys:
            shown = ", ".join(f"c{i}" for i in table.keys)
            cursor.execute(f"CREATE UNIQUE INDEX leat_key ON leat_rows ({shown})")
        if table.retention_ms is not None:
            cursor.execute(f"CREATE INDEX leat_by_time ON leat_rows ({TIME})")
        cursor.execute("DELETE FROM leat_view")
        cursor.execute(
            "INSERT INTO leat_view (one, generation, attempt) VALUES (1, ?, ?)",
            (table.generation, self._attempt),
        )

    def _connect(self) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Rows of the user's: nobody else's to read. -wal and -shm get the same mode.
        os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, stat.S_IRUSR | stat.S_IWUSR))
        # Spark calls from threads of its own, one after the other.
        connection = sqlite3.connect(
            self._path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        connection.execute("PRAGMA journal_mode = WAL")
        # A batch that a power cut removes would not be repeated: Spark has its own word that it is done.
        connection.execute("PRAGMA synchronous = FULL")
        return connection

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Cursor]:
        connection = self._connection
        if connection is None:
            raise StoreError("store-rejected", "The materialized view is not open.")
        cursor = connection.cursor()
        cursor.execute("BEGIN IMMEDIATE")
        try:
            yield cursor
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                cursor.execute("ROLLBACK")
            raise
        cursor.execute("COMMIT")


def _statements(table: Table) -> tuple[str, str]:
    names = table.columns
    insert = f"INSERT INTO leat_rows ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"  # noqa: S608 - ours
    if not table.keys:
        return insert, ""
    keys = [names[i] for i in table.keys]
    rest = [name for name in names if name not in keys]
    doing = f"UPDATE SET {', '.join(f'{n} = excluded.{n}' for n in rest)}" if rest else "NOTHING"
    upsert = f"{insert} ON CONFLICT ({', '.join(keys)}) DO {doing}"
    forget = f"DELETE FROM leat_rows WHERE {' AND '.join(f'{k} IS ?' for k in keys)}"  # noqa: S608 - ours
    return upsert, forget


@contextlib.contextmanager
def _told(path: Path) -> Iterator[None]:
    """SQLite's errors as ours."""
    try:
        yield
    except sqlite3.Error as error:
        code: Any = "store-unreachable" if isinstance(error, sqlite3.OperationalError) else "store-rejected"
        raise StoreError(
            code, f"The file {path.name} of a materialized view cannot be used: {error}."
        ) from None

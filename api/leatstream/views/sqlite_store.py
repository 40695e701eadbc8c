"""Views in SQLite files, as the API sees them: read-only, while jobs write."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from leatstream.errors import EngineError, RequestError, StoreError
from leatstream.plan.job_spec import ViewDatabase
from leatstream.ports import Freshness, Snapshot
from leatstream.views.faults import gathered, not_ready, timed_out
from leatstream.views.sqlite_functions import Fault, register
from leatstream.views.sqlite_writer import BUSY_SECONDS, file_of, index_name, index_statement

_STEPS = 10_000
_TOO_COMPLEX = ("parser stack", "Expression tree", "at most 64 tables", "too many", "terms in compound")


class SqliteViews:
    """A directory of files, one for each view."""

    kind: Literal["sqlite", "postgresql"] = "sqlite"
    unusable: str | None = None
    password: str | None = None

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.database = ViewDatabase(kind="sqlite", location=str(directory))

    def read(self, snapshot: Snapshot) -> tuple[list[tuple[object, ...]], list[Freshness]]:
        """Read in one transaction: each view as of one batch."""
        deadline = time.monotonic() + snapshot.timeout
        with contextlib.closing(self._open(snapshot)) as connection:
            fault = register(connection)
            connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
            try:
                connection.execute("BEGIN")
                freshness = [
                    _state(connection, i, generation) for i, (_, generation) in enumerate(snapshot.tables)
                ]
                cursor = connection.execute(snapshot.sql, tuple(snapshot.parameters))
                return gathered(cursor, snapshot.limit), freshness
            except sqlite3.Error as error:
                raise _told(error, fault, snapshot.timeout, deadline) from None

    def add_index(self, table: str, name: str, columns: Sequence[int]) -> None:
        """Make an index."""
        with self._writing(table) as connection:
            if connection is not None and _has_rows(connection):
                connection.execute(index_statement(name, tuple(columns)))

    def drop_index(self, table: str, name: str) -> None:
        """Drop an index."""
        with self._writing(table) as connection:
            if connection is not None:
                connection.execute(f"DROP INDEX IF EXISTS {index_name(name)}")

    def drop(self, table: str) -> None:
        """Delete the file."""
        path = file_of(self._directory, table)
        for ending in ("", "-wal", "-shm"):
            path.with_name(path.name + ending).unlink(missing_ok=True)

    def _open(self, snapshot: Snapshot) -> sqlite3.Connection:
        connection = sqlite3.connect(":memory:", isolation_level=None, uri=True, check_same_thread=False)
        try:
            for i, (table, _) in enumerate(snapshot.tables):
                path = file_of(self._directory, table)
                if not path.exists():
                    raise not_ready("has no rows yet")
                # A plain file name would be taken for a new file; mode=ro also keeps ATTACH from writing.
                connection.execute(f"ATTACH ? AS v{i}", (f"file:{_escaped(path)}?mode=ro",))
            connection.execute("PRAGMA busy_timeout = 5000")
            connection.execute("PRAGMA case_sensitive_like = ON")
            connection.execute("PRAGMA query_only = ON")
        except sqlite3.Error as error:
            connection.close()
            raise not_ready("cannot be opened") from error
        except BaseException:
            connection.close()
            raise
        return connection

    @contextlib.contextmanager
    def _writing(self, table: str) -> Iterator[sqlite3.Connection | None]:
        path = file_of(self._directory, table)
        if not path.exists():
            yield None
            return
        connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
        try:
            yield connection
        except sqlite3.Error as error:
            raise StoreError(
                "store-unreachable", f"The materialized view's file cannot be changed now: {error}."
            ) from None
        finally:
            connection.close()


def _escaped(path: Path) -> str:
    return str(path.resolve()).replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def _has_rows(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'leat_rows'").fetchone())


def _state(connection: sqlite3.Connection, place: int, generation: int) -> Freshness:
    try:
        row = connection.execute(
            f"SELECT generation, batch, batch_time, watermark FROM v{place}.leat_view"  # noqa: S608 - a number
        ).fetchone()
    except sqlite3.OperationalError as error:
        if "no such table" not in str(error):
            raise
        row = None
    if row is None or row[0] != generation:
        raise not_ready("has no rows yet" if row is None else "is about to be filled again")
    return Freshness(*row[1:])


def _told(
    error: sqlite3.Error, fault: Fault, timeout: float, deadline: float
) -> EngineError | RequestError | StoreError:
    if fault.detail is not None:
        return RequestError("not-computable", fault.detail, sqlstate=fault.sqlstate)
    text = str(error)
    if "interrupted" in text and time.monotonic() > deadline:
        return timed_out(timeout)
    if "integer overflow" in text:
        return RequestError("not-computable", "A sum is too large for BIGINT.", sqlstate="22003")
    if any(word in text for word in _TOO_COMPLEX):
        return RequestError("too-complex", f"The SELECT is too large for the views' database: {text}.")
    if "too big" in text or "too large" in text:
        return RequestError("not-computable", "A text is too long.", sqlstate="54000")
    return StoreError("store-unreachable", f"The materialized views cannot be read now: {text}.")

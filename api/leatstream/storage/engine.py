"""Database engines: SQLite for one process, PostgreSQL for more."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from leatstream.errors import StackError
from leatstream.storage.codec import decode_json, encode_json
from leatstream.views.postgresql_line import line_options

WRITE = "leatstream_write"
# Leases are rows that servers lock one by one: neither the one writer's turn nor a snapshot is wanted.
ROW_LOCKS = "leatstream_row_locks"
# One writer at a time on PostgreSQL as well: services look first and then write, and must not race.
_WRITER_LOCK = 0x6C656174
BUSY_SECONDS = 15  # that one writer waits for the one before
# Servers that shut down, crash or start; a session ended because its client stood still.
_AWAY = ("57P01", "57P02", "57P03", "25P03")
# A server that stands still while it writes must not hold up the others for ever, nor for so long that they
# take drivers for silent whose word could not be taken down.
_STILL_SECONDS = 10
_URL_HINT = "Give a URL that starts with sqlite:/// or postgresql://."
_ROW_SECONDS = 5  # that rows locked by another server are waited for


def make_engine(url: str) -> sa.Engine:
    """An engine for ``sqlite:////path/file.db`` or ``postgresql://user@host/name``.

    Connections whose execution option ``leatstream_write`` is true exclude each other from their begin on.

    Raises:
        StackError: part-failed, the URL names no database that can hold the catalog.
    """
    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):  # they tell the URL, which may hold a password
        raise StackError(
            "part-failed", "The URL of the catalog, LEATSTREAM_CATALOG_URL, cannot be read.", hint=_URL_HINT
        ) from None
    backend = parsed.get_backend_name()
    options: dict[str, Any] = {
        "json_serializer": encode_json,
        "json_deserializer": decode_json,
        "hide_parameters": True,  # errors are logged, what people wrote and hashes of tokens are not
    }
    if backend == "postgresql":
        engine = sa.create_engine(
            parsed.set(drivername="postgresql+psycopg"),
            pool_pre_ping=True,
            connect_args=line_options(parsed.query),
            pool_size=10,
            max_overflow=30,
            **options,
        )
        sa.event.listen(engine, "begin", _begin_postgresql)
        return engine
    if backend != "sqlite":
        raise StackError(
            "part-failed",
            f"The catalog cannot be kept in {backend!r}.",
            hint=_URL_HINT,
        )
    _prepare_file(parsed.database)
    engine = sa.create_engine(
        parsed,
        connect_args={"check_same_thread": False, "timeout": BUSY_SECONDS},
        pool_size=20,
        max_overflow=60,
        **options,
    )
    sa.event.listen(engine, "connect", _connect_sqlite)
    sa.event.listen(engine, "begin", _begin_sqlite)
    return engine


def is_away(error: sa.exc.DBAPIError) -> bool:
    """Whether the database was unreachable or stopped answering; a refused statement does not count."""
    state = getattr(error.orig, "sqlstate", None) or ""
    # Connection faults, too.
    if error.connection_invalidated or state.startswith("08") or state in _AWAY:
        return True
    # psycopg gives no SQLSTATE where no server has answered.
    is_fault = isinstance(error, sa.exc.OperationalError | sa.exc.InterfaceError)
    return is_fault and hasattr(error.orig, "sqlstate") and not state


def is_busy(error: sa.exc.DBAPIError) -> bool:
    """Whether another writer did not end in time."""
    return getattr(error.orig, "sqlstate", None) == "55P03" or "database is locked" in str(error.orig)


def is_full(error: sa.exc.DBAPIError) -> bool:
    """Whether the disk of the catalog has no room for what was to be written."""
    return getattr(error.orig, "sqlstate", None) == "53100" or "disk is full" in str(error.orig)


def _prepare_file(name: str | None) -> None:
    if not name or name == ":memory:":
        raise StackError(
            "part-failed",
            "The catalog needs a file: one in memory would be another one for each thread.",
            hint="Give a URL such as sqlite:////var/lib/leatstream/catalog.db.",
        )
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    # It holds hashes of tokens and sealed secrets: nobody else's to read. -wal and -shm get the same mode.
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR, stat.S_IRUSR | stat.S_IWUSR)
    os.close(descriptor)


def _connect_sqlite(connection: Any, _record: Any) -> None:
    # The driver must not begin transactions by itself: _begin_sqlite says which kind.
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: sa.Connection) -> None:
    # IMMEDIATE takes the write lock at once, so that what was read stays true until the commit.
    write = connection.get_execution_options().get(WRITE, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def _begin_postgresql(connection: sa.Connection) -> None:
    options = connection.get_execution_options()
    if options.get(ROW_LOCKS, False):
        # Rows of a server that has vanished are to be free before its leases expire.
        _bound(connection, _ROW_SECONDS)
        return
    if options.get(WRITE, False):
        lock_writers(connection)
    else:
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")


def lock_writers(connection: sa.Connection) -> None:
    """Wait for the one writer's turn on PostgreSQL; it ends with the transaction.

    Raises:
        sqlalchemy.exc.OperationalError: ``is_busy``, another writer has had it for too long.
    """
    _bound(connection, BUSY_SECONDS)
    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_WRITER_LOCK})")


def _bound(connection: sa.Connection, lock_seconds: float) -> None:
    """Bound how long the transaction waits for locks, and how long others wait for one that stands still."""
    connection.exec_driver_sql(
        f"SELECT set_config('lock_timeout', '{int(lock_seconds * 1000)}ms', true),"
        f" set_config('idle_in_transaction_session_timeout', '{int(_STILL_SECONDS * 1000)}ms', true)"
    )

"""Views in PostgreSQL, as the API sees them: read-only, while jobs write."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from typing import Any, Literal, cast

import psycopg
from psycopg import sql

from leatstream.errors import EngineError, InternalError, LeatstreamError, RequestError, StoreError, sentence
from leatstream.model.view_values import MOST_CHARACTERS, TOO_LONG
from leatstream.plan.job_spec import ViewDatabase
from leatstream.ports import Freshness, Snapshot
from leatstream.views.faults import gathered, not_ready, timed_out
from leatstream.views.postgresql_role import without_password
from leatstream.views.postgresql_writer import (
    SCHEMA,
    connect,
    index_name,
    index_statement,
    table_of,
    view_errors,
)

_Rows = Generator[tuple[object, ...], None, None]
_CHANGE_LOCK_SECONDS = 3.0
_INDEX_LOCK_SECONDS = 20.0  # for the batch at work; readers do not wait behind it
PASSWORD = "secret://views/password"  # noqa: S105 - a reference
USE_ANOTHER = (
    "Let the catalog's role make roles (ALTER ROLE … CREATEROLE), or make one for the views and name it in "
    "LEATSTREAM_VIEWS_URL: docs/operations.md, The views' role. Then start the server again."
)


class PostgresViews:
    """The schema ``leatstream_views`` of a database.

    Args:
        url: with the role that jobs write with.
    """

    kind: Literal["sqlite", "postgresql"] = "postgresql"
    unusable: str | None = None

    def __init__(self, url: str) -> None:
        self._url, self.password = without_password(url)
        self.database = ViewDatabase(
            kind="postgresql", location=self._url, secret=PASSWORD if self.password else None
        )

    def read(self, snapshot: Snapshot) -> tuple[list[tuple[object, ...]], list[Freshness]]:
        """Read in one transaction: all views as of one moment, and so each as of one batch."""
        with connect(self._url, self.password) as connection:
            try:
                connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                limit = f"{max(int(snapshot.timeout * 1000), 1)}ms"
                connection.execute("SELECT set_config('statement_timeout', %s, true)", (limit,))
                freshness = [_state(connection, *table) for table in snapshot.tables]
                named = {f"p{i}": value for i, value in enumerate(snapshot.parameters)}
                # The driver would fetch all rows before it gives the first: no more are made, and each is
                # looked at as it comes.
                limited = f"SELECT * FROM ({snapshot.sql}) AS answer LIMIT {int(snapshot.limit)}"  # noqa: S608
                with connection.cursor() as cursor:
                    stream = cast(_Rows, cursor.stream(limited, named))
                    with closing(stream) as rows:
                        return gathered(rows, snapshot.limit), freshness
            except psycopg.Error as error:
                raise _fault(error, snapshot.timeout) from None

    def add_index(self, table: str, name: str, columns: Sequence[int]) -> None:
        """Make an index."""
        with view_errors(), connect(self._url, self.password, _INDEX_LOCK_SECONDS) as connection:
            if _has_table(connection, table):
                connection.execute(index_statement(table, name, tuple(columns)))

    def drop_index(self, table: str, name: str) -> None:
        """Drop an index."""
        hashed = sql.Identifier(SCHEMA, index_name(table, name).as_string()[1:-1])
        with view_errors(), self._change() as connection:
            connection.execute(sql.SQL("DROP INDEX IF EXISTS {}").format(hashed))

    def drop(self, table: str) -> None:
        """Drop the table and what is remembered of it."""
        with view_errors(), self._change() as connection:
            if not _has_table(connection, table):
                return
            with connection.transaction():
                connection.execute(sql.SQL("DROP TABLE {}").format(table_of(table)))
                connection.execute(f"DELETE FROM {SCHEMA}.leat_views WHERE name = %s", (table,))  # noqa: S608

    def _change(self) -> psycopg.Connection[Any]:
        """For what needs a table for itself: while it waits, every reader of the table waits behind it."""
        return connect(self._url, self.password, _CHANGE_LOCK_SECONDS)


class UnusableViews:
    """In place of views that cannot be kept apart from the catalog: each use raises the reason.

    Args:
        why: the cause.
    """

    kind: Literal["sqlite", "postgresql"] = "postgresql"

    def __init__(self, why: str) -> None:
        self.unusable: str | None = f"materialized views cannot be kept: {why}"
        self.database = ViewDatabase(kind="postgresql", location="", secret=PASSWORD)

    @property
    def password(self) -> str | None:
        """None is to be had."""
        raise InternalError("secret-unreadable", str(self.unusable), hint=USE_ANOTHER)

    def read(self, snapshot: Snapshot) -> tuple[list[tuple[object, ...]], list[Freshness]]:
        """StoreError."""
        raise self._refused()

    def add_index(self, table: str, name: str, columns: Sequence[int]) -> None:
        """StoreError."""
        raise self._refused()

    def drop_index(self, table: str, name: str) -> None:
        """StoreError."""
        raise self._refused()

    def drop(self, table: str) -> None:
        """StoreError."""
        raise self._refused()

    def _refused(self) -> StoreError:
        return StoreError("store-auth-failed", str(self.unusable), hint=USE_ANOTHER)


def _has_table(connection: psycopg.Connection[Any], table: str) -> bool:
    row = connection.execute("SELECT to_regclass(%s)", (f"{SCHEMA}.{table}",)).fetchone()
    return row is not None and row[0] is not None


def _state(connection: psycopg.Connection[Any], table: str, generation: int) -> Freshness:
    row = None
    if _has_table(connection, table):
        row = connection.execute(
            f"SELECT generation, batch, batch_time, watermark FROM {SCHEMA}.leat_views WHERE name = %s",  # noqa: S608
            (table,),
        ).fetchone()
    if row is None or row[0] != generation:
        raise not_ready("has no rows yet" if row is None else "is about to be filled again")
    return Freshness(*row[1:])


def _fault(error: psycopg.Error, timeout: float) -> LeatstreamError:
    state = error.sqlstate or ""
    if state == "57014":
        return timed_out(timeout)
    said = error.diag.message_primary or type(error).__name__
    if state == "22P02" and TOO_LONG in said:
        detail = f"A text has more than {MOST_CHARACTERS} characters."
        return RequestError("not-computable", detail, sqlstate="54000")
    if state == "54001":
        return RequestError("too-complex", "The SELECT nests too deep for the database of the views.")
    if state.startswith("22"):
        # What stands in quotes may be a value.
        detail = said.split(":")[0]
        return RequestError("not-computable", detail, sqlstate=state)
    if isinstance(error, psycopg.DataError) and not state:
        # The driver's own word: Python has no such date.
        detail = "A value is beyond its type, such as a date after the year 9999."
        return RequestError("not-computable", detail, sqlstate="22008")
    if isinstance(error, psycopg.OperationalError):
        return StoreError("store-unreachable", "The database of the materialized views does not answer.")
    return EngineError("engine-unavailable", sentence(f"The database of the materialized views says: {said}"))

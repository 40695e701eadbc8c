"""What PostgreSQL says, as a StoreError a person can act on. No value of a row passes through here."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from leatstream.errors import StoreError

if TYPE_CHECKING:
    import psycopg

# Before a login there are no codes, only sentences.
_LOGIN = (
    "authentication failed",
    "no password supplied",
    "no pg_hba.conf entry",
    "is not permitted to log in",
    "permission denied for database",
)
_ROLE_GONE = re.compile(r'role "[^"]*" does not exist')
_DATABASE_GONE = re.compile(r'database "[^"]*" does not exist')
_ENCRYPTION = re.compile(r"\b(SSL|TLS|certificate)\b", re.I)
_BUSY = ("40001", "40P01", "55P03")
_AWAY = ("57014", "57P01", "57P02", "57P03", "25P03", "53300")
# What is wrong with a value, in words without the value.
VALUES = {
    "22001": "it is too long for the column's type",
    "22003": "it is out of the range of the column's type",
    "22007": "it is no date or time of the column's type",
    "22008": "it is out of the range of dates and times",
    "22021": "it holds the character NUL, which PostgreSQL's texts cannot",
    "22P02": "it cannot be read as the column's type",
    "22P03": "it cannot be read as the column's type",
    "22P05": "it holds a character that the database's encoding has not",
    "22026": "it has not the length of the column's type",
    "22030": "it is JSON with a doubled key",
    "22032": "it is no JSON",
    "23502": "it is NULL, and the column is NOT NULL",
    "23503": "no row of the table that it refers to has it",
    "23505": "another row has it, and it must be unique",
    "23514": "a CHECK of the table refuses it",
    "23P01": "an exclusion constraint of the table refuses it",
}


def store_error(
    store: str, what: str, error: psycopg.Error, where: str, timeout: float, table: str | None = None
) -> StoreError:
    """What to say when a call failed.

    Args:
        store: the store's name.
        what: what was tried, such as ``listing tables``.
        error: from psycopg.
        where: address and database.
        timeout: seconds that the call had.
        table: the table that rows were written to; then nothing of PostgreSQL's sentence is passed on that
            may hold a value.
    """
    code = error.sqlstate
    if code is None and _refused_here(error):
        return StoreError("store-rejected", f"Store {store}: {what}: {type(error).__name__} of the client.")
    if code is None:
        return _connection_error(store, error, where, timeout)
    if code.startswith("28") or code == "42501":
        said = error.diag.message_primary or "no reason"
        hint = "Grant the user what is missing, or name another in username."
        return StoreError(
            "store-auth-failed", f"Store {store}: the user may not do this: {what}: {said}.", hint=hint
        )
    if code.startswith("08") or code in _AWAY:
        return StoreError(
            "store-unreachable",
            f"Store {store}: PostgreSQL at {where} did not finish {what} within {timeout:g} s ({code}).",
            hint="Check the server's load and what holds a lock; then try again.",
        )
    if code in _BUSY:
        return StoreError(
            "store-unreachable",
            f"Store {store}: {what} met another transaction ({code}).",
            hint="It is tried again.",
        )
    if code in ("42P01", "3F000") and table is None:
        return StoreError("entity-not-found", f"Store {store}: {what}: there is no such table.")
    if table is not None and code[:2] in ("22", "23"):
        return value_error(store, table, error)
    said = error.diag.message_primary or type(error).__name__
    return StoreError("store-rejected", f"Store {store}: {what} was refused: {said} ({code}).")


def value_error(store: str, table: str, error: psycopg.Error) -> StoreError:
    """A row that the table does not take: column or constraint and kind of fault, never the value."""
    diag, code = error.diag, error.sqlstate or ""
    column = diag.column_name or _copied_column(diag.context)
    place = f"column {column}" if column else f"constraint {diag.constraint_name}"
    if column is None and diag.constraint_name is None:
        place = "a column"
    why = VALUES.get(code, "it does not fit the column's type")
    return StoreError(
        "store-rejected",
        f"Store {store}: table {table} does not take a value of {place}: {why} ({code}).",
        hint="Change the value in the query, with TRY_CAST, COALESCE or WHERE, or change the table.",
    )


def _copied_column(context: str | None) -> str | None:
    """The column that COPY was reading: ``COPY t, line 3, column c: "…"``, or behind a line on JSON."""
    found = re.search(r"^COPY .*?, line \d+, column (.+?)(?::|$)", context or "", re.M)
    return found[1] if found else None


def _refused_here(error: psycopg.Error) -> bool:
    """Whether the client itself did not take a statement or a value, which its sentence may quote."""
    import psycopg

    return isinstance(error, psycopg.DataError | psycopg.ProgrammingError | psycopg.NotSupportedError)


def _connection_error(store: str, error: psycopg.Error, where: str, timeout: float) -> StoreError:
    """No code: the connection was not made, or is lost."""
    text = " ".join(str(error).split())
    if any(word in text for word in _LOGIN) or _ROLE_GONE.search(text):
        return StoreError(
            "store-auth-failed",
            f"Store {store}: PostgreSQL at {where} refused the login.",
            hint="Check username and password, and pg_hba.conf of the server: it also tells who needs TLS.",
        )
    if _DATABASE_GONE.search(text):
        return StoreError(
            "store-rejected",
            f"Store {store}: the server at {where.split('/')[0]} has no database {where.split('/', 1)[1]}.",
            hint="Check the database's name.",
        )
    if ("too many" in text and "connections" in text) or "remaining connection slots" in text:
        hint = "Raise max_connections, or use a connection pooler in session mode."
        return StoreError(
            "store-unreachable", f"Store {store}: PostgreSQL at {where} has no connection left.", hint=hint
        )
    hint = "Check host and port, and that the address can be reached from here."
    why = ""
    if _ENCRYPTION.search(text):
        found = re.search(r"port \d+ failed: (.*?)(?: Multiple connection attempts|$)", text)
        why = f": {(found[1] if found else text)[:200].rstrip('.')}"
        hint = "Check ssl_mode ('tls.disabled' in SQL) and ca_certificate."
    return StoreError(
        "store-unreachable",
        f"Store {store}: PostgreSQL did not answer at {where} within {timeout:g} s{why}.",
        hint=hint,
    )


@contextlib.contextmanager
def told(store: str, what: str, where: str, timeout: float, table: str | None = None) -> Iterator[None]:
    """psycopg's errors as StoreErrors."""
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        raise store_error(store, what, error, where, timeout, table) from None

"""What ClickHouse says, as a StoreError a person can act on. No value of a row passes through here."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from leatstream.errors import StoreError

if TYPE_CHECKING:
    from clickhouse_connect.driver.exceptions import Error

# UNKNOWN_USER, WRONG_PASSWORD, REQUIRED_PASSWORD, IP_ADDRESS_NOT_ALLOWED, AUTHENTICATION_FAILED
_LOGIN = (192, 193, 194, 195, 516)
_DENIED = (497, 164)  # ACCESS_DENIED, READONLY
UNKNOWN_TABLE, UNKNOWN_DATABASE = 60, 81
# Timeouts, memory, too many queries or parts, read-only replicas, Keeper, sockets.
_BUSY = (159, 160, 202, 203, 209, 210, 225, 241, 242, 252, 279, 319, 364, 439, 745, 999)
_ENCRYPTION = re.compile(r"\b(SSL|TLS|certificate)", re.I)
_STATUS = re.compile(r"received HTTP status (\d{3})")
_REASON = re.compile(r"DB::Exception: (.*?)\s*(?:\(([A-Z][A-Z0-9_]+)\))?\s*(?:\(version .*)?\Z", re.S)
# Codes that say what is wrong with a value.
VALUES = {
    349: "it is NULL, and the column is not Nullable",
    469: "a CONSTRAINT of the table refuses it",
    691: "it is none of the column's Enum",
}


def store_error(
    store: str, what: str, error: Error, where: str, timeout: float, table: str | None = None
) -> StoreError:
    """What to say when a call failed.

    Args:
        store: the store's name.
        what: what was tried, such as ``listing tables``.
        error: from clickhouse-connect.
        where: address of the server.
        timeout: seconds that the call had.
        table: the table that rows were written to or read from; then nothing of ClickHouse's sentence is
            passed on, which may hold a value.
    """
    code = error.code
    if code is None:
        return _connection_error(store, what, error, where, timeout)
    said, name = _reason(error)
    if code in _LOGIN:
        return StoreError(
            "store-auth-failed",
            f"Store {store}: ClickHouse at {where} refused the login.",
            hint="Check username and password, and from which addresses the user may come.",
        )
    if code in _DENIED:
        why = f": {said}" if table is None else ""
        hint = "GRANT the user what is missing, or name another in username."
        return StoreError(
            "store-auth-failed", f"Store {store}: the user may not do this: {what}{why} ({name}).", hint=hint
        )
    if code in _BUSY:
        return StoreError(
            "store-unreachable",
            f"Store {store}: ClickHouse at {where} did not finish {what} within {timeout:g} s ({name}).",
            hint="Check the server's load, memory and number of parts; then try again.",
        )
    if code == UNKNOWN_TABLE:
        return StoreError("entity-not-found", f"Store {store}: {what}: there is no such table.")
    if code == UNKNOWN_DATABASE:
        hint = "Check the database's name, or CREATE DATABASE."
        which = f" ({said})" if table is None else ""
        detail = f"Store {store}: {what}: there is no such database{which}."
        return StoreError("store-rejected", detail, hint=hint)
    if table is not None and code in VALUES:
        return value_error(store, table, None, VALUES[code])
    why = f": {said}" if table is None else ""
    return StoreError("store-rejected", f"Store {store}: {what} was refused{why} ({name}).")


def value_error(store: str, table: str, column: str | None, why: str) -> StoreError:
    """A row that the table does not take: column and kind of fault, never the value.

    Args:
        store: the store's name.
        table: the table's.
        column: the column's; None where it is not known.
        why: what is wrong with the value, without it.
    """
    place = f"column {column}" if column is not None else "a column"
    return StoreError(
        "store-rejected",
        f"Store {store}: table {table} does not take a value of {place}: {why}.",
        hint="Change the value in the query, with TRY_CAST, COALESCE or WHERE, or change the table.",
    )


def _reason(error: Error) -> tuple[str, str]:
    """The server's sentence and its name of the fault."""
    found = _REASON.search(str(error))
    name = error.name or (found and found[2]) or f"code {error.code}"
    said = " ".join(found[1].split())[:300].rstrip(". ") if found else str(name)
    return said, str(name)


def _connection_error(store: str, what: str, error: Error, where: str, timeout: float) -> StoreError:
    """No code: the connection was not made, is lost, or the client itself refused."""
    from clickhouse_connect.driver.exceptions import OperationalError

    text = " ".join(f"{error} {error.__cause__ or ''}".split())
    if not isinstance(error, OperationalError) and "HTTP" not in text:
        return StoreError("store-rejected", f"Store {store}: {what}: {type(error).__name__} of the client.")
    if found := _STATUS.search(text):
        return StoreError(
            "store-unreachable",
            f"Store {store}: {where} answered {what} with HTTP status {found[1]}, not as ClickHouse.",
            hint="Check host and port, and the proxy or load balancer before the server.",
        )
    why, hint = "", "Check host and port, and that the address can be reached from here."
    if _ENCRYPTION.search(text):
        why = ": encryption failed"
        hint = "Check secure ('tls.disabled' in SQL), port and ca_certificate: 8123 is usual without TLS."
    return StoreError(
        "store-unreachable",
        f"Store {store}: ClickHouse did not answer at {where} within {timeout:g} s{why}.",
        hint=hint,
    )


@contextlib.contextmanager
def reported(store: str, what: str, where: str, timeout: float, table: str | None = None) -> Iterator[None]:
    """Errors of the client as StoreErrors.

    Args:
        store: the store's name.
        what: what is tried, such as ``listing tables``.
        where: address of the server.
        timeout: seconds that the call has.
        table: as of ``store_error``.
    """
    try:
        from clickhouse_connect.driver.exceptions import Error, OperationalError
        from urllib3.exceptions import HTTPError
    except ImportError:  # ``connect`` says so
        yield
        return
    try:
        yield
    except Error as error:
        raise store_error(store, what, error, where, timeout, table) from None
    except (HTTPError, OSError) as error:
        lost = OperationalError(str(error))
        raise store_error(store, what, lost, where, timeout, table) from None

"""What Snowflake says, as a StoreError a person can act on. No value of a row passes through here."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from leatstream.connectors.snowflake.settings import SnowflakeConfig
from leatstream.errors import StoreError

if TYPE_CHECKING:
    from snowflake.connector.errors import Error

_OURS = ("network policy", "is not allowed to access Snowflake")
_ROLE = 390189
_LOGINS = range(390100, 390200)
_DATABASE = 390201
_SESSIONS = (390108, 390110, 390111, 390112, 390114, 390115, 390195)
_NO_SUCH = (2003, 2043)
_NO_WAREHOUSE = 606
_NO_RIGHT = 3001
_QUOTA = 90073
_NUMBER = re.compile(r"\b(390\d{3})\b")
# What is wrong with a value, in words without the value.
VALUES = {
    100035: "it cannot be read as the column's type",
    100037: "it is no BOOLEAN",
    100038: "it is no number of the column's type",
    100039: "it is out of the range of the column's type",
    100040: "it is no date",
    100046: "it is out of the range of the column's type",
    100051: "it divides by zero",
    100065: "it is no hexadecimal text",
    100069: "it is no JSON",
    100071: "it cannot be read as the column's type",
    100072: "it is NULL, and the column is NOT NULL",
    100078: "it is too long for the column's type",
    100082: "it is larger than Snowflake allows",
    100108: "it is no time",
    100132: "it is out of the range of the column's type",
    100145: "it is larger than Snowflake allows",
}


def store_error(
    store: str, what: str, error: Error, config: SnowflakeConfig, timeout: float, table: str | None = None
) -> StoreError:
    """What to say when a call failed.

    Args:
        store: the store's name.
        what: what was tried, such as ``listing tables``.
        error: from the client.
        config: of the store.
        timeout: seconds that the call had.
        table: the table that rows were written to or read from; then nothing of Snowflake's sentence is
            passed on, which may hold a value.
    """
    number, state, said = error.errno or -1, error.sqlstate or "", " ".join(str(error.msg or "").split())
    inside = _NUMBER.search(said)
    if number == 250001 and inside is not None:
        number = int(inside[1])
    if number in _SESSIONS or number == 250002:
        return StoreError(
            "store-unreachable",
            f"Store {store}: Snowflake ended the session while {what} ({number}).",
            hint="It is tried again with a new login.",
        )
    if number in _LOGINS or number == _DATABASE or any(text in said for text in _OURS):
        return _login_error(store, number, config)
    if number == _NO_WAREHOUSE:
        return StoreError(
            "store-rejected",
            f"Store {store}: {what}: warehouse {config.warehouse} does not run, or the role may not use it.",
            hint="Check the warehouse's name, USAGE on it, and that AUTO_RESUME is on.",
        )
    if number == _QUOTA:
        return StoreError(
            "store-unreachable",
            f"Store {store}: {what}: a resource monitor keeps warehouse {config.warehouse} from running.",
            hint="Raise its quota, or wait for its next interval.",
        )
    if number == _NO_RIGHT or state == "42501":
        return StoreError(
            "store-auth-failed",
            f"Store {store}: the role may not do this: {what} ({number}).",
            hint="Grant the role what is missing, or name another role.",
        )
    if state[:2] in ("40", "57") or state == "55P03":
        return StoreError(
            "store-unreachable",
            f"Store {store}: Snowflake did not finish {what} within {timeout:g} s, or a lock was not granted "
            f"({number}).",
            hint="Check the warehouse's load, and SHOW LOCKS for what holds a lock; then try again.",
        )
    if _of_network(error, number, state):
        return StoreError(
            "store-unreachable",
            f"Store {store}: Snowflake account {config.where} did not answer within {timeout:g} s while "
            f"{what} ({number}).",
            hint="Check the account's identifier and host, and that the address can be reached from here.",
        )
    if number in _NO_SUCH and (state == "42S02" or table is None):
        return StoreError(
            "entity-not-found",
            f"Store {store}: {what}: there is no such table, or the role may not see it ({number}).",
        )
    if table is not None:
        return value_error(store, what, table, number, state)
    # Without rows in the statement its sentence names objects only.
    return StoreError("store-rejected", f"Store {store}: {what} was refused: {said[:500]}.")


def value_error(store: str, what: str, table: str, number: int, state: str) -> StoreError:
    """A row that the table does not take, or that cannot be read: the kind of fault, never the value.

    Args:
        store: the store's name.
        what: what was tried.
        table: the table.
        number: Snowflake's, of the error.
        state: its SQLSTATE.
    """
    why = VALUES.get(number)
    if why is None and state[:2] != "22":
        return StoreError(
            "store-rejected",
            f"Store {store}: {what} was refused ({number}, {state}).",
            hint="Look the statement up by its QUERY_TAG 'leatstream' in Snowflake's query history.",
        )
    return StoreError(
        "store-rejected",
        f"Store {store}: table {table} does not take a value: "
        f"{why or 'it does not fit the type of its column'} ({number}).",
        hint="Change the value in the query, with TRY_CAST, COALESCE or WHERE, or change the table.",
    )


def _login_error(store: str, number: int, config: SnowflakeConfig) -> StoreError:
    if number == _DATABASE:
        return StoreError(
            "store-rejected",
            f"Store {store}: account {config.account} has no such database or schema, or the role may not use"
            " it.",
            hint="Check the database's name, and USAGE on it.",
        )
    if number == _ROLE:
        return StoreError(
            "store-auth-failed",
            f"Store {store}: role {config.role} does not exist, or user {config.username} may not use it.",
            hint="Check the role's name, and GRANT ROLE … TO USER ….",
        )
    if number not in _LOGINS:
        return StoreError(
            "store-auth-failed",
            f"Store {store}: a network policy of account {config.account} refuses this address.",
            hint="Allow the addresses of the server and of the drivers in the network policy.",
        )
    return StoreError(
        "store-auth-failed",
        f"Store {store}: Snowflake account {config.where} refused the login of {config.username} ({number}).",
        hint="Check username and private key: DESCRIBE USER shows RSA_PUBLIC_KEY_FP. Passwords may need MFA.",
    )


def _of_network(error: Error, number: int, state: str) -> bool:
    """Whether there was no answer, or one of no use: codes of the client itself, and of HTTP."""
    from snowflake.connector.errors import OperationalError

    http = 290400 <= number <= 290599 or 580400 <= number <= 580599
    return http or 250000 <= number <= 251999 or state[:2] == "08" or isinstance(error, OperationalError)


@contextlib.contextmanager
def as_store_errors(
    store: str, what: str, config: SnowflakeConfig, timeout: float, table: str | None = None
) -> Iterator[None]:
    """Raise the client's errors as StoreErrors; arguments as of ``store_error``."""
    try:
        yield
    except StoreError:
        raise
    except Exception as error:
        if not _of_client(error):
            raise
        raise store_error(store, what, error, config, timeout, table) from None  # type: ignore[arg-type]


def _of_client(error: Exception) -> bool:
    from snowflake.connector.errors import Error

    return isinstance(error, Error)

"""What Oracle says, as a StoreError a person can act on. No value of a row passes through here."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from leatstream.connectors.upper_names import canonical
from leatstream.errors import StoreError
from leatstream.model.extras import install_extra

_LOGIN = ("ORA-01005", "ORA-01017", "ORA-01045", "ORA-28000", "ORA-28001", "DPY-4001")
_RIGHTS = ("ORA-01031", "ORA-01950", "ORA-41900")
_SERVICE = ("DPY-6001", "DPY-6003", "ORA-12514", "ORA-12505")
_BUSY = ("ORA-00054", "ORA-00060", "ORA-08177", "ORA-30006", "ORA-12860")
_AWAY = (
    *("DPY-1001", "DPY-4011", "DPY-4024", "DPY-6000", "DPY-6005", "DPY-6002"),
    *("ORA-00018", "ORA-00020", "ORA-00028", "ORA-01012", "ORA-01013", "ORA-01033", "ORA-01034"),
    *("ORA-01089", "ORA-03113", "ORA-03114", "ORA-03135", "ORA-03136", "ORA-12170", "ORA-12516"),
    *("ORA-12519", "ORA-12520", "ORA-12537", "ORA-12541", "ORA-25408"),
)
_MISSING = ("ORA-00942", "ORA-04043")
# What is wrong with a value, in words without the value.
VALUES = {
    "ORA-00001": "another row has it, and it must be unique",
    "ORA-01400": "it is NULL, and the column is NOT NULL",
    "ORA-01407": "it is NULL, and the column is NOT NULL",
    "ORA-01438": "it has more digits than the column's type",
    "ORA-01426": "it is out of the range of the column's type",
    "ORA-01461": "it is too long for the column's type",
    "ORA-01489": "it is too long for the column's type",
    "ORA-01722": "it is no number",
    "ORA-01841": "it is out of the range of dates and times",
    "ORA-02290": "a CHECK of the table refuses it",
    "ORA-02291": "no row of the table that it refers to has it",
    "ORA-02292": "a row of another table refers to it",
    "ORA-12899": "it is too long for the column's type",
    "ORA-40441": "it is no JSON",
}
_PARTS = re.compile(r'"((?:[^"]|"")+)"\."((?:[^"]|"")+)"\."((?:[^"]|"")+)"')
_INNER = re.compile(r"^((?:DPY|ORA)-\d+)", re.M)
_CONSTRAINT = re.compile(r"constraint \(([^()]+)\)")


@dataclass(frozen=True, slots=True)
class Place:
    """Address of a call, for messages.

    Attributes:
        store: the store's name.
        where: address and service.
        what: what is tried, such as ``listing tables``.
    """

    store: str
    where: str
    what: str


def library() -> Any:
    """The module ``oracledb``.

    Raises:
        StoreError: it is not installed.
    """
    try:
        import oracledb
    except ImportError:
        raise StoreError(
            "store-rejected",
            "Stores of kind oracle need the Python package oracledb, which is not installed.",
            hint=install_extra("oracle"),
        ) from None
    return oracledb


def store_error(place: Place, code: str, text: str, timeout: float, table: str | None = None) -> StoreError:
    """What to say when a call failed.

    Args:
        place: its address.
        code: Oracle's or the client's, such as ``ORA-00942``.
        text: the client's message; of a table that rows are written to only names are read from it.
        timeout: seconds that the call had.
        table: the table that rows are written to.
    """
    head = f"Store {place.store}"
    if code == "DPY-6005":  # why there is no connection stands in the lines below it
        code = next((inner for inner in _INNER.findall(text) if inner in (*_LOGIN, *_SERVICE)), code)
    if code in _LOGIN:
        detail = f"{head}: Oracle at {place.where} refused the login ({code})."
        return StoreError(
            "store-auth-failed", detail, hint="Check username and password, and that it is open."
        )
    if code in _RIGHTS:
        detail = f"{head}: the user may not do this: {place.what} ({code})."
        hint = "Grant the user what is missing; docs/oracle.md lists the privileges."
        return StoreError("store-auth-failed", detail, hint=hint)
    if code in _SERVICE:
        address, _, service = place.where.rpartition("/")
        detail = f"{head}: the listener at {address} has no service {service} ({code})."
        return StoreError(
            "store-rejected", detail, hint="Check the service's name: lsnrctl services lists them."
        )
    if code in _BUSY:
        detail = f"{head}: {place.what} met another transaction ({code})."
        return StoreError("store-unreachable", detail, hint="It is tried again.")
    if code in _AWAY:
        detail = f"{head}: Oracle at {place.where} did not finish {place.what} within {timeout:g} s ({code})."
        hint = "Check host and port, and that the address can be reached from here."
        return StoreError("store-unreachable", detail, hint=hint)
    if code in _MISSING:
        kind = "entity-not-found" if table is None else "store-rejected"
        detail = f"{head}: {place.what}: there is no such table, or the user may not see it ({code})."
        return StoreError(kind, detail)
    if table is not None and (code in VALUES or code not in ("ORA-00904", "ORA-01950", "ORA-01536")):
        return value_error(place.store, table, code, text)
    if code == "ORA-01450":
        detail = f"{head}: {place.what}: the key's columns are too long for an index ({code})."
        hint = "Give the key's texts a length: CAST(name AS VARCHAR(200))."
        return StoreError("store-rejected", detail, hint=hint)
    if code == "ORA-01918":
        detail = f"{head}: {place.what}: Oracle has no schema of this name ({code})."
        return StoreError("store-rejected", detail, hint="A schema is a user: have it created first.")
    said = _first_line(text)
    return StoreError("store-rejected", f"{head}: {place.what} was refused: {said} ({code}).")


def value_error(store: str, table: str, code: str, text: str) -> StoreError:
    """A row that the table does not take: column or constraint and kind of fault, never the value.

    Args:
        store: the store's name.
        table: the table.
        code: Oracle's.
        text: its message, of which only names are passed on.
    """
    column, constraint = _PARTS.search(text), _CONSTRAINT.search(text)
    place = "a column"
    if column is not None:
        place = f"column {canonical(column[3])}"
    elif constraint is not None:
        place = f"constraint {constraint[1]}"
    why = VALUES.get(code, "it does not fit the column's type")
    return StoreError(
        "store-rejected",
        f"Store {store}: table {table} does not take a value of {place}: {why} ({code}).",
        hint="Change the value in the query, with TRY_CAST, COALESCE or WHERE, or change the table.",
    )


def _first_line(text: str) -> str:
    line = next(iter(text.splitlines()), "")
    return re.sub(r"^(ORA|DPY)-\d+:\s*", "", line)[:200].rstrip(". ") or "no reason"


@contextlib.contextmanager
def as_store_errors(place: Place, timeout: float, table: str | None = None) -> Iterator[None]:
    """The client's errors as StoreErrors.

    Args:
        place: address of the call, for messages.
        timeout: seconds that it has.
        table: the table that rows are written to; see ``store_error``.
    """
    try:
        yield
    except TimeoutError:
        raise store_error(place, "DPY-4024", "", timeout) from None
    except library().Error as error:
        first = error.args[0] if error.args else None
        code = str(getattr(first, "full_code", "") or type(error).__name__)
        raise store_error(place, code, str(error), timeout, table) from None

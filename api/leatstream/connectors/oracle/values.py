"""Values of Oracle's columns as JSON, by the declared type of the relation's column, and back."""

from __future__ import annotations

import json
import math
import struct
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any

from leatstream.connectors.oracle.types import BYTES, NESTED, base_of
from leatstream.connectors.upper_names import quoted
from leatstream.errors import StoreError
from leatstream.model.types import DataType

Row = Callable[[Sequence[Any]], bytes]
_WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")


def selected(name: str, native: str, alias: str = "T") -> str:
    """A column in a SELECT: times with a zone as those of UTC, the others as they are."""
    column = f"{alias}.{quoted(name)}"
    """A column in a SELECT: times with a zone as those of UTC, the others as they are.

    Args:
        name: of the column, as users write it.
        native: its type.
        alias: of the table in the statement.
    """
    column = f"{alias}.{quoted(name)}"
    return f"CAST({column} AT TIME ZONE 'UTC' AS TIMESTAMP(6))" if "ZONE" in native else column


def row_writer(columns: Sequence[tuple[str, DataType]], entity: str) -> Row:
    """How a row is written as a JSON object of these columns.

    Args:
        columns: declared names and types, in the order of a row's values.
        entity: the table, for errors: a value that is none of the declared type is one.
    """
    parts = [(json.dumps(name, ensure_ascii=False), kind) for name, kind in columns]

    def write(values: Sequence[Any]) -> bytes:
        found = [
            f"{name}:{'null' if value is None else _json(value, kind, name, entity)}"
            for (name, kind), value in zip(parts, values, strict=True)
        ]
        return f"{{{','.join(found)}}}".encode()

    return write


def _json(value: Any, kind: DataType, name: str, entity: str) -> str:
    found = _plain(value, kind)
    if found is None:
        raise StoreError(
            "store-rejected",
            f"Table {entity}: a value of column {name} cannot be read as {kind} without a loss.",
            hint="Declare the column with a type that holds all of its values, such as VARCHAR.",
        )
    return found


def _plain(value: Any, kind: DataType) -> str | None:
    if kind.kind in NESTED:
        return str(value)
    if kind.kind in (*_WHOLE, "DECIMAL"):
        return _number(Decimal(value), kind)
    if kind.kind in ("FLOAT", "DOUBLE"):
        number = _real(value) if kind.kind == "FLOAT" else repr(float(value))
        return (
            number
            if number[-1].isdigit()
            else {"inf": '"Infinity"', "-inf": '"-Infinity"'}.get(number, '"NaN"')
        )
    if kind.kind == "BOOLEAN":
        return {0: "false", 1: "true"}.get(value)
    if kind.kind in ("BYTES", "VARBINARY"):
        return f'"{b64encode(value).decode()}"'
    if kind.kind == "DATE":
        return f'"{value.date().isoformat()}"' if value.time() == time() else None
    if kind.kind in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        return f'"{value.isoformat(" ")}{"Z" if kind.kind == "TIMESTAMP_LTZ" else ""}"'
    return json.dumps(as_text(value), ensure_ascii=False)


def _real(value: float) -> str:
    """The fewest digits of a single-precision number; Oracle's client gives it as a double."""
    for digits in range(6, 9):
        text = f"{value:.{digits}g}"
        if not math.isfinite(value) or struct.pack("<f", float(text)) == struct.pack("<f", value):
            return text
    return f"{value:.9g}"


def as_text(value: Any) -> str:
    """Any value as the text that a VARCHAR column has of it."""
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime):
        return value.isoformat(" ")
    return value.hex().upper() if isinstance(value, bytes) else str(value)


def _number(value: Decimal, kind: DataType) -> str | None:
    scale = 0 if kind.kind in _WHOLE else (*kind.parameters, 0)[1] if kind.parameters else 0
    _, _, exponent = value.normalize().as_tuple()
    return format(value, "f") if isinstance(exponent, int) and -exponent <= scale else None


def from_json(value: Any, native: str) -> Any:
    """A value of a JSON object for a column.

    Raises:
        ValueError: it is none for the column's type.
    """
    base, _ = base_of(native)
    if value is None or value == "":
        return None if value is None else _empty()
    try:
        if base == "NUMBER":
            return int(value) if isinstance(value, bool) else Decimal(str(value))
        if base in ("BINARY_FLOAT", "BINARY_DOUBLE", "FLOAT"):
            return float(value)
        if base == "BOOLEAN":
            return bool(value)
        if base in BYTES:
            return b64decode(value, validate=True)
        if base == "DATE" or base.startswith("TIMESTAMP"):
            return _moment(value)
    except (InvalidOperation, TypeError, ValueError):
        raise ValueError("it cannot be read as the column's type") from None
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _empty() -> Any:
    raise ValueError("it is an empty text, which Oracle keeps as NULL")


def _moment(value: str) -> datetime | date:
    found = datetime.fromisoformat(value)
    return found.astimezone(UTC).replace(tzinfo=None) if found.tzinfo else found

"""A row's values from Snowflake as JSON that ``formats.json`` reads.

Snowflake writes most values as texts, in forms that are spelled out: its own ones depend on the account. A
FLOAT comes as a double, whose text would lose digits.
"""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Callable, Sequence
from typing import Any

from leatstream.connectors.snowflake.types import INSTANTS, JSON, NESTED, base_of
from leatstream.connectors.upper_names import quoted
from leatstream.model.types import DataType

_DATE, _TIME = "YYYY-MM-DD", "HH24:MI:SS.FF"
_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "DECIMAL", "FLOAT", "DOUBLE")
Write = Callable[[Any], str]


def reading(name: str, native: str) -> str:
    """How a column of table ``t`` is read: as BOOLEAN, FLOAT or a text."""
    column, (base, _) = f"t.{quoted(name)}", base_of(native)
    if base in ("BOOLEAN", "FLOAT", "VARCHAR"):
        return column
    if base in JSON:
        return f"TO_JSON({column})"
    if base == "BINARY":
        return f"HEX_ENCODE({column})"
    if base == "DATE":
        return f"TO_VARCHAR({column}, '{_DATE}')"
    if base == "TIME":
        return f"TO_VARCHAR({column}, '{_TIME}9')"
    if base == "TIMESTAMP_NTZ":
        return f"TO_VARCHAR({column}, '{_DATE} {_TIME}6')"
    if base in INSTANTS:
        return f"TO_VARCHAR(CONVERT_TIMEZONE('UTC', {column})::TIMESTAMP_NTZ, '{_DATE} {_TIME}6')"
    if base in ("GEOGRAPHY", "GEOMETRY"):
        return f"ST_ASWKT({column})"
    return f"{column}::VARCHAR"


def text(native: str) -> Write:
    """How a value that was read so is written as a text of a VARCHAR column."""
    base, _ = base_of(native)
    if base == "BOOLEAN":
        return lambda value: "true" if value else "false"
    if base == "FLOAT":
        return lambda value: double(float(value)).strip('"')
    if base in ("TIME", "TIMESTAMP_NTZ"):
        return _shortened
    if base in INSTANTS:
        return lambda value: f"{_shortened(value)}Z"
    return str


def double(number: float) -> str:
    """A JSON number; NaN and the infinities, which JSON lacks, as text."""
    if math.isnan(number):
        return '"NaN"'
    return repr(number) if math.isfinite(number) else f'"{"-" if number < 0 else ""}Infinity"'


def _shortened(value: str) -> str:
    """A time without the zeros behind its last digit."""
    return value.rstrip("0").rstrip(".") if "." in value else value


def writer(kind: DataType, native: str) -> Write:
    """How a value that was read so is written as JSON of a declared type."""
    if kind.kind == "BOOLEAN":
        return lambda value: "true" if value else "false"
    if kind.kind in _NUMBERS:
        return lambda value: double(value) if isinstance(value, float) else str(value)
    if kind.kind in NESTED:
        return str
    if kind.kind in ("BYTES", "VARBINARY"):
        return lambda value: f'"{b64encode(bytes.fromhex(value)).decode()}"'
    as_text = text(native)
    return lambda value: json.dumps(as_text(value), ensure_ascii=False)


def row_writer(columns: Sequence[tuple[str, DataType]], natives: Sequence[str]) -> Callable[[Any], str]:
    """How a whole row is written, as a JSON object of the declared columns.

    Args:
        columns: declared names and types, in the order of the values.
        natives: types of the table's columns.
    """
    parts = [
        (json.dumps(name, ensure_ascii=False) + ":", writer(kind, native))
        for (name, kind), native in zip(columns, natives, strict=True)
    ]

    def write(values: Sequence[Any]) -> str:
        found = [
            prefix + ("null" if value is None else put(value))
            for (prefix, put), value in zip(parts, values, strict=True)
        ]
        return "{" + ",".join(found) + "}"

    return write

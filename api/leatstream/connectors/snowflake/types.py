"""Column types of Snowflake and of relations: each way, and which fits into which; see docs/snowflake.md."""

from __future__ import annotations

import re

from leatstream.connectors.table_fit import TableTypes
from leatstream.model.types import DataType

NESTED = ("ARRAY", "MAP", "STRUCT")
JSON = ("VARIANT", "ARRAY", "OBJECT", "MAP")
"""Snowflake's types that hold JSON."""
INSTANTS = ("TIMESTAMP_LTZ", "TIMESTAMP_TZ")
# Whole numbers of so many digits at most.
_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INTEGER": 10, "BIGINT": 19}
_WHOLE = {3: "TINYINT", 5: "SMALLINT", 10: "INTEGER", 19: "BIGINT"}
# What DESCRIBE TABLE may call a type, to its one name.
_NAMES = {
    "TEXT": "VARCHAR",
    "STRING": "VARCHAR",
    "CHAR": "VARCHAR",
    "CHARACTER": "VARCHAR",
    "DOUBLE": "FLOAT",
    "REAL": "FLOAT",
    "DECIMAL": "NUMBER",
    "FIXED": "NUMBER",
    "VARBINARY": "BINARY",
    "DATETIME": "TIMESTAMP_NTZ",
}
_WRITTEN = {
    "BOOLEAN": "BOOLEAN",
    "FLOAT": "FLOAT",
    "DOUBLE": "FLOAT",
    "DATE": "DATE",
    "TIME": "TIME(6)",
    "TIMESTAMP": "TIMESTAMP_NTZ(6)",
    "TIMESTAMP_LTZ": "TIMESTAMP_LTZ(6)",
    "BYTES": "BINARY",
    "VARBINARY": "BINARY",
}
_READ = {
    "BOOLEAN": "BOOLEAN",
    "FLOAT": "DOUBLE",
    "DATE": "DATE",
    "TIME": "TIME",
    "TIMESTAMP_NTZ": "TIMESTAMP",
    "TIMESTAMP_LTZ": "TIMESTAMP_LTZ",
    "TIMESTAMP_TZ": "TIMESTAMP_LTZ",
    "BINARY": "BYTES",
}
_WIDER = {
    "BOOLEAN": ("BOOLEAN",),
    "FLOAT": ("FLOAT",),
    "DOUBLE": ("FLOAT",),
    "DATE": ("DATE", "TIMESTAMP_NTZ"),
    "TIME": ("TIME", "VARCHAR"),
    "TIMESTAMP": ("TIMESTAMP_NTZ",),
    "TIMESTAMP_LTZ": INSTANTS,
    "BYTES": ("BINARY",),
    "VARBINARY": ("BINARY",),
}
_LONGEST = 16_777_216
_TYPE = re.compile(r"([A-Z_]+)\s*(?:\((\d+)(?:\s*,\s*(\d+))?.*)?", re.S)


def base_of(native: str) -> tuple[str, tuple[int, ...]]:
    """A type's one name without its numbers, and these: ``NUMBER(10,2)`` gives NUMBER and (10, 2)."""
    found = _TYPE.match(native.upper())
    if found is None:
        return native, ()
    numbers = tuple(int(n) for n in found.group(2, 3) if n is not None)
    return _NAMES.get(found[1], found[1]), numbers


def _number(numbers: tuple[int, ...]) -> tuple[int, int]:
    precision, scale = (*numbers, 0)[:2] if numbers else (38, 0)
    return precision, scale


def read_type(native: str) -> DataType:
    """The relation's type of a table's column; what has no counterpart comes as its text.

    Args:
        native: as DESCRIBE TABLE writes it, such as ``VARCHAR(20)``.
    """
    base, numbers = base_of(native)
    if base == "NUMBER":
        precision, scale = _number(numbers)
        # That is how columns of whole numbers are made; others are decimal numbers.
        whole = _WHOLE.get(precision) if scale == 0 else None
        return DataType(whole) if whole else DataType("DECIMAL", (precision, scale))
    if base == "VARCHAR":
        length = numbers[0] if numbers else _LONGEST
        return DataType("VARCHAR", (length,) if length < _LONGEST else ())
    return DataType(_READ.get(base, "VARCHAR"))


def readable(kind: DataType, native: str) -> bool:
    """Whether values of a table's column can be read as this type; all of them can as text."""
    base, numbers = base_of(native)
    if kind.kind == "VARCHAR":
        return True
    if kind.kind in NESTED:
        return base in JSON
    if base == "NUMBER":
        precision, scale = _number(numbers)
        if kind.kind in _DIGITS:
            return scale == 0
        if kind.kind == "DECIMAL":
            wanted, places = _number(kind.parameters or (10, 0))
            return wanted - places >= precision - scale and places >= scale
        return kind.kind == "DOUBLE"
    if base == "BINARY":
        return kind.kind in ("BYTES", "VARBINARY")
    return kind.kind == _READ.get(base)


def column_type(kind: DataType) -> str:
    """How a column is declared in a table that is made, in the words of DESCRIBE TABLE."""
    if kind.kind in _DIGITS:
        return f"NUMBER({_DIGITS[kind.kind]},0)"
    if kind.kind == "DECIMAL":
        precision, scale = _number(kind.parameters or (10, 0))
        return f"NUMBER({precision},{scale})"
    if kind.kind == "VARCHAR":
        return f"VARCHAR({kind.parameters[0]})" if kind.parameters else "VARCHAR"
    return _WRITTEN.get(kind.kind, "VARIANT")


def fits(kind: DataType, native: str) -> bool:
    """Whether values of a relation's type can stand in a column.

    Texts may stand in columns of JSON, where each value is checked.

    Args:
        kind: the relation's type.
        native: the column's.
    """
    base, numbers = base_of(native)
    if kind.kind in NESTED:
        # A table's ARRAY or OBJECT takes what is one; VARIANT takes both.
        return base == "VARIANT" or base == ("ARRAY" if kind.kind == "ARRAY" else "OBJECT")
    if kind.kind == "VARCHAR":
        return base in ("VARCHAR", "VARIANT", "ARRAY", "OBJECT")
    if kind.kind in _DIGITS or kind.kind == "DECIMAL":
        if base != "NUMBER":
            return False
        digits = _DIGITS.get(kind.kind)
        wanted, places = (digits, 0) if digits else _number(kind.parameters or (10, 0))
        precision, scale = _number(numbers)
        return precision - scale >= wanted - places and scale >= places
    return base in _WIDER.get(kind.kind, ())


SNOWFLAKE_TYPES = TableTypes(
    server="Snowflake",
    alter="ALTER TABLE … ALTER COLUMN {} SET NOT NULL",
    column_type=column_type,
    fits=lambda kind, column: fits(kind, column.native),
    readable=lambda kind, column: readable(kind, column.native),
)
"""Snowflake's side of ``table_fit``."""

"""Column types of Oracle and of relations: each way, and which fits into which; see docs/oracle.md.

Oracle's types are written here as ``native_type`` does: ``NUMBER(19,0)``, ``VARCHAR2(20 CHAR)``.
"""

from __future__ import annotations

import re

from leatstream.connectors.table_fit import TableTypes
from leatstream.model.types import DataType

LONGEST = 4000
"""Of VARCHAR2, in bytes, unless the database is set to longer ones."""
NESTED = ("ARRAY", "MAP", "STRUCT")
LOBS = ("CLOB", "NCLOB", "BLOB")
BYTES = ("BLOB", "RAW")
TEXTS = ("VARCHAR2", "NVARCHAR2", "CLOB", "NCLOB", "CHAR", "NCHAR")
_KEPT = ("VARCHAR2", "NVARCHAR2", "CLOB", "NCLOB")  # CHAR adds blanks to a text
_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INTEGER": 10, "BIGINT": 19}
_ZONED = ("TIMESTAMP WITH TIME ZONE", "TIMESTAMP WITH LOCAL TIME ZONE")
_READ = {
    "BINARY_FLOAT": "FLOAT",
    "BINARY_DOUBLE": "DOUBLE",
    "BOOLEAN": "BOOLEAN",
    # It has a time of day, too.
    "DATE": "TIMESTAMP",
    "TIMESTAMP": "TIMESTAMP",
    "BLOB": "BYTES",
    "RAW": "BYTES",
} | dict.fromkeys(_ZONED, "TIMESTAMP_LTZ")
_WRITTEN = {
    "BOOLEAN": "NUMBER(1,0)",
    "FLOAT": "BINARY_FLOAT",
    "DOUBLE": "BINARY_DOUBLE",
    "DATE": "DATE",
    "TIME": "VARCHAR2(15 CHAR)",
    "TIMESTAMP": "TIMESTAMP(6)",
    "TIMESTAMP_LTZ": "TIMESTAMP(6) WITH TIME ZONE",
    "BYTES": "BLOB",
    "VARBINARY": "BLOB",
}
_FITTING = {
    "FLOAT": ("BINARY_FLOAT", "BINARY_DOUBLE"),
    "DOUBLE": ("BINARY_DOUBLE",),
    "DATE": ("DATE", "TIMESTAMP"),
    "TIME": _KEPT,
    "VARCHAR": _KEPT,
    "TIMESTAMP": ("TIMESTAMP",),
    "TIMESTAMP_LTZ": _ZONED,
    "BYTES": BYTES,
    "VARBINARY": BYTES,
} | dict.fromkeys(NESTED, _KEPT)
_READABLE = {
    "NUMBER": (*_DIGITS, "DECIMAL", "DOUBLE", "BOOLEAN"),
    "FLOAT": ("DOUBLE",),
    "BINARY_FLOAT": ("FLOAT", "DOUBLE"),
    "BINARY_DOUBLE": ("DOUBLE",),
    "BOOLEAN": ("BOOLEAN",),
    "DATE": ("DATE", "TIMESTAMP"),
    "TIMESTAMP": ("TIMESTAMP", "DATE"),
} | dict.fromkeys(_ZONED, ("TIMESTAMP_LTZ",))
_READABLE |= dict.fromkeys(BYTES, ("BYTES", "VARBINARY")) | dict.fromkeys(TEXTS, ("TIME", *NESTED))
_NUMBERS = re.compile(r"\((\*|\d+)(?: (?:CHAR|BYTE))?(?:,\s*(-?\d+))?\)")


def native_type(
    data_type: str, precision: int | None, scale: int | None, length: int | None, used: str | None
) -> str:
    """How a column is declared.

    Args:
        data_type: of its row of ALL_TAB_COLS, such as ``VARCHAR2``.
        precision: digits, of a number.
        scale: digits behind the point, of a number.
        length: of a text or of bytes.
        used: unit of a text's length: ``C`` for characters, else bytes.
    """
    if data_type == "NUMBER":
        if precision is None and scale is None:
            return "NUMBER"
        return f"NUMBER({precision if precision is not None else 38},{scale or 0})"
    if data_type in ("VARCHAR2", "CHAR"):
        return f"{data_type}({length} {'CHAR' if used == 'C' else 'BYTE'})"
    if data_type in ("NVARCHAR2", "NCHAR", "RAW"):
        return f"{data_type}({length})"
    return data_type


def base_of(native: str) -> tuple[str, tuple[int, ...]]:
    """A type's name without its numbers, and these: ``NUMBER(10,2)`` gives NUMBER and (10, 2)."""
    found = _NUMBERS.search(native)
    if found is None:
        return native, ()
    numbers = tuple(int(n) for n in found.groups() if n is not None and n != "*")
    return (native[: found.start()] + native[found.end() :]).strip(), numbers


def read_type(native: str) -> DataType:
    """The relation's type of a table's column; what has no counterpart is a text."""
    base, numbers = base_of(native)
    if base == "NUMBER":
        return _read_number(numbers)
    if base in ("VARCHAR2", "NVARCHAR2") and numbers and numbers[0] < LONGEST:
        return DataType("VARCHAR", numbers)
    return DataType(_READ.get(base, "VARCHAR"))


def _read_number(numbers: tuple[int, ...]) -> DataType:
    if not numbers:
        return DataType("VARCHAR")  # of up to 40 digits, and any power of ten
    precision, scale = (*numbers, 0)[:2]
    whole = next((kind for kind, digits in _DIGITS.items() if precision <= digits), None)
    if scale == 0 and whole is not None:
        return DataType(whole)
    digits = max(precision, scale) if scale >= 0 else precision - scale
    return DataType("DECIMAL", (digits, max(scale, 0))) if digits <= 38 else DataType("VARCHAR")


def readable(kind: DataType, native: str) -> bool:
    """Whether values of a table's column can be read as this type; as a text all of them can."""
    base, _ = base_of(native)
    return known(native) and (kind.kind == "VARCHAR" or kind.kind in _READABLE.get(base, ()))


def known(native: str) -> bool:
    """Whether values of this type are read and written at all."""
    return base_of(native)[0] in _READABLE


def column_type(kind: DataType) -> str:
    """How a column is declared in a table that is made."""
    if kind.kind == "DECIMAL":
        precision, scale = (*kind.parameters, 0)[:2] if kind.parameters else (10, 0)
        return f"NUMBER({precision},{scale})"
    if kind.kind in _DIGITS:
        return f"NUMBER({_DIGITS[kind.kind]},0)"
    if kind.kind == "VARCHAR":
        length = kind.parameters[0] if kind.parameters else LONGEST
        return f"VARCHAR2({length} CHAR)" if length <= LONGEST else "CLOB"
    return _WRITTEN.get(kind.kind, "CLOB")


def fits(kind: DataType, native: str) -> bool:
    """Whether values of a relation's type can stand in a column, none of them rounded or padded."""
    base, numbers = base_of(native)
    if kind.kind == "BOOLEAN":
        return base == "BOOLEAN" or (base == "NUMBER" and _holds(numbers, 1, 0))
    if kind.kind in _DIGITS:
        digits = _DIGITS[kind.kind]
        exact = {"BINARY_FLOAT": 5, "BINARY_DOUBLE": 10}.get(base, 0)
        return digits <= exact or (base == "NUMBER" and _holds(numbers, digits, 0))
    if kind.kind == "DECIMAL":
        precision, scale = (*kind.parameters, 0)[:2] if kind.parameters else (10, 0)
        return base == "NUMBER" and _holds(numbers, precision - scale, scale)
    if kind.kind in ("TIMESTAMP", "TIMESTAMP_LTZ") and numbers and numbers[0] < 6:
        return False
    if kind.kind == "TIME" and base in ("VARCHAR2", "NVARCHAR2") and numbers[0] < 15:
        return False
    return base in _FITTING.get(kind.kind, ())


def _holds(numbers: tuple[int, ...], whole: int, scale: int) -> bool:
    """Whether NUMBER of these numbers has so many digits before and behind the point."""
    if not numbers:
        return True
    precision, places = (*numbers, 0)[:2]
    return precision - places >= whole and places >= scale


ORACLE_TYPES = TableTypes(
    server="Oracle",
    alter="ALTER TABLE … MODIFY {} NOT NULL",
    column_type=column_type,
    fits=lambda kind, column: fits(kind, column.native),
    readable=lambda kind, column: readable(kind, column.native),
)
"""Oracle's side of ``table_fit``."""

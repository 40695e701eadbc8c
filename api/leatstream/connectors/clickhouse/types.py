"""Column types of ClickHouse and of relations: each way, and which fits into which; see docs/clickhouse.md.

Several types of ours are ``String`` there. A column of a table that we make says in its comment which one it
is, so that it is read back as it was declared.
"""

from __future__ import annotations

import re

from leatstream.connectors.table_fit import TableTypes
from leatstream.model.types import DataType, parse_type

_WRITTEN = {
    "BOOLEAN": "Bool",
    "TINYINT": "Int8",
    "SMALLINT": "Int16",
    "INTEGER": "Int32",
    "BIGINT": "Int64",
    "FLOAT": "Float32",
    "DOUBLE": "Float64",
    "DATE": "Date32",
    # A zone of its own keeps the digits, wherever the table is read.
    "TIMESTAMP": "DateTime64(6, 'UTC')",
    # Without one it is a moment, which the server shows in its own zone.
    "TIMESTAMP_LTZ": "DateTime64(6)",
}
_READ = {
    "Bool": "BOOLEAN",
    "Int8": "TINYINT",
    "Int16": "SMALLINT",
    "Int32": "INTEGER",
    "Int64": "BIGINT",
    "UInt8": "SMALLINT",
    "UInt16": "INTEGER",
    "UInt32": "BIGINT",
    "Float32": "FLOAT",
    "Float64": "DOUBLE",
    "Date": "DATE",
    "Date32": "DATE",
}
_MARK = "leatstream type: "
_NESTED = ("ARRAY", "MAP", "STRUCT")
_STAMPS = ("DateTime", "DateTime64")
_SIGNED = ("Int8", "Int16", "Int32", "Int64", "Int128", "Int256")
# Where a number may be written; one that is out of the column's range is refused when it comes.
_NUMBERS = {
    "TINYINT": (*_SIGNED, "UInt8", "UInt16", "UInt32", "UInt64", "Float32", "Float64"),
    "SMALLINT": (*_SIGNED[1:], "UInt16", "UInt32", "UInt64", "Float32", "Float64"),
    "INTEGER": (*_SIGNED[2:], "UInt32", "UInt64", "Float64"),
    "BIGINT": (*_SIGNED[3:], "UInt64"),
    "FLOAT": ("Float32", "Float64"),
    "DOUBLE": ("Float64",),
}
_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INTEGER": 10, "BIGINT": 19}
_PLAIN = ("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE", "VARCHAR")
"""Types of elements of ARRAY and MAP that are written into ``Array`` and ``Map``."""
# ClickHouse's name to the types of ours that a column may be declared as, beside VARCHAR.
_READABLE = {
    "Bool": ("BOOLEAN",),
    "Int8": ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "DECIMAL", "FLOAT", "DOUBLE"),
    "UInt8": ("SMALLINT", "INTEGER", "BIGINT", "DECIMAL", "FLOAT", "DOUBLE"),
    "Int16": ("SMALLINT", "INTEGER", "BIGINT", "DECIMAL", "FLOAT", "DOUBLE"),
    "UInt16": ("INTEGER", "BIGINT", "DECIMAL", "FLOAT", "DOUBLE"),
    "Int32": ("INTEGER", "BIGINT", "DECIMAL", "DOUBLE"),
    "UInt32": ("BIGINT", "DECIMAL", "DOUBLE"),
    "Int64": ("BIGINT", "DECIMAL"),
    "UInt64": ("DECIMAL",),
    "Float32": ("FLOAT", "DOUBLE"),
    "Float64": ("DOUBLE",),
    "Decimal": ("DECIMAL", "DOUBLE"),
    "Date": ("DATE",),
    "Date32": ("DATE",),
    "String": ("BYTES", "VARBINARY", "TIME", *_NESTED),
    "FixedString": ("BYTES", "VARBINARY"),
    "Array": ("ARRAY",),
    "Map": ("MAP",),
}
_CALL = re.compile(r"([A-Za-z0-9]+)\s*(?:\((.*)\))?\Z", re.S)


def bare(native: str) -> tuple[str, bool]:
    """A type without ``Nullable`` and ``LowCardinality``, and whether it was ``Nullable``."""
    nullable = False
    while (name := native.partition("(")[0]) in ("Nullable", "LowCardinality"):
        nullable = nullable or name == "Nullable"
        native = native[len(name) + 1 : -1]
    return native, nullable


def base_of(native: str) -> tuple[str, tuple[str, ...]]:
    """A type's name and what stands in its parentheses: ``Decimal(10, 2)`` gives Decimal and ("10", "2")."""
    found = _CALL.match(bare(native)[0])
    if found is None:
        return native, ()
    return found[1], _parts(found[2] or "")


def _parts(text: str) -> tuple[str, ...]:
    """What commas part outside of parentheses and quotes."""
    parts, depth, quoted, at = [""], 0, False, 0
    while at < len(text):
        char = text[at]
        if quoted and char == "\\":
            parts[-1] += text[at : at + 2]
            at += 2
            continue
        quoted ^= char == "'"
        depth += 0 if quoted else (char == "(") - (char == ")")
        if char == "," and not depth and not quoted:
            parts.append("")
        else:
            parts[-1] += char
        at += 1
    return tuple(part.strip() for part in parts) if text else ()


def zone_of(native: str) -> str | None:
    """The zone that a column of times shows them in; None for the server's own."""
    name, parts = base_of(native)
    zones = parts[1:] if name == "DateTime64" else parts
    return zones[0].strip("'") if zones else None


def digits_of(native: str) -> int:
    """How many digits of a second's fraction a column of times holds."""
    name, parts = base_of(native)
    return int(parts[0]) if name == "DateTime64" and parts else 0


def is_utc(native: str) -> bool:
    """Whether a column of times shows them in UTC, by its own declaration."""
    return (zone_of(native) or "") in ("UTC", "Etc/UTC")


def read_type(native: str, comment: str = "") -> DataType:
    """The relation's type of a table's column; what has no counterpart comes as its text.

    Args:
        native: as ``system.columns`` writes it, such as ``Nullable(String)``.
        comment: the column's.
    """
    name, parts = base_of(native)
    if name == "String" and comment.startswith(_MARK):
        try:
            return parse_type(comment.removeprefix(_MARK))
        except ValueError:
            return DataType("VARCHAR")
    if name in _STAMPS:
        return DataType("TIMESTAMP" if is_utc(native) else "TIMESTAMP_LTZ")
    if name == "UInt64":
        return DataType("DECIMAL", (20, 0))
    if name == "Decimal" and int(parts[0]) <= 38:
        return DataType("DECIMAL", (int(parts[0]), int(parts[1])))
    if name == "Array":
        return DataType("ARRAY", arguments=(read_type(parts[0]),))
    if name == "Map" and base_of(parts[0])[0] == "String":
        return DataType("MAP", arguments=(DataType("VARCHAR"), read_type(parts[1])))
    return DataType(_READ.get(name, "VARCHAR"))


def kept_type(kind: DataType) -> DataType:
    """The type that a column of a new table is read back with: times have one precision."""
    if kind.kind in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        return DataType(kind.kind)
    return read_type(column_type(kind), column_comment(kind))


def column_type(kind: DataType) -> str:
    """How a column of this type is declared in a table that is made, without ``Nullable``."""
    if kind.kind == "DECIMAL":
        precision, scale = (*kind.parameters, 0)[:2] if kind.parameters else (10, 0)
        return f"Decimal({precision}, {scale})"
    return _WRITTEN.get(kind.kind, "String")


def column_comment(kind: DataType) -> str:
    """The comment of such a column: its type, where ClickHouse's own does not say it."""
    shown = column_type(kind) != "String" or kind == DataType("VARCHAR")
    return "" if shown else f"{_MARK}{kind}"


def fits(kind: DataType, native: str) -> bool:
    """Whether values of a relation's type can stand in a column.

    Numbers, days and times may stand in columns of a smaller range: each value is checked when it is written.
    """
    name, parts = base_of(native)
    if kind.kind in _NESTED:
        return name == "String" or _fits_inside(kind, name, parts)
    if kind.kind in ("VARCHAR", "TIME"):
        return name in ("String", "UUID", "Enum8", "Enum16")[: 1 if kind.kind == "TIME" else 4]
    if kind.kind in ("BYTES", "VARBINARY"):
        return name == "String"
    if kind.kind == "BOOLEAN":
        return name in ("Bool", "UInt8")
    if kind.kind == "DATE":
        return name in ("Date", "Date32")
    if kind.kind in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        return name in _STAMPS and (kind.kind == "TIMESTAMP_LTZ" or is_utc(native))
    if kind.kind == "DECIMAL":
        precision, scale = (*kind.parameters, 0)[:2] if kind.parameters else (10, 0)
        return name == "Decimal" and _holds(parts, precision - scale, scale)
    if kind.kind in _DIGITS and name == "Decimal":
        return _holds(parts, _DIGITS[kind.kind], 0)
    return name in _NUMBERS.get(kind.kind, ())


def _fits_inside(kind: DataType, name: str, parts: tuple[str, ...]) -> bool:
    if any(one.kind not in _PLAIN for one in kind.arguments):
        return False
    if kind.kind == "ARRAY":
        return name == "Array" and fits(kind.arguments[0], parts[0])
    of_map = kind.kind == "MAP" and name == "Map" and kind.arguments[0].kind == "VARCHAR"
    return of_map and parts[0] == "String" and fits(kind.arguments[1], parts[1])


def _holds(parts: tuple[str, ...], whole: int, scale: int) -> bool:
    """Whether ``Decimal`` of these numbers has so many digits before and behind the point."""
    precision, places = int(parts[0]), int(parts[1])
    return precision - places >= whole and places >= scale


def readable(kind: DataType, native: str) -> bool:
    """Whether values of a table's column can be read as this type; all of them can as text."""
    name, parts = base_of(native)
    if kind.kind == "VARCHAR":
        return True
    if name in _STAMPS:
        return kind.kind == "TIMESTAMP_LTZ" or (kind.kind == "TIMESTAMP" and is_utc(native))
    if name == "Array":
        return kind.kind == "ARRAY" and readable(kind.arguments[0], parts[0])
    if name == "Map":
        return kind.kind == "MAP" and readable(kind.arguments[1], parts[1])
    return kind.kind in _READABLE.get(name, ())


CLICKHOUSE_TYPES = TableTypes(
    server="ClickHouse",
    alter="ALTER TABLE … MODIFY COLUMN {} …, with a type that is not Nullable",
    column_type=column_type,
    fits=lambda kind, column: fits(kind, column.native),
    readable=lambda kind, column: readable(kind, column.native),
)
"""ClickHouse's side of ``table_fit``."""

"""Column types of PostgreSQL and of relations: each way, and which fits into which; see docs/postgres.md."""

from __future__ import annotations

import re

from leatstream.connectors.table_fit import TableTypes
from leatstream.model.types import DataType

# PostgreSQL's name (as format_type writes it) to ours.
_READ = {
    "boolean": "BOOLEAN",
    "smallint": "SMALLINT",
    "integer": "INTEGER",
    "bigint": "BIGINT",
    "real": "FLOAT",
    "double precision": "DOUBLE",
    "date": "DATE",
    "time without time zone": "TIME",
    "timestamp without time zone": "TIMESTAMP",
    "timestamp with time zone": "TIMESTAMP_LTZ",
    "bytea": "BYTES",
}
_WRITTEN = {
    "BOOLEAN": "boolean",
    "TINYINT": "smallint",
    "SMALLINT": "smallint",
    "INTEGER": "integer",
    "BIGINT": "bigint",
    "FLOAT": "real",
    "DOUBLE": "double precision",
    "DATE": "date",
    "TIME": "time without time zone",
    "TIMESTAMP": "timestamp without time zone",
    "TIMESTAMP_LTZ": "timestamp with time zone",
    "BYTES": "bytea",
    "VARBINARY": "bytea",
}
_NESTED = ("ARRAY", "MAP", "STRUCT")
_JSON = ("json", "jsonb")
_TEXTS = ("text", "character varying", "character", "citext", "name")
# Whole numbers of so many digits at most.
_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INTEGER": 10, "BIGINT": 19}
_WIDER = {
    "BOOLEAN": ("boolean",),
    "TINYINT": ("smallint", "integer", "bigint", "real", "double precision"),
    "SMALLINT": ("smallint", "integer", "bigint", "real", "double precision"),
    "INTEGER": ("integer", "bigint", "double precision"),
    "BIGINT": ("bigint",),
    "FLOAT": ("real", "double precision"),
    "DOUBLE": ("double precision",),
    "DATE": ("date", "timestamp without time zone"),
    "TIME": ("time without time zone",),
    "TIMESTAMP": ("timestamp without time zone",),
    "TIMESTAMP_LTZ": ("timestamp with time zone",),
    "BYTES": ("bytea",),
    "VARBINARY": ("bytea",),
}
# PostgreSQL's name to the types of ours that a column may be declared as, beside VARCHAR.
_READABLE = {
    "boolean": ("BOOLEAN",),
    "smallint": ("SMALLINT", "INTEGER", "BIGINT", "DECIMAL", "FLOAT", "DOUBLE"),
    "integer": ("INTEGER", "BIGINT", "DECIMAL", "DOUBLE"),
    "bigint": ("BIGINT", "DECIMAL"),
    "oid": ("BIGINT",),
    "real": ("FLOAT", "DOUBLE"),
    "double precision": ("DOUBLE",),
    "numeric": ("DECIMAL", "DOUBLE"),
    "date": ("DATE",),
    "time without time zone": ("TIME",),
    "timestamp without time zone": ("TIMESTAMP",),
    "timestamp with time zone": ("TIMESTAMP_LTZ",),
    "bytea": ("BYTES", "VARBINARY"),
    "json": ("STRUCT", "MAP", "ARRAY"),
    "jsonb": ("STRUCT", "MAP", "ARRAY"),
}
_PLACES = re.compile(r"(.*?)\s*\((\d+)(?:,\s*(-?\d+))?\)(.*)\Z")


def base_of(native: str) -> tuple[str, tuple[int, ...]]:
    """A type's name without its numbers, and these: ``numeric(10,2)`` gives numeric and (10, 2)."""
    # Types outside pg_catalog come with their schema.
    native = native.rsplit(".", 1)[-1]
    found = _PLACES.match(native)
    if found is None:
        return native, ()
    numbers = tuple(int(n) for n in found.group(2, 3) if n is not None)
    return found[1] + found[4], numbers


def read_type(native: str) -> DataType:
    """The relation's type of a table's column; what has no counterpart comes as its text.

    Args:
        native: as PostgreSQL's ``format_type`` writes it, such as ``character varying(20)``.
    """
    if native.endswith("[]"):
        inner = read_type(native[:-2])
        return inner if inner.kind == "ARRAY" else DataType("ARRAY", arguments=(inner,))
    base, numbers = base_of(native)
    if base == "numeric":
        # Without digits, with more than Spark has, or rounded to tens: only a text holds all values.
        fits = len(numbers) == 2 and numbers[0] <= 38 and 0 <= numbers[1] <= numbers[0]
        return DataType("DECIMAL", numbers) if fits else DataType("VARCHAR")
    if base == "character varying":
        return DataType("VARCHAR", numbers)
    return DataType(_READ.get(base, "VARCHAR"))


def readable(kind: DataType, native: str) -> bool:
    """Whether values of a table's column can be read as this type; all of them can as text."""
    if kind.kind == "VARCHAR":
        return True
    base, _ = base_of(native)
    if base.endswith("[]"):
        leaf = kind
        while leaf.kind == "ARRAY":
            leaf = leaf.arguments[0]
        return kind.kind == "ARRAY" and readable(leaf, base[:-2])
    return kind.kind in _READABLE.get(base, ())


def column_type(kind: DataType) -> str:
    """How a column is declared in a table that is made, in the words of ``format_type``."""
    if kind.kind == "DECIMAL":
        precision, scale = (*kind.parameters, 0)[:2] if kind.parameters else (10, 0)
        return f"numeric({precision},{scale})"
    if kind.kind == "VARCHAR":
        return f"character varying({kind.parameters[0]})" if kind.parameters else "text"
    if kind.kind == "ARRAY" and kind.arguments[0].kind not in _NESTED:
        return f"{column_type(kind.arguments[0])}[]"
    return _WRITTEN.get(kind.kind, "jsonb")


def fits(kind: DataType, native: str, *, enum: bool = False) -> bool:
    """Whether values of a relation's type can stand in a column.

    Texts may stand in columns whose values are checked one by one: ``uuid``, ``json``, enumerations.

    Args:
        kind: the relation's type.
        native: the column's.
        enum: whether the column's type is an enumeration.
    """
    base, numbers = base_of(native)
    if kind.kind in _NESTED:
        if base in _JSON:
            return True
        inner = kind.arguments[0]
        return (
            kind.kind == "ARRAY"
            and native.endswith("[]")
            and inner.kind not in _NESTED
            and fits(inner, native[:-2])
        )
    if kind.kind == "VARCHAR":
        return enum or base in (
            *_TEXTS,
            *_JSON,
            "uuid",
            "xml",
            "inet",
            "cidr",
            "macaddr",
            "interval",
            "tsvector",
        )
    if kind.kind in ("TIME", "DATE") and base in ("text",):
        return kind.kind == "TIME"
    if kind.kind == "DECIMAL":
        precision, scale = (*kind.parameters, 0)[:2] if kind.parameters else (10, 0)
        return base == "numeric" and _holds(numbers, precision - scale, scale)
    if kind.kind in _DIGITS and base == "numeric":
        return _holds(numbers, _DIGITS[kind.kind], 0)
    return base in _WIDER.get(kind.kind, ())


def _holds(numbers: tuple[int, ...], whole: int, scale: int) -> bool:
    """Whether ``numeric`` of these numbers has so many digits before and behind the point."""
    if not numbers:
        return True
    precision, places = (*numbers, 0)[:2]
    return precision - places >= whole and places >= scale


POSTGRES_TYPES = TableTypes(
    server="PostgreSQL",
    alter="ALTER TABLE … ALTER COLUMN {} SET NOT NULL",
    column_type=column_type,
    fits=lambda kind, column: fits(kind, column.native, enum=column.enum),
    readable=lambda kind, column: readable(kind, column.native),
)
"""PostgreSQL's side of ``table_fit``."""

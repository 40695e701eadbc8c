"""Column types of Delta tables, which are Spark's, and of relations; see docs/databricks.md."""

from __future__ import annotations

import re

from leatstream.connectors.table_fit import TableTypes
from leatstream.model.types import DataType, from_spark

_WHOLE = ("tinyint", "smallint", "int", "bigint")
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)\Z")
_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INTEGER": 10, "BIGINT": 19}


def read_type(native: str) -> DataType:
    """The relation's type of a table's column; what has no counterpart, such as an interval, is a text."""
    try:
        return from_spark(native)
    except ValueError:
        return DataType("VARCHAR")


def column_type(kind: DataType) -> str:
    """How a column is declared in a table that is made, as the catalog writes it back."""
    text = re.sub(r"`([A-Za-z_][A-Za-z0-9_]*)`", r"\1", kind.spark())
    return re.sub(
        r"\b[A-Z_]+(?=[<(,>]|\Z)", lambda word: word[0].lower(), text.replace(", ", ",").replace(": ", ":")
    )


def fits(kind: DataType, native: str) -> bool:
    """Whether values of a relation's type can stand in a column; whole numbers and decimals in wider ones."""
    own, native = _plain(column_type(kind)), _plain(native)
    if own == native:
        return True
    wide = _DECIMAL.match(native)
    if wide is not None and (kind.kind == "DECIMAL" or kind.kind in _DIGITS):
        precision, scale = _digits(kind)
        return int(wide[1]) - int(wide[2]) >= precision - scale and int(wide[2]) >= scale
    if own in _WHOLE and native in _WHOLE:
        return _WHOLE.index(own) <= _WHOLE.index(native)
    return (own, native) == ("float", "double") or (own in _WHOLE[:3] and native == "double")


def _digits(kind: DataType) -> tuple[int, int]:
    if kind.kind in _DIGITS:
        return _DIGITS[kind.kind], 0
    precision, scale = (*kind.parameters, 0)[:2] if kind.parameters else (10, 0)
    return precision, scale


def _plain(text: str) -> str:
    return text.lower().replace(" ", "").replace("`", "")


DATABRICKS_TYPES = TableTypes(
    server="Databricks",
    alter="ALTER TABLE … ALTER COLUMN {} SET NOT NULL",
    column_type=column_type,
    fits=lambda kind, column: fits(kind, column.native),
    readable=lambda kind, column: kind == column.type,
)
"""Databricks's side of ``table_fit``."""

"""A compiled expression, and what both databases need to know about values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

from sqlglot import exp

from leatstream.errors import RequestError
from leatstream.model.spark_texts import read_date, read_moment
from leatstream.model.types import DataType
from leatstream.model.view_values import encode
from leatstream.sql.passes.scope import place
from leatstream.sql.snapshot import kinds

# Characters of one expression or query, and of all with their parts counted again.
_MOST_SQL, _MOST_WRITTEN = 1_000_000, 32_000_000
Database = Literal["sqlite", "postgresql"]


@dataclass(frozen=True, slots=True)
class Value:
    """SQL of one expression.

    Attributes:
        kind: None for NULL and after a fault.
        constant: the Python value of a literal, so that it can still become one of another type.
    """

    sql: str
    kind: DataType | None
    constant: Any = None


NOTHING = Value("NULL", None)


class Parameters:
    """Values that travel beside the SQL; the same value is sent once. Counts the SQL too."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.values: list[Any] = []
        self._written = 0

    def count(self, sql: str, node: exp.Expression) -> None:
        """Take notice of a part that has been written.

        Some forms need an argument several times: nested, a short statement would fill the memory.

        Raises:
            RequestError: too-complex.
        """
        self._written += len(sql)
        if len(sql) > _MOST_SQL or self._written > _MOST_WRITTEN:
            detail = "This SELECT over materialized views is too long when written for their database."
            hint = "Nest fewer calls, or compute some of it in the SELECT that makes the view."
            raise RequestError("too-complex", detail, position=place(node), hint=hint)

    def put(self, value: Any, kind: DataType) -> str:
        """The placeholder of a Python value."""
        given = encode(value, kind) if self.database == "sqlite" else value
        place = next(
            (i for i, known in enumerate(self.values) if type(known) is type(given) and known == given), None
        )
        if place is None:
            place = len(self.values)
            self.values.append(given)
        if self.database == "sqlite":
            return f"?{place + 1}"
        return typed(f"%(p{place})s", kind)


def typed(sql: str, kind: DataType) -> str:
    """SQL as a value of a type in PostgreSQL. A text sorts by code point, whatever the database does else."""
    name = postgresql_type(kind)
    return f'({sql}::text COLLATE "C")' if name == "text" else f"{sql}::{name}"


def postgresql_type(kind: DataType) -> str:
    """A type to cast to in PostgreSQL."""
    if kind.kind == "DECIMAL":
        precision, scale = kinds.decimal_parts(kind)
        return f"numeric({precision}, {scale})"
    return {
        "integer": {"TINYINT": "smallint", "SMALLINT": "smallint", "INTEGER": "integer"}.get(
            kind.kind, "bigint"
        ),
        "float": "double precision",
        "boolean": "boolean",
        "bytes": "bytea",
        "date": "date",
        "moment": "timestamptz" if kind.kind == "TIMESTAMP_LTZ" else "timestamp",
    }.get(kinds.family(kind), "text")


def number(text: str) -> tuple[int | Decimal | float, DataType]:
    """A numeric literal as Spark types it: 1 is an INTEGER, 1.5 a DECIMAL, 1e3 a DOUBLE.

    Raises:
        ValueError: no type has so many digits.
    """
    if "e" in text.lower():
        return float(text), kinds.DOUBLE
    if "." in text:
        made = Decimal(text)
        digits = made.as_tuple()
        scale = max(-int(digits.exponent), 0)
        precision = max(len(digits.digits), scale, 1)
        if precision > kinds.MOST_DIGITS:
            raise ValueError(text)
        return made, DataType("DECIMAL", (precision, scale))
    text = text.lstrip("0") or "0"
    if len(text) > kinds.MOST_DIGITS:
        raise ValueError(text)
    whole = int(text)
    if abs(whole) < 1 << 31:
        return whole, kinds.INTEGER
    if abs(whole) < 1 << 63:
        return whole, kinds.BIGINT
    return Decimal(whole), DataType("DECIMAL", (len(text), 0))


def convert(value: Any, kind: DataType) -> Any:
    """A literal's Python value as one of another type.

    Raises:
        ValueError: it cannot be one.
    """
    family = kinds.family(kind)
    if family == "decimal":
        return Decimal(value) if not isinstance(value, float) else Decimal(repr(value))
    if family == "float":
        return float(value)
    if family == "moment" and isinstance(value, str):
        return read_moment(value, zoned=kind.kind == "TIMESTAMP_LTZ")
    if family == "date" and isinstance(value, str):
        return read_date(value)
    if family == "moment" and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)
    return value

"""Sums, products and moved times, with Spark's types."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from leatstream.model.types import DataType
from leatstream.sql.snapshot import kinds
from leatstream.sql.snapshot.conversions import adapt, cast, single
from leatstream.sql.snapshot.values import NOTHING, Value, postgresql_type

if TYPE_CHECKING:
    from leatstream.sql.snapshot.expressions import Expressions

OPERATORS = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.IntDiv: "DIV"}
_MONTHS = {"YEAR": 12, "MONTH": 1}
_DAYS = ("DAY", "WEEK", "MONTH", "YEAR")  # whole ones of them leave a DATE a DATE
_MICROS = {
    "WEEK": 604_800_000_000,
    "DAY": 86_400_000_000,
    "HOUR": 3_600_000_000,
    "MINUTE": 60_000_000,
    "SECOND": 1_000_000,
    "MILLISECOND": 1_000,
}
_MONTH = 31 * _MICROS["DAY"]
_LONGEST = 10_000 * 12 * _MONTH


def arithmetic(c: Expressions, node: Any) -> Value:
    """``a + b`` and its like."""
    operator = OPERATORS[type(node)]
    if isinstance(node.expression, exp.Interval) and operator in "+-":
        return _moved(c, node, 1 if operator == "+" else -1)
    left, right = c.value(node.this), c.value(node.expression)
    c.expect(left, "number", node.this)
    c.expect(right, "number", node.expression)
    if left.kind is None or right.kind is None:
        return Value("NULL", left.kind or right.kind or kinds.INTEGER)
    if not (kinds.is_number(left.kind) and kinds.is_number(right.kind)):
        return NOTHING
    kind = kinds.arithmetic(operator, _narrow(left, right.kind), _narrow(right, left.kind))
    whole = kinds.family(left.kind) == kinds.family(right.kind) == "integer"
    real = "float" in (kinds.family(left.kind), kinds.family(right.kind))
    if c.sqlite:
        made = _sqlite_arithmetic(c, operator, left, right, kind, whole, real)
    else:
        made = _postgresql_arithmetic(operator, left, right, kind, whole, real)
    # A double has digits enough that rounding it again does no harm.
    return single(Value(made, kinds.DOUBLE), c.parameters) if kind == kinds.FLOAT else Value(made, kind)


def _sqlite_arithmetic(
    c: Expressions, operator: str, left: Value, right: Value, kind: DataType, whole: bool, real: bool
) -> str:
    if whole:
        return f"leat_integer('{operator}', {left.sql}, {right.sql}, '{kind.kind}')"
    if real:
        one, other = (adapt(v, kinds.DOUBLE, c.parameters).sql for v in (left, right))
        if operator == "DIV":
            return f"leat_cast(leat_real('/', {one}, {other}), 'DOUBLE', 'BIGINT', 0, 0)"
        return f"leat_real('{operator}', {one}, {other})"
    precision, scale = kinds.decimal_parts(kind) if kind.kind == "DECIMAL" else (0, 0)
    wide = DataType("DECIMAL", (38, 0))
    one, other = (
        v.sql if v.kind is not None and v.kind.kind == "DECIMAL" else adapt(v, wide, c.parameters).sql
        for v in (left, right)
    )
    return f"leat_decimal('{operator}', {one}, {other}, {precision}, {scale})"


def _moved(c: Expressions, node: Any, sign: int) -> Value:
    """A time and an interval."""
    left, interval = c.value(node.this), node.expression
    if left.kind is not None and kinds.family(left.kind) not in ("moment", "date"):
        c.expect(left, "moment", node.this)
        return NOTHING
    if left.kind is None:
        return Value("NULL", kinds.TIMESTAMP)
    unit, amount = interval.args["unit"].name, _amount(interval) * sign
    if abs(amount) * (_MICROS.get(unit) or _MONTHS[unit] * _MONTH) > _LONGEST:
        c.wrong("type-mismatch", "An interval is at most 10,000 years.", interval)
        return Value("NULL", left.kind)
    kind = left.kind if left.kind.kind != "DATE" else kinds.TIMESTAMP_LTZ
    whole = left.kind.kind == "DATE" and unit in _DAYS and amount.is_integer()
    left = adapt(left, kind, c.parameters)
    if not c.sqlite:
        made = f"({left.sql} + interval '{amount!r} {unit.lower()}')"
    elif unit in _MONTHS:
        made = f"leat_months({left.sql}, {int(amount * _MONTHS[unit])})"
    else:
        made = f"({left.sql} + {round(amount * _MICROS[unit])})"
    moved = Value(made, kind)
    return cast(moved, kinds.DATE, c.parameters) if whole else moved


def _amount(interval: Any) -> float:
    try:
        return float(interval.this.name)
    except ValueError:  # two signs
        return math.inf


def _narrow(value: Value, other: DataType) -> DataType:
    """The type a value counts with: beside a DECIMAL an integer literal has the digits that it shows."""
    kind = value.kind or kinds.INTEGER
    if other.kind == "DECIMAL" and kinds.family(kind) == "integer" and value.constant is not None:
        return DataType("DECIMAL", (len(str(abs(value.constant))), 0))
    return kind


def _postgresql_arithmetic(
    operator: str, left: Value, right: Value, kind: DataType, whole: bool, real: bool
) -> str:
    one, other = f"({left.sql})", f"({right.sql})"
    if whole:
        wide = postgresql_type(kind)
        if operator == "%":
            return f"mod({one}::{wide}, {other}::{wide})"
        return f"({one}::{wide} {'/' if operator == 'DIV' else operator} {other}::{wide})::{wide}"
    if real:
        one, other = f"{one}::double precision", f"{other}::double precision"
        if operator == "DIV":
            return f"trunc(({one} / {other})::numeric)::bigint"
        if operator == "%":
            return f"({one} - {other} * trunc({one} / {other}))"
        return f"({one} {operator} {other})"
    one, other = f"{one}::numeric", f"{other}::numeric"
    if operator == "DIV":
        return f"div({one}, {other})::bigint"
    if operator == "%":
        return f"mod({one}, {other})::{postgresql_type(kind)}"
    # PostgreSQL's own choice of digits for a quotient may be fewer than the type has.
    one = f"round({one}, 40)" if operator == "/" else one
    return f"({one} {operator} {other})::{postgresql_type(kind)}"

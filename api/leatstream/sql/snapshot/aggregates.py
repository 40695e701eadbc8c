"""Aggregates of a SELECT over views."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from leatstream.model.types import DataType
from leatstream.sql.snapshot import kinds
from leatstream.sql.snapshot.values import Value, postgresql_type

if TYPE_CHECKING:
    from leatstream.sql.snapshot.expressions import Expressions

_TRUTHS = {"bool_and": "min", "every": "min", "bool_or": "max", "any": "max", "some": "max"}


def aggregate(c: Expressions, name: str, node: Any) -> Value:
    """One call of an aggregate; its arguments are compiled here.

    Args:
        c: compiles expressions.
        name: of the aggregate.
        node: the call.
    """
    arguments = node.expressions
    distinct = "DISTINCT " if node.meta.get("distinct") else ""
    if name == "count" and len(arguments) == 1 and isinstance(arguments[0], exp.Star):
        if distinct:
            c.wrong("type-mismatch", "The function count takes no DISTINCT *.", node)
        return Value("count(*)", kinds.BIGINT)
    if len(arguments) != 1:
        hint = "Count distinct values of one expression." if distinct else None
        c.wrong("type-mismatch", f"{name} takes 1 argument, not {len(arguments)}.", node, hint)
        return Value("NULL", None)
    value = c.value(arguments[0])
    if name in ("count", "approx_count_distinct"):
        # Counting all of them is as good an estimate as any.
        distinct = "DISTINCT " if name != "count" else distinct
        return Value(f"count({distinct}{value.sql})", kinds.BIGINT)
    if name == "count_if":
        c.expect(value, "boolean", arguments[0])
        return Value(f"count(CASE WHEN {value.sql} THEN 1 END)", kinds.BIGINT)
    if name in _TRUTHS:
        c.expect(value, "boolean", arguments[0])
        word = _TRUTHS[name] if c.sqlite else {"min": "bool_and", "max": "bool_or"}[_TRUTHS[name]]
        return Value(f"{word}({value.sql})", kinds.BOOLEAN)
    if name in ("min", "max"):
        return _extreme(c, name, value, arguments[0])
    c.expect(value, "number", arguments[0])
    if value.kind is None or not kinds.is_number(value.kind):
        return Value("NULL", value.kind)
    made = _sum if name == "sum" else _mean
    return made(c, value.sql, value.kind, distinct)


def _extreme(c: Expressions, name: str, value: Value, node: exp.Expression) -> Value:
    family = kinds.family(value.kind) if value.kind is not None else "integer"
    if family in ("nested", "bytes"):
        c.refuse(f"{name.upper()} of {value.kind}", node)
    if family == "boolean" and not c.sqlite:
        word = {"min": "bool_and", "max": "bool_or"}[name]
        return Value(f"{word}({value.sql})", value.kind)
    return Value(f"{name}({value.sql})", value.kind)


def _sum(c: Expressions, sql: str, kind: DataType, distinct: str) -> Value:
    family = kinds.family(kind)
    if family == "integer":
        ending = "" if c.sqlite else "::bigint"
        return Value(f"sum({distinct}{sql}){ending}", kinds.BIGINT)
    if family == "float":
        word = "leat_sum_real" if c.sqlite else "sum"
        return Value(f"{word}({distinct}{sql})", kinds.DOUBLE)
    precision, scale = kinds.decimal_parts(kind)
    gives = kinds.decimal(precision + 10, scale)
    if c.sqlite:
        precision, scale = kinds.decimal_parts(gives)
        made = f"leat_cast(leat_sum_decimal({distinct}{sql}), 'DECIMAL', 'DECIMAL', {precision}, {scale})"
        return Value(made, gives)
    return Value(f"sum({distinct}{sql})::{postgresql_type(gives)}", gives)


def _mean(c: Expressions, sql: str, kind: DataType, distinct: str) -> Value:
    if kind.kind != "DECIMAL":
        if kinds.family(kind) == "float" and c.sqlite:
            return Value(f"leat_avg_real({distinct}{sql})", kinds.DOUBLE)
        ending = "" if c.sqlite else "::double precision"
        return Value(f"avg({distinct}{sql}){ending}", kinds.DOUBLE)
    precision, scale = kinds.decimal_parts(kind)
    gives = kinds.decimal(precision + 4, scale + 4)
    precision, scale = kinds.decimal_parts(gives)
    if c.sqlite:
        made = f"leat_cast(leat_avg_decimal({distinct}{sql}), 'DECIMAL', 'DECIMAL', {precision}, {scale})"
        return Value(made, gives)
    exact = f"round(sum({distinct}{sql}), 40) / nullif(count({distinct}{sql}), 0)"
    return Value(f"({exact})::{postgresql_type(gives)}", gives)

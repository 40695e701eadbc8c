"""Calls in a SELECT over views."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from leatstream.model.types import DataType
from leatstream.sql.passes.columns import suggestion
from leatstream.sql.snapshot import kinds
from leatstream.sql.snapshot.aggregates import aggregate
from leatstream.sql.snapshot.arithmetic import arithmetic
from leatstream.sql.snapshot.conversions import adapt, cast, plain_name, single
from leatstream.sql.snapshot.functions import AGGREGATES, FIELDS, FUNCTIONS, KNOWN, TRUNCATED
from leatstream.sql.snapshot.values import NOTHING, Value, postgresql_type

if TYPE_CHECKING:
    from leatstream.sql.snapshot.expressions import Expressions

# SQLite takes no more, unless it was built otherwise.
_MOST_ARGUMENTS = 100


def call(c: Expressions, node: Any) -> Value:
    """A function or aggregate."""
    name = str(node.this)
    if name in AGGREGATES:
        if not c.aggregates or c.inside:
            hint = "Aggregates do not nest." if c.inside else "WHERE comes before grouping; write HAVING"
            c.wrong("not-grouped", f"The aggregate {name.upper()} cannot stand here.", node, hint)
            return NOTHING
        c.inside = True
        try:
            return aggregate(c, name, node)
        finally:
            c.inside = False
    if node.meta.get("distinct") or any(isinstance(a, exp.Star) for a in node.expressions):
        c.wrong("type-mismatch", f"{name} takes no DISTINCT and no *.", node)
        return NOTHING
    rule = _RULES.get(name)
    if rule is not None:
        return rule(c, node)
    return function(c, name, node, node.expressions)


def function(c: Expressions, name: str, node: exp.Expression, arguments: Sequence[exp.Expression]) -> Value:
    """A function of the list.

    Args:
        c: compiles expressions.
        name: of the function.
        node: the call.
        arguments: not compiled yet.
    """
    known = FUNCTIONS.get(name)
    if known is None:
        c.refuse(f"The function {name}", node, suggestion(name, KNOWN | AGGREGATES))
        return NOTHING
    if not known.least <= len(arguments) <= len(known.takes):
        low, high = known.least, len(known.takes)
        wanted = f"{low}" if low == high else f"{low} to {high}"
        noun = "argument" if high == 1 else "arguments"
        c.wrong("type-mismatch", f"{name} takes {wanted} {noun}, not {len(arguments)}.", node)
        return NOTHING
    if any(isinstance(a, exp.Var) for a in arguments):
        c.refuse(f"This form of {name}", node)
        return NOTHING
    values = []
    for family, argument in zip(known.takes, arguments, strict=False):
        values.append(taken(c, c.value(argument), family, argument))
    first = values[0].kind or kinds.BIGINT
    gives = known.gives([v.kind or kinds.BIGINT for v in values])
    if name == "round" and gives.kind == "DECIMAL":
        gives = _rounded(gives, values[1].constant if len(values) > 1 else 0)
    form = known.sqlite if c.sqlite else known.postgresql
    if callable(form):
        rounds = name == "round" and gives == kinds.FLOAT
        return single(Value(form(values), gives), c.parameters) if rounds else Value(form(values), gives)
    texts = {"kind": plain_name(first), "gives": postgresql_type(gives)}
    return Value(f"({form.format(*(v.sql for v in values), **texts)})", gives)


def _rounded(kind: DataType, digits: int | None) -> DataType:
    """What ROUND makes of a DECIMAL: it has the digits that are asked for, and room for one more."""
    if digits is None:
        return kind
    precision, scale = kinds.decimal_parts(kind)
    whole = precision - scale + 1
    if digits < 0:
        return kinds.decimal(max(whole, 1 - digits), 0)
    return kinds.decimal(whole + min(scale, digits), min(scale, digits))


def taken(c: Expressions, value: Value, family: str, node: exp.Expression) -> Value:
    """An argument as what a function takes.

    Args:
        c: compiles expressions.
        value: compiled.
        family: of types that the function takes.
        node: where a fault is shown.
    """
    wanted = {"float": kinds.DOUBLE, "moment": kinds.TIMESTAMP, "date": kinds.DATE}.get(family)
    if value.kind is None:
        return Value("NULL", wanted)
    given = kinds.family(value.kind)
    if family == "float" and kinds.is_number(value.kind):
        return adapt(value, kinds.DOUBLE, c.parameters)
    if family == "moment" and given in ("date", "moment"):
        kind = value.kind if given == "moment" else kinds.TIMESTAMP
        return adapt(value, kind, c.parameters)
    if family == "date" and given in ("date", "moment"):
        return cast(value, kinds.DATE, c.parameters)
    before = len(c.faults.items)
    c.expect(value, family, node)
    return value if len(c.faults.items) == before else Value("NULL", wanted)


def chosen(
    c: Expressions, form: Callable[[list[str]], str], node: exp.Expression, nodes: Sequence[Any]
) -> Value:
    """A form over values of one type.

    Args:
        c: compiles expressions.
        form: makes SQL of the values' SQL.
        node: the call.
        nodes: its arguments.
    """
    if not nodes:
        c.wrong("type-mismatch", f"{node.name or node.this} needs arguments.", node)
        return NOTHING
    values = c.together(nodes, [c.value(n) for n in nodes])
    return Value(form([v.sql for v in values]), next((v.kind for v in values if v.kind), None))


def _extract(c: Expressions, node: Any) -> Value:
    unit = node.expressions[0].name.lower()
    if unit == "second":
        c.refuse("EXTRACT(SECOND …)", node, "Write second(…).")
        return NOTHING
    return function(c, FIELDS.get(unit, unit), node, node.expressions[1:])


def _date_trunc(c: Expressions, node: Any) -> Value:
    arguments = node.expressions
    unit = arguments[0].this.lower() if arguments and isinstance(arguments[0], exp.Literal) else None
    if len(arguments) != 2 or unit not in TRUNCATED:
        c.wrong(
            "type-mismatch", f"date_trunc takes one of {', '.join(TRUNCATED)} in quotes, and a time.", node
        )
        return NOTHING
    value = adapt(taken(c, c.value(arguments[1]), "moment", arguments[1]), kinds.TIMESTAMP_LTZ, c.parameters)
    form = "leat_truncated" if c.sqlite else "date_trunc"
    return Value(f"{form}('{unit}', {value.sql})", kinds.TIMESTAMP_LTZ)


def _null_test(word: str) -> Callable[[Expressions, Any], Value]:
    def rule(c: Expressions, node: Any) -> Value:
        if len(node.expressions) != 1:
            c.wrong("type-mismatch", f"{node.this} takes 1 argument.", node)
            return NOTHING
        return Value(f"({c.value(node.expressions[0]).sql} {word})", kinds.BOOLEAN)

    return rule


def _if(c: Expressions, node: Any) -> Value:
    arguments = node.expressions
    if len(arguments) != 3:
        c.wrong("type-mismatch", f"{node.this} takes 3 arguments, not {len(arguments)}.", node)
        return NOTHING
    test = c.condition(arguments[0]) if str(node.this) == "if" else f"{c.value(arguments[0]).sql} IS NOT NULL"
    return chosen(c, lambda v: f"(CASE WHEN {test} THEN {v[0]} ELSE {v[1]} END)", node, arguments[1:])


def _extreme(word: str) -> Callable[[Expressions, Any], Value]:
    def form(c: Expressions, values: list[str]) -> str:
        if not c.sqlite:
            return f"{word}({', '.join(values)})"
        # NULLs are passed over, as Spark does; SQLite's min and max of several would give NULL.
        while len(values) > 1:
            made = f"leat_{word}({', '.join(values[:_MOST_ARGUMENTS])})"
            values = [made, *values[_MOST_ARGUMENTS:]]
        return values[0]

    return lambda c, node: chosen(c, lambda values: form(c, values), node, node.expressions)


def _nullif(c: Expressions, node: Any) -> Value:
    if len(node.expressions) != 2:
        c.wrong("type-mismatch", "The function nullif takes 2 arguments.", node)
        return NOTHING
    return chosen(c, lambda v: f"nullif({v[0]}, {v[1]})", node, node.expressions)


def _mod(c: Expressions, node: Any) -> Value:
    if len(node.expressions) != 2:
        c.wrong("type-mismatch", "The function mod takes 2 arguments.", node)
        return NOTHING
    made = exp.Mod(this=node.expressions[0], expression=node.expressions[1])
    made.meta.update(node.meta)
    return arithmetic(c, made)


def _now(c: Expressions, node: Any) -> Value:
    return Value(c.parameters.put(c.now, kinds.TIMESTAMP_LTZ), kinds.TIMESTAMP_LTZ)


def _today(c: Expressions, node: Any) -> Value:
    return Value(c.parameters.put(c.now.date(), kinds.DATE), kinds.DATE)


def _coalesce(c: Expressions, node: Any) -> Value:
    if len(node.expressions) == 1:
        return c.value(node.expressions[0])
    return chosen(c, lambda v: f"coalesce({', '.join(v)})", node, node.expressions)


_RULES: dict[str, Callable[[Expressions, Any], Value]] = {
    "coalesce": _coalesce,
    "nvl": _coalesce,
    "ifnull": _coalesce,
    "nullif": _nullif,
    "if": _if,
    "nvl2": _if,
    "isnull": _null_test("IS NULL"),
    "isnotnull": _null_test("IS NOT NULL"),
    "greatest": _extreme("greatest"),
    "least": _extreme("least"),
    "concat": lambda c, n: c.texts(n.expressions),
    "mod": _mod,
    "current_timestamp": _now,
    "now": _now,
    "current_date": _today,
    "extract": _extract,
    "date_trunc": _date_trunc,
}

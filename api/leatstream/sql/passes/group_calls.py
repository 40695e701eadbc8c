"""Calls that have a meaning in groups only: COUNT(DISTINCT …), GROUPING and GROUPING_ID."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

if TYPE_CHECKING:
    from leatstream.sql.passes.render_expressions import ExpressionRenderer

GROUPINGS = frozenset({"grouping", "grouping_id"})


def counts_distinct(node: exp.Expression) -> bool:
    """Whether a call is COUNT(DISTINCT …) of one value or more."""
    values = node.expressions
    starred = any(isinstance(value, exp.Star) for value in values)
    return str(node.this) == "count" and bool(node.meta.get("distinct")) and bool(values) and not starred


def write_group_call(r: ExpressionRenderer, node: Any) -> bool:
    """Write one of these calls; False if it is another."""
    word, values = str(node.this), node.expressions
    if counts_distinct(node):
        # Spark refuses the aggregate on streams, but not the set of the values, NULL left out.
        r.put("CAST(size(collect_set(")
        if len(values) == 1:
            r.expr(values[0])
        else:
            r.put("CASE WHEN ")
            for i, value in enumerate(values):
                r.template(" AND ({}) IS NOT NULL" if i else "({}) IS NOT NULL", value)
            r.put(" THEN ")
            r.call("struct", values)
            r.put(" END")
        r.put(")) AS BIGINT)")
    elif word in GROUPINGS:
        # One bit per column, the first one highest; Spark's own function takes all columns or none.
        r.put("(" * (len(values) - 1))
        for i, value in enumerate(values):
            r.template(" * 2 + CAST(grouping({}) AS BIGINT))" if i else "CAST(grouping({}) AS BIGINT)", value)
    else:
        return False
    return True

"""Walks an expression: columns, functions, fields; sub-queries are refused."""

from __future__ import annotations

from sqlglot import exp

from leatstream.model.types import DataType
from leatstream.sql import function_table
from leatstream.sql.passes.columns import Columns, step_into
from leatstream.sql.passes.functions import Functions
from leatstream.sql.passes.scope import place
from leatstream.sql.passes.user_functions import use_of


def check(root: exp.Expression, columns: Columns, functions: Functions) -> None:
    """Resolve and check everything in ``root``; faults go to ``columns.faults``.

    Args:
        root: changed in place.
        columns: that names resolve to.
        functions: that may be called here.
    """
    stack = [root]
    brackets: list[exp.Bracket] = []
    while stack:
        node = stack.pop()
        if isinstance(node, exp.Column):
            columns.resolve(node)
        elif isinstance(node, exp.Anonymous):
            if functions.check(node):
                stack += node.expressions
        elif isinstance(node, exp.Dot):
            stack += _fields(node, columns)
        elif isinstance(node, exp.Subquery):
            _refuse("A sub-query as a value", node, columns)
        elif isinstance(node, exp.Exists):
            _refuse("EXISTS (sub-query)", node, columns)
        elif isinstance(node, exp.In) and node.args.get("query") is not None:
            _refuse("IN (sub-query)", node, columns)
            stack.append(node.this)
        else:
            brackets += [node] if isinstance(node, exp.Bracket) else []
            stack += [child for child in node.iter_expressions() if isinstance(child, exp.Expression)]
    for bracket in brackets:  # of which the types of the columns are known now
        _no_element_0(bracket, columns)


def _no_element_0(node: exp.Bracket, columns: Columns) -> None:
    """Spark ends the query at it, not before a row has come."""
    index = node.expressions[0]
    if isinstance(index, exp.Literal) and not index.is_string and index.this == "0" and _is_array(node.this):
        detail, hint = "Arrays count from 1: there is no element 0.", "Write [1] for the first one."
        columns.faults.add("type-mismatch", detail, position=place(node), hint=hint)


def _is_array(node: exp.Expression) -> bool:
    """Whether it is known to be one."""
    if isinstance(node, exp.Anonymous) and use_of(node) is None:
        function = function_table.functions().get(str(node.this))
        return function is not None and function.returns.startswith("ARRAY")
    known: DataType | None = node.meta.get("type")
    return known is not None and known.kind == "ARRAY"


def _refuse(what: str, node: exp.Expression, columns: Columns) -> None:
    hint = "Write JOIN … ON: with WITHIN for a stream, without for a changelog or table."
    columns.faults.add("unsupported", f"{what} is not supported on streams.", position=place(node), hint=hint)


def _fields(node: exp.Dot, columns: Columns) -> list[exp.Expression]:
    steps: list[exp.Dot] = []
    base: exp.Expression = node
    while isinstance(base, exp.Dot):
        steps.append(base)
        base = base.this
    if not isinstance(base, exp.Column):
        return [base]
    columns.resolve(base)
    known: DataType | None = base.meta.get("type")
    for step in reversed(steps):
        known = step_into(known, step.expression.name, place(step.expression), columns.faults)
    node.meta["type"] = known
    return []

"""Walks an expression: columns, functions, fields; sub-queries are refused."""

from __future__ import annotations

from sqlglot import exp

from leatstream.model.types import DataType
from leatstream.sql.passes.columns import Columns, step_into
from leatstream.sql.passes.functions import Functions
from leatstream.sql.passes.scope import place


def check(root: exp.Expression, columns: Columns, functions: Functions) -> None:
    """Resolve and check everything in ``root``; faults go to ``columns.faults``."""
    stack = [root]
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
            stack += [child for child in node.iter_expressions() if isinstance(child, exp.Expression)]


def _refuse(what: str, node: exp.Expression, columns: Columns) -> None:
    hint = "write JOIN … ON: with WITHIN for a stream, without for a changelog or table"
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

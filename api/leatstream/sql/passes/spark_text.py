"""When two expressions are one: by their Spark form."""

from __future__ import annotations

from sqlglot import exp

from leatstream.errors import LeatstreamError
from leatstream.sql.passes.render import Renderer


def spark_text(node: exp.Expression) -> str | None:
    """An expression's Spark form, equal for equal expressions; None if something in it is wrong.

    Raises:
        RequestError: too-complex, when it is too long.
    """
    if any(isinstance(part, exp.Column) and "bound" not in part.meta for part in _columns(node)):
        return None
    renderer = Renderer()
    try:
        renderer.expr(node)
    except LeatstreamError as error:
        # To go on would write what is too long again for each place that asks.
        if error.faults[0].code == "too-complex":
            raise
        return None
    return renderer.text


def _columns(node: exp.Expression) -> list[exp.Column]:
    found: list[exp.Column] = []
    stack = [node]
    while stack:
        part = stack.pop()
        if isinstance(part, exp.Column):
            found.append(part)
        elif "bound" not in part.meta:
            stack += [c for c in part.iter_expressions() if isinstance(c, exp.Expression)]
    return found

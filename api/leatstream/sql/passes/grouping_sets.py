"""GROUPING SETS, ROLLUP and CUBE: what GROUPING may name, and what distinguishes their groups."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from leatstream.errors import Faults, Position
from leatstream.sql.passes.group_calls import GROUPINGS
from leatstream.sql.passes.scope import Item, place
from leatstream.sql.passes.spark_text import spark_text


def check_groupings(root: exp.Expression, optional: Sequence[exp.Expression], faults: Faults) -> None:
    """Check the arguments of GROUPING and GROUPING_ID; GROUPING_ID() gets all.

    Args:
        root: an expression of SELECT or HAVING.
        optional: the keys that some group leaves out.
        faults: where what is wrong is noted.
    """
    known = {spark_text(key): key for key in optional}
    stack = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, exp.Anonymous) and str(node.this) in GROUPINGS:
            if not node.expressions:
                node.set("expressions", [key.copy() for key in known.values()])
            if not node.expressions:
                detail = f"{str(node.this).upper()}() has nothing to tell: no set has a column."
                faults.add("not-grouped", detail, position=place(node), hint="Leave it out.")
            for argument in node.expressions:
                text = spark_text(argument)
                if text is not None and text not in known:
                    detail = f"{str(node.this).upper()} takes columns of GROUPING SETS, ROLLUP or CUBE."
                    faults.add("not-grouped", detail, position=place(argument))
        else:
            stack += [c for c in node.iter_expressions() if isinstance(c, exp.Expression)]


def set_marks(
    items: Sequence[Item], optional: Sequence[exp.Expression], at: Position, faults: Faults
) -> list[str]:
    """Output columns that separate a group of all values from the group of NULL; a primary key needs them.

    Args:
        items: of the SELECT.
        optional: keys that not every grouping set has.
        at: where a fault is shown.
        faults: takes what is wrong.
    """
    wanted = {spark_text(key) for key in optional} - {None}
    distinguished: set[str | None] = set()
    found = []
    for item in items:
        if isinstance(item.value, exp.Anonymous) and str(item.value.this) in GROUPINGS:
            found.append(item.name)
            distinguished |= {spark_text(argument) for argument in item.value.expressions}
    if wanted - distinguished:
        faults.add(
            "not-grouped",
            "A changelog's primary key must tell the group of NULL from a group of all values:"
            " SELECT GROUPING_ID() too.",
            position=at,
            hint="Write SELECT …, GROUPING_ID() AS level.",
        )
    return found

"""SELECT DISTINCT: groups without aggregates, or rows that were not written before."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from leatstream.errors import Position
from leatstream.sql.passes.grouping import NO_KEY, WINDOW_COLUMNS, window_column
from leatstream.sql.passes.scope import Binding, BoundGroup, Input, Item


def check_distinct(
    at: Position,
    inputs: Sequence[Input],
    items: Sequence[Item],
    binding: Binding,
    *,
    update: bool,
    nested: bool,
    grouped: bool,
) -> BoundGroup | None:
    """What SELECT DISTINCT means.

    Args:
        at: the word DISTINCT.
        inputs: what FROM gives.
        items: the output columns.
        binding: of the statement; what is wrong is noted there.
        update: whether the result is a changelog.
        nested: whether it is a sub-select or stands beside UNION ALL.
        grouped: whether there is a GROUP BY.

    Returns:
        the groups to keep, or None where each row is compared with those written before.
    """
    refusal = _refusal(inputs, items, binding, update=update, nested=nested, grouped=grouped)
    if refusal is not None:
        detail, hint = refusal
        binding.faults.add("unsupported", f"{detail} is not supported.", position=at, hint=hint)
        return None
    if not update and inputs[0].window is None:
        return None
    named = [item for item in items if not isinstance(item.value, exp.Literal | exp.Null | exp.Boolean)]
    keys = [item.value for item in named if window_column(item.value, inputs[0]) is None]
    names = tuple(item.name for item in named) if update else ()
    if not named and inputs[0].window is None:
        detail = f"SELECT DISTINCT of constants {NO_KEY}."
        binding.faults.add("not-grouped", detail, position=at, hint="SELECT a column too")
    return BoundGroup(keys, names, None, update)


def _refusal(
    inputs: Sequence[Input],
    items: Sequence[Item],
    binding: Binding,
    *,
    update: bool,
    nested: bool,
    grouped: bool,
) -> tuple[str, str] | None:
    window = inputs[0].window
    if any(given.keyed for given in inputs):
        return "SELECT DISTINCT over a changelog", "Write GROUP BY with all columns."
    if grouped:
        return (
            "SELECT DISTINCT with GROUP BY",
            "Leave DISTINCT out, and SELECT all grouping columns.",
        )
    if nested:
        return "SELECT DISTINCT in a sub-select or beside UNION ALL", "Write it into a stream of its own."
    if update and binding.joins:
        return "SELECT DISTINCT over a join in a changelog", "Write CREATE STREAM."
    if window is not None:
        found = {window_column(item.value, inputs[0]) for item in items}
        if not found.issuperset(WINDOW_COLUMNS):
            return (
                "SELECT DISTINCT over a window without its columns",
                "SELECT window_start and window_end too",
            )
    return None

"""The SELECT list: stars to columns, a name for each, no name twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from leatstream.errors import Faults, Position
from leatstream.model.names import quote
from leatstream.model.objects import HIDDEN_PREFIX
from leatstream.sql.passes.columns import Columns, near_input
from leatstream.sql.passes.expressions import check
from leatstream.sql.passes.functions import Functions
from leatstream.sql.passes.scope import Item, place

_NOWHERE = Position(1, 1, 0, 0)


def select_items(
    nodes: Sequence[exp.Expression],
    columns: Columns,
    functions: Functions,
    faults: Faults,
    *,
    named: bool = True,
) -> list[Item]:
    """The output columns of a SELECT, checked and named.

    Args:
        nodes: the expressions of SELECT.
        columns: that names resolve to.
        functions: that may be called here.
        faults: takes what is wrong.
        named: no two columns may have one name.
    """
    items: list[Item] = []
    for node in nodes:
        if isinstance(node, exp.Star):
            items += _star(node, columns, faults)
            continue
        value = node.this if isinstance(node, exp.Alias) else node
        check(value, columns, functions)
        name = node.alias if isinstance(node, exp.Alias) else item_name(value)
        unnamed = sum(item.name.startswith("expr$") for item in items)
        position = place(node, "alias_span") or _NOWHERE
        if name is not None and name.lower().startswith(HIDDEN_PREFIX) and isinstance(node, exp.Alias):
            detail = f"Names that start with {HIDDEN_PREFIX} belong to leatstream."
            faults.add("validation", detail, position=position)
        # As Flink does: EXPR$0, EXPR$1, …
        items.append(Item(name or f"expr${unnamed}", value, value.meta.get("type"), place(node) or position))
    if named:
        check_twice(items, faults)
    return items


def _star(node: exp.Star, columns: Columns, faults: Faults) -> Iterator[Item]:
    qualifier = node.meta["qualifier"]
    owners = [i for i in columns.inputs if not qualifier or i.names[-len(qualifier) :] == qualifier]
    if not owners:
        shown = ".".join(map(quote, qualifier))
        hint = near_input(qualifier[-1], columns.inputs)
        detail = f"Nothing in FROM is called {shown}."
        faults.add("unknown-relation", detail, position=place(node), hint=hint)
    for given in owners:
        for output in given.columns or ():
            value = exp.Column(this=exp.Identifier(this=output.name, quoted=True))
            value.meta.update(node.meta)
            value.meta["bound"] = (given.ref, output.name, [])
            value.meta["owner"] = given.shown
            yield Item(output.name, value, output.type, place(node) or _NOWHERE)


def item_name(value: exp.Expression) -> str | None:
    """What a value is called when it has no alias: as its last name part, through casts and parentheses."""
    while isinstance(value, exp.Cast | exp.TryCast | exp.Paren):
        value = value.this
    if isinstance(value, exp.Column):
        return str(value.meta["parts"][-1][0])
    if isinstance(value, exp.Dot):
        return str(value.expression.name)
    if isinstance(value, exp.Anonymous) and "bound" in value.meta:
        return str(value.this)
    return None


def check_twice(items: Sequence[Item], faults: Faults) -> None:
    """Note names that stand twice."""
    # Upper and lower case are no difference to the engine, so two such columns could not be distinguished.
    seen: dict[str, Item] = {}
    for item in items:
        first = seen.setdefault(item.name.lower(), item)
        unknown = isinstance(item.value, exp.Column) and "bound" not in item.value.meta
        if first is item or unknown:
            continue
        owner = item.value.meta.get("owner")
        case = "" if first.name == item.name else f" (only its case differs from {quote(first.name)})"
        hint = f"Give one of them another name with AS, such as AS {quote(item.name + '_2')}."
        if owner:
            hint = f"List the columns instead of *, and name one with AS: {owner}.{quote(item.name)} AS …"
        faults.add(
            "ambiguous-column",
            f"The output has the column {quote(item.name)} twice{case}.",
            position=item.position,
            hint=hint,
            sqlstate="42701",
        )

"""Calls of users' functions: found before anything is bound, written for Spark with typed arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from leatstream.errors import Faults
from leatstream.model.functions import UserFunction
from leatstream.plan.logical import FunctionUse
from leatstream.sql.function_table import functions as built_in
from leatstream.sql.passes.quotients import nodes
from leatstream.sql.passes.scope import BoundSelect, place

if TYPE_CHECKING:
    from leatstream.sql.passes.render_expressions import ExpressionRenderer

Find = Callable[[str], UserFunction | None]
_USE = "user_function"


def mark(select: exp.Expression, find: Find | None) -> tuple[FunctionUse, ...]:
    """Note on each call of a user's function what it is; gives each function once."""
    uses: dict[str, FunctionUse] = {}
    if find is None:
        return ()
    for node in nodes(select):
        name = str(node.this) if isinstance(node, exp.Anonymous) else ""
        if not name or name in built_in():
            continue
        if name not in uses:
            function = find(name)
            if function is None:
                continue
            uses[name] = FunctionUse(f"leat_fn_{len(uses)}", function)
        node.meta[_USE] = uses[name]
    return tuple(uses.values())


def use_of(node: exp.Expression) -> FunctionUse | None:
    """What ``mark`` noted on a call."""
    found = node.meta.get(_USE)
    return found if isinstance(found, FunctionUse) else None


def is_user_aggregate(node: exp.Expression) -> bool:
    """Whether the call is one of a user's aggregate."""
    use = use_of(node)
    return use is not None and use.function.aggregate


def check_call(node: exp.Expression, use: FunctionUse, faults: Faults, no_aggregates: str | None) -> None:
    """Check one call of a user's function; types are the analyzer's to check.

    Args:
        node: the call.
        use: the function that it calls.
        faults: takes what is wrong.
        no_aggregates: hint where no aggregate may stand; None = it may.
    """
    name, at = use.function.name, place(node, "name_span")
    wanted, count = len(use.function.arguments), len(node.expressions)
    if use.function.aggregate and no_aggregates is not None:
        detail = f"The aggregate {name} cannot stand here."
        faults.add("not-grouped", detail, position=at, hint=no_aggregates)
    elif node.meta.get("distinct") or any(isinstance(a, exp.Star) for a in node.expressions):
        what = "DISTINCT" if node.meta.get("distinct") else "*"
        faults.add("type-mismatch", f"{name} takes no {what}.", position=at)
    elif count != wanted:
        noun = "argument" if wanted == 1 else "arguments"
        hint = f"It is {name}({use.function.signature})."
        faults.add("type-mismatch", f"{name} takes {wanted} {noun}, not {count}.", position=at, hint=hint)


def check_windows(bound: Iterable[BoundSelect], faults: Faults) -> None:
    """Refuse users' aggregates without a window: every row of a group is kept as state until it closes."""
    for select in bound:
        if select.group is None or select.inputs[0].window is not None:
            continue
        roots: list[Any] = [item.value for item in select.items]
        if select.group.having is not None:
            roots.append(select.group.having)
        for node in (n for root in roots for n in root.walk() if is_user_aggregate(n)):
            faults.add(
                "unsupported",
                f"The aggregate {node.this} needs a window: it keeps every row of a group as state.",
                position=place(node),
                hint="Write FROM TUMBLE(relation, SIZE 1 MINUTE) … GROUP BY window_start, window_end, …",
            )


def write_user_call(r: ExpressionRenderer, node: Any, use: FunctionUse) -> None:
    """The call under its name in the compiled SQL; an aggregate gets the rows of its group as an array.

    Args:
        r: takes the text.
        node: the call.
        use: the function that it calls.
    """
    function = use.function
    r.put(f"{use.name}(" + ("collect_list(struct(" if function.aggregate else ""))
    for index, (value, argument) in enumerate(zip(node.expressions, function.arguments, strict=True)):
        r.put(", " if index else "")
        with r.mark(place(value)):
            r.template(f"CAST({{}} AS {argument.type.spark()})", value)
        r.put(f" AS a{index}" if function.aggregate else "")
    r.put(")))" if function.aggregate else ")")

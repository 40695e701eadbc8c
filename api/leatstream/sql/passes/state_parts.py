"""What the state of a query is made of: equal parts keep it, when the rest of the SELECT changes.

A part is a digest of compiled SQL. Nothing is said of shapes whose state has not been tried.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TypeGuard

from sqlglot import exp

from leatstream.plan.logical import INTERVAL_JOIN
from leatstream.sql.passes.functions import is_aggregate
from leatstream.sql.passes.joins import conjuncts
from leatstream.sql.passes.render import Renderer
from leatstream.sql.passes.scope import BoundQuery, BoundSelect

# Parts that an earlier release wrote said less, so equal ones do not tell that the state is equal.
_FORM = "2"


def state_parts(query: BoundQuery) -> dict[str, str]:
    """Digests by part; empty without state, and for shapes of which the whole SQL text counts.

    A group's state: what is grouped, the filter before it (HAVING's on keys too, where groups are written
    once), the keys and the aggregates, both in their order.
    A join's: what is joined and how, the filter, and the columns that are shown (Spark lets those go that
    only conditions of one side read).
    """
    if not isinstance(query, BoundSelect) or any(given.scan is None for given in query.inputs):
        return {}
    if query.group is not None:
        return _group(query)
    if query.joins and all(join.kind == INTERVAL_JOIN for join in query.joins):
        return _join(query)
    return {}


def _group(query: BoundSelect) -> dict[str, str]:
    group = query.group
    given = query.inputs[0]
    if group is None or query.joins or group.sets or group.nested or given.keyed:
        return {}
    shown = [item.value for item in query.items]
    if group.having is not None:
        # Where HAVING takes groups back, it stands around all that is written, so Spark meets it first.
        shown = [group.having, *shown] if group.update else [*shown, group.having]
    before = [] if group.update or group.having is None else _asked_before(group.having)
    return {
        "from": _digest([_from(query)]),
        "filter": _digest(
            [*_texts(query, [query.where]), *(f"HAVING {text}" for text in _texts(query, before))]
        ),
        "keys": _digest(_texts(query, group.keys)),
        "aggregates": _digest(dict.fromkeys(_texts(query, _aggregates(shown)))),
        "output": "update" if group.update else "append",
    } | ({} if group.update else {"form": _FORM})


def _asked_before(having: exp.Expression) -> list[exp.Expression]:
    """The conditions that Spark may ask of rows before it groups them: those without aggregates.

    From one that names a key beside an aggregate, others may follow: NOT (key OR aggregate) holds two, and
    key = max(x) says of the key what is said of max(x). So with such a one all conditions count.
    """
    parts = list(conjuncts(having))
    plain = [part for part in parts if next(iter(_aggregates([part])), None) is None]
    mixed = any(_names_key(part) for part in parts if part not in plain)
    return parts if mixed else plain


def _names_key(condition: exp.Expression) -> bool:
    nodes = condition.dfs(prune=_is_aggregate)
    return any("bound" in node.meta and not _is_aggregate(node) for node in nodes)


def _join(query: BoundSelect) -> dict[str, str]:
    kinds = [f"{j.type.value} {j.left_ref} {j.before_ms} {j.after_ms}" for j in query.joins]
    shown = [part for item in query.items for part in _read(item.value)]
    return {
        "from": _digest([_from(query), *kinds, *_texts(query, (join.on for join in query.joins))]),
        "filter": _digest(_texts(query, [query.where])),
        "columns": _digest(sorted(set(_texts(query, [*shown, *_equated(query)])))),
        "form": _FORM,
    }


def _equated(query: BoundSelect) -> Iterable[exp.Expression]:
    """Columns that are in the state whether they are shown or not: those by which the last join finds rows.

    What other conditions read may be lost: one side's are asked before the join, an earlier join's in it, and
    one of both sides becomes one of one side where a literal is put in.
    """
    last = query.joins[-1]
    for part in conjuncts(last.on):
        sides = (part.this, part.expression) if isinstance(part, exp.EQ) else ()
        found = [side.meta["bound"][0] for side in sides if "bound" in side.meta]
        if len(found) == 2 and found.count(last.right.ref) == 1:
            yield from sides


def _from(query: BoundSelect) -> str:
    renderer = Renderer()
    for given in query.inputs:
        renderer.relation(given)
        renderer.put(", ")
    return renderer.text


def _texts(query: BoundSelect, nodes: Iterable[exp.Expression | None]) -> list[str]:
    found = []
    for node in nodes:
        if node is not None:
            renderer = Renderer()
            renderer.windows = {given.ref: given.window for given in query.inputs if given.window is not None}
            renderer.expr(node)
            found.append(renderer.text)
    return found


def _aggregates(nodes: Iterable[exp.Expression]) -> Iterable[exp.Expression]:
    for root in nodes:
        # From left to right, as Spark lays its buffers out.
        for node in root.dfs():
            if _is_aggregate(node):
                yield node


def _is_aggregate(node: object) -> TypeGuard[exp.Anonymous]:
    return isinstance(node, exp.Anonymous) and is_aggregate(node)


def _read(root: exp.Expression) -> Iterable[exp.Expression]:
    """The columns of an expression; of a STRUCT the fields that are taken out, as Spark keeps no others."""
    for node in root.dfs(prune=lambda node: isinstance(node, exp.Dot)):
        if isinstance(node, exp.Expression) and (isinstance(node, exp.Dot) or "bound" in node.meta):
            yield node


def _digest(texts: Iterable[str]) -> str:
    return hashlib.sha256("\x00".join(texts).encode("utf-8", "replace")).hexdigest()[:16]

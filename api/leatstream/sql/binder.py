"""AST to logical plan: names resolved, everything that is wrong noted at once, Spark SQL written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from leatstream.errors import RequestError
from leatstream.model.objects import Relation
from leatstream.plan.logical import Aggregation, LogicalPlan
from leatstream.sql.lexer import Source
from leatstream.sql.passes.changelogs import keyed_operator
from leatstream.sql.passes.lookups import check_lookup_state, lookups
from leatstream.sql.passes.patterns import check_matches, state_of
from leatstream.sql.passes.quotients import Settled
from leatstream.sql.passes.quotients import mark as mark_quotients
from leatstream.sql.passes.render import Renderer
from leatstream.sql.passes.scope import BoundQuery, BoundSelect, asked_headers, place, selects
from leatstream.sql.passes.select_binder import SelectBinder
from leatstream.sql.passes.state_parts import state_parts
from leatstream.sql.passes.user_functions import Find, check_windows, mark
from leatstream.sql.source_map import SpanMap
from leatstream.sql.statements import Name


def bind(
    select: exp.Expression,
    resolve: Callable[[Name], Relation],
    text: str,
    *,
    named: bool = True,
    changelog: bool = False,
    find_function: Find | None = None,
    settled: Settled | None = None,
) -> LogicalPlan:
    """Bind a query and compile it.

    Args:
        select: from ``parser.parse``.
        resolve: finds a relation of the catalog; raises RequestError unknown-relation; it gets its
            position here.
        text: the whole text given to ``parse``; used where the tree does not carry it.
        named: whether the output's names count, so that none may stand twice; INSERT INTO uses positions.
        changelog: whether the result is a changelog, which GROUP BY makes, and not a stream.
        find_function: finds a user's function by its name.
        settled: the types of quotients that have been asked for.

    Raises:
        RequestError: with every fault found, in the order of the text.
    """
    binder = SelectBinder(resolve, changelog=changelog)
    try:
        uses = mark(select, find_function)
        mark_quotients(select, settled or {})
        bound = binder.query(select, {}, 0, named=named)
        binder.check_outputs(bound)
        if uses:
            check_windows(selects(bound), binder.binding.faults)
        binder.check_changelog(bound, place(select))
        check_matches(bound, binder.binding)
        check_lookup_state(bound, binder.binding, place(select))
        binder.binding.faults.items.sort(key=lambda f: f.position.offset if f.position else 0)
        binder.binding.faults.raise_if_any()
        operator = keyed_operator(bound)
        renderer = Renderer()
        renderer.query(bound)
    except RecursionError:
        whole = place(select) or Source(text).position(0, len(text))
        raise RequestError("too-complex", "The query nests too deep.", position=whole) from None
    asked = binder.binding.headers | set(asked_headers(bound))
    scans = tuple(replace(s, headers=s.view in asked) for s in binder.binding.scans)
    joins = tuple(binder.binding.joins)
    source_map = SpanMap(tuple(renderer.marks), tuple(renderer.filters))
    aggregation = _aggregation(bound)
    keys = aggregation.keys if aggregation is not None and aggregation.update else binder.primary_key
    upserts = isinstance(bound, BoundSelect) and bound.upserts
    deletes = aggregation.deletes if aggregation is not None else upserts
    pattern = next(iter(binder.binding.patterns), None)
    return LogicalPlan(
        renderer.text,
        scans,
        joins,
        source_map,
        aggregation,
        primary_key=keys,
        deletes=deletes,
        operator=operator,
        state=state_of(pattern) if pattern is not None else state_parts(bound),
        distinct=binder.binding.distinct,
        functions=uses,
        pattern=pattern,
        lookups=lookups(bound),
        quotients=tuple(renderer.quotients),
    )


def _aggregation(bound: BoundQuery) -> Aggregation | None:
    for select in selects(bound):
        group = select.group
        if group is not None:
            deletes = group.update and group.having is not None
            return Aggregation(group.names, select.inputs[0].window, group.update, deletes)
    return None

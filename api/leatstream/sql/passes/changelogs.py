"""Changelogs in FROM: which shapes can be kept up to date, and what the job needs to know for that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from leatstream.errors import Faults, Position
from leatstream.model.names import quote
from leatstream.plan.logical import (
    CHANGELOG_JOIN,
    INTERVAL_JOIN,
    LOOKUP_JOINS,
    TEMPORAL_JOIN,
    Join,
    JoinType,
    KeyedOperator,
    Link,
    Snapshot,
)
from leatstream.sql.applications import CHANGING, RANDOM
from leatstream.sql.passes.joins import JOIN_TYPES, conjuncts, refs, refuse_missing_on, refuse_type
from leatstream.sql.passes.render import Renderer
from leatstream.sql.passes.scope import Binding, BoundJoin, BoundQuery, BoundSelect, BoundUnion, Input, place

_OWN = "Write it into a stream or changelog of its own"
_CHANCE = frozenset(RANDOM) - {"unix_timestamp"}


def check_changelog_join(
    node: exp.Expression, left: list[Input], right: Input, earlier: list[BoundJoin], binding: Binding
) -> BoundJoin | None:
    """Read a join with a changelog on one side or both; its ON is not resolved yet. None after a fault.

    Args:
        node: the join, from the parser.
        left: the inputs before it.
        right: the input behind JOIN.
        earlier: joins before it in the same FROM.
        binding: of the statement; what is wrong is noted there.
    """
    faults, at = binding.faults, node.meta["position"]
    join_type = JOIN_TYPES.get(node.meta["words"])
    kind = CHANGELOG_JOIN if left[0].keyed else TEMPORAL_JOIN
    if join_type is None:
        refuse_type(node, binding, "with changelogs")
        return None
    if join_type is JoinType.FULL:
        detail = "FULL JOIN is not supported with changelogs."
        hint = "A row that only the changelog has is no row of the stream." if kind == TEMPORAL_JOIN else None
        faults.add("unsupported", detail, position=at, hint=hint or "Write two LEFT JOINs.")
        return None
    if not right.keyed:
        detail = f"A changelog cannot be joined with a stream behind it ({left[0].shown} and {right.shown})."
        hint = f"Begin with the stream: FROM {right.shown} JOIN {left[0].shown} ON …"
        faults.add("unsupported", detail, position=at, hint=hint)
        return None
    if node.meta["within"] is not None:
        hint = f"Leave WITHIN out: {_meaning(kind)}."
        detail = "WITHIN is for two streams; a changelog has a row for every time."
        faults.add("unsupported", detail, position=node.meta["within"][-1], hint=hint)
    on = node.args.get("on")
    if on is None:
        refuse_missing_on(node, left[0], right, binding)
        return None
    binding.joins.append(Join(join_type, 0, 0, left[0].shown, right.shown, at, kind))
    return BoundJoin(join_type, right, left[0].ref, on, kind=kind)


def _meaning(kind: str) -> str:
    if kind == TEMPORAL_JOIN:
        return "each row of the stream finds the version of its event time"
    return "the newest rows of both are joined"


def check_keys(join: BoundJoin, left: list[Input], binding: Binding) -> None:
    """ON must equate every column of the changelog's primary key with something of the left side.

    Args:
        join: with a changelog on its right side.
        left: the inputs before it.
        binding: of the statement; what is wrong is noted there.
    """
    scan = join.right.scan
    if scan is None or any(given.columns is None for given in [*left, join.right]):
        return
    lefts = {given.ref for given in left}
    found: dict[str, exp.Expression] = {}
    for part in conjuncts(join.on):
        if not isinstance(part, exp.EQ):
            continue
        for one, other in ((part.this, part.expression), (part.expression, part.this)):
            column = whole_column(one, join.right.ref)
            read = refs(other)
            if read is None:
                return
            if column is not None and read and read <= lefts:
                found.setdefault(column, other)
    missing = [key for key in scan.relation.primary_key if key not in found]
    if missing:
        shown = ", ".join(f"{join.right.shown}.{quote(key)}" for key in missing)
        hint = f"Write ON {left[0].shown}.<column> = {join.right.shown}.{quote(missing[0])} AND …"
        detail = f"A changelog is joined on its whole primary key: ON does not equate {shown}."
        binding.faults.add("unsupported", detail, position=place(join.on), hint=hint)
        return
    join.values = tuple(found[key] for key in scan.relation.primary_key)
    chained = any(not (refs(value) or set()) <= {left[0].ref} for value in join.values)
    if join.kind == CHANGELOG_JOIN and chained:
        detail = f"{join.right.shown} must be joined with columns of {left[0].shown}, the first changelog."
        hint = f"{_OWN}: the join of the first two."
        binding.faults.add("unsupported", detail, position=place(join.on), hint=hint)


def whole_column(node: exp.Expression, ref: str) -> str | None:
    """The whole column of an input that an expression is, if it is one."""
    while isinstance(node, exp.Paren):
        node = node.this
    bound = node.meta.get("bound") if isinstance(node, exp.Column) else None
    return str(bound[1]) if bound and bound[0] == ref and not bound[2] else None


def check_place(query: BoundSelect, depth: int, binding: Binding, *, changelog: bool) -> None:
    """Changelogs stand in the outermost FROM only, without windows, and not beside other state.

    ``changelog``: whether the result is one.

    Args:
        query: whose inputs are checked.
        depth: of the query; 0 = the outermost.
        binding: of the statement; what is wrong is noted there.
        changelog: whether the result is one.
    """
    faults = binding.faults
    keyed = [given for given in query.inputs if given.keyed]
    for given in keyed:
        at = given.scan.position if given.scan is not None else None
        if depth:
            detail = f"{given.shown} is a changelog, which cannot be read in a sub-select, WITH or UNION ALL."
            faults.add("unsupported", detail, position=at, hint=f"{_OWN}.")
        if given.window is not None:
            detail = f"{given.shown} is a changelog, whose rows change: windows of time are for streams."
            hint = "Group by a column that holds the time, such as CAST(at AS DATE)."
            faults.add("unsupported", detail, position=at, hint=hint)
    joined = next((join.right for join in query.joins if join.kind not in LOOKUP_JOINS), None)
    if joined is not None and query.inputs[0].keyed and not changelog:
        at = joined.scan.position if joined.scan else query.position
        detail = "A join of changelogs is a changelog, not a stream: its rows change."
        hint = "Write CREATE CHANGELOG, and then a stream from that."
        faults.add("unsupported", detail, position=at, hint=hint)
    _check_repeatable(query, faults)
    if keyed:
        for join in binding.joins:
            if join.kind == INTERVAL_JOIN:
                detail = "A join of streams beside a changelog is not supported."
                hint = f"{_OWN}: the join of the streams."
                _add_once(faults, detail, join.position, hint)
        for given in query.inputs:
            if _grouped(given.query):
                at = keyed[0].scan.position if keyed[0].scan is not None else query.position
                detail = f"{given.shown} keeps groups, which cannot be beside a changelog."
                faults.add("unsupported", detail, position=at, hint=f"{_OWN}: {given.shown}.")


def _check_repeatable(query: BoundSelect, faults: Faults) -> None:
    """Joins and groups of changelogs compute old rows again, which must come out as they were written."""
    group, joins = query.group, [join for join in query.joins if join.kind == CHANGELOG_JOIN]
    if not query.inputs[0].keyed or (group is None and not joins):
        return
    places = [
        ("GROUP BY", CHANGING, group.keys if group is not None else []),
        ("HAVING", _CHANCE, [group.having] if group is not None and group.having is not None else []),
        ("WHERE", _CHANCE, [query.where] if query.where is not None else []),
        ("ON", _CHANCE, [join.on for join in joins]),
    ]
    for where, words, parts in places:
        for node in (node for part in parts for node in part.find_all(exp.Anonymous)):
            word = str(node.this).lower()
            if word in words and not (word == "unix_timestamp" and node.expressions):
                detail = (
                    f"{word.upper()} cannot stand in {where} over a changelog: old rows are computed again "
                    "to be taken back, and it gives another value at each call."
                )
                faults.add("unsupported", detail, position=place(node), hint=f"{_OWN}.")


def _grouped(query: BoundQuery | None) -> bool:
    if query is None:
        return False
    if isinstance(query, BoundUnion):
        return any(map(_grouped, query.branches))
    return query.group is not None or any(_grouped(given.query) for given in query.inputs)


def _add_once(faults: Faults, detail: str, position: Position, hint: str) -> None:
    if not any(f.position == position for f in faults.items):
        faults.add("unsupported", detail, position=position, hint=hint)


def kept_keys(query: BoundSelect, at: Position | None, faults: Faults) -> tuple[str, ...]:
    """The output columns that are the first changelog's primary key; none may be left out.

    Args:
        query: whose first input is the changelog.
        at: where a fault is shown.
        faults: takes what is wrong.
    """
    given = query.inputs[0]
    if given.scan is None or given.columns is None:
        return ()
    names: dict[str, str] = {}
    for item in query.items:
        column = whole_column(item.value, given.ref)
        if column is not None:
            names.setdefault(column, item.name)
    keys = given.scan.relation.primary_key
    missing = [key for key in keys if key not in names]
    if missing:
        shown = ", ".join(map(quote, missing))
        detail = f"The primary key comes from {given.shown}, so SELECT must give {shown} as it is."
        hint = f"Add {given.shown}.{quote(missing[0])}, or write CREATE STREAM to take each update as a row."
        faults.add("unsupported", detail, position=at, hint=hint)
    return tuple(names[key] for key in keys if key in names)


def keyed_operator(query: BoundQuery) -> KeyedOperator | None:
    """What must be kept between batches for a query that is right; None if nothing."""
    if not isinstance(query, BoundSelect) or not any(given.keyed for given in query.inputs):
        return None
    first = query.inputs[0]
    kept = [given for given in query.inputs if given.keyed]
    links = tuple(_links(query))
    if query.group is not None:
        groups = _link(first, query, written(query.group.keys))
        return KeyedOperator("changelog-aggregate", _snapshots(kept), links, groups)
    if first.keyed and all(join.kind in LOOKUP_JOINS for join in query.joins):
        return None
    kind = "changelog-join" if first.keyed else "temporal-join"
    return KeyedOperator(kind, _snapshots(kept, versions=not first.keyed), links)


def _links(query: BoundSelect) -> Iterator[Link]:
    first = query.inputs[0]
    for join in query.joins:
        read = set[str]().union(*(refs(value) or set() for value in join.values))
        if read <= {first.ref}:
            yield _link(join.right, BoundSelect([first], [], [], None), written(join.values))


def _link(changed: Input, rows: BoundSelect, values: tuple[str, ...]) -> Link:
    renderer = Renderer()
    renderer.relation(rows.inputs[0])
    for join in rows.joins:
        renderer.join(join)
    return Link(changed.scan.view if changed.scan is not None else "", renderer.text, values)


def written(values: Sequence[exp.Expression]) -> tuple[str, ...]:
    """Expressions as Spark SQL."""
    found = []
    for value in values:
        renderer = Renderer()
        renderer.expr(value)
        found.append(renderer.text)
    return tuple(found)


def _snapshots(inputs: Sequence[Input], *, versions: bool = False) -> tuple[Snapshot, ...]:
    scans = [given.scan for given in inputs if given.scan is not None]
    return tuple(Snapshot(s.view, s.relation.primary_key, versions) for s in scans)

"""Tables in FROM: rows of a stream or changelog joined with a table's, looked up when they are processed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from leatstream.errors import Position
from leatstream.model.names import quote
from leatstream.plan.logical import (
    CHANGELOG_LOOKUP_JOIN,
    LOOKUP_JOIN,
    LOOKUP_JOINS,
    Join,
    JoinType,
    Lookup,
)
from leatstream.sql.applications import NOW, RANDOM
from leatstream.sql.passes.changelogs import whole_column, written
from leatstream.sql.passes.joins import JOIN_TYPES, conjuncts, refs, refuse_missing_on, refuse_type
from leatstream.sql.passes.render import Renderer
from leatstream.sql.passes.scope import Binding, BoundJoin, BoundQuery, BoundSelect, Input, place, selects
from leatstream.sql.source_properties import LOOKUP_TTL

_OWN = "Write the join into a stream of its own, and the rest from that."
_NO_KEYS = ("ARRAY", "MAP", "STRUCT")
_ONCE = "Write them into a stream of their own before, where they are called once."


def check_lookup_join(
    node: exp.Expression, left: list[Input], right: Input, earlier: list[BoundJoin], binding: Binding
) -> BoundJoin | None:
    """Read a join with a table; its ON is not resolved yet. None after a fault.

    Args:
        node: the join, from the parser.
        left: the inputs before it.
        right: the input behind JOIN.
        earlier: joins before it in the same FROM.
        binding: of the statement; what is wrong is noted there.
    """
    faults, at = binding.faults, node.meta["position"]
    join_type = JOIN_TYPES.get(node.meta["words"])
    if join_type is None:
        refuse_type(node, binding, "with tables")
        return None
    if join_type is JoinType.FULL:
        hint = "Write LEFT JOIN: a table's rows that no record asks for are not read."
        faults.add("unsupported", "FULL JOIN is not supported with tables.", position=at, hint=hint)
        return None
    if node.meta["within"] is not None:
        detail = "WITHIN is for two streams; a record meets the rows that its table has at that moment."
        faults.add("unsupported", detail, position=node.meta["within"][-1], hint="Leave WITHIN out.")
    on = node.args.get("on")
    if on is None:
        refuse_missing_on(node, left[0], right, binding)
        return None
    kind = CHANGELOG_LOOKUP_JOIN if left[0].keyed else LOOKUP_JOIN
    binding.joins.append(Join(join_type, 0, 0, left[0].shown, right.shown, at, kind))
    return BoundJoin(join_type, right, left[0].ref, on, kind=kind)


def check_lookup_keys(join: BoundJoin, left: list[Input], binding: Binding) -> None:
    """ON must equate a column of the table with something of the left side: by that its rows are found.

    Args:
        join: with a table on its right side.
        left: the inputs before it.
        binding: of the statement; what is wrong is noted there.
    """
    if any(given.columns is None for given in [*left, join.right]):
        return
    lefts = {given.ref for given in left}
    found: dict[str, exp.Expression] = {}
    for part in conjuncts(join.on):
        if not isinstance(part, exp.EQ):
            continue
        for one, other in ((part.this, part.expression), (part.expression, part.this)):
            column, read = whole_column(one, join.right.ref), refs(other)
            if read is None:
                return
            if column is not None and read and read <= lefts and _comparable(join.right, column):
                found.setdefault(column, other)
    if not _same_each_time(join, left, found, binding):
        return
    if found:
        join.keys, join.values = tuple(found), tuple(found.values())
        return
    shown = f"{left[0].shown}.<column> = {join.right.shown}.<column>"
    binding.faults.add(
        "unsupported",
        f"ON must equate a column of {join.right.shown} with a value of the rows before it: by such values "
        "a table's rows are looked up.",
        position=place(join.on),
        hint=f"Write {shown}, further conditions joined by AND.",
    )


def check_one_row(query: BoundSelect, binding: Binding) -> None:
    """A changelog's row has one row of each table at most: its primary key is that of the result."""
    for join in query.joins:
        scan = join.right.scan
        if join.kind != CHANGELOG_LOOKUP_JOIN or scan is None or not join.keys:
            continue
        key = scan.relation.primary_key
        missing = [name for name in key if name not in join.keys]
        if key and not missing:
            continue
        if key:
            shown = ", ".join(f"{join.right.shown}.{quote(name)}" for name in missing)
            detail = f"ON must equate the whole primary key of {join.right.shown}; {shown} is missing"
            hint = "Add it, or write CREATE STREAM, where a row may have many of the table's."
        else:
            detail = f"{join.right.shown} has no PRIMARY KEY"
            hint = "Declare the table with one, or write CREATE STREAM."
        binding.faults.add(
            "unsupported",
            f"{detail}: a changelog's row could have several rows of the table under one key.",
            position=place(join.on),
            hint=hint,
        )


def _same_each_time(
    join: BoundJoin, left: list[Input], keys: Mapping[str, exp.Expression], binding: Binding
) -> bool:
    """Refuse what gives another value at each call: rows are looked up by values that the join sees again."""
    shown = join.right.shown
    # Only tables follow the first join: of what is before it is reported once.
    before = left if len(left) == 1 else []
    inside = [part for given in before for select in selects(given.query) for part in _expressions(select)]
    places = [
        ("ON of a join with a table", RANDOM, [join.on]),
        (f"what the rows of {shown} are looked up by", NOW, list(keys.values())),
        (f"a sub-select before the join with {shown}", RANDOM, inside),
    ]
    known = len(binding.faults.items)
    for where, names, expressions in places:
        for node in (n for e in expressions for n in e.find_all(exp.Anonymous)):
            word = str(node.this).lower()
            if word in names and not (word == "unix_timestamp" and node.expressions):
                detail = f"{word.upper()} cannot stand in {where}: it gives another value at each call."
                binding.faults.add("unsupported", detail, position=place(node), hint=_ONCE)
    return len(binding.faults.items) == known


def _expressions(select: BoundSelect) -> Iterator[exp.Expression]:
    yield from (item.value for item in select.items)
    if select.where is not None:
        yield select.where


def _comparable(table: Input, column: str) -> bool:
    kind = next((c.type for c in table.columns or () if c.name == column), None)
    return kind is not None and kind.kind not in _NO_KEYS


def refuse_table_first(given: Input, others: list[exp.Expression], binding: Binding) -> None:
    """A table stands behind JOIN only.

    Args:
        given: the table.
        others: the joins behind it.
        binding: of the statement; what is wrong is noted there.
    """
    at = given.scan.position if given.scan is not None else None
    detail = f"{given.shown} is a table, which a query can only join with a stream or changelog before it."
    hint = (
        f"Begin with the stream: FROM <stream> JOIN {given.shown} ON …"
        if others
        else "PRINT ENTITY shows its rows. A STREAM or CHANGELOG over the table reads them, if its store can "
        "be a source."
    )
    binding.faults.add("unsupported", detail, position=at, hint=hint)


def check_lookup_place(query: BoundSelect, depth: int, binding: Binding) -> None:
    """Tables are joined in the outermost FROM only.

    Args:
        query: whose inputs are checked.
        depth: of the query; 0 = the outermost.
        binding: of the statement; what is wrong is noted there.
    """
    for given in query.inputs:
        if not given.table or given is query.inputs[0]:
            continue
        at = given.scan.position if given.scan is not None else None
        if depth:
            detail = (
                f"{given.shown} is a table, which cannot be joined in a sub-select, WITH, UNION ALL or a "
                "virtual relation."
            )
            binding.faults.add("unsupported", detail, position=at, hint=_OWN)
        if given.window is not None:
            detail = f"{given.shown} is a table: windows of time are for streams."
            binding.faults.add("unsupported", detail, position=at)


def check_lookup_state(query: BoundQuery, binding: Binding, at: Position | None) -> None:
    """A query that looks rows up keeps nothing from one batch to the next.

    Args:
        query: the whole statement's.
        binding: of the statement; what is wrong is noted there.
        at: where a fault of the whole is shown.
    """
    first = next((join for join in binding.joins if join.kind in LOOKUP_JOINS), None)
    if first is None:
        return

    def refuse(what: str, position: Position | None) -> None:
        detail = f"{what} beside a join with a table is not supported."
        binding.faults.add("unsupported", detail, position=position, hint=_OWN)

    other = next((join for join in binding.joins if join.kind not in LOOKUP_JOINS), None)
    if other is not None:
        refuse("A join of streams or changelogs", other.position)
    if binding.distinct:
        refuse("DISTINCT", at)
    if binding.patterns:
        refuse("MATCH_RECOGNIZE", binding.patterns[0].position)
    for select in selects(query):
        windowed = any(given.window is not None and not given.table for given in select.inputs)
        # Groups of the joined rows have already been reported as being beside a join.
        if select.group is not None and not select.joins:
            refuse("GROUP BY", select.position)
        elif windowed:
            refuse("A window", select.position)


def lookups(query: BoundQuery) -> tuple[Lookup, ...]:
    """What a job looks up, in the order of the joins, for a query that is right."""
    return tuple(_lookups(query)) if isinstance(query, BoundSelect) else ()


def _lookups(query: BoundSelect) -> Iterator[Lookup]:
    for index, join in enumerate(query.joins):
        scan = join.right.scan
        if join.kind not in LOOKUP_JOINS or scan is None:
            continue
        renderer = Renderer()
        renderer.relation(query.inputs[0])
        for earlier in query.joins[:index]:
            renderer.join(earlier)
        ttl = int(scan.properties.get(LOOKUP_TTL, "0"))
        yield Lookup(scan, renderer.text, join.keys, written(join.values), place(join.on), ttl)

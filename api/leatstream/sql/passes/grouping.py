"""GROUP BY: which groups can be kept on a stream, and that every output column belongs to a group."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from leatstream.errors import Faults, Position
from leatstream.model.names import quote
from leatstream.plan.logical import CHANGELOG_JOIN, JoinType
from leatstream.sql.passes.columns import Columns
from leatstream.sql.passes.expressions import check
from leatstream.sql.passes.functions import Functions, is_aggregate
from leatstream.sql.passes.group_calls import GROUPINGS
from leatstream.sql.passes.grouping_sets import check_groupings, set_marks
from leatstream.sql.passes.scope import Binding, BoundGroup, Input, Item, place
from leatstream.sql.passes.spark_text import spark_text

WINDOW_COLUMNS = ("window_start", "window_end")
IN_WHERE = "WHERE comes before grouping; write HAVING"
_IN_KEYS = "Group by columns and expressions of one row."
_INSIDE = "Aggregates do not nest."
NO_KEY = "has no column that could be the changelog's primary key, by which it is replaced"
_ONE_GROUP = "Write FROM (SELECT 'all' AS part, … FROM …) x GROUP BY part, and SELECT part too."


def check_grouping(
    node: exp.Expression,
    inputs: Sequence[Input],
    items: Sequence[Item],
    binding: Binding,
    *,
    update: bool,
    nested: bool,
) -> BoundGroup | None:
    """Check GROUP BY and HAVING of one SELECT whose items are checked already.

    Args:
        node: the SELECT.
        inputs: what FROM gives.
        items: its output columns.
        binding: of the statement; what is wrong is noted there.
        update: whether the result is a changelog.
        nested: whether another SELECT or UNION ALL takes the groups as rows.

    Returns:
        None without GROUP BY.
    """
    faults = binding.faults
    group, having = node.args.get("group"), node.args.get("having")
    window = inputs[0].window
    if group is None:
        if having is not None:
            faults.add("not-grouped", "HAVING needs GROUP BY.", position=place(having.this))
        return None
    at = node.meta["group_position"]
    _refuse_joined(inputs, binding, at, update=update)
    columns = Columns(inputs, faults)
    keys = [_check_key(key, columns, inputs) for key in group.expressions]
    inside = [i for each in group.meta["sets"] for members in each.sets for i in members]
    plain = [key for i, key in enumerate(keys) if i not in inside]
    if inputs[0].keyed and group.meta["sets"]:
        detail = "GROUPING SETS, ROLLUP and CUBE over a changelog are not supported."
        faults.add("unsupported", detail, position=at, hint="Write a query for each set of columns.")
    if window is not None:
        _require_window(plain, inputs[0], at, faults)
        if window.kind == "session" and group.meta["sets"]:
            hint = "Write a query for each set of columns."
            detail = "SESSION with GROUPING SETS, ROLLUP or CUBE is not supported."
            faults.add("unsupported", detail, position=at, hint=hint)
        if update and window.kind == "session":
            faults.add(
                "unsupported",
                "A changelog of SESSION windows is not supported: Spark does not update a session, it gives"
                " each one once it has closed.",
                position=at,
                hint="Write CREATE STREAM.",
            )
    elif not update:
        faults.add(
            "unsupported",
            "GROUP BY without a window cannot make a stream: no group is ever complete.",
            position=at,
            hint="Write CREATE CHANGELOG, or FROM TUMBLE(…) and GROUP BY window_start, window_end.",
        )
    if having is not None:
        check(having.this, columns, Functions(list(inputs), faults, sets=bool(group.meta["sets"])))
    grouped = {text for text in map(spark_text, keys) if text is not None}
    optional = [keys[i] for i in inside]
    values = [*(item.value for item in items), *([having.this] if having is not None else [])]
    for value in values:
        if group.meta["sets"]:
            check_groupings(value, optional, faults)
        _check_grouped(value, grouped, {type(key) for key in keys}, faults)
    names: tuple[str, ...] = ()
    if update and not nested:
        marks = set_marks(items, optional, at, faults)
        names = tuple(dict.fromkeys([*_names(keys, items, inputs[0], at, faults), *marks]))
        if not keys:
            faults.add("not-grouped", f"One group of all rows {NO_KEY}.", position=at, hint=_ONE_GROUP)
    plain = [key for key in plain if window_column(key, inputs[0]) is None]
    nested = nested and window is not None
    bound = BoundGroup(plain, names, having.this if having is not None else None, update, nested)
    bound.sets += [(s.kind, [[keys[i] for i in members] for members in s.sets]) for s in group.meta["sets"]]
    return bound


def _refuse_joined(inputs: Sequence[Input], binding: Binding, at: Position, *, update: bool) -> None:
    """Joined streams can be grouped by windows, each written once; Spark updates no group of theirs."""
    apart = "Write the join into a stream of its own, and group that."
    if inputs[0].keyed and binding.joins and all(join.kind == CHANGELOG_JOIN for join in binding.joins):
        return  # Their rows are taken back, so that groups of them can be told anew.
    if sum(given.unnested is None for given in inputs) > 1:
        inside = "Write FROM TUMBLE((SELECT … FROM a JOIN b WITHIN … ON …), SIZE …) and group that."
        hint = apart if any(given.keyed or given.table for given in inputs) else inside
        binding.faults.add("unsupported", "GROUP BY beside a join is not supported.", position=at, hint=hint)
    elif binding.joins and (update or inputs[0].window is None):
        hint = "Write CREATE STREAM over a window, or the join into a stream of its own."
        detail = "A changelog of groups of joined streams is not supported: Spark does not update them."
        binding.faults.add("unsupported", detail, position=at, hint=hint)
    elif any(join.type is JoinType.FULL for join in binding.joins):
        detail = "Windows over a FULL join are not supported: its rows have the time of either side."
        binding.faults.add("unsupported", detail, position=at, hint=apart)


def _check_key(key: exp.Expression, columns: Columns, inputs: Sequence[Input]) -> exp.Expression:
    while isinstance(key, exp.Paren):
        key = key.this
    if isinstance(key, exp.Literal | exp.Null | exp.Boolean):
        detail = "GROUP BY takes columns and expressions over them, no literals or positions."
        columns.faults.add("not-grouped", detail, position=place(key))
    check(key, columns, Functions(list(inputs), columns.faults, _IN_KEYS))
    return key


def window_column(key: exp.Expression, given: Input) -> str | None:
    """Which of its window's columns an expression is."""
    bound = key.meta.get("bound")
    if given.window is None or not bound or bound[0] != given.ref or bound[1] not in WINDOW_COLUMNS:
        return None
    return str(bound[1])


def _require_window(keys: Sequence[exp.Expression], given: Input, at: Position, faults: Faults) -> None:
    found = {window_column(key, given) for key in keys}
    missing = [name for name in WINDOW_COLUMNS if name not in found]
    if missing:
        shown = " and ".join(missing)
        hint = "Write GROUP BY window_start, window_end, …"
        faults.add("not-grouped", f"GROUP BY over a window must name {shown}.", position=at, hint=hint)


def _check_grouped(
    root: exp.Expression, grouped: set[str], kinds: set[type[exp.Expression]], faults: Faults
) -> None:
    stack = [root]
    while stack:
        node = stack.pop()
        if type(node) in kinds and spark_text(node) in grouped:
            continue
        if isinstance(node, exp.Anonymous) and str(node.this) in GROUPINGS:
            continue
        if isinstance(node, exp.Anonymous) and is_aggregate(node):
            _refuse_nested(node, faults)
        elif isinstance(node, exp.Column) or "bound" in node.meta:
            if "bound" in node.meta:
                shown = f"{node.this}()" if isinstance(node, exp.Anonymous) else quote(node.meta["bound"][1])
                hint = f"Write it into GROUP BY, or an aggregate such as max({shown})."
                detail = f"{shown} is neither in GROUP BY nor inside an aggregate."
                faults.add("not-grouped", detail, position=place(node), hint=hint)
        else:
            stack += [c for c in node.iter_expressions(reverse=True) if isinstance(c, exp.Expression)]


def _refuse_nested(aggregate: exp.Expression, faults: Faults) -> None:
    for argument in aggregate.expressions:
        for part in argument.walk():
            if isinstance(part, exp.Anonymous) and is_aggregate(part):
                detail = f"The aggregate {str(part.this).upper()} cannot stand here."
                faults.add("not-grouped", detail, position=place(part, "name_span"), hint=_INSIDE)


def _names(
    keys: Sequence[exp.Expression], items: Sequence[Item], given: Input, at: Position, faults: Faults
) -> tuple[str, ...]:
    """The output columns that are keys: together they are the primary key, so none may be left out."""
    named: dict[str, str] = {}
    for item in items:
        text = spark_text(item.value)
        if text is not None:
            named.setdefault(text, item.name)
    found: list[str] = []
    window_named = False
    cumulates = given.window is not None and given.window.kind == "cumulate"
    # Windows of one size are named by either end, cumulating ones by where they end.
    ends = WINDOW_COLUMNS[1:] if cumulates else WINDOW_COLUMNS
    for key in keys:
        text = spark_text(key)
        name = named.get(text) if text is not None else None
        if name is not None:
            found.append(name)
        column = window_column(key, given)
        if column is not None:
            window_named = window_named or (name is not None and column in ends)
        elif name is None and text is not None:
            faults.add(
                "not-grouped",
                "A changelog's primary key is what it is grouped by, so SELECT must give this column too.",
                position=place(key) or at,
            )
    if given.window is not None and not window_named:
        detail = f"A changelog's primary key is what it is grouped by: SELECT {' or '.join(ends)} too."
        faults.add("not-grouped", detail, position=at)
    return tuple(dict.fromkeys(found))

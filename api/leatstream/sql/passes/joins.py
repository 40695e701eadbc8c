"""Joins: which are possible on streams, and what they need."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from leatstream.plan.logical import Join, JoinType
from leatstream.sql.passes.scope import Binding, BoundJoin, BoundQuery, BoundUnion, Input, place

JOIN_TYPES = {
    (): JoinType.INNER,
    ("inner",): JoinType.INNER,
    ("left",): JoinType.LEFT,
    ("left", "outer"): JoinType.LEFT,
    ("full",): JoinType.FULL,
    ("full", "outer"): JoinType.FULL,
}
_HINTS = {
    "right": "Swap the sides and write LEFT JOIN.",
    "cross": "Write JOIN … WITHIN … ON with an equality.",
    "natural": "Write JOIN … WITHIN … ON with the columns named.",
    "semi": "Write an inner JOIN and select the left side's columns.",
    "anti": "Write LEFT JOIN … WHERE <right column> IS NULL.",
    "comma": "Write a JOIN b WITHIN 5 MINUTES ON a.x = b.x; WITHIN not where one is a changelog or table.",
    "lateral": "A lateral join is not known on streams.",
}


def check_join(
    node: exp.Expression, left: list[Input], right: Input, earlier: list[BoundJoin], binding: Binding
) -> BoundJoin | None:
    """Read one join; its ON is not resolved yet. None after a fault.

    Args:
        node: the join, from the parser.
        left: the inputs before it.
        right: the input behind JOIN.
        earlier: joins before it in the same FROM.
        binding: of the statement; what is wrong is noted there.
    """
    faults, words, at = binding.faults, node.meta["words"], node.meta["position"]
    join_type = JOIN_TYPES.get(words)
    if join_type is None:
        refuse_type(node, binding, "on streams")
        return None
    inside = any(_has_full_join(given.query) for given in [*left, right])
    if inside or any(join.type is JoinType.FULL for join in earlier):
        # Either side's time may be missing then, so Spark could never forget old rows.
        hint = "Write the FULL JOIN last, or into a stream of its own."
        faults.add("unsupported", "A join after a FULL JOIN is not supported.", position=at, hint=hint)
    within, on = node.meta["within"], node.args.get("on")
    if within is None:
        faults.add(
            "within-required",
            "An interval join of two streams requires WITHIN: they can only be joined"
            f" when their records are near in time ({left[0].shown} and {right.shown}).",
            position=at,
            hint="Write WITHIN 5 MINUTES before ON.",
        )
    if on is None:
        refuse_missing_on(node, left[0], right, binding)
    if within is None or on is None:
        return None
    before, after, grace, _ = within
    joined = Join(join_type, before, after, left[0].shown, right.shown, at, grace_ms=grace)
    binding.joins.append(joined)
    return BoundJoin(join_type, right, left[0].ref, on, before_ms=before, after_ms=after)


def refuse_type(node: exp.Expression, binding: Binding, where: str) -> None:
    """Note a kind of join that is not built.

    Args:
        node: the join, from the parser.
        binding: of the statement; what is wrong is noted there.
        where: what it stands on, for the message: ``on streams``.
    """
    words = node.meta["words"]
    hint = next((_HINTS[w] for w in words if w in _HINTS), None)
    what = "A list of relations in FROM" if words == ("comma",) else f"{' '.join(words).upper()} JOIN"
    detail = f"{what} is not supported {where}."
    binding.faults.add("unsupported", detail, position=node.meta["position"], hint=hint)


def refuse_missing_on(node: exp.Expression, left: Input, right: Input, binding: Binding) -> None:
    """Note a join without a condition.

    Args:
        node: the join, from the parser.
        left: the input before it.
        right: the input behind JOIN.
        binding: of the statement; what is wrong is noted there.
    """
    hint = f"Write ON {left.shown}.<column> = {right.shown}.<column>."
    binding.faults.add("sql-syntax", "A join needs ON.", position=node.meta["position"], hint=hint)


def check_equality(join: BoundJoin, left: list[Input], binding: Binding) -> None:
    """ON must hold an equality between both sides: Spark joins streams by key.

    Args:
        join: its ON resolved.
        left: the inputs before it.
        binding: of the statement; what is wrong is noted there.
    """
    lefts = {given.ref for given in left}
    if any(given.columns is None for given in [*left, join.right]):
        return
    for part in conjuncts(join.on):
        if isinstance(part, exp.EQ):
            sides = (refs(part.this), refs(part.expression))
            if None in sides:
                return
            for one, other in (sides, sides[::-1]):
                if one and other and one <= lefts and other == {join.right.ref}:
                    return
    shown = f"{left[-1].shown}.<column> = {join.right.shown}.<column>"
    binding.faults.add(
        "unsupported",
        "ON must hold an equality between a column of each side, because streams are joined by key.",
        position=place(join.on),
        hint=f"Write {shown}, further conditions joined by AND.",
    )


def equalities(join: BoundJoin) -> list[exp.Expression]:
    """The equalities between both sides that ON joins by AND: by these Spark finds rows."""
    return [part for part in conjuncts(join.on) if isinstance(part, exp.EQ) and _compares_sides(part, join)]


def guarded_condition(join: BoundJoin) -> exp.Expression:
    """ON, where each equality inside OR, NOT and the like is NULL for NULL whatever becomes of it.

    Spark's optimizer moves such equalities out, where rows are found by them, and there NULL equals NULL.
    """
    condition = join.on.copy()
    outside = {id(part) for part in conjuncts(condition)}
    compared = [
        node
        for node in condition.walk()
        if isinstance(node, exp.EQ | exp.NEQ) and id(node) not in outside and _compares_sides(node, join)
    ]
    for node in reversed(compared):
        one, other = (
            exp.Not(this=exp.Is(this=exp.Paren(this=side.copy()), expression=exp.Null()))
            for side in (node.this, node.expression)
        )
        known = exp.If(this=exp.And(this=one, expression=other), true=node.copy())
        node.replace(exp.Case(ifs=[known]))
    return condition


def _compares_sides(node: exp.Expression, join: BoundJoin) -> bool:
    one, other = refs(node.this), refs(node.expression)
    return bool(one and other) and one != other and {join.right.ref} in (one, other)


def _has_full_join(query: BoundQuery | None) -> bool:
    if isinstance(query, BoundUnion):
        return any(map(_has_full_join, query.branches))
    if query is None:
        return False
    full = any(join.type is JoinType.FULL for join in query.joins)
    return full or any(_has_full_join(given.query) for given in query.inputs)


def conjuncts(node: exp.Expression) -> Iterator[exp.Expression]:
    """The parts of a condition that are joined by AND."""
    stack = [node]
    while stack:
        part = stack.pop()
        if isinstance(part, exp.And):
            stack += [part.expression, part.this]
        elif isinstance(part, exp.Paren):
            stack.append(part.this)
        else:
            yield part


def refs(node: exp.Expression) -> set[str] | None:
    """The inputs an expression reads; None if one of its columns has a fault already."""
    found: set[str] = set()
    for part in node.walk():
        if "bound" in part.meta:
            found.add(part.meta["bound"][0])
        elif isinstance(part, exp.Column) and not isinstance(part.parent, exp.Anonymous):
            return None
    return found

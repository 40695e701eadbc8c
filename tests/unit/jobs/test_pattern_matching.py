"""The matcher against plain backtracking, and rows that come in any order and any portions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leatstream.plan.pattern import (
    Choice,
    Repeat,
    Sequence,
    Term,
    Variable,
    fewest,
    firsts,
    longest,
    shortest,
    size,
)
from leatstream_jobs.patterns import matching as pattern_matching
from leatstream_jobs.patterns.matching import Matcher, Pattern, State
from leatstream_jobs.patterns.values import PatternError, Row, Taken, Values

SECOND = 1_000_000
Condition = Callable[[list[tuple[int, int]], list[tuple[str, int]]], bool]
A, B, C = Variable("a"), Variable("b"), Variable("c")


def row(at: int, n: int | None) -> Row:
    return Row(json.dumps([str(at * SECOND), None, None if n is None else str(n)]))


def ways(
    term: Term, taken: list[tuple[str, int]], at: int, check: Callable[[list[tuple[str, int]]], bool]
) -> Iterator[tuple[int, list[tuple[str, int]]]]:
    """Every way to match from row ``at`` on, the preferred one first."""
    if isinstance(term, Variable):
        longer = [*taken, (term.name, at)]
        if check(longer):
            yield at + 1, longer
    elif isinstance(term, Sequence):
        if not term.parts:
            yield at, taken
            return
        for here, so_far in ways(term.parts[0], taken, at, check):
            yield from ways(Sequence(term.parts[1:]), so_far, here, check)
    elif isinstance(term, Choice):
        for part in term.parts:
            yield from ways(part, taken, at, check)
    else:
        more = term.most is None or term.most > 0
        fewer = None if term.most is None else term.most - 1
        again = Repeat(term.part, max(term.least - 1, 0), fewer, term.greedy)
        if term.least == 0 and not term.greedy:
            yield at, taken
        if more:
            for here, so_far in ways(term.part, taken, at, check):
                yield from ways(again, so_far, here, check)
        if term.least == 0 and term.greedy:
            yield at, taken


def expected(
    term: Term, rows: list[tuple[int, int]], define: dict[str, Condition], within: int, skip: str
) -> list[list[tuple[str, int]]]:
    found, start = [], 0
    while start < len(rows):

        def check(taken: list[tuple[str, int]], first: int = start) -> bool:
            name, at = taken[-1]
            if at >= len(rows) or rows[at][0] > rows[first][0] + within:
                return False
            return name not in define or define[name](rows, taken)

        best = next(ways(term, [], start, check), None)
        if best is not None:
            found.append(best[1])
        if best is None or skip == "next":
            start += 1
        elif skip == "past":
            start = best[0]
        else:
            of_b = [at for name, at in best[1] if name == "b"]
            start = of_b[0] if skip == "first" else of_b[-1]
    return found


def last(taken: list[tuple[str, int]], name: str) -> int | None:
    return next((at for one, at in reversed(taken) if one == name), None)


def rising(rows: list[tuple[int, int]], taken: list[tuple[str, int]]) -> bool:
    at = taken[-1][1]
    return at > 0 and rows[at][1] > rows[at - 1][1]


def above_last_a(rows: list[tuple[int, int]], taken: list[tuple[str, int]]) -> bool:
    a = last(taken, "a")
    return a is not None and rows[taken[-1][1]][1] > rows[a][1]


def small_sum(rows: list[tuple[int, int]], taken: list[tuple[str, int]]) -> bool:
    of_c = [rows[at][1] for name, at in taken if name == "c"]
    return bool(of_c) and sum(of_c) < 5


NODES: dict[str, tuple[list[Any], Condition]] = {
    "odd": (
        ["=", "exact", ["cell", 0, None, None], ["cell", 1, None, None]],
        lambda r, t: r[t[-1][1]][1] % 2 == 1,
    ),
    "rising": ([">", "exact", ["cell", 0, None, None], ["cell", 0, [None, True, 0, 1], None]], rising),
    "above": ([">", "exact", ["cell", 0, None, None], ["cell", 0, [["a"], True, 0, 0], None]], above_last_a),
    "sum": (["<", "exact", ["sum", 0, ["c"]], ["cell", 2, None, None]], small_sum),
}


def terms() -> st.SearchStrategy[Term]:
    leaf: st.SearchStrategy[Term] = st.sampled_from([A, B, C])

    def more(inner: st.SearchStrategy[Term]) -> st.SearchStrategy[Term]:
        some = st.lists(inner, min_size=1, max_size=3).map(tuple)
        bounds = st.sampled_from([(0, 1), (0, None), (1, None), (2, 2), (1, 3), (0, 2), (2, None)])
        repeated = st.builds(lambda p, b, g: Repeat(p, b[0], b[1], g), inner, bounds, st.booleans())
        return st.one_of(some.map(Sequence), some.map(Choice), repeated)

    def plain(term: Term) -> bool:
        if isinstance(term, Repeat):
            return plain(term.part) and not (term.most is None and shortest(term.part) == 0)
        return isinstance(term, Variable) or all(map(plain, term.parts))

    return st.recursive(leaf, more, max_leaves=5).filter(
        lambda t: shortest(t) > 0 and size(t) < 30 and plain(t)
    )


def cells(at: int, n: int) -> Row:
    """``n``, ``n`` again where it is odd, and 5."""
    return Row(json.dumps([str(at * SECOND), f"{at:05}", str(n), str(n if n % 2 else n + 1), "5"]))


@settings(max_examples=300)
@given(st.data(), terms(), st.integers(0, 12), st.booleans())
def test_like_backtracking_in_any_portions(
    data: st.DataObject, term: Term, within: int, all_rows: bool
) -> None:
    skips = ["past", "next"]
    if "b" not in firsts(term) and fewest(term, "b"):
        skips += ["first", "last"]
    elif fewest(term, "b") > 1:
        skips.append("last")
    skip = data.draw(st.sampled_from(skips))
    chosen = {name: data.draw(st.sampled_from([*NODES, None])) for name in "abc"}
    steps = data.draw(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=9))
    rows, clock = [], 0
    for step, n in steps:
        clock += step + 1
        rows.append((clock, n))
    define = {name: NODES[key][1] for name, key in chosen.items() if key}
    nodes = {name: NODES[key][0] for name, key in chosen.items() if key}
    wanted = expected(term, rows, define, within, skip)

    measures = [
        ["number"],
        ["time"],
        ["count", None, None],
        ["classifier"],
        ["cell", 0, [None, False, 0, 0], None],
        ["final", ["count", None, None]],
    ]
    pattern = Pattern(
        term,
        ["integer"] * 3,
        nodes,
        measures,
        within * SECOND,
        to_next=skip == "next",
        to_row=skip if skip in ("first", "last") else None,
        to_variables=["b"],
        all_rows=all_rows,
        memory=1,
    )
    matcher, state, found = Matcher(pattern), State(), []
    waiting = [cells(*one) for one in rows]
    late = -1
    for mark in [*sorted(data.draw(st.lists(st.integers(0, clock), max_size=3))), clock, clock + 100]:
        ready = [r for r in waiting if r.time <= mark * SECOND]
        ahead = [r for r in waiting if r.time > mark * SECOND and data.draw(st.booleans())]
        waiting = [r for r in waiting if r not in ready and r not in ahead]
        portion = data.draw(st.permutations([*ready, *ahead]))
        state, due, told = matcher.advance(State.read(state.write()), portion, mark * SECOND)
        assert due is None or due > mark * SECOND > late
        found += told
        late = mark * SECOND - 1
    assert found == [
        [
            str(i + 1),
            str(rows[taken[-1][1]][0] * SECOND),
            str(len(taken)),
            taken[-1][0],
            str(rows[taken[0][1]][1]),
            str(len(match)),
        ]
        for i, match in enumerate(wanted)
        for taken in ([match[: n + 1] for n in range(len(match))] if all_rows else [match])
    ]


def matches(pattern: Pattern, rows: list[Row], *marks: int) -> list[list[list[str | None]]]:
    """What each watermark (seconds) gives, all rows being there from the start."""
    matcher, state, fresh, found = Matcher(pattern), State(), rows, []
    for mark in marks:
        state, _, told = matcher.advance(state, fresh, mark * SECOND)
        found.append(told)
        fresh = []
    return found


def taken_rows(term: Term, rows: list[Row], **more: Any) -> list[str | None]:
    pattern = Pattern(term, ["integer"], {}, [["count", None, None]], 100 * SECOND, **more)
    return [one[0] for one in matches(pattern, rows, 1000)[0]]


@pytest.mark.parametrize(
    ("term", "counts"),
    [
        (Repeat(A, 1, None, True), ["5"]),
        (Repeat(A, 1, None, False), ["1"] * 5),
        (Repeat(A, 2, 3, True), ["3", "2"]),
        (Repeat(A, 2, 3, False), ["2", "2"]),
        (Choice((A, Sequence((A, B)))), ["1"] * 5),
        (Choice((Sequence((A, B)), A)), ["2", "2", "1"]),
        (Sequence((Repeat(A, 0, 1, True), B)), ["2", "2", "1"]),
        (Sequence((Repeat(A, 0, 1, False), B)), ["1"] * 5),
        (Repeat(Sequence((A, Repeat(B, 0, 2, True))), 1, 2, True), ["5"]),
    ],
)
def test_preference(term: Term, counts: list[str]) -> None:
    assert taken_rows(term, [row(i, i) for i in range(5)]) == counts


def test_a_match_that_may_grow_waits_for_the_next_row_or_for_the_time() -> None:
    pattern = Pattern(Repeat(A, 1, None, True), ["integer"], {}, [["count", None, None]], 10 * SECOND)
    rows = [row(0, 1), row(4, 1), row(20, 1)]
    assert matches(pattern, rows, 0, 4, 9, 10, 29, 30) == [[], [], [], [["2"]], [], [["1"]]]
    assert matches(pattern, rows, 4, 20, 30) == [[], [["2"]], [["1"]]]


def test_what_is_due_and_what_stays() -> None:
    pattern = Pattern(Sequence((A, B)), ["integer"], {}, [["count", None, None]], 10 * SECOND)
    matcher = Matcher(pattern)
    state, due, found = matcher.advance(State(), [row(1, 1), row(7, 1)], 3 * SECOND)
    assert (len(state.rows), due, found) == (2, 7 * SECOND, [])
    state, due, found = matcher.advance(state, [], 7 * SECOND)
    assert (state.write(), due, found) == (None, None, [["2"]])
    state, due, found = matcher.advance(state, [row(9, 1)], 9 * SECOND)
    assert (len(state.rows), due) == (1, 19 * SECOND)
    state, due, found = matcher.advance(state, [], 19 * SECOND)
    assert (state.write(), due, found) == (None, None, [])


def test_too_many_ways() -> None:
    past = ["cell", 0, [["b"], False, 0, 0], None]
    pattern = Pattern(
        Sequence((Repeat(Choice((A, B)), 1, None, True), C)),
        ["integer"],
        {"c": ["null", "", ["not", "", ["null", "", past]]]},
        [["number"]],
        100 * SECOND,
    )
    with pytest.raises(PatternError, match="TOO_MANY_WAYS"):
        matches(pattern, [row(i, 1) for i in range(20)], 1000)


def test_ways_are_not_followed_twice_where_the_past_counts_for_nothing() -> None:
    term = Sequence((Repeat(Choice((A, B)), 1, None, True), C))
    assert taken_rows(term, [row(i, 1) for i in range(60)]) == ["60"]
    assert pattern_matching.MAX_WAYS < 2**59


NULL, ONE, TWO, NAN = (["cell", i, None, None] for i in range(4))


@pytest.mark.parametrize(
    ("node", "value"),
    [
        (["<", "exact", ONE, TWO], True),
        (["=", "exact", ONE, NULL], None),
        (["<=>", "exact", ONE, NULL], False),
        (["<=>", "exact", NULL, NULL], True),
        (["<>", "double", ONE, NAN], True),
        (["=", "double", NAN, NAN], True),
        ([">", "double", NAN, TWO], True),
        (["<", "double", NAN, TWO], False),
        (["and", "", ["=", "exact", ONE, NULL], ["=", "exact", ONE, TWO]], False),
        (["and", "", ["=", "exact", ONE, NULL], ["=", "exact", ONE, ONE]], None),
        (["or", "", ["=", "exact", ONE, NULL], ["=", "exact", ONE, ONE]], True),
        (["or", "", ["=", "exact", ONE, NULL], ["=", "exact", ONE, TWO]], None),
        (["not", "", ["=", "exact", ONE, NULL]], None),
        (["null", "", NULL], True),
        (["+", "64", ONE, TWO], 3),
        (["-", "64", ONE, NULL], None),
        (["*", "decimal", ONE, TWO], Decimal(2)),
        (["/", "double", ONE, TWO], 0.5),
        (["/", "32", ["+", "32", TWO, ONE], TWO], 1),
        (["/", "32", ["-", "32", ["-", "32", ONE, TWO], TWO], TWO], -1),
        (["sum", 0, None], None),
        (["count", 0, None], 0),
        (["max", 3, None], "nan"),
        (["avg", 2, None], 2.0),
        (["sum", 2, ["b"]], None),
    ],
)
def test_values(node: list[Any], value: Any) -> None:
    values = Values(["integer", "integer", "integer", "double"], [Row('["0", null, null, "1", "2", "NaN"]')])
    found = values.value(node, Taken("a", 0, None))
    assert str(found) == value if value == "nan" else found == value and type(found) is type(value)


@pytest.mark.parametrize(
    "node",
    [
        ["*", "8", TWO, ["*", "64", TWO, ["cell", 4, None, None]]],
        ["/", "double", ONE, NULL],
        ["/", "64", ONE, NULL],
    ],
)
def test_values_that_cannot_be(node: list[Any]) -> None:
    values = Values(["integer"] * 5, [Row('["0", null, "0", "1", "2", "3", "100"]')])
    with pytest.raises(PatternError):
        values.value(node, Taken("a", 0, None))


def test_lengths() -> None:
    term = Sequence((A, Repeat(Choice((B, Sequence((A, C)))), 0, 3, True)))
    assert (shortest(term), longest(term), size(term)) == (1, 7, 10)
    assert longest(Repeat(A, 1, None, True)) is None

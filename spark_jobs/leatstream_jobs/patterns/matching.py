"""Finds row patterns in the rows of one partition, as they become known. Plain Python, without Spark.

Matches are those of SQL:2016: the leftmost first; of several at one row the one that is preferred, with
alternatives tried in their order and greedy repetitions as often as they go. All ways to match are followed
row by row at once, in the order of preference; a way that ends is taken as soon as no better one is left.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from leatstream.plan.pattern import Choice, Repeat, Term, Variable
from leatstream.plan.pattern import Sequence as Row_sequence
from leatstream_jobs.patterns.values import Node, PatternError, Row, Taken, Values

_END = -1  # in the place of a position: the pattern is through
MAX_WAYS = 10_000


@dataclass(frozen=True, slots=True)
class Program:
    """A pattern as positions, one for each variable in it.

    Attributes:
        variables: by position.
        hidden: by position, whether its row is not shown.
        first: where a match may begin, the preferred position first.
        follow: by position, what may come next, in the same order.
    """

    variables: tuple[str, ...]
    hidden: tuple[bool, ...]
    first: tuple[int, ...]
    follow: tuple[tuple[int, ...], ...]


def compiled(term: Term) -> Program:
    """Write every repetition out."""
    variables: list[Variable] = []
    follow: list[list[Any]] = []

    def entry(part: Term, after: list[Any]) -> list[Any]:
        """Where ``part`` may begin; ``after`` is where to go on. Lists in lists are flattened in the end."""
        if isinstance(part, Variable):
            variables.append(part)
            follow.append(after)
            return [len(variables) - 1]
        if isinstance(part, Row_sequence):
            for one in reversed(part.parts):
                after = entry(one, after)
            return after
        if isinstance(part, Choice):
            return [entry(one, after) for one in part.parts]
        return _repeated(part, after)

    def _repeated(part: Repeat, after: list[Any]) -> list[Any]:
        found = after
        if part.most is None:
            loop: list[Any] = []
            again = entry(part.part, loop)
            loop += [again, after] if part.greedy else [after, again]
            found = loop
        for _ in range((part.most or part.least) - part.least):
            once = entry(part.part, found)
            found = [once, after] if part.greedy else [after, once]
        for _ in range(part.least):
            found = entry(part.part, found)
        return found

    first = _flat(entry(term, [_END]))
    names, unseen = zip(*((one.name, one.hidden) for one in variables), strict=True)
    return Program(names, unseen, first, tuple(map(_flat, follow)))


def _flat(places: list[Any]) -> tuple[int, ...]:
    found: dict[int, None] = {}
    seen: set[int] = set()

    def walk(part: Any) -> None:
        if isinstance(part, int):
            found.setdefault(part)
        elif id(part) not in seen:
            seen.add(id(part))
            for one in part:
                walk(one)

    walk(places)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Pattern:
    """What to look for, and what to tell of it.

    Attributes:
        kinds: of the cells.
        define: the condition of each variable that has one.
        measures: nodes; their values are a match's output, in this order.
        within: how much later than the first row the last one may be; microseconds.
        to_next: whether the next match may begin in the row after the first one.
        to_row: ``first`` or ``last``: of the rows of ``to_variables`` it may begin in that one; else behind
            the last row of the match.
        all_rows: whether each row of a match is shown, with what is known at it, else one for the match.
        memory: how many rows before a match its nodes look back to.
    """

    term: Term
    kinds: Sequence[str]
    define: Mapping[str, Node]
    measures: Sequence[Node]
    within: int | None = None
    to_next: bool = False
    to_row: str | None = None
    to_variables: Sequence[str] = ()
    all_rows: bool = False
    memory: int = 0


@dataclass(slots=True)
class State:
    """What is known of a partition.

    Attributes:
        rows: those that count still, in their order; the first ``passed`` only for looking back.
        number: of the last match.
    """

    rows: list[Row] = field(default_factory=list)
    passed: int = 0
    number: int = 0

    @classmethod
    def read(cls, text: str | None) -> State:
        """Read back what ``write`` gave; None is a partition without a past."""
        if text is None:
            return cls()
        rows, passed, number = json.loads(text)
        return cls(list(map(Row, rows)), passed, number)

    def write(self) -> str | None:
        """The state as text; None if there is nothing to know."""
        if not self.rows and not self.number:
            return None
        return json.dumps([[row.text for row in self.rows], self.passed, self.number], ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class _Open:
    """It takes more rows to know; those up to ``until`` at most."""

    until: int | None


class Matcher:
    """Finds a pattern."""

    def __init__(self, pattern: Pattern) -> None:
        self._pattern = pattern
        self._program = compiled(pattern.term)
        self._numbered = any(map(_numbers, pattern.measures))
        # Ways that have come to one place differ in their past only, which then counts for nothing.
        self._merges = all(map(_forgets, pattern.define.values()))

    def advance(
        self, state: State, fresh: Sequence[Row], watermark: int
    ) -> tuple[State, int | None, list[list[str | None]]]:
        """Take in new rows and go on as far as the watermark lets it: no row up to it will come any more.

        Args:
            state: of the partition.
            fresh: its new rows, in any order; all later than the watermark of the time before.
            watermark: microseconds.

        Returns:
            the new state; the watermark at which there is something to do without new rows; and the measures
            of the matches.

        Raises:
            PatternError: a value cannot be computed, or there are too many ways to match.
        """
        waiting = sorted([*state.rows[state.passed :], *fresh], key=lambda row: row.place)
        rows = [*state.rows[: state.passed], *waiting]
        known = sum(row.time <= watermark for row in rows)
        values = Values(self._pattern.kinds, rows[:known])
        at, number, found = state.passed, state.number, list[list[str | None]]()
        due = [rows[known].time] if known < len(rows) else []
        while at < known:
            result = self._attempt(values, at, watermark)
            if isinstance(result, _Open):
                due += [result.until] if result.until is not None else []
                break
            if result is None:
                at += 1
                continue
            number += 1
            found += self._told(values, result, number)
            at = self._next(at, result)
        kept = max(0, at - self._pattern.memory)
        left = State(rows[kept:], at - kept, number if self._numbered else 0)
        return left, min(due, default=None), found

    def _told(self, values: Values, match: Taken, number: int) -> Iterator[list[str | None]]:
        """The measures of the match, or of each of its rows."""
        for taken in match.steps() if self._pattern.all_rows else [match]:
            if not (taken.hidden and self._pattern.all_rows):
                yield [self._measure(values, node, taken, match, number) for node in self._pattern.measures]

    def _measure(self, values: Values, node: Node, taken: Taken, match: Taken, number: int) -> str | None:
        if node[0] == "final":
            return self._measure(values, node[1], match, match, number)
        return str(number) if node[0] == "number" else values.text(node, taken)

    def _next(self, at: int, match: Taken) -> int:
        """Where the next match may begin."""
        if self._pattern.to_row is not None:
            rows = list(match.of(self._pattern.to_variables))
            return rows[-1] if self._pattern.to_row == "first" else rows[0]
        return at + 1 if self._pattern.to_next else match.row + 1

    def _attempt(self, values: Values, start: int, watermark: int) -> Taken | _Open | None:
        """The match that begins in this row, if it can be determined."""
        within, rows = self._pattern.within, values.rows
        until = None if within is None else rows[start].time + within
        ways: list[tuple[int, Taken | None]] = [(place, None) for place in self._program.first]
        best: Taken | None = None
        at = start
        while ways:
            if at == len(rows):
                # Rows up to here are all there; those after it may be too late for this match.
                return best if until is not None and watermark >= until else _Open(until)
            if until is not None and rows[at].time > until:
                return best
            ways, ended = self._step(values, ways, at)
            best = ended or best
            at += 1
        return best

    def _step(
        self, values: Values, ways: list[tuple[int, Taken | None]], at: int
    ) -> tuple[list[tuple[int, Taken | None]], Taken | None]:
        """The ways that the row leaves, up to one that is through: those behind it do not count any more."""
        program, define = self._program, self._pattern.define
        left: list[tuple[int, Taken | None]] = []
        here: set[int] = set()
        for place, past in ways:
            variable = program.variables[place]
            taken = Taken(variable, at, past, hidden=program.hidden[place])
            condition = define.get(variable)
            if condition is not None and values.value(condition, taken) is not True:
                continue
            for then in program.follow[place]:
                if then == _END:
                    return left, taken
                if self._merges and then in here:
                    continue
                here.add(then)
                left.append((then, taken))
            if len(left) > MAX_WAYS:
                raise PatternError("TOO_MANY_WAYS")
        return left, None


def _numbers(node: Node) -> bool:
    return node[0] == "number" or (node[0] == "final" and _numbers(node[1]))


def _forgets(node: Node) -> bool:
    """Whether a condition is the same whatever rows the match has taken before this one."""
    if node[0] == "cell":
        navigation = node[2]
        # The row at hand, or rows before it: the last one of all, none passed over.
        return navigation is None or (navigation[0] is None and navigation[1] and navigation[2] == 0)
    parts = [part for part in node[1:] if isinstance(part, list | tuple)]
    return node[0] in _PLAIN and all(map(_forgets, parts))


_PLAIN = frozenset({"=", "<>", "<", "<=", ">", ">=", "<=>", "+", "-", "*", "/", "not", "null", "and", "or"})

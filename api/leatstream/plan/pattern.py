"""Row patterns of MATCH_RECOGNIZE: what follows what. Alternatives stand in the order they are tried in."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Variable:
    """One row that fulfils the condition of this name; without a condition any row.

    ``hidden``: in an exclusion, whose rows are matched but not output.
    """

    name: str
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Sequence:
    """One after the other."""

    parts: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of these; an earlier one is preferred."""

    parts: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """The part again and again.

    Attributes:
        most: None = without an end.
        greedy: whether more is preferred to less.
    """

    part: Term
    least: int
    most: int | None
    greedy: bool


Term = Variable | Sequence | Choice | Repeat


def variables(term: Term) -> Iterator[str]:
    """The names of its variables from left to right, each as often as it stands there."""
    if isinstance(term, Variable):
        yield term.name
    elif isinstance(term, Repeat):
        yield from variables(term.part)
    else:
        for part in term.parts:
            yield from variables(part)


def shortest(term: Term) -> int:
    """The fewest rows that match."""
    if isinstance(term, Variable):
        return 1
    if isinstance(term, Repeat):
        return term.least * shortest(term.part)
    found = [shortest(part) for part in term.parts]
    return sum(found) if isinstance(term, Sequence) else min(found)


def longest(term: Term) -> int | None:
    """The most rows that match; None without an end."""
    if isinstance(term, Variable):
        return 1
    if isinstance(term, Repeat):
        inner = longest(term.part)
        if inner == 0 or term.most == 0:
            return 0
        return None if inner is None or term.most is None else inner * term.most
    found = [longest(part) for part in term.parts]
    whole = [length for length in found if length is not None]
    if len(whole) < len(found):
        return None
    return sum(whole) if isinstance(term, Sequence) else max(whole)


def size(term: Term) -> int:
    """How many variables it has when every repetition is written out."""
    if isinstance(term, Variable):
        return 1
    if isinstance(term, Repeat):
        return size(term.part) * max(term.least + (term.most is None), term.most or 0, 1)
    return sum(map(size, term.parts))


def hidden(term: Term) -> Term:
    """The same with all of its rows hidden."""
    if isinstance(term, Variable):
        return Variable(term.name, hidden=True)
    if isinstance(term, Repeat):
        return Repeat(hidden(term.part), term.least, term.most, term.greedy)
    return replace(term, parts=tuple(map(hidden, term.parts)))


def fewest(term: Term, names: Collection[str]) -> int:
    """How many rows of these variables every match has at least."""
    if isinstance(term, Variable):
        return int(term.name in names)
    if isinstance(term, Repeat):
        return term.least * fewest(term.part, names)
    found = [fewest(part, names) for part in term.parts]
    return sum(found) if isinstance(term, Sequence) else min(found)


def firsts(term: Term) -> set[str]:
    """The variables that may take a match's first row."""
    if isinstance(term, Variable):
        return {term.name}
    if isinstance(term, Repeat):
        return firsts(term.part)
    found: set[str] = set()
    for part in term.parts:
        found |= firsts(part)
        if isinstance(term, Sequence) and shortest(part):
            break
    return found


def as_json(term: Term) -> list[Any]:
    """The form it has in a JobSpec."""
    if isinstance(term, Variable):
        return ["variable", term.name, *([True] if term.hidden else [])]
    if isinstance(term, Repeat):
        return ["repeat", as_json(term.part), term.least, term.most, term.greedy]
    return ["sequence" if isinstance(term, Sequence) else "choice", [as_json(part) for part in term.parts]]


def from_json(body: list[Any]) -> Term:
    """Read back what ``as_json`` wrote."""
    if body[0] == "variable":
        return Variable(body[1], *body[2:])
    if body[0] == "repeat":
        return Repeat(from_json(body[1]), body[2], body[3], body[4])
    parts = tuple(from_json(part) for part in body[1])
    return Sequence(parts) if body[0] == "sequence" else Choice(parts)

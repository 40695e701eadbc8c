"""Row patterns of MATCH_RECOGNIZE: what follows what. Alternatives stand in the order they are tried in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Variable:
    """One row that fulfils the condition of this name; without a condition any row."""

    name: str


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


def as_json(term: Term) -> list[Any]:
    """The form it has in a JobSpec."""
    if isinstance(term, Variable):
        return ["variable", term.name]
    if isinstance(term, Repeat):
        return ["repeat", as_json(term.part), term.least, term.most, term.greedy]
    return ["sequence" if isinstance(term, Sequence) else "choice", [as_json(part) for part in term.parts]]


def from_json(body: list[Any]) -> Term:
    """Read back what ``as_json`` wrote."""
    if body[0] == "variable":
        return Variable(body[1])
    if body[0] == "repeat":
        return Repeat(from_json(body[1]), body[2], body[3], body[4])
    parts = tuple(from_json(part) for part in body[1])
    return Sequence(parts) if body[0] == "sequence" else Choice(parts)

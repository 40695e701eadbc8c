"""Reads Spark's own plans and expressions through py4j."""

from __future__ import annotations

from typing import Any

_Range = tuple[int, int]


def name_of(node: Any) -> str:
    """The simple name of a node's class."""
    return str(node.getClass().getSimpleName())


def items(sequence: Any) -> list[Any]:
    """The elements of a Scala sequence."""
    return [sequence.apply(i) for i in range(sequence.size())]


def number(option: Any) -> int | None:
    """The number in a Scala option."""
    return int(option.get()) if option.isDefined() else None


def range_of(node: Any) -> _Range | None:
    """First and last character in the SQL that a node was made of, counted from 0."""
    place = node.origin()
    start, stop = number(place.startIndex()), number(place.stopIndex())
    return None if start is None or stop is None else (start, stop)


def companion(jvm: Any, name: str) -> Any:
    """The companion object of a Scala class."""
    package, _, simple = name.rpartition(".")
    found = jvm
    for part in package.split("."):
        found = getattr(found, part)
    return getattr(getattr(found, simple + "$"), "MODULE$")

"""What conditions and measures of a row pattern are worth: navigation, aggregates and what joins them.

Everything of one row has been computed by Spark and comes as a cell; here rows are chosen, and values of
several rows are put together as Spark would: NULL is unknown, NaN equals NaN and is the largest, arithmetic
does not wrap around. Which node may be given which kinds of cells is decided at planning.

A node is a list: ``["cell", number, navigation, absent]``, ``["count" | "sum" | "min" | "max" | "avg",
number, variables]``, ``["classifier"]``, ``["number"]``, ``["time"]`` or ``[operator, kind, node, …]``. A
navigation is None for the row at hand, else ``[variables, last, skip, shift]``: of the rows that were given
to one of these variables (None: of all) the last or first one, so many of them passed over, and from there so
many rows of the partition back. ``absent`` is the cell with the value where there is no such row.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from decimal import Context, Decimal
from typing import Any

Node = Sequence[Any]
_EXACT = Context(prec=100)
_DIGITS = 38
_READ: dict[str, Callable[[str], Any]] = {
    "boolean": lambda text: text == "true",
    "integer": int,
    "double": float,
    "decimal": Decimal,
    "text": str,
}


class PatternError(ValueError):
    """A value that cannot be computed, as Spark would fail too."""


class Row:
    """A row of a partition.

    Args:
        text: JSON of ``[time, place, cell, …]``, all strings or null: microseconds, what orders rows of one
            time, and the values as Spark wrote them.
    """

    __slots__ = ("_known", "cells", "place", "text", "time")

    def __init__(self, text: str) -> None:
        time, place, *cells = json.loads(text)
        self.text = text
        self.time = int(time)
        self.place = (self.time, place or "", text)
        self.cells: list[str | None] = cells
        self._known: dict[int, Any] = {}

    def value(self, cell: int, kind: str) -> Any:
        """A cell as a number, truth value or text; None for NULL."""
        if cell not in self._known:
            text = self.cells[cell]
            self._known[cell] = None if text is None else _READ[kind](text)
        return self._known[cell]


class Taken:
    """Which rows a match has taken so far, the newest one first."""

    __slots__ = ("before", "hidden", "row", "variable")

    def __init__(self, variable: str, row: int, before: Taken | None, *, hidden: bool = False) -> None:
        self.variable = variable
        self.row = row
        self.before = before
        self.hidden = hidden

    def steps(self) -> list[Taken]:
        """What had been taken at each of the rows, from the first row on."""
        found: list[Taken] = []
        at: Taken | None = self
        while at is not None:
            found.append(at)
            at = at.before
        return found[::-1]

    def of(self, variables: Sequence[str] | None) -> Iterator[int]:
        """Numbers of the rows that one of these variables took, from the newest on."""
        at: Taken | None = self
        while at is not None:
            if variables is None or at.variable in variables:
                yield at.row
            at = at.before


class Values:
    """Evaluates nodes over the rows of one partition.

    Args:
        kinds: of the cells: ``boolean``, ``integer``, ``double``, ``decimal`` or ``text``.
        rows: in their order.
    """

    def __init__(self, kinds: Sequence[str], rows: Sequence[Row]) -> None:
        self.kinds = kinds
        self.rows = rows

    def value(self, node: Node, taken: Taken) -> Any:
        """The node's value as of the newest row of ``taken``."""
        name = node[0]
        if name == "cell":
            row, cell = self._navigated(node, taken)
            return None if row is None else row.value(cell, self.kinds[cell])
        if name in _AGGREGATES:
            return self._aggregate(name, node[1], node[2], taken)
        if name == "classifier":
            return taken.variable
        if name == "time":
            return self.rows[taken.row].time
        if name in ("and", "or"):
            return _logic(name == "or", (self.value(part, taken) for part in node[2:]))
        return _OPERATORS[name](node[1], *(self.value(part, taken) for part in node[2:]))

    def text(self, node: Node, taken: Taken) -> str | None:
        """The node's value as Spark reads it back."""
        if node[0] == "cell":
            row, cell = self._navigated(node, taken)
            return None if row is None else row.cells[cell]
        return _written(self.value(node, taken))

    def _navigated(self, node: Node, taken: Taken) -> tuple[Row | None, int]:
        _, cell, navigation, absent = node
        if navigation is None:
            return self.rows[taken.row], cell
        variables, last, skip, shift = navigation
        found = taken.of(variables) if last else iter(list(taken.of(variables))[::-1])
        at = next((row for i, row in enumerate(found) if i == skip), None)
        if at is not None and at - shift >= 0:
            return self.rows[at - shift], cell
        return (None, cell) if absent is None else (self.rows[taken.row], absent)

    def _aggregate(self, name: str, cell: int | None, variables: Sequence[str] | None, taken: Taken) -> Any:
        if cell is None:
            return sum(1 for _ in taken.of(variables))
        kind = self.kinds[cell]
        found = [self.rows[at].value(cell, kind) for at in taken.of(variables)]
        # As the rows came: sums of DOUBLE depend on it.
        return _AGGREGATES[name](kind, [value for value in reversed(found) if value is not None])


def _written(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else repr(value)
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def _logic(deciding: bool, values: Iterator[Any]) -> bool | None:
    """AND and OR of three values: one deciding value is enough, else an unknown one leaves it open."""
    unknown = False
    for value in values:
        if value is deciding:
            return bool(deciding)
        unknown = unknown or value is None
    return None if unknown else not deciding


def _order(one: Any, other: Any) -> int:
    if isinstance(one, float):
        wrong = (math.isnan(one), math.isnan(other))
        if any(wrong):
            return wrong[0] - wrong[1]
    return int(one > other) - int(one < other)


def _compared(check: Callable[[int], bool]) -> Callable[..., bool | None]:
    def compare(kind: str, one: Any, other: Any) -> bool | None:
        if one is None or other is None:
            return None
        return bool(check(_order(*_same(kind, one, other))))

    return compare


def _same(kind: str, *values: Any) -> tuple[Any, ...]:
    return tuple(map(float, values)) if kind == "double" else values


def _nullsafe(kind: str, one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is other
    return _order(*_same(kind, one, other)) == 0


def _arithmetic(exact: Callable[[Any, Any], Any], decimal: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def compute(kind: str, one: Any, other: Any) -> Any:
        if one is None or other is None:
            return None
        if kind == "decimal":
            return decimal(Decimal(one), Decimal(other))
        return _bounded(kind, exact(*_same(kind, one, other)))

    return compute


def _bounded(kind: str, value: Any) -> Any:
    """``kind`` of whole numbers is their bits."""
    if kind.isdecimal() and not -(1 << int(kind) - 1) <= value < 1 << int(kind) - 1:
        raise PatternError("ARITHMETIC_OVERFLOW")
    return value


def _divided(kind: str, one: Any, other: Any) -> float | int | None:
    if one is None or other is None:
        return None
    if other == 0:
        raise PatternError("DIVIDE_BY_ZERO")
    if kind == "double":
        return float(one) / float(other)
    # Toward zero.
    quotient = abs(one) // abs(other)
    return int(_bounded(kind, quotient if (one < 0) == (other < 0) else -quotient))


def _sum(kind: str, values: list[Any]) -> Any:
    if not values:
        return None
    if kind == "decimal":
        total = Decimal(0)
        for value in values:
            total = _EXACT.add(total, value)
        if len(total.as_tuple().digits) > _DIGITS:
            raise PatternError("NUMERIC_VALUE_OUT_OF_RANGE")
        return total
    if kind == "double":
        # In the order of the rows, without the compensation that sum() of newer Pythons has.
        added = 0.0
        for value in values:
            added += value
        return added
    return _bounded("64", sum(values))


def _best(sign: int) -> Callable[[str, list[Any]], Any]:
    def choose(_kind: str, values: list[Any]) -> Any:
        best = None
        for value in values:
            if best is None or _order(value, best) * sign > 0:
                best = value
        return best

    return choose


_AGGREGATES: dict[str, Callable[[str, list[Any]], Any]] = {
    "count": lambda _, values: len(values),
    "sum": _sum,
    "min": _best(-1),
    "max": _best(1),
    "avg": lambda _, values: _sum("double", list(map(float, values))) / len(values) if values else None,
}
_OPERATORS: dict[str, Callable[..., Any]] = {
    "=": _compared(lambda order: order == 0),
    "<>": _compared(lambda order: order != 0),
    "<": _compared(lambda order: order < 0),
    "<=": _compared(lambda order: order <= 0),
    ">": _compared(lambda order: order > 0),
    ">=": _compared(lambda order: order >= 0),
    "<=>": _nullsafe,
    "+": _arithmetic(lambda a, b: a + b, _EXACT.add),
    "-": _arithmetic(lambda a, b: a - b, _EXACT.subtract),
    "*": _arithmetic(lambda a, b: a * b, _EXACT.multiply),
    "/": _divided,
    "not": lambda _, value: None if value is None else not value,
    "null": lambda _, value: value is None,
}

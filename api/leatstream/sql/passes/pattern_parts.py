"""DEFINE and MEASURES taken apart: what Spark computes of each row, and what puts rows together.

An expression over one row becomes a *cell*: a column of the rows that are matched. What is left says which
rows' cells are meant (navigation), aggregates them, or compares cells of several rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from leatstream.errors import Faults, Position
from leatstream.sql.passes.columns import Columns
from leatstream.sql.passes.functions import Functions, is_aggregate
from leatstream.sql.passes.render import Renderer
from leatstream.sql.passes.scope import Input, place

NAVIGATIONS = frozenset({"first", "last", "prev", "next"})
SPECIALS = {"classifier": "classifier", "match_number": "number", "match_rowtime": "time"}
AGGREGATES = frozenset({"count", "sum", "min", "max", "avg"})
MOST_BACK = 100
_PAIRS: dict[type[exp.Expression], str] = {
    exp.And: "and",
    exp.Or: "or",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
}

_SHOWN: dict[type[exp.Expression], str] = {exp.Case: "CASE", exp.Cast: "CAST", exp.TryCast: "TRY_CAST"}


@dataclass(frozen=True, slots=True)
class Navigation:
    """Which row's value is meant.

    Of the rows of these variables (None: all) the last or first one, ``skip`` of them passed over, and from
    there ``shift`` rows back.
    """

    variables: tuple[str, ...] | None
    last: bool = True
    skip: int = 0
    shift: int = 0


@dataclass(frozen=True, slots=True)
class Cell:
    """A value of one row: the newest one, or another. ``absent`` is the cell to take if there is none."""

    number: int
    navigation: Navigation | None
    absent: int | None
    position: Position | None


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate of a cell (None: of the rows themselves) over the rows of some variables."""

    name: str
    number: int | None
    variables: tuple[str, ...] | None
    position: Position | None


@dataclass(frozen=True, slots=True)
class Special:
    """``classifier``, ``number`` or ``time``."""

    name: str
    position: Position | None


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator over values of several rows; also ``not`` and ``null``."""

    name: str
    parts: tuple[Part, ...]
    position: Position | None


@dataclass(frozen=True, slots=True)
class Final:
    """A part as of the last row of the match, also for rows before it."""

    part: Cell | Aggregate | Special
    position: Position | None


Part = Cell | Aggregate | Special | Operation | Final


class PatternColumns(Columns):
    """Resolves columns behind pattern variables: ``meta["variables"]`` names those that are meant."""

    def __init__(self, given: Input, variables: dict[str, tuple[str, ...]], faults: Faults) -> None:
        super().__init__([given], faults)
        self.variables = variables

    def resolve(self, node: exp.Expression) -> None:
        """Bind one exp.Column."""
        parts = node.meta["parts"]
        if len(parts) > 1 and parts[0][0] in self.variables:
            node.meta["variables"] = self.variables[parts[0][0]]
            node.meta["parts"] = parts[1:]
        super().resolve(node)


class PatternFunctions(Functions):
    """Checks calls in DEFINE or MEASURES; ``defines`` says which."""

    def __init__(
        self, given: Input, variables: dict[str, tuple[str, ...]], faults: Faults, *, defines: bool
    ) -> None:
        super().__init__([given], faults, "MATCH_RECOGNIZE aggregates with COUNT, SUM, MIN, MAX and AVG")
        self.variables = variables
        self.defines = defines

    def check(self, node: exp.Expression) -> bool:
        """Check one call; False if its arguments are no expressions of their own."""
        name = str(node.this)
        if self.defines and node.meta.get("when") == "final":
            self._wrong(node, "FINAL cannot stand in DEFINE: the match is not known there.", "sql-syntax")
        if name in NAVIGATIONS:
            self._navigation(node, name)
        elif name in SPECIALS:
            if node.expressions:
                self._wrong(node, f"{name.upper()} takes no argument.", "type-mismatch")
                return False
            if name == "match_number" and self.defines:
                self._wrong(node, "MATCH_NUMBER in DEFINE is not supported.", "unsupported")
        elif name in AGGREGATES:
            self._aggregate_call(node, name)
        else:
            return super().check(node)
        return True

    def _navigation(self, node: exp.Expression, name: str) -> None:
        shown, arguments = name.upper(), node.expressions
        if name == "next":
            hint = "It waits for a row that may never come: describe the next row by a variable of its own."
            self._wrong(node, "NEXT is not supported.", "unsupported", hint)
        elif not 1 <= len(arguments) <= 2 or node.meta.get("distinct"):
            self._wrong(node, f"{shown} takes a value, and perhaps a number of rows.", "type-mismatch")
        elif len(arguments) == 2 and _number(arguments[1]) is None:
            detail = f"{shown} takes a whole number of rows up to {MOST_BACK}."
            self._wrong(node, detail, "type-mismatch")
        elif isinstance(arguments[0], exp.Star):
            self._wrong(node, f"{shown} takes no *.", "type-mismatch")
        else:
            value = _bare(arguments[0])
            inner = value.expressions[0] if name == "prev" and _called(value, "first", "last") else value
            self._one_row(node, inner)

    def _aggregate_call(self, node: exp.Expression, name: str) -> None:
        shown, arguments = name.upper(), node.expressions
        if node.meta.get("distinct"):
            self._wrong(node, f"{shown}(DISTINCT …) in MATCH_RECOGNIZE is not supported.", "unsupported")
        elif len(arguments) != 1 or (isinstance(arguments[0], exp.Star) and name != "count"):
            self._wrong(node, f"{shown} takes one value.", "type-mismatch")
        elif isinstance(arguments[0], exp.Star):
            qualifier = arguments[0].meta.get("qualifier", ())
            if qualifier and (len(qualifier) > 1 or qualifier[0] not in self.variables):
                detail = f"There is no pattern variable {'.'.join(qualifier)}."
                self._wrong(node, detail, "unknown-column")
            elif qualifier:
                arguments[0].meta["variables"] = self.variables[qualifier[0]]
        else:
            self._one_row(node, arguments[0])

    def _one_row(self, call: exp.Expression, value: exp.Expression) -> None:
        shown = str(call.this).upper()
        for part in value.walk():
            if isinstance(part, exp.Anonymous) and _pattern_call(part):
                detail = f"{str(part.this).upper()} cannot stand in {shown} here."
                self.faults.add("unsupported", detail, position=place(part, "name_span"))
                return
        named = {p.meta["parts"][0][0] for p in value.find_all(exp.Column) if len(p.meta["parts"]) > 1}
        named = {name for name in named if name in self.variables}
        if len(named) > 1:
            detail = f"{shown} takes columns of one pattern variable, not of {' and '.join(sorted(named))}."
            self._wrong(call, detail, "type-mismatch")

    def _wrong(self, node: exp.Expression, detail: str, code: str, hint: str | None = None) -> None:
        self.faults.add(code, detail, position=place(node, "name_span"), hint=hint)


@dataclass(slots=True)
class Cells:
    """The cells of a pattern, each once."""

    values: list[exp.Expression] = field(default_factory=list)
    _numbers: dict[str, int] = field(default_factory=dict)

    def number(self, value: exp.Expression) -> int:
        """Which cell an expression over one row is."""
        renderer = Renderer()
        renderer.expr(value)
        found = self._numbers.setdefault(renderer.text, len(self.values))
        if found == len(self.values):
            self.values.append(value)
        return found


def leaves(node: exp.Expression) -> Iterator[exp.Expression]:
    """The outermost parts that rows have to be chosen for."""
    if _value_of_row(node) or _pattern_call(node):
        yield node
    else:
        for child in node.iter_expressions():
            if isinstance(child, exp.Expression):
                yield from leaves(child)


def measure_of(leaf: exp.Expression, cells: Cells) -> Part:
    """A leaf of MEASURES as a part."""
    part = part_of(leaf, cells, None)
    final = any(node.meta.get("when") == "final" for node in leaf.walk())
    return Final(part, part.position) if final else part


def part_of(leaf: exp.Expression, cells: Cells, current: str | None) -> Cell | Aggregate | Special:
    """A leaf as a part; ``current`` is the variable whose condition it stands in.

    Args:
        leaf: of a condition or measure.
        cells: collects the values of rows.
        current: the variable whose condition it stands in; None = none.
    """
    at, name = place(leaf), str(leaf.this)
    if _called(leaf, *SPECIALS):
        return Special(SPECIALS[name], at)
    if _called(leaf, *AGGREGATES):
        (value,) = leaf.expressions
        if isinstance(value, exp.Star):
            return Aggregate(name, None, value.meta.get("variables"), at)
        return Aggregate(name, cells.number(value), _variables(value), at)
    return Cell(cells.number(_inner(leaf)), navigation(leaf, current), None, at)


def condition(node: exp.Expression, cells: Cells, current: str, faults: Faults) -> Part | None:
    """A condition; None after a fault.

    Args:
        node: resolved.
        cells: collects the values of rows.
        current: the variable that it defines.
        faults: takes what is wrong.
    """
    node = _bare(node)
    found = list(leaves(node))
    plain = not any(_called(leaf, *SPECIALS, *AGGREGATES) for leaf in found)
    if [node] == found:
        return part_of(node, cells, current)
    navigations = {navigation(leaf, current) for leaf in found} if plain else set()
    if plain and len(navigations) <= 1:
        where = navigations.pop() if navigations else None
        absent = cells.number(_folded(node, absent=True)) if where is not None else None
        return Cell(cells.number(_folded(node, absent=False)), where, absent, place(node))
    return _operation(node, cells, current, faults)


def _operation(node: Any, cells: Cells, current: str, faults: Faults) -> Part | None:
    at = place(node)

    def joined(name: str, *values: exp.Expression) -> Part | None:
        parts = [condition(value, cells, current, faults) for value in values]
        known = tuple(part for part in parts if part is not None)
        return Operation(name, known, at) if len(known) == len(parts) else None

    def over(name: str, *parts: Part | None) -> Part | None:
        known = tuple(part for part in parts if part is not None)
        return Operation(name, known, at) if len(known) == len(parts) else None

    if type(node) in _PAIRS:
        return joined(_PAIRS[type(node)], node.this, node.expression)
    if isinstance(node, exp.NullSafeNEQ):
        return over("not", joined("<=>", node.this, node.expression))
    if isinstance(node, exp.Not):
        return joined("not", node.this)
    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
        return joined("null", node.this)
    if isinstance(node, exp.Between):
        return over(
            "and", joined(">=", node.this, node.args["low"]), joined("<=", node.this, node.args["high"])
        )
    if isinstance(node, exp.In):
        return over("or", *(joined("=", node.this, value) for value in node.expressions))
    named = isinstance(node, exp.Anonymous)
    shown = str(node.this).upper() if named else _SHOWN.get(type(node), "This expression")
    faults.add(
        "unsupported",
        f"{shown} over values of several rows is not supported in DEFINE.",
        position=at,
        hint="Rows are joined by comparisons, + - * / and AND, OR, NOT; apply functions to each row's value.",
    )
    return None


def navigation(leaf: exp.Expression, current: str | None) -> Navigation | None:
    """Which row's value a leaf is; None for the newest row's."""
    shift = skip = 0
    last, value = True, leaf
    if _called(value, "prev"):
        shift = _count(value, 1)
        value = _bare(value.expressions[0])
    if _called(value, "first", "last"):
        last, skip = str(value.this) == "last", _count(value, 0)
        value = value.expressions[0]
    variables = _variables(value)
    if last and not skip and (variables is None or current in variables):
        return Navigation(None, shift=shift) if shift else None
    return Navigation(variables, last, skip, shift)


def _folded(node: exp.Expression, *, absent: bool) -> exp.Expression:
    """An expression whose leaves all mean one row, for that row; or for no row at all."""
    copied = node.copy()
    for leaf in list(leaves(copied)):
        value: exp.Expression = exp.Paren(this=_inner(leaf).copy())
        if absent:
            nothing = exp.If(this=exp.Boolean(this=False), true=value)
            value = exp.Case(this=None, ifs=[nothing], default=None)
        leaf.replace(value)
    return copied


def _inner(leaf: exp.Expression) -> exp.Expression:
    """What a navigation is applied to."""
    while _called(leaf, *NAVIGATIONS):
        leaf = _bare(leaf.expressions[0])
    return leaf


def _variables(value: exp.Expression) -> tuple[str, ...] | None:
    for column in value.find_all(exp.Column):
        if column.meta.get("variables") is not None:
            return tuple(column.meta["variables"])
    return None


def _value_of_row(node: exp.Expression) -> bool:
    """Whether it is a column, or a field or element of one."""
    while isinstance(node, exp.Dot) or (
        isinstance(node, exp.Bracket) and isinstance(node.expressions[0], exp.Literal)
    ):
        node = node.this
    return isinstance(node, exp.Column) or "bound" in node.meta


def _bare(node: exp.Expression) -> exp.Expression:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _called(node: exp.Expression, *names: str) -> bool:
    return isinstance(node, exp.Anonymous) and str(node.this) in names and "bound" not in node.meta


def _pattern_call(node: exp.Expression) -> bool:
    return _called(node, *NAVIGATIONS, *SPECIALS, *AGGREGATES) or (
        isinstance(node, exp.Anonymous) and is_aggregate(node)
    )


def _number(node: exp.Expression) -> int | None:
    text = node.name if isinstance(node, exp.Literal) and not node.is_string else ""
    return int(text) if text.isdecimal() and len(text) < 4 and int(text) <= MOST_BACK else None


def _count(call: exp.Expression, default: int) -> int:
    return (_number(call.expressions[1]) or 0) if len(call.expressions) > 1 else default

"""What a bound query is made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

from sqlglot import exp

from leatstream.errors import Faults, Position
from leatstream.model.objects import RelationKind
from leatstream.model.types import DataType
from leatstream.plan.logical import INTERVAL_JOIN, Join, JoinType, RowPattern, Scan, Window
from leatstream.sql.lexer import Source


@dataclass(frozen=True, slots=True)
class Output:
    """A column a source or query gives; ``type`` where it is known without Spark."""

    name: str
    type: DataType | None = None


@dataclass(frozen=True, slots=True)
class Unnested:
    """UNNEST of a value by one of Spark's functions; with ``outer`` rows without elements stay."""

    value: exp.Expression
    function: str
    outer: bool


@dataclass(slots=True)
class Input:
    """One relation, sub-select or UNNEST in FROM.

    Attributes:
        ref: its alias in the compiled SQL, such as ``t0``; the user's aliases never get there.
        names: dotted names a column may be qualified with: the alias, or the relation's name parts.
        shown: what the user calls it.
        columns: its columns, None after a fault (nothing can be said about its columns then).
        scan: of a relation.
        query: of a sub-select.
        window: of TUMBLE and similar functions; its columns are the last two.
        unnested: of UNNEST; such rows come with each row of the inputs before.
        view: of the matches of MATCH_RECOGNIZE: the view that stands for them in the compiled SQL.
        headers: whether the headers of its records are asked for.
        merged: whether it stood in a sub-select, so that no name outside means it.
    """

    ref: str
    names: tuple[str, ...]
    shown: str
    columns: tuple[Output, ...] | None
    scan: Scan | None = None
    query: BoundQuery | None = None
    window: Window | None = None
    unnested: Unnested | None = None
    view: str | None = None
    headers: bool = False
    merged: bool = False

    @property
    def keyed(self) -> bool:
        """Whether it is a changelog."""
        return self.scan is not None and self.scan.relation.kind is RelationKind.CHANGELOG

    @property
    def table(self) -> bool:
        """Whether it is a table, whose rows are looked up."""
        return self.scan is not None and self.scan.relation.kind is RelationKind.TABLE


@dataclass(slots=True)
class BoundJoin:
    """A join of everything left of it with one input.

    Attributes:
        kind: as in ``plan.logical.Join``.
        before_ms, after_ms: of an interval join.
        values: of a join with a changelog: what its primary key's columns are equated with, in their order;
            with a table: what its columns ``keys`` are equated with.
        kept: whether a changelog's row that finds nothing stays, as one that is taken back.
    """

    type: JoinType
    right: Input
    left_ref: str
    on: exp.Expression
    kind: str = INTERVAL_JOIN
    before_ms: int = 0
    after_ms: int = 0
    values: tuple[exp.Expression, ...] = ()
    keys: tuple[str, ...] = ()
    kept: bool = False


@dataclass(slots=True)
class Item:
    """An output column and its expression."""

    name: str
    value: exp.Expression
    type: DataType | None
    position: Position


@dataclass(slots=True)
class BoundGroup:
    """GROUP BY keys HAVING …

    Attributes:
        keys: the window's two columns left out.
        names: output columns that are keys, the window's included, in the order of GROUP BY.
        update: whether groups are written at each change, else once, when their window has closed.
        nested: whether another SELECT or UNION ALL takes the groups as rows, with their window's time.
        sets: GROUPING SETS, ROLLUP and CUBE, by name, with the keys of each set.
    """

    keys: list[exp.Expression]
    names: tuple[str, ...]
    having: exp.Expression | None
    update: bool
    nested: bool = False
    sets: list[tuple[str, list[list[exp.Expression]]]] = field(default_factory=list)


@dataclass(slots=True)
class BoundSelect:
    """SELECT items FROM inputs WHERE … GROUP BY …

    ``upserts``: rows of a changelog go on as such, so one that WHERE leaves out takes back the one before it.
    """

    inputs: list[Input]
    joins: list[BoundJoin]
    items: list[Item]
    where: exp.Expression | None
    position: Position | None = None
    group: BoundGroup | None = None
    upserts: bool = False

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The columns it gives."""
        return tuple(Output(item.name, item.type) for item in self.items)


@dataclass(slots=True)
class BoundUnion:
    """Branches of UNION ALL, in the order of the text; the first names the columns."""

    branches: list[BoundSelect | BoundUnion]
    position: Position | None = None

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The columns it gives; types may widen, so they are left to Spark."""
        return tuple(Output(column.name) for column in self.branches[0].outputs)


BoundQuery = BoundSelect | BoundUnion


def selects(query: BoundQuery | None) -> Iterator[BoundSelect]:
    """Every SELECT of a query, from the outside in and from left to right."""
    if isinstance(query, BoundUnion):
        for branch in query.branches:
            yield from selects(branch)
    elif query is not None:
        yield query
        for given in query.inputs:
            yield from selects(given.query)


def asked_headers(query: BoundQuery | None) -> Iterator[str]:
    """The views of which a query asks for the headers of records."""
    for select in selects(query):
        yield from (given.scan.view for given in select.inputs if given.headers and given.scan is not None)


@dataclass(slots=True)
class Binding:
    """What binding one statement gathers.

    ``merges`` counts what was taken up out of sub-selects; ``headers``: the views of which row patterns ask
    for the headers of records.
    """

    faults: Faults = field(default_factory=Faults)
    scans: list[Scan] = field(default_factory=list)
    joins: list[Join] = field(default_factory=list)
    inputs: int = 0
    distinct: bool = False
    patterns: list[RowPattern] = field(default_factory=list)
    merges: count[int] = field(default_factory=count)
    headers: set[str] = field(default_factory=set)

    def next_ref(self) -> str:
        """A new alias for the compiled SQL."""
        self.inputs += 1
        return f"t{self.inputs - 1}"


def place(node: exp.Expression, key: str = "span") -> Position | None:
    """Where a node stands in the user's text."""
    span, source = node.meta.get(key) or node.meta.get("span"), node.meta.get("source")
    return source.position(*span) if span and isinstance(source, Source) else None

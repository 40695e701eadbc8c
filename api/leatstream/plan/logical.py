"""The bound form of a SELECT: names resolved, text compiled to Spark SQL, nothing read yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from leatstream.errors import Position
from leatstream.model.functions import UserFunction
from leatstream.model.objects import Relation, RelationKind
from leatstream.plan.job_spec import PatternSpec

INTERVAL_JOIN = "interval-join-stream-stream"
TEMPORAL_JOIN = "temporal-join-stream-changelog"
CHANGELOG_JOIN = "join-changelog-changelog"
LOOKUP_JOIN = "lookup-join-stream-table"
CHANGELOG_LOOKUP_JOIN = "lookup-join-changelog-table"
LOOKUP_JOINS = (LOOKUP_JOIN, CHANGELOG_LOOKUP_JOIN)


class JoinType(StrEnum):
    """Join types a join may have."""

    INNER = "inner"
    LEFT = "left"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Scan:
    """One use of a relation in FROM.

    Attributes:
        view: name of the temporary view that stands for it in the compiled SQL, such as ``leat_src_0``.
        alias: what the user calls it in the statement.
        properties: source properties of its WITH clause, canonical keys, checked.
        headers: whether the headers of its records are read.
        place: what is known of where its records lie beyond what every kind of store knows: members of
            ``rowmeta()``, with their Spark types.
    """

    view: str
    alias: str
    relation: Relation
    position: Position
    properties: Mapping[str, str] = field(default_factory=dict)
    headers: bool = False
    place: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Join:
    """One join.

    An interval join's bounds are milliseconds, inclusive: left - before <= right <= left + after. A join with
    a changelog or a table has none. ``grace_ms`` is how late a row may come; None = as the server says.
    """

    type: JoinType
    before_ms: int
    after_ms: int
    left: str
    right: str
    position: Position
    kind: str = INTERVAL_JOIN
    grace_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """Stretches of event time that rows are put into; milliseconds, from the epoch.

    Attributes:
        kind: ``tumble``, ``hop``, ``cumulate`` or ``session``.
        size_ms: the longest a window gets; of a session the gap that ends it.
        advance_ms: from one window's start to the next one's; of ``cumulate`` from one end to the next one's.
    """

    kind: str
    size_ms: int
    advance_ms: int


@dataclass(frozen=True, slots=True)
class Aggregation:
    """GROUP BY of the outermost SELECT, or the first one inside where that one has none.

    Attributes:
        keys: output columns that identify a group, in the order of GROUP BY: a changelog's primary key; none
            for a stream.
        window: set where rows are grouped by time.
        update: whether each change of a group is written (a changelog), else each group once, when its window
            has closed (a stream).
        deletes: whether the output has ``__leat_deleted``: HAVING may let a group go that was written before.
    """

    keys: tuple[str, ...]
    window: Window | None
    update: bool
    deletes: bool


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a job keeps of a changelog between its batches.

    Attributes:
        view: of the scan.
        keys: the primary key's columns.
        versions: whether old versions of its rows are kept too, for a stream's rows to find theirs by time.
    """

    view: str
    keys: tuple[str, ...]
    versions: bool


@dataclass(frozen=True, slots=True)
class Link:
    """Which rows of the left-most input a changelog's rows, or a group, concern.

    Attributes:
        view: of the changelog whose primary key the values are; of the left-most scan itself for groups.
        relation: Spark SQL to stand in FROM: the left-most input; for groups all that is joined.
        values: Spark SQL expressions over it.
    """

    view: str
    relation: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KeyedOperator:
    """What is computed batch by batch against keyed snapshots, not by Spark's own state.

    Attributes:
        kind: ``temporal-join``, ``changelog-join`` or ``changelog-aggregate``.
        links: of the joins.
        groups: what rows are grouped by.
    """

    kind: str
    snapshots: tuple[Snapshot, ...]
    links: tuple[Link, ...]
    groups: Link | None = None


@dataclass(frozen=True, slots=True)
class Lookup:
    """A table whose rows are looked up when a batch asks for them.

    Attributes:
        left: what stands left of it in FROM, as Spark SQL.
        keys: columns of the table that ON equates with ``values``, Spark SQL expressions over ``left``.
        position: of ON.
        cache_ttl_ms: how long rows may be kept and used again; 0 = they are read again for each batch.
    """

    scan: Scan
    left: str
    keys: tuple[str, ...]
    values: tuple[str, ...]
    position: Position | None
    cache_ttl_ms: int


Origin = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Quotient:
    """A ``/`` in compiled SQL whose operands' types decide what it gives; offsets from 0, inclusive.

    Attributes:
        start: where its left operand begins.
        operator: where the ``/`` stands.
        stop: where its right operand ends.
        origin: separates it from all others of the statement; the same where it is written several times.
    """

    start: int
    operator: int
    stop: int
    origin: Origin


@dataclass(frozen=True, slots=True)
class TypedPattern:
    """A row pattern that can be run, and the view of its matches."""

    spec: PatternSpec
    view: ViewSchema


@dataclass(frozen=True, slots=True)
class RowPattern:
    """MATCH_RECOGNIZE before its types are known.

    Attributes:
        input: Spark SQL that gives ``cells`` columns ``c0``, ``c1``, … of each row, and hidden ones.
        source_map: for errors of Spark's analyzer in it.
        typed: takes these columns' types in Spark's words; RequestError for what does not fit.
        quotients: in ``input``, as in a plan.
    """

    input: str
    source_map: SourceMap
    cells: int
    position: Position
    typed: Callable[[Sequence[str]], TypedPattern]
    quotients: tuple[Quotient, ...] = ()


class SourceMap(Protocol):
    """Leads from a place in the compiled SQL back to the user's text."""

    def locate(self, start: int, stop: int, fragment: str) -> Position | None:
        """Position in the user's text of a piece of the compiled SQL; None if it has none.

        Args:
            start: offset of its first character.
            stop: offset of its last character.
            fragment: the piece itself.
        """


@dataclass(frozen=True, slots=True)
class FunctionUse:
    """A user's function in the compiled SQL, under a name of ours."""

    name: str
    function: UserFunction


@dataclass(frozen=True, slots=True)
class FunctionShape:
    """What analysis needs to know of a user's function: its name in the SQL and the type it gives."""

    name: str
    returns: str


@dataclass(frozen=True, slots=True)
class LogicalPlan:
    """A bound SELECT.

    Attributes:
        sql: Spark SQL over the scans' views. Its output columns are the user's, in order, then
            ``__leat_rowkey`` (BINARY, the left-most record's key) and ``__leat_rowtime`` (TIMESTAMP); before
            these ``__leat_deleted`` (BOOLEAN), if the aggregation deletes.
        scans: in the order of the text; the first is the left-most source.
        source_map: for errors of Spark's analyzer.
        aggregation: set where rows are grouped anywhere.
        primary_key: output columns that identify a row of a changelog; empty for a stream.
        deletes: whether the output has ``__leat_deleted``.
        operator: of joins with changelogs and aggregates over them.
        lookups: of joins with tables, in the order of the text.
        state: digests of what the state is made of, by part; empty where all of the SQL counts.
        distinct: whether a row is left out that equals, in the user's columns, one written before.
        pattern: of MATCH_RECOGNIZE; ``sql`` reads the view of its matches.
        matches: the same with its types; set once the input is analyzed.
        quotients: each ``/`` in ``sql`` whose type is still to be asked for.
    """

    sql: str
    scans: tuple[Scan, ...]
    joins: tuple[Join, ...]
    source_map: SourceMap
    aggregation: Aggregation | None = None
    primary_key: tuple[str, ...] = ()
    deletes: bool = False
    operator: KeyedOperator | None = None
    distinct: bool = False
    functions: tuple[FunctionUse, ...] = ()
    state: Mapping[str, str] = field(default_factory=dict)
    pattern: RowPattern | None = None
    matches: TypedPattern | None = None
    lookups: tuple[Lookup, ...] = ()
    quotients: tuple[Quotient, ...] = ()

    @property
    def streams(self) -> tuple[Scan, ...]:
        """The scans whose records are read one after the other: all but tables that are looked up in."""
        return tuple(s for s in self.scans if s.relation.kind is not RelationKind.TABLE)

    @property
    def stateful(self) -> bool:
        """Whether something is kept between batches for it."""
        return (
            self._joins_state() or self.aggregation is not None or self.distinct or self.pattern is not None
        )

    @property
    def timed(self) -> bool:
        """Whether event time decides when state is dropped, so that sources need watermarks."""
        if self.operator is not None:
            return False
        return (
            self.pattern is not None
            or self._joins_state()
            or (self.aggregation is not None and self.aggregation.window is not None)
        )

    def _joins_state(self) -> bool:
        return any(join.kind not in LOOKUP_JOINS for join in self.joins)

    @property
    def left_most(self) -> Scan:
        """The first relation of FROM in the order of the text."""
        return self.scans[0]


@dataclass(frozen=True, slots=True)
class ViewSchema:
    """An empty view for analysis: name and Spark DDL of its columns (hidden ones included)."""

    name: str
    ddl: str


@dataclass(frozen=True, slots=True)
class AnalyzedColumn:
    """A column of the analyzed statement; ``type`` is Spark's simple string."""

    name: str
    type: str
    nullable: bool


@dataclass(frozen=True, slots=True)
class AnalysisFailure:
    """What Spark's analyzer said: its error condition and where in the compiled SQL (inclusive, from 0).

    ``more`` has the other faults of the same statement, where it found several.
    """

    condition: str
    message: str
    sqlstate: str | None = None
    start: int | None = None
    stop: int | None = None
    fragment: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    more: tuple[AnalysisFailure, ...] = ()

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> AnalysisFailure:
        """Read what a driver sent; members that are not known are left out."""
        known = {k: v for k, v in body.items() if k in cls.__dataclass_fields__ and k != "more"}
        return cls(**known, more=tuple(cls.read(other) for other in body.get("more") or ()))

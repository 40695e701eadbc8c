"""What an application is made of: its statements, each with its virtual relations written in.

A virtual relation written in means the same unless it remembers something or gives another value at each
call: such a one may be read once.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TypeGuard

from leatstream.errors import CatalogError, LeatstreamError, Position, RequestError, sentence
from leatstream.model.names import Fqn
from leatstream.model.objects import Query, RelationKind
from leatstream.plan.logical import LogicalPlan
from leatstream.services.environment import Context, Environment, Principal
from leatstream.services.nouns.session_defaults import used
from leatstream.services.planning.analysis import analyze, typed_plan
from leatstream.services.planning.binding import writes_by_key
from leatstream.services.staging.catalog_view import CatalogView, qualify
from leatstream.sql import statements as ast
from leatstream.sql.applications import CHANGING, Written, key, moved, placed, references, write_in
from leatstream.sql.binder import bind
from leatstream.sql.lexer import Source, scan
from leatstream.sql.parser import parse
from leatstream.sql.passes.quotients import Settled

_START = {RelationKind.CHANGELOG: "earliest"}
_MISSING = ("relation", "virtual relation")


@dataclass(slots=True)
class Member:
    """A statement of an application.

    Attributes:
        given: as it stands in the application.
        statement: the same with the virtual relations that it reads written in.
        context: what its unqualified names mean.
        written: where the text of ``statement`` came from; None if it is that of ``given``.
        fqn: of what it makes or writes; None for a virtual relation.
        old: the query that the statement replaces.
    """

    given: ast.Statement
    statement: ast.Statement
    context: Context
    written: Written | None = None
    fqn: Fqn | None = None
    old: Query | None = None

    def placed(self, error: LeatstreamError, whole: str) -> LeatstreamError:
        """Give the faults of an error their places in the whole text."""
        if self.written is not None:
            moved(error, self.written, Source(whole), self.given.position)
        elif isinstance(self.statement, ast.CreateAs | ast.InsertInto):
            placed(error, self.statement)
        return error


@dataclass(slots=True)
class Gathered:
    """Faults of all statements, but for those that only follow from another one's.

    Attributes:
        missing: what the statements that failed would have made.
    """

    errors: list[LeatstreamError] = field(default_factory=list)
    missing: set[str] = field(default_factory=set)

    def note(self, error: LeatstreamError, position: Position, makes: object = None) -> None:
        """Keep an error of one statement; one of the outside world ends it all.

        Args:
            error: changed: faults that only follow from an earlier one are left out.
            position: of the statement.
            makes: name of what it would have made; None = nothing.
        """
        error.at(position)
        if not isinstance(error, RequestError | CatalogError):
            raise error
        follows = {sentence(f"{what} {name} does not exist") for name in self.missing for what in _MISSING}
        error.faults = tuple(fault for fault in error.faults if fault.detail not in follows)
        if error.faults:
            self.errors.append(error)
        if makes is not None:
            self.missing.add(str(makes))

    def raise_if_any(self) -> None:
        """Raise the first error, with the faults of all."""
        if not self.errors:
            return
        faults = [
            # A pointer speaks of the body of another resource.
            replace(f, code=f.code or e.code, sqlstate=f.sqlstate or e.sqlstate, pointer=None)
            for e in self.errors
            for f in e.faults
        ]
        self.errors[0].faults = tuple(faults)
        raise self.errors[0]


@dataclass(slots=True)
class Virtuals:
    """The virtual relations so far: their texts, why one may be read once only, and how often each is.

    ``kept``: the changelogs whose old rows are known only where groups or joins are kept, and whether these
    are groups of windows.
    """

    texts: dict[str, Written] = field(default_factory=dict)
    kept: dict[str, bool] = field(default_factory=dict)
    once: dict[str, str] = field(default_factory=dict)
    reads: Counter[str] = field(default_factory=Counter)
    of: dict[str, Counter[str]] = field(default_factory=dict)

    def count(self, member: Member) -> None:
        """How often each virtual relation is written into a query, through others too.

        Raises:
            RequestError: unsupported, one that must not be is read twice.
        """
        s = member.given
        if not isinstance(s, ast.CreateVirtual | ast.CreateAs | ast.InsertInto):
            return
        mine: Counter[str] = Counter()
        for table in references(s.select):
            name = key(table.meta["name"])
            mine += Counter([name]) + self.of[name]
        if isinstance(s, ast.CreateVirtual):
            self.of[key(s.name)] = mine
            return
        self.reads += mine
        for name, why in self.once.items():
            if self.reads[name] > 1 and mine[name]:
                raise RequestError(
                    "unsupported",
                    f"Virtual relation {name} {why}, so it can be read by one statement once: each reader "
                    "would see a result of its own.",
                    hint="Make it a stream or changelog with a topic: CREATE … AS SELECT.",
                )

    def check_reader(self, env: Environment, member: Member) -> None:
        """State of groups and joins is only continued where rows replace each other.

        Raises:
            RequestError: unsupported, a stream would get each update as a row, and each in its own time.
        """
        s = member.given
        if not isinstance(s, ast.CreateAs | ast.InsertInto) or isinstance(s, ast.CreateChangelogAs):
            return
        with env.open_unit(write=False) as unit:
            if writes_by_key(CatalogView(unit), s, member.context):
                return
        for table in references(s.select):
            names = [key(table.meta["name"]), *self.of[key(table.meta["name"])]]
            found = [name for name in names if name in self.kept]
            by_key = isinstance(s, ast.CreateTableAs | ast.CreateMaterializedViewAs)
            if found and (self.kept[found[0]] or not by_key):
                raise RequestError(
                    "unsupported",
                    f"Virtual changelog {found[0]} keeps groups or joined rows: written into this statement "
                    "it would give other rows than its updates.",
                    hint="Write CREATE CHANGELOG, or make it one with a topic: CREATE CHANGELOG … AS SELECT.",
                )

    def declare(self, env: Environment, member: Member) -> None:
        """Check a virtual relation, whether it is read or not; RequestError for what is wrong."""
        select = member.statement
        given = member.given
        if not isinstance(select, ast.Select) or not isinstance(given, ast.CreateVirtual):
            raise RequestError("sql-syntax", "A virtual relation is a SELECT.", position=given.position)
        with env.planning() as unit:
            view = CatalogView(unit)

            def bound(settled: Settled) -> LogicalPlan:
                return bind(
                    select.select.copy(),
                    lambda name: view.resolve(name, member.context),
                    select.text,
                    changelog=given.changelog,
                    find_function=view.find_function,
                    settled=settled,
                )

            logical = typed_plan(env, bound)
            analyze(env, logical)
        name = key(given.name)
        if not given.changelog and logical.left_most.relation.kind is RelationKind.CHANGELOG:
            raise RequestError(
                "unsupported",
                f"Virtual stream {name} would have the updates of a changelog for rows: what reads it would "
                "take back old ones.",
                hint="Write CREATE VIRTUAL CHANGELOG, or a stream with a topic: CREATE STREAM … AS SELECT.",
            )
        if given.changelog and (logical.aggregation is not None or logical.operator is not None):
            group = logical.aggregation
            self.kept[name] = group is not None and group.window is not None
        if (logical.stateful or logical.operator is not None) and not _same_for_all(logical):
            self.once[name] = "remembers rows (a join, a window or groups)"
        elif any(token.text.lower() in CHANGING for token in scan(select.text)):
            self.once[name] = "gives another value at each call"


def _same_for_all(logical: LogicalPlan) -> bool:
    """Whether what is kept follows from the records alone: of all of them, whenever a reader begins."""
    if logical.primary_key == () or logical.timed or logical.distinct:
        return False
    return all(
        scan.properties.get("starting.position", _START.get(scan.relation.kind)) == "earliest"
        for scan in logical.streams
    )


def read_members(
    env: Environment,
    principal: Principal,
    s: ast.CreateApplication,
    whole: str,
    context: Context,
    virtuals: Virtuals,
    gathered: Gathered,
) -> list[Member]:
    """The statements that create something, in order; faults of unreadable ones are added to ``gathered``.

    Args:
        env: the environment.
        principal: who asks.
        s: the application.
        whole: the text in which positions count.
        context: database, schema and store of the session.
        virtuals: relations that are written where they are used.
        gathered: takes the faults.
    """
    members: list[Member] = []
    for one in s.statements:
        if isinstance(one, ast.Use):
            try:
                _refuse_late_use(one, virtuals)
                context = used(env, principal, one, context)[1]
            except LeatstreamError as error:
                gathered.note(error, one.position)
                break
            continue
        try:
            member = _member(one, whole, context, virtuals)
        except LeatstreamError as error:
            gathered.note(error, one.position, _made(one, context))
            continue
        if member is not None:
            members.append(member)
    return members


def _made(s: ast.Statement, context: Context) -> object:
    if isinstance(s, ast.CreateVirtual):
        return ".".join(s.name.parts)
    try:
        return qualify(s.name, context) if isinstance(s, ast.CreateStream | ast.CreateAs) else None
    except LeatstreamError:
        return None


def _member(s: ast.Statement, whole: str, context: Context, virtuals: Virtuals) -> Member | None:
    if isinstance(s, ast.CreateVirtual):
        _refuse_declaration(s, virtuals)
        written = write_in(whole, s, virtuals.texts)
        virtuals.texts[key(s.name)] = written
        return Member(s, _parsed(written, whole, s), context, written)
    if not isinstance(s, ast.CreateStream | ast.CreateAs | ast.InsertInto):
        return None
    fqn = qualify(s.name, context)
    if not _reads_virtual(s):
        return Member(s, s, context, fqn=fqn)
    written = write_in(whole, s, virtuals.texts)
    return Member(s, _parsed(written, whole, s), context, written, fqn)


def _parsed(written: Written, whole: str, s: ast.Statement) -> ast.Statement:
    try:
        return parse(written.text)[0]
    except LeatstreamError as error:
        moved(error, written, Source(whole), s.position)
        raise


def _reads_virtual(s: ast.Statement) -> TypeGuard[ast.CreateAs | ast.InsertInto]:
    return isinstance(s, ast.CreateAs | ast.InsertInto) and any(True for _ in references(s.select))


def _refuse_late_use(s: ast.Use, virtuals: Virtuals) -> None:
    if virtuals.texts:
        raise RequestError(
            "unsupported",
            "USE after a virtual relation would change what its names mean.",
            position=s.position,
            hint="Write USE at the beginning of the application.",
        )


def _refuse_declaration(s: ast.CreateVirtual, virtuals: Virtuals) -> None:
    if key(s.name) in virtuals.texts:
        detail = f"Virtual relation {key(s.name)} is declared twice."
        raise CatalogError("already-exists", detail, position=s.name.position)

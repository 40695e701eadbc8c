"""An application's new version: what it creates, changes, keeps and deletes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from leatstream.errors import CatalogError, LeatstreamError, RequestError
from leatstream.model.names import Fqn, quote
from leatstream.model.objects import DesiredState, Query
from leatstream.model.registered import Application
from leatstream.plan.change import Change
from leatstream.services.applications import joint
from leatstream.services.applications.members import Gathered, Member, Virtuals, read_members
from leatstream.services.environment import (
    Context,
    Environment,
    Precondition,
    Principal,
    new_meta,
    next_meta,
)
from leatstream.services.planning.query_properties import query_name
from leatstream.services.queries import catalog as queries
from leatstream.services.queries.definition import QueryDefinition, suggest_query_name
from leatstream.services.queries.joint_jobs import leader_of
from leatstream.services.queries.removal import delete_query
from leatstream.services.relations import relations
from leatstream.services.relations.declarations import relation_definition
from leatstream.sql import statements as ast
from leatstream.sql.applications import key, references
from leatstream.sql.canonical import same_meaning
from leatstream.sql.parser import parse

_NEW = Precondition(must_be_new=True)
# By how much a change does to the jobs.
_ORDER = ("none", "hot", "restart-from-offsets", "restart-keep-state", "new-state", "refused")


@dataclass(frozen=True, slots=True)
class ApplicationDefinition:
    """What the user writes of an application."""

    sql: str
    context: Context = field(default_factory=Context)
    desired_state: DesiredState = DesiredState.RUNNING
    comment: str | None = None


@dataclass(slots=True)
class _Making:
    """One version in the making.

    Attributes:
        name: of the application.
        own: names of the queries of the version before.
        later: full names of what statements further down make.
        reshaped: relations that have lost or changed a column.
        entries: of each query: name, action, plan, and the name of the query whose job it is part of.
        one_job: whether its queries are to be one job as far as they can be.
    """

    env: Environment
    principal: Principal
    name: str
    body: ApplicationDefinition
    old: Application | None
    whole: str
    own: tuple[str, ...] = ()
    later: set[str] = field(default_factory=set)
    reshaped: set[str] = field(default_factory=set)
    entries: list[dict[str, Any]] = field(default_factory=list)
    relations: list[str] = field(default_factory=list)
    virtuals: Virtuals = field(default_factory=Virtuals)
    gathered: Gathered = field(default_factory=Gathered)
    one_job: bool = False


def make_application(
    env: Environment,
    principal: Principal,
    statement: ast.CreateApplication,
    body: ApplicationDefinition,
    whole: str,
    old: Application | None,
) -> Application:
    """Make everything an application says, in a staged environment.

    Args:
        env: staged, so that nothing is kept if anything is wrong.
        principal: who asks.
        statement: the application.
        body: what the user writes.
        whole: the text that the statement's positions count in.
        old: the version before: a query whose statement stays is not touched.

    Raises:
        LeatstreamError: the first error, with the faults of every statement at their places in ``whole``.
    """
    making = _Making(env, principal, statement.name.parts[0], body, old, whole)
    making.one_job = joint.wants_one_job(statement.properties)
    _refuse_other_jobs(making)
    members = read_members(env, principal, statement, whole, body.context, making.virtuals, making.gathered)
    before = _queries_of(env, old)
    making.own = tuple(q.name for q in before)
    _match(members, before)
    making.later = {str(m.fqn) for m in members if _makes(m)}
    for member in members:
        try:
            _make(making, member)
        except LeatstreamError as error:
            makes = key(member.given.name) if isinstance(member.given, ast.CreateVirtual) else member.fqn
            making.gathered.note(member.placed(error, whole), member.given.position, makes)
    making.gathered.raise_if_any()
    kept = {member.old.name for member in members if member.old is not None}
    leaving = [q for q in before if q.name not in kept]
    try:
        if making.one_job:
            _join(making, kept, leaving, before)
        return _keep(making, statement, leaving)
    except LeatstreamError as error:
        raise error.at(statement.name.position) from None


def _refuse_other_jobs(making: _Making) -> None:
    """Whether queries are one job is said once: their checkpoints are not made for the other way."""
    old = making.old
    if old is None:
        return
    (before,) = parse(old.sql)
    if isinstance(before, ast.CreateApplication) and (
        joint.wants_one_job(before.properties) is not making.one_job
    ):
        raise _must_be_replaced(f"'{joint.JOB}' of application {quote(making.name)} cannot change.")


def _join(making: _Making, kept: set[str], leaving: list[Query], before: list[Query]) -> None:
    """See that what was one job still fits, and make the new queries one."""
    with making.env.open_unit(write=False) as unit:
        there = [unit.queries.find(entry["name"]) for entry in making.entries]
    found = [query for query in there if query is not None]
    joint.check_kept([query for query in found if query.name in kept], leaving, before)
    joint.join_new(making.env, [query for query in found if query.name not in kept])
    with making.env.open_unit(write=False) as unit:
        for entry, query in zip(making.entries, there, strict=True):
            now = unit.queries.find_by_id(query.meta.id) if query is not None else None
            leader = unit.queries.find_by_id(leader_of(now) or "") if now is not None else None
            entry["job"] = leader.name if leader is not None else entry["name"]


def _queries_of(env: Environment, application: Application | None) -> list[Query]:
    """The existing queries of an application, without those that are being deleted."""
    with env.open_unit(write=False) as unit:
        found = [unit.queries.find(name) for name in application.queries] if application else []
    return [query for query in found if query is not None and not query.deleting]


def _makes(member: Member) -> bool:
    return isinstance(member.statement, ast.CreateStream | ast.CreateAs)


def _match(members: list[Member], before: list[Query]) -> None:
    """Find the query that each statement replaces: by its sink; of several INSERTs that of the same text."""
    left = list(before)
    statements = [m for m in members if isinstance(m.statement, ast.CreateAs | ast.InsertInto)]
    for same_text in (True, False):
        for member in statements:
            if member.old is None:
                member.old = next((q for q in left if _replaces(member, q, same_text)), None)
                left = [q for q in left if q is not member.old]


def _replaces(member: Member, query: Query, same_text: bool) -> bool:
    s = member.statement
    if query.sink != str(member.fqn) or isinstance(s, ast.CreateAs) is not query.kind.makes_sink:
        return False
    named = query_name(s.query_properties) if isinstance(s, ast.InsertInto) else None
    if named is not None:
        return named == query.name
    return not same_text or same_meaning(query.sql, s.text)


def _make(making: _Making, member: Member) -> None:
    s, given = member.statement, member.given
    making.virtuals.count(member)
    if isinstance(given, ast.CreateVirtual | ast.CreateAs | ast.InsertInto):
        names = {key(table.meta["name"]) for table in references(given.select)}
        if names & making.gathered.missing:
            # The fault is reported where the virtual relation is declared.
            made = key(given.name) if isinstance(given, ast.CreateVirtual) else str(member.fqn)
            making.gathered.missing.add(made)
            return
    if isinstance(given, ast.CreateVirtual):
        making.virtuals.declare(making.env, member)
    elif isinstance(s, ast.CreateStream) and member.fqn is not None:
        _make_relation(making, member, s, member.fqn)
    elif isinstance(s, ast.CreateAs | ast.InsertInto) and member.fqn is not None:
        making.virtuals.check_reader(making.env, member)
        _make_query(making, member, s, member.fqn)
    making.later.discard(str(member.fqn))


def _make_relation(making: _Making, member: Member, s: ast.CreateStream, fqn: Fqn) -> None:
    env = making.env
    with env.open_unit(write=False) as unit:
        before = unit.relations.find(str(fqn))
        query = unit.queries.find_by_id(before.created_by_query or "") if before is not None else None
    mine = making.old is not None and str(fqn) in making.old.relations
    if query is not None and query.name in making.own:
        raise _must_be_replaced(f"{fqn} is made by query {quote(query.name)}, and is to be declared now.")
    body = relation_definition(s, member.context)
    pre = Precondition() if mine else _NEW
    after = relations.put_relation(
        env, making.principal, fqn, body, pre, making.own, application=making.name
    ).item
    if before is not None and not relations.compatible(before, after):
        making.reshaped.add(str(fqn))
    making.relations.append(str(fqn))


def _make_query(making: _Making, member: Member, s: ast.CreateAs | ast.InsertInto, fqn: Fqn) -> None:
    env, old = making.env, member.old
    if making.old is not None and isinstance(s, ast.CreateAs) and str(fqn) in making.old.relations:
        raise _must_be_replaced(f"{fqn} is declared by its columns, and is to be made by a query now.")
    named = query_name(s.query_properties)
    if old is not None and named not in (None, old.name):
        raise _must_be_replaced(f"Query {quote(old.name)} cannot become query {named}.")
    name = old.name if old is not None else suggest_query_name(env, s, fqn, making.name)
    body = _definition(making, member, s)
    replan = old is not None and bool(making.reshaped.intersection((*old.sources, old.sink)))
    replan = replan or (old is not None and making.one_job and joint.reads_stale(env, old))
    before = _columns(env, fqn)
    adapt = joint.adapted(env, s.query_properties, old) if making.one_job else None
    pre = _NEW if old is None else Precondition()
    stored = queries.put_query(env, making.principal, name, body, pre, making.own, replan=replan, adapt=adapt)
    late = making.later.difference([str(fqn)]).intersection(stored.item.sources)
    if late:
        raise RequestError(
            "unknown-relation",
            f"Relation {min(late)} is made further down in the application.",
            hint="Write the statement that makes it first.",
        )
    if not before <= _columns(env, fqn):
        making.reshaped.add(str(fqn))
    touched = old is not None and (replan or not queries.same_statement(old, body))
    action = "create" if old is None else "change" if touched else "keep"
    plan = dict(stored.item.plan)
    if action != "change":
        plan.pop("change", None)
    making.entries.append({"name": name, "action": action, "plan": plan, "job": name})


def _definition(making: _Making, member: Member, s: ast.CreateAs | ast.InsertInto) -> QueryDefinition:
    """What the text does not say of the query stays; so does one that was stopped alone, until it changes."""
    body = QueryDefinition(s.text, replace(member.context, role=None), making.body.desired_state)
    old = member.old
    if old is None:
        return body
    body = replace(body, delete_sink_entity=old.delete_sink_entity, comment=old.comment)
    turned = making.old is None or making.old.desired_state is not body.desired_state
    stays = not turned and queries.same_statement(old, body)
    return replace(body, desired_state=old.desired_state) if stays else body


def _columns(env: Environment, fqn: Fqn) -> set[Any]:
    with env.open_unit(write=False) as unit:
        found = unit.relations.find(str(fqn))
    return set() if found is None else set(found.columns)


def _must_be_replaced(detail: str) -> CatalogError:
    return CatalogError(
        "requires-replacement",
        detail,
        hint="Drop the application and make it again; topics keep the records.",
    )


def _keep(making: _Making, statement: ast.CreateApplication, leaving: list[Query]) -> Application:
    """Write the application down, then end what it no longer has."""
    env, old, body = making.env, making.old, making.body
    now = env.clock.now()
    removed = [query.name for query in leaving]
    change = _overall(making.entries, removed) if old is not None else None
    application = Application(
        meta=next_meta(old.meta, now) if old is not None else new_meta("app", making.principal, now),
        name=making.name,
        sql=body.sql,
        context=replace(body.context, role=None).as_json(),
        queries=tuple(entry["name"] for entry in making.entries),
        relations=tuple(making.relations),
        virtual=tuple(making.virtuals.texts),
        comment=body.comment,
        desired_state=body.desired_state,
        plan={
            "queries": making.entries,
            "removed": removed,
            "relations": making.relations,
            "virtual_relations": [*making.virtuals.texts],
            "change": {"class": change.kind, "reason": change.reason} if change is not None else None,
        },
    )
    with env.open_unit() as unit:
        if old is None:
            unit.applications.add(application)
        else:
            unit.applications.update(application)
        unit.commit()
    for query in reversed(leaving):
        delete_query(env, making.principal, query.name)
    for gone in reversed([r for r in (old.relations if old else ()) if r not in making.relations]):
        relations.delete_relation(env, making.principal, Fqn.parse(gone))
    return application


def _overall(entries: list[dict[str, Any]], removed: list[str]) -> Change:
    """The greatest of the changes, and what happens to each query that does not stay as it is."""
    worst = _ORDER.index("new-state") if removed else 0
    reasons = [f"query {quote(name)}: it ends, and what it kept is deleted" for name in removed]
    for entry in entries:
        change = entry["plan"].get("change")
        if entry["action"] == "create":
            kind, reason = "hot", "it is new"
        elif change is not None:
            kind, reason = change["class"], f"{change['class']}, {change['reason']}"
        else:
            continue
        worst = max(worst, _ORDER.index(kind))
        reasons.append(f"query {quote(entry['name'])}: {reason}")
    return Change(_ORDER[worst], "; ".join(reasons) or "the queries stay as they are")  # type: ignore[arg-type]

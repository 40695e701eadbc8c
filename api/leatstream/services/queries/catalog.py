"""Queries: continuous statements, each with a job of its own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from leatstream.errors import CatalogError, already_exists, not_found
from leatstream.model.names import Fqn, quote
from leatstream.model.objects import (
    CheckpointOrigin,
    DesiredState,
    Meta,
    Query,
    QueryState,
    QueryStatus,
    Relation,
    Store,
)
from leatstream.plan.job_spec import JobSpec
from leatstream.ports import UnitOfWork
from leatstream.services.environment import (
    Context,
    Environment,
    Page,
    Precondition,
    Principal,
    Stored,
    new_meta,
)
from leatstream.services.environment.authorization import READ, WRITE, authorize
from leatstream.services.environment.pages import ANY, Only, repository_page
from leatstream.services.nouns.application_owners import refuse_changed_alone
from leatstream.services.nouns.entity_drops import drops_seen, require_not_dropped
from leatstream.services.nouns.schemas import require_schema
from leatstream.services.planning.binding import ContinuousStatement
from leatstream.services.planning.change_feeds import refuse_second_readers
from leatstream.services.planning.query import PlannedQuery
from leatstream.services.planning.query_properties import NAME, query_name, refuse_other_name
from leatstream.services.planning.statement import plan_statement
from leatstream.services.queries.checkpoints.origin import origin_of, refuse_unbegun
from leatstream.services.queries.definition import QueryDefinition, definition_of, statement_of
from leatstream.services.queries.joint_jobs import refuse_alone
from leatstream.services.queries.pulse import as_seen
from leatstream.services.queries.replace.in_place import (
    check_replacement,
    refuse_unswapped,
    replace_query,
)
from leatstream.services.queries.save import keep_query, note_version
from leatstream.services.staging.catalog_view import CatalogView
from leatstream.sql.canonical import same_meaning, statement_hash
from leatstream.sql.statements import Properties

_PART = 1000
_TRIES = 5
_T = TypeVar("_T")


def put_query(
    env: Environment,
    principal: Principal,
    name: str,
    body: QueryDefinition,
    pre: Precondition = Precondition(),  # noqa: B008 - immutable
    within: Collection[str] = (),
    *,
    replan: bool = False,
    adapt: Callable[[JobSpec], JobSpec] | None = None,
) -> Stored[Query]:
    """Create or replace a query. The plan is checked whole before anything is stored; then the job starts.

    An unchanged body changes nothing. A changed SQL text restarts the job; ``plan.change`` says what
    happens to its state. ``desired_state`` and ``delete_sink_entity`` alone never restart it.

    Args:
        env: the environment.
        principal: who asks.
        name: exact name.
        body: what the user writes.
        pre: precondition.
        within: names of queries that change together with this one, so that none of them holds its shape.
        replan: plan it again even if its statement stays, because what it reads has another shape.
        adapt: makes of the planned job what the application that the query belongs to asks for.
    """
    authorize(principal, WRITE, "query", name)
    with env.open_unit(write=False) as unit:
        old = unit.queries.find(name)
        pre.check(old.meta.generation if old else None, "query", name)
        refuse_deleting(old)
        if old is not None and name not in within and _acts(old, body):
            refuse_alone(unit, old)
            if not same_statement(old, body):
                refuse_changed_alone(unit, name)
    planned = change = None
    properties: Properties = {}
    # What needs no plan, such as to stop, waits for nobody who plans.
    if old is None or replan or not same_statement(old, body):
        statement = statement_of(body)
        properties = statement.query_properties
        refuse_other_name(properties, name)
        planned = _planned(env, old, statement, body.context, within, adapt)
        if old is None:
            refuse_unbegun(env, properties, planned.job)
    with env.open_unit() as unit:
        current = unit.queries.find(name)
        pre.check(current.meta.generation if current else None, "query", name)
        refuse_deleting(current)
        if planned is not None:
            require_basis(unit, planned)
            if current is None and planned.kind.makes_sink:
                require_not_dropped(unit, env.clock.now(), planned.sink, planned.drops)
            refuse_second_readers(unit, planned.job, current)
            change = check_replacement(unit, current, planned, within) if current else None
        if current is None and planned is not None:
            origin = origin_of(unit, properties, planned.job)
            made = _add(env, principal, unit, name, body, planned, origin)
            stored = Stored(made, created=True, changed=True)
        elif current is not None and old is not None and current.meta == old.meta:
            stored = replace_query(env, principal, unit, current, body, planned, change)
        else:
            raise CatalogError("stale", f"Query {name} was changed by someone else at the same moment.")
        unit.commit()
    env.changed.notify()
    return stored


def _planned(
    env: Environment,
    old: Query | None,
    statement: ContinuousStatement,
    context: Context,
    within: Collection[str],
    adapt: Callable[[JobSpec], JobSpec] | None,
) -> PlannedQuery:
    """The plan of a query that is new or takes the place of ``old``."""
    with env.planning() as unit:
        seen = drops_seen(unit)
        planned = replace(plan_statement(env, CatalogView(unit), statement, context), drops=seen)
        if adapt is not None:
            planned = replace(planned, job=adapt(planned.job))
        if old is not None:
            change = check_replacement(unit, old, planned, within)
            refuse_unswapped(unit, old, statement.query_properties, change)
    return planned


def create_query(env: Environment, principal: Principal, name: str, body: QueryDefinition) -> Stored[Query]:
    """Create; CatalogError already-exists if it is there.

    Args:
        env: the environment.
        principal: who asks.
        name: of the query.
        body: its definition.
    """
    return put_query(env, principal, name, body, Precondition(must_be_new=True))


def patch_query(
    env: Environment,
    principal: Principal,
    name: str,
    changes: Mapping[str, Any] | Callable[[Query], Mapping[str, Any]],
    pre: Precondition = Precondition(),  # noqa: B008
    within: Collection[str] = (),
) -> Stored[Query]:
    """Change some members: any field of QueryDefinition by name, or a function of the present query.

    The others stay as they are when it is written. ``within`` as ``put_query`` has it.

    Args:
        env: the environment.
        principal: who asks.
        name: of the query.
        changes: new values by name, or what makes them.
        pre: precondition.
        within: names of queries that change with it.
    """

    def put(old: Query, exact: Precondition) -> Stored[Query]:
        given = changes(old) if callable(changes) else changes
        return put_query(env, principal, name, replace(definition_of(old), **given), exact, within)

    return as_it_is(env, principal, name, pre, put)


def as_it_is(
    env: Environment,
    principal: Principal,
    name: str,
    pre: Precondition,
    put: Callable[[Query, Precondition], _T],
) -> _T:
    """Write what is made of the present query: once more, if somebody else has changed it meanwhile.

    Args:
        env: the environment.
        principal: who asks.
        name: exact name.
        pre: precondition; who names a version means this one, and nothing is repeated.
        put: writes it, if the precondition that it is given holds: that the query is still the one it got.
    """
    for left in reversed(range(_TRIES)):
        old = get_query(env, principal, name)
        exact = replace(pre, if_match=old.meta.generation) if pre.if_match is None else pre
        try:
            return put(old, exact)
        except CatalogError as error:
            if error.code != "stale" or exact is pre or not left:
                raise
    raise AssertionError  # the last try returns or raises


def refuse_deleting(query: Query | None) -> None:
    """CatalogError invalid-transition for a query that is on its way out."""
    if query is not None and query.deleting:
        raise CatalogError(
            "invalid-transition",
            f"Query {quote(query.name)} is being deleted.",
            hint="Wait until it is gone.",
        )


def _acts(old: Query, body: QueryDefinition) -> bool:
    """Whether the job has to follow a change."""
    return not same_statement(old, body) or old.desired_state is not body.desired_state


def same_statement(old: Query, body: QueryDefinition) -> bool:
    """Whether the job stays: equal by meaning, in the same context."""
    return (
        same_meaning(old.sql, body.sql)
        and dict(old.context) == body.context.as_json()
        and dict(old.properties) == dict(body.properties)
    )


def require_basis(unit: UnitOfWork, planned: PlannedQuery) -> None:
    """What was planned with must still be so: planning asks stores, and meanwhile others may write."""
    relations = [scan.relation for scan in planned.logical.scans]
    if not planned.kind.makes_sink:
        relations.append(planned.sink)
    known: list[tuple[str, Meta, Relation | Store | None]] = [
        *((str(r.fqn), r.meta, unit.relations.find(str(r.fqn))) for r in relations),
        # Who may read a relation needs to see neither its store nor what that is called.
        *(
            (s.name if unit.stores.find(s.name) else "A store", s.meta, unit.unfiltered.stores.find(s.name))
            for s in planned.stores.values()
        ),
    ]
    for name, meta, now in known:
        if now is None or now.meta != meta:
            raise CatalogError(
                "stale", f"{name} was changed by someone else while this was planned.", hint="Send it again."
            )


def _add(
    env: Environment,
    principal: Principal,
    unit: UnitOfWork,
    name: str,
    body: QueryDefinition,
    planned: PlannedQuery,
    origin: CheckpointOrigin | None,
) -> Query:
    now = env.clock.now()
    meta = new_meta("qry", principal, now)
    if planned.kind.makes_sink:
        fqn = planned.sink.fqn
        require_schema(unit, fqn.database, fqn.schema)
        if unit.relations.find(str(fqn)) is not None:
            raise already_exists("relation", str(fqn))
        relation_meta = new_meta("rel", principal, now)
        unit.relations.add(replace(planned.sink, meta=relation_meta, created_by_query=meta.id))
    query = Query(
        meta=meta,
        name=name,
        kind=planned.kind,
        sql=body.sql,
        statement_hash=statement_hash(body.sql),
        context=body.context.as_json(),
        sources=planned.sources,
        sink=str(planned.sink.fqn),
        desired_state=body.desired_state,
        delete_sink_entity=body.delete_sink_entity,
        comment=body.comment,
        properties=dict(body.properties),
        effective=planned.effective,
        plan=planned.as_json(),
        job=planned.job.model_dump(mode="json"),
        code=dict(planned.code),
        origin=origin,
        status=_initial_status(body.desired_state, origin, now),
    )
    keep_query(unit, None, query, now)
    note_version(unit, principal, query, None, now)
    return query


def _initial_status(desired: DesiredState, origin: CheckpointOrigin | None, now: Any) -> QueryStatus:
    state = QueryState.PENDING if desired is DesiredState.RUNNING else QueryState.STOPPED
    return QueryStatus(
        state=state,
        since=now,
        observed_generation=0 if state is QueryState.PENDING else 1,
        # A copied checkpoint is state that can be lost.
        never_ran=origin is None,
    )


def get_query(env: Environment, principal: Principal, name: str) -> Query:
    """The query as it is seen now; CatalogError not-found.

    Args:
        env: the environment.
        principal: who asks.
        name: of the query.
    """
    authorize(principal, READ, "query", name)
    with env.open_unit(write=False) as unit:
        return as_seen(require_query(unit, name), env.clock.now())


def require_query(unit: UnitOfWork, name: str) -> Query:
    """The query inside a unit; CatalogError not-found."""
    found = unit.queries.find(name)
    if found is None:
        raise not_found("query", quote(name))
    return found


def made_by(env: Environment, fqn: Fqn, properties: Properties) -> Query | None:
    """The query that makes a stream, for CREATE OR REPLACE; None when there is no such stream yet.

    Args:
        env: the environment.
        fqn: full name of the stream.
        properties: of the statement.

    Raises:
        CatalogError: requires-replacement, when the stream was declared or the statement names another query.
    """
    with env.open_unit(write=False) as unit:
        relation = unit.relations.find(str(fqn))
        if relation is None:
            return None
        query = unit.queries.find_by_id(relation.created_by_query or "")
    if query is None:
        raise CatalogError(
            "requires-replacement",
            f"Stream {fqn} was declared, it is not made by a query that could be replaced.",
            hint=f"DROP STREAM {fqn} first; its topic keeps the records",
        )
    named = query_name(properties)
    if named not in (None, query.name):
        raise CatalogError(
            "requires-replacement",
            f"Stream {fqn} is made by query {quote(query.name)}; it cannot become query {named}.",
            **properties[NAME].place,
            hint="Leave 'query.name' out.",
        )
    return query


def list_queries(
    env: Environment,
    principal: Principal,
    page_size: int = 100,
    page_token: str | None = None,
    only: Only = ANY,
) -> Page[Query]:
    """One page of queries by name.

    Args:
        env: the environment.
        principal: who asks.
        page_size: the most items of a page.
        page_token: of the page wanted; None = the first.
        only: what the list is narrowed to.
    """
    authorize(principal, READ, "queries")
    with env.open_unit(write=False) as unit:
        now, application = env.clock.now(), only.wanted.get("application")
        members = _members(unit, application)
        page = repository_page(
            unit.queries,
            lambda q: q.name,
            "queries",
            page_size,
            page_token,
            only=only,
            has=lambda q: {
                **_has(as_seen(q, now)),
                "application": application if q.name in members else None,
            },
        )
    return replace(page, items=[as_seen(query, now) for query in page.items])


def _members(unit: UnitOfWork, application: str | None) -> frozenset[str]:
    """Names of an application's queries; none of one that the caller does not see."""
    found = unit.applications.find(application) if application is not None else None
    return frozenset(found.queries if found is not None else ())


def _has(query: Query) -> Mapping[str, Any]:
    """Its values for the filters of lists; database and schema are those of the sink."""
    sink, store = Fqn.parse(query.sink), query.effective.get("store")
    return {
        "state": query.status.state,
        "kind": query.kind,
        "database": sink.database,
        "schema": sink.schema,
        "store": store.value if store is not None else query.context.get("store"),
    }


def all_queries(env: Environment) -> Iterator[Query]:
    """Every query, for the server itself; read in parts, each as it is at its moment."""
    after = ""
    while True:
        with env.open_unit(write=False) as unit:
            page = unit.queries.page(after=after, limit=_PART)
        now = env.clock.now()
        yield from (as_seen(query, now) for query in page)
        if len(page) < _PART:
            return
        after = page[-1].name


def query_logs(env: Environment, principal: Principal, name: str, tail: int = 50) -> list[str]:
    """The job's last log lines, oldest first.

    Args:
        env: the environment.
        principal: who asks.
        name: of the query.
        tail: the most lines.
    """
    query = get_query(env, principal, name)
    return list(query.status.log_tail)[-tail:]

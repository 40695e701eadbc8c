"""Blue-green replacement: the changed query comes up beside the old one, then takes its place.

Three names play a part: ``v`` is the query that people know; ``v__green`` is to take its place, with its
own checkpoint and rows; ``v__blue`` had it, and is kept for a while, stopped. Swapped are names and whose
rows the relation shows, in one transaction. Both jobs go on by the rules for any query. What writes into a
topic hands over at one place of its sources: see ``hand_over``.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from leatstream.connectors.registry import kinds_that, kinds_without
from leatstream.errors import CatalogError, RequestError
from leatstream.model.names import quote
from leatstream.model.objects import DesiredState, Query, QueryKind, QueryState, QueryStatus
from leatstream.plan.job_spec import JobSpec, Mode
from leatstream.ports import UnitOfWork
from leatstream.services.environment import Environment, Precondition, Principal, new_meta, next_meta
from leatstream.services.environment.authorization import OPERATE, WRITE, authorize
from leatstream.services.nouns.application_owners import query_owner
from leatstream.services.planning.query import PlannedQuery
from leatstream.services.planning.query_properties import IN_PLACE, refuse_other_name, unswappable
from leatstream.services.planning.statement import plan_statement
from leatstream.services.queries.catalog import refuse_deleting, require_basis, require_query, same_statement
from leatstream.services.queries.checkpoints.first_offsets import beginning_as
from leatstream.services.queries.definition import QueryDefinition, statement_of
from leatstream.services.queries.replace.hand_over import take_over_at_once
from leatstream.services.queries.replace.in_place import (
    BLUE,
    GREEN,
    check_replacement,
    needs_another,
    refuse_beside,
)
from leatstream.services.queries.replace.swap import SWAPPED
from leatstream.services.queries.save import keep_query
from leatstream.services.staging.catalog_view import CatalogView
from leatstream.sql.canonical import statement_hash


def replace_beside(
    env: Environment,
    principal: Principal,
    name: str,
    body: QueryDefinition,
    pre: Precondition = Precondition(),  # noqa: B008
) -> Query | None:
    """Start a changed query beside the one that it shall replace; ``take_over`` swaps them later.

    Args:
        env: the environment.
        principal: who asks.
        name: of the query that keeps the view now.
        body: what it shall be.
        pre: precondition.

    Returns:
        The new query; None where the job would stay as it is, so that there is nothing to do beside it.

    Raises:
        CatalogError: not-found, stale, invalid-transition, requires-replacement, has-dependents.
        RequestError: unsupported, for what cannot be swapped; what is wrong with the statement.
    """
    authorize(principal, WRITE, "query", name)
    with env.open_unit(write=False) as unit:
        old = require_query(unit, name)
        pre.check(old.meta.generation, "query", name)
        _refuse(env, unit, old)
    if same_statement(old, body):
        return None
    statement = statement_of(body)
    refuse_other_name(statement.query_properties, name)
    with env.planning() as unit:
        planned = plan_statement(env, CatalogView(unit), statement, body.context)
        if not needs_another(old, check_replacement(unit, old, planned)):
            return None
    _refuse_sources(old, planned)
    planned = replace(planned, job=beginning_as(env, old, planned.job))
    _refuse_hand_over(old, planned.job)
    with env.open_unit() as unit:
        current = require_query(unit, name)
        if current.meta != old.meta:
            raise CatalogError("stale", f"Query {name} was changed by someone else at the same moment.")
        _refuse(env, unit, current)
        require_basis(unit, planned)
        check_replacement(unit, current, planned)
        _let_go(unit, current, env.clock.now())
        green = _green(env, principal, current, body, planned)
        keep_query(unit, None, green, env.clock.now())
        unit.commit()
    env.changed.notify()
    return green


def rollback(env: Environment, principal: Principal, name: str) -> Query:
    """Let the version before take over again: it resumes from its checkpoint, and is swapped as any other.

    Of queries that write into a topic it takes over at once where the present version does not run.

    Args:
        env: the environment.
        principal: who asks.
        name: of the query.

    Raises:
        CatalogError: not-found; invalid-transition, if none is kept or a replacement is under way.
        RequestError: unsupported, if the present version reads otherwise by now.
    """
    authorize(principal, OPERATE, "query", name)
    with env.open_unit() as unit:
        current = require_query(unit, name)
        refuse_deleting(current)
        refuse_beside(unit, current)
        kept = _beside(unit, current, BLUE)
        if kept is None or kept.deleting:
            raise CatalogError(
                "invalid-transition",
                f"No version of query {quote(name)} is kept that could take over again.",
                hint="DESCRIBE QUERY HISTORY has the statements of earlier versions",
            )
        status = replace(kept.status, observed_generation=kept.meta.generation + 1, restarts=0, error=None)
        green = replace(
            kept,
            name=name + GREEN,
            kept_until=None,
            desired_state=DesiredState.RUNNING,
            meta=next_meta(kept.meta, env.clock.now()),
            status=replace(status, message=_waits(name), next_attempt_at=None),
        )
        keep_query(unit, kept, green, env.clock.now())
        if green.is_silent:
            _refuse_pair(current, JobSpec.model_validate(green.job))
            if current.status.state is not QueryState.RUNNING:
                take_over_at_once(env, unit, green, current)
        unit.commit()
        found = unit.queries.find_by_id(green.meta.id)
    env.changed.notify()
    return found or green


def _green(
    env: Environment, principal: Principal, old: Query, body: QueryDefinition, planned: PlannedQuery
) -> Query:
    now = env.clock.now()
    meta = new_meta("qry", principal, now)
    return Query(
        meta=meta,
        name=old.name + GREEN,
        kind=planned.kind,
        sql=body.sql,
        statement_hash=statement_hash(body.sql),
        context=body.context.as_json(),
        sources=planned.sources,
        sink=old.sink,
        delete_sink_entity=old.delete_sink_entity,
        comment=body.comment,
        properties=dict(body.properties),
        effective=planned.effective,
        plan=planned.as_json(SWAPPED),
        job=planned.job.model_dump(mode="json"),
        code=dict(planned.code),
        skipped=old.skipped,
        beside=old.meta.id,
        beside_relation=replace(planned.sink, meta=meta, created_by_query=meta.id),
        own_rows=planned.job.sink.stored_view,
        status=QueryStatus(state=QueryState.PENDING, since=now, message=_waits(old.name)),
    )


def _waits(name: str) -> str:
    return f"it takes over from {name} when it has caught up"


def _beside(unit: UnitOfWork, query: Query, role: str) -> Query | None:
    found = unit.queries.find(query.name + role)
    return found if found is not None and found.beside is not None else None


def _let_go(unit: UnitOfWork, query: Query, now: datetime) -> None:
    """One predecessor is kept at most."""
    kept = _beside(unit, query, BLUE)
    if kept is not None and not kept.deleting:
        keep_query(unit, kept, replace(kept, deleting=True), now)


def _refuse(env: Environment, unit: UnitOfWork, query: Query) -> None:
    refuse_deleting(query)
    refuse_beside(unit, query)
    relation = unit.relations.find(query.sink)
    store_kind = query.job.get("sink", {}).get("store", {}).get("kind", "")
    why = unswappable(relation, store_kind) if relation is not None else None
    if env.staged:
        why = "it takes time, so that it is no part of an atomic text"
    elif query_owner(unit, query.name) is not None:
        why = "the query belongs to an application"
    _refuse_for(why)
    gone = not query.is_wanted or query.status.state is QueryState.FAILED
    if query.kind is not QueryKind.CREATE_MATERIALIZED_VIEW_AS and gone:
        raise CatalogError(
            "invalid-transition",
            f"Query {quote(query.name)} does not run: there is none from which another could take over.",
            hint="RESTART QUERY before; or leave 'replace.mode' out",
        )
    for name in (query.name + GREEN, query.name + BLUE):
        taken = unit.queries.find(name)
        if taken is not None and taken.beside is None:
            raise CatalogError(
                "already-exists",
                f"A replacement of {quote(query.name)} needs the name {quote(name)}, which is taken.",
            )


def _refuse_sources(old: Query, planned: PlannedQuery) -> None:
    kinds = kinds_without("positions", (s.store.kind for s in planned.job.sources))
    ordered = kinds_that("positions")
    why = (
        f"it compares positions in stores of kind {ordered}, and the query reads {', '.join(kinds)}"
        if kinds
        else None
    )
    if planned.job.available_now or old.job.get("available_now"):
        why = "it is of queries that run on, and this one completes"
    _refuse_for(why)


def _refuse_hand_over(old: Query, job: JobSpec) -> None:
    if old.kind is QueryKind.CREATE_MATERIALIZED_VIEW_AS:
        return
    _refuse_pair(old, job)
    if any(source.starting_position == "latest" for source in job.sources):
        _refuse_for("where the query began to read is unknown: set 'starting.position' with its sources")


def _refuse_pair(old: Query, job: JobSpec) -> None:
    """What writes into a topic ends, and begins, at positions and an event time that both versions have."""
    before = JobSpec.model_validate(old.job)
    entities = {(s.store.name, s.entity) for s in job.sources}
    why = None
    if Mode.REALTIME in (before.mode, job.mode):
        why = "a query in real-time mode does not end between two batches: say 'mode' = 'micro_batch' before"
    elif _reads(before) != _reads(job):
        why = "both versions have to read the same topics, with the same event time"
    elif len({entity for _, entity in entities}) < len(entities):
        why = "the query reads topics of the same name in several stores"
    _refuse_for(why)


def _reads(job: JobSpec) -> list[tuple[str | None, ...]]:
    return sorted((s.store.name, s.entity, s.timestamp or "", s.timestamp_format or "") for s in job.sources)


def _refuse_for(why: str | None) -> None:
    if why is not None:
        raise RequestError("unsupported", f"A blue-green replacement is not possible: {why}.", hint=IN_PLACE)

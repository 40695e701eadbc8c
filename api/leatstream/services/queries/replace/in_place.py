"""A query whose statement changes: what becomes of its job, and the change itself."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from leatstream.errors import CatalogError, RequestError
from leatstream.model.names import quote
from leatstream.model.objects import (
    DesiredState,
    Effective,
    Query,
    QueryKind,
    QueryState,
    Relation,
)
from leatstream.plan.change import UNTOUCHED, Change, changed_kind, classify
from leatstream.plan.job_spec import JobSpec
from leatstream.ports import UnitOfWork
from leatstream.services.environment import (
    Environment,
    Principal,
    Stored,
    next_meta,
)
from leatstream.services.nouns.dependents import refuse_dependents
from leatstream.services.planning.query import PlannedQuery
from leatstream.services.planning.query_properties import REPLACE_MODE, is_blue_green
from leatstream.services.queries.definition import QueryDefinition
from leatstream.services.queries.joint_jobs import leader_of
from leatstream.services.queries.save import keep_query, note_version
from leatstream.services.relations.relations import compatible, shape_dependents
from leatstream.sql.canonical import statement_hash
from leatstream.sql.statements import Properties

GREEN, BLUE = "__green", "__blue"
"""Behind its name: the query that is to take over from one, and the one that it took over from."""
_GO_ON = ("restart-keep-state", "restart-from-offsets")
SAME_STATEMENT = Change("none", "the statement stays the same")


def replacement(unit: UnitOfWork, old: Query, planned: PlannedQuery, within: Collection[str] = ()) -> Change:
    """What replacing the statement does to the job; ``refused`` if it cannot be replaced in place.

    Args:
        unit: an open unit of work.
        old: the query as it is.
        planned: what it is to be.
        within: names of queries that change with it.
    """
    kind = changed_kind(old.kind, planned.kind)
    if kind is not None:
        return kind
    others = _holders(unit, old, planned, within)
    if others:
        return Change("refused", f"the shape of {old.sink} is needed by {', '.join(others)}")
    return classify(JobSpec.model_validate(old.job), planned.job)


def _holders(unit: UnitOfWork, old: Query, planned: PlannedQuery, within: Collection[str]) -> list[str]:
    """Queries that need the sink as it is, with columns or records that the new statement does not make."""
    if not planned.kind.makes_sink or str(planned.sink.fqn) != old.sink:
        return []
    relation = unit.relations.find(old.sink)
    if relation is None or compatible(relation, planned.sink):
        return []
    own = {f"query {name}" for name in (old.name, *within)}
    return [d for d in shape_dependents(unit, relation, planned.sink) if d not in own]


def check_replacement(
    unit: UnitOfWork, old: Query, planned: PlannedQuery, within: Collection[str] = ()
) -> Change:
    """What replacing the statement does; CatalogError if it cannot be replaced in place.

    Args:
        unit: an open unit of work.
        old: the query as it is.
        planned: its new statement.
        within: names of queries that change with it.
    """
    if planned.kind is not old.kind or str(planned.sink.fqn) != old.sink:
        raise CatalogError(
            "requires-replacement",
            f"Query {quote(old.name)} writes to {old.sink} by {old.kind.value}; a query cannot change "
            "its sink.",
            pointer="#/sql",
            hint="Delete it and create it again.",
        )
    others = _holders(unit, old, planned, within)
    refuse_dependents(f"the shape of {old.sink}", others, unit)
    change = replacement(unit, old, planned, within)
    if change.kind == "refused":
        raise CatalogError(
            "requires-replacement", f"Query {quote(old.name)}: {change.reason}.", pointer="#/sql"
        )
    return change


def refuse_beside(unit: UnitOfWork, query: Query) -> None:
    """CatalogError invalid-transition for another statement of a query that takes part in a replacement."""
    if query.beside is not None:
        raise CatalogError(
            "invalid-transition", f"Query {quote(query.name)} stands beside another: its statement stays."
        )
    green = unit.queries.find(query.name + GREEN)
    if green is not None and green.beside == query.meta.id:
        raise CatalogError(
            "invalid-transition",
            f"Query {quote(query.name)} is being replaced by {quote(green.name)}.",
            hint=f"Wait until it has taken over, or delete {quote(green.name)}.",
        )


def needs_another(old: Query, change: Change) -> bool:
    """Whether a blue-green replacement of a query takes one beside it, or the change does as well in place.

    The output to a topic continues without a gap where the checkpoint does.
    """
    if old.kind is QueryKind.CREATE_MATERIALIZED_VIEW_AS:
        return change.kind not in UNTOUCHED
    return change.kind not in (*UNTOUCHED, *_GO_ON)


def refuse_unswapped(unit: UnitOfWork, query: Query, properties: Properties, change: Change) -> None:
    """Refuse to change a query in place that is to be replaced by one beside it, or is being replaced.

    Args:
        unit: an open unit of work.
        query: as it is.
        properties: it is to have.
        change: what replacing does to its job.

    Raises:
        CatalogError: invalid-transition.
        RequestError: unsupported.
    """
    if change.kind in UNTOUCHED:
        return
    refuse_beside(unit, query)
    if is_blue_green(properties) and needs_another(query, change):
        raise RequestError(
            "unsupported",
            "PUT and PATCH change a query in place, and its statement asks for another beside it.",
            **properties[REPLACE_MODE].place,
            hint=f"Send it as a statement, or to POST /v1/queries/{query.name}:replace.",
        )


def replace_query(
    env: Environment,
    principal: Principal,
    unit: UnitOfWork,
    old: Query,
    body: QueryDefinition,
    planned: PlannedQuery | None,
    change: Change | None,
) -> Stored[Query]:
    """Write the new version of a query; its job follows when the reconciler sees it.

    Args:
        env: the environment.
        principal: who asks.
        unit: an open unit of work.
        old: the query as it is.
        body: its new definition.
        planned: of the new statement; None = it stays.
        change: what that does to the job; None = nothing.
    """
    query = replace(
        old,
        sql=body.sql,
        desired_state=body.desired_state,
        delete_sink_entity=body.delete_sink_entity,
        comment=body.comment,
        properties=dict(body.properties),
    )
    if planned is not None:
        effective = keep_origins(old.effective, planned.effective)
        query = replace(
            query,
            statement_hash=statement_hash(body.sql),
            context=body.context.as_json(),
            sources=planned.sources,
            effective=effective,
            plan=replace(planned, effective=effective).as_json(change),
            job=planned.job.model_dump(mode="json"),
            code=dict(planned.code),
            checkpoint_generation=old.checkpoint_generation
            + (change is not None and change.kind == "new-state"),
        )
        if planned.kind.makes_sink:
            _update_sink(env, unit, old, replace(planned.sink, effective=effective))
    if query == old:
        return Stored(old, created=False, changed=False)
    restart = planned is not None and change is not None and change.kind not in UNTOUCHED
    status = old.status if restart else replace(old.status, observed_generation=old.meta.generation + 1)
    if old.status.observed_generation != old.meta.generation and not restart:
        status = old.status
    if query.desired_state is not old.desired_state or restart:
        status = replace(status, error=None, message=None, restarts=0, outages=0, next_attempt_at=None)
        if query.desired_state is DesiredState.RUNNING:
            # Not of one that is stopped: what it has done to others is still put down to it. What it writes
            # to may have been deleted since, and the plan says that it is made.
            status = replace(status, crashes=0, apart_from=None, entity_ready=False)
        alone = leader_of(old) is None  # else its state is that of the query that leads
        if alone and query.desired_state is DesiredState.RUNNING and old.status.driver_id is None:
            status = replace(status, state=QueryState.PENDING, since=env.clock.now())
    now = env.clock.now()
    query = replace(query, meta=next_meta(old.meta, now), status=status)
    keep_query(unit, old, query, now)
    note_version(unit, principal, query, change or SAME_STATEMENT, now)
    return Stored(query, created=False, changed=True)


def keep_origins(old: Mapping[str, Effective], new: Mapping[str, Effective]) -> dict[str, Effective]:
    """New values, but what has not changed keeps telling where it first came from."""
    return {k: old[k] if k in old and old[k].value == v.value else v for k, v in new.items()}


def _update_sink(env: Environment, unit: UnitOfWork, query: Query, sink: Relation) -> None:
    relation = unit.relations.find(query.sink)
    if relation is None:
        return
    # An index stays as long as its columns do.
    names = {column.name for column in sink.columns}
    updated = replace(
        sink,
        meta=relation.meta,
        created_by_query=relation.created_by_query,
        indexes=tuple(index for index in relation.indexes if names.issuperset(index.columns)),
    )
    if updated != relation:
        unit.relations.update(replace(updated, meta=next_meta(relation.meta, env.clock.now())))

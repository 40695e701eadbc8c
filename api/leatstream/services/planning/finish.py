"""The end of planning: the JobSpec, and the plan of the query that it belongs to."""

from __future__ import annotations

from typing import cast

from leatstream.model.objects import QueryKind, Relation
from leatstream.plan.logical import LogicalPlan
from leatstream.services.planning.draft import Draft, new_name
from leatstream.services.planning.job import plan_job
from leatstream.services.planning.query import PlannedQuery
from leatstream.services.planning.record_schemas import sink_schemas
from leatstream.services.planning.sink_columns import new_columns
from leatstream.services.planning.specs import store_ref, store_sink
from leatstream.services.planning.views import refuse_another_shape, stored_view, view_relation, view_sink
from leatstream.sql.statements import CreateMaterializedViewAs
from leatstream.sql.view_properties import read_view_properties


def finish(draft: Draft, kind: QueryKind, sink: Relation, sql: str) -> PlannedQuery:
    """The plan of a statement that writes to a store, whose sink is checked.

    Args:
        draft: the statement.
        kind: of its query.
        sink: the relation to write to.
        sql: Spark SQL whose columns are the sink's, then the hidden ones.
    """
    live = draft.live
    live.store(sink.store)
    exists = live.entity(sink.store, sink.entity) is not None
    target = store_sink(live, sink, draft.given, draft.logical)
    schemas = sink_schemas(live, sink, target.key_columns, draft.where)
    target = target.model_copy(update=schemas)
    return PlannedQuery(
        kind=kind,
        sql=draft.statement.text,
        sink=sink,
        sources=sources(draft.logical),
        entity_action="reuse" if exists else "create",
        job=plan_job(
            live, draft.logical, target, sql, draft.statement.query_properties, draft.given.delivery_guarantee
        ),
        logical=draft.logical,
        stores=live.stores,
        effective=sink.effective,
    )


def plan_view(draft: Draft) -> PlannedQuery:
    """The plan of CREATE MATERIALIZED VIEW … AS."""
    statement = cast("CreateMaterializedViewAs", draft.statement)
    fqn, logical = new_name(draft), draft.logical
    columns = new_columns(draft.analyzed, draft.where)
    given = read_view_properties(statement.properties)
    entity = stored_view(draft, fqn, given)
    sink = view_relation(draft.env, statement, fqn, columns, logical.primary_key, given, entity)
    refuse_another_shape(draft, sink)
    store = store_ref(draft.live.store(given.store)) if given.store is not None else None
    target = view_sink(sink, given, deletes=logical.deletes, store=store)
    job = plan_job(draft.live, logical, target, logical.sql, statement.query_properties)
    return PlannedQuery(
        kind=QueryKind.CREATE_MATERIALIZED_VIEW_AS,
        sql=statement.text,
        sink=sink,
        sources=sources(logical),
        entity_action="create",
        job=job,
        logical=logical,
        stores=draft.live.stores,
        effective=sink.effective,
    )


def sources(logical: LogicalPlan) -> tuple[str, ...]:
    """Full names of the relations that are read, each once."""
    return tuple(dict.fromkeys(str(s.relation.fqn) for s in logical.scans))

"""From a parsed statement to a checked plan: bind, analyze, infer, choose a mode, write the JobSpec.

Nothing is changed here; the only I/O is reading the stores and asking the engine's analyzer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from leatstream.errors import Faults, RequestError
from leatstream.model.names import quote
from leatstream.model.objects import QueryKind, Relation, RelationKind
from leatstream.plan.logical import LogicalPlan
from leatstream.services.environment import Context, Environment
from leatstream.services.functions.jobs import function_specs
from leatstream.services.planning.access import require_new_relation, require_reading, require_writing
from leatstream.services.planning.analysis import analyze, check_lookup_types, typed_plan, with_places
from leatstream.services.planning.binding import ContinuousStatement, bind_statement
from leatstream.services.planning.changelog_inserts import check_upserts
from leatstream.services.planning.draft import Draft, entity_gone, refuse_loop, require_sources
from leatstream.services.planning.finish import finish, plan_view
from leatstream.services.planning.job import check_readable, refuse_unbuilt
from leatstream.services.planning.new_sink import plan_create
from leatstream.services.planning.query import PlannedQuery
from leatstream.services.planning.query_properties import refuse_unswappable
from leatstream.services.planning.record_places import key_columns, key_only
from leatstream.services.planning.sink_columns import insert_columns, wrap_insert
from leatstream.services.planning.table_sinks import check_table, refuse_records
from leatstream.services.staging.catalog_view import CatalogView
from leatstream.sql.passes.quotients import Settled
from leatstream.sql.relation_properties import read_relation_properties
from leatstream.sql.statements import CreateAs, CreateChangelogAs, CreateMaterializedViewAs, InsertInto

_INSERT_PROPERTIES = {"key.columns", "sink.timestamp.strategy", "delivery.guarantee"}


def plan_statement(
    env: Environment, view: CatalogView, statement: ContinuousStatement, context: Context
) -> PlannedQuery:
    """Check a continuous statement whole and write its JobSpec.

    Args:
        env: the environment.
        view: the catalog, with what is assumed.
        statement: as parsed.
        context: database, schema and store of the session.

    Raises:
        RequestError: everything that is wrong with the statement.
        StoreError: a store is unreachable, or an entity does not exist.
        EngineError: there is no driver to analyze.
    """
    draft = Draft(env, view, statement, context)
    for stage in _STAGES:
        stage(draft)
    planned = _with_functions(draft, _plan(draft))
    if planned.kind.makes_sink:
        creates = planned.entity_action == "create"
        require_new_relation(view.unit, planned.sink, creates=creates, written=True, query=True)
    return planned


def _bind(draft: Draft) -> None:
    def bound(settled: Settled) -> LogicalPlan:
        found = bind_statement(draft.view, draft.statement, draft.context, settled)
        return with_places(draft.env, draft.view, found)

    draft.logical = typed_plan(draft.env, bound)


def _read_properties(draft: Draft) -> None:
    statement = draft.statement
    if not isinstance(statement, CreateMaterializedViewAs):  # a view's have a reader of their own
        draft.given = read_relation_properties(
            statement.properties,
            changelog=isinstance(statement, CreateChangelogAs),
            into=isinstance(statement, InsertInto),
        )


def _analyze(draft: Draft) -> None:
    draft.analyzed = analyze(draft.env, draft.logical)


def _check_sources(draft: Draft) -> None:
    # First: nothing that the sink needs would help.
    check_readable(draft.live, draft.logical)
    require_sources(draft.live, draft.view, draft.logical)
    check_lookup_types(draft.env, draft.logical)


def _require_privileges(draft: Draft) -> None:
    relations = [scan.relation for scan in draft.logical.scans]
    require_reading(draft.view.unit, relations)
    if isinstance(draft.statement, InsertInto):
        require_writing(draft.view.unit, draft.view.resolve(draft.statement.name, draft.context))


_STAGES: tuple[Callable[[Draft], None], ...] = (
    _bind,
    _require_privileges,
    _read_properties,
    _analyze,
    _check_sources,
)


def _plan(draft: Draft) -> PlannedQuery:
    if isinstance(draft.statement, CreateMaterializedViewAs):
        return plan_view(draft)
    return plan_create(draft) if isinstance(draft.statement, CreateAs) else _plan_insert(draft)


def _with_functions(draft: Draft, planned: PlannedQuery) -> PlannedQuery:
    properties = draft.statement.query_properties
    refuse_unswappable(properties, planned.sink, planned.job.sink.store.kind)
    functions, code = function_specs(draft.view, draft.logical.functions)
    return replace(planned, job=planned.job.model_copy(update={"functions": functions}), code=code)


def _plan_insert(draft: Draft) -> PlannedQuery:
    target = draft.view.resolve(draft.statement.name, draft.context)
    where = draft.where
    if target.kind is RelationKind.MATERIALIZED_VIEW:
        detail = f"{target.fqn} is a materialized view; only the query that keeps it writes to it."
        raise RequestError("unsupported", detail, position=where)
    fixed = [k for k in draft.places if k not in _INSERT_PROPERTIES]
    if fixed:
        raise RequestError(
            "invalid-property",
            f"INSERT INTO writes to a {target.kind.value} that exists: {', '.join(fixed)} cannot be given.",
            position=draft.places[fixed[0]],
        )
    refuse_unbuilt(draft.given, draft.statement.properties, draft.live.connector(target.store))
    refuse_loop(draft, target.store, target.entity, where)
    insert_columns(draft.analyzed, target.columns, where)
    if target.primary_key:
        check_upserts(draft.logical, draft.analyzed, target, where)
    _check_key(draft, target)
    connector = draft.live.connector(target.store)
    entity = draft.live.source_entity(target)
    if entity is None:
        raise entity_gone(target, where)
    if connector.tables:
        faults = Faults()
        refuse_records(draft.properties, faults, draft.place)
        faults.raise_if_any()
        check_table(connector, entity, target.columns, target.primary_key, where)
    sql = wrap_insert(draft.logical.sql, draft.analyzed, target.columns, deletes=draft.logical.deletes)
    return finish(draft, QueryKind.INSERT_INTO, target, sql)


def _check_key(draft: Draft, target: Relation) -> None:
    """Whether records can be keyed as an INSERT says; RequestError."""
    given, own = draft.given.key_columns, tuple(column.name for column in key_columns(target))
    if not given:
        return
    where, faults = draft.places.get("key.columns"), Faults()
    columns = {column.name for column in target.columns}
    for name in given:
        if name not in columns:
            faults.add(
                "unknown-column", f"{target.fqn} has no column {quote(name)} for its key.", position=where
            )
    if target.primary_key:
        faults.add("invalid-property", f"The record key of {target.fqn} is its primary key.", position=where)
    elif target.key_format is None:
        hint = "Declare it with 'key.format'."
        faults.add("invalid-property", f"{target.fqn} has no key format.", position=where, hint=hint)
    elif target.key_format == "primitive" and len(given) > 1:
        faults.add("invalid-property", "A primitive key is made of exactly one column.", position=where)
    faults.raise_if_any()
    # A column that is in the key alone would be lost under another key.
    if key_only(target) and given != own:
        shown = ", ".join(map(quote, key_only(target)))
        raise RequestError(
            "invalid-property",
            f"{shown} of {target.fqn} is in the record's key alone, and would be lost under another key.",
            position=where,
            hint="Leave 'key.columns' out.",
        )

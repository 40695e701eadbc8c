"""From a parsed statement to a checked plan: bind, analyze, infer, choose a mode, write the JobSpec.

Nothing is changed here; the only I/O is reading the stores and asking the engine's analyzer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from leatstream.connectors.base import Connector
from leatstream.errors import MISSING, Faults, Position, RequestError, sentence
from leatstream.inference.sink_properties import LeftMostSource, SinkRequest, infer_sink_properties
from leatstream.model.names import Fqn, quote
from leatstream.model.objects import Column, Effective, Origin, QueryKind, Relation, RelationKind, Store
from leatstream.plan.logical import LogicalPlan
from leatstream.services.environment import Context, Environment
from leatstream.services.functions.jobs import function_specs
from leatstream.services.planning.analysis import analyze, check_lookup_types, with_places, with_types
from leatstream.services.planning.binding import ContinuousStatement, bind_statement
from leatstream.services.planning.changelog_inserts import check_upserts
from leatstream.services.planning.draft import Draft, entity_gone, require_sources
from leatstream.services.planning.job import plan_job, refuse_unbuilt
from leatstream.services.planning.live_stores import LiveStores
from leatstream.services.planning.query import PlannedQuery
from leatstream.services.planning.query_properties import refuse_unswappable
from leatstream.services.planning.record_places import key_columns, key_only, record_places
from leatstream.services.planning.record_schemas import sink_schemas
from leatstream.services.planning.relation_draft import check_entity_name, check_timestamp
from leatstream.services.planning.sink_columns import insert_columns, new_columns, wrap_insert
from leatstream.services.planning.sink_formats import check_map_keys, primary_key_formats, sink_formats
from leatstream.services.planning.specs import store_sink
from leatstream.services.planning.store_fit import check_sink_fit, kind_options
from leatstream.services.planning.table_relations import check_table_store, refuse_times
from leatstream.services.planning.table_sinks import TABLE_FORMAT, check_table, refuse_records, table_entity
from leatstream.services.planning.views import view_relation, view_sink
from leatstream.services.staging.catalog_view import CatalogView, assumed_meta, qualify
from leatstream.sql.relation_properties import RelationProperties, canonical_name, read_relation_properties
from leatstream.sql.statements import (
    CreateAs,
    CreateChangelogAs,
    CreateMaterializedViewAs,
    CreateStreamAs,
    CreateTableAs,
    InsertInto,
)
from leatstream.sql.view_properties import read_view_properties

_KINDS: Mapping[type[CreateAs], tuple[RelationKind, QueryKind]] = {
    CreateStreamAs: (RelationKind.STREAM, QueryKind.CREATE_STREAM_AS),
    CreateChangelogAs: (RelationKind.CHANGELOG, QueryKind.CREATE_CHANGELOG_AS),
    CreateTableAs: (RelationKind.TABLE, QueryKind.CREATE_TABLE_AS),
}
_INSERT_PROPERTIES = {"key.columns", "sink.timestamp.strategy", "delivery.guarantee"}


def plan_statement(
    env: Environment, view: CatalogView, statement: ContinuousStatement, context: Context
) -> PlannedQuery:
    """Check a continuous statement whole and write its JobSpec.

    Raises:
        RequestError: everything that is wrong with the statement.
        StoreError: a store cannot be asked, or an entity is gone.
        EngineError: no driver is there to analyze.
    """
    live = LiveStores(env, view)
    logical = with_types(env, with_places(env, view, bind_statement(view, statement, context)))
    kept = isinstance(statement, CreateMaterializedViewAs)
    given = (
        RelationProperties()
        if kept
        else read_relation_properties(
            statement.properties,
            changelog=isinstance(statement, CreateChangelogAs),
            into=isinstance(statement, InsertInto),
        )
    )
    draft = Draft(
        env=env,
        view=view,
        context=context,
        live=live,
        logical=logical,
        given=given,
        places={canonical_name(k): v.position for k, v in statement.properties.items()},
        analyzed=analyze(env, logical),
    )
    require_sources(draft)
    check_lookup_types(env, draft.logical)
    if isinstance(statement, CreateMaterializedViewAs):
        planned = _plan_view(draft, statement)
    elif isinstance(statement, CreateAs):
        planned = _plan_create(draft, statement)
    else:
        planned = _plan_insert(draft, statement)
    refuse_unswappable(statement.query_properties, planned.sink.kind, planned.job.sink.store.kind)
    functions, code = function_specs(view, logical.functions)
    return replace(planned, job=planned.job.model_copy(update={"functions": functions}), code=code)


def _plan_create(draft: Draft, statement: CreateAs) -> PlannedQuery:
    fqn = _new_name(draft, statement)
    where = statement.name.position
    chosen = _choose_store(draft)
    store = draft.live.store(chosen.value, draft.places.get("store"))
    given, left = draft.given, draft.logical.left_most.relation
    faults = Faults()
    connector = draft.live.connector(store.name)
    kind, query_kind = _KINDS[type(statement)]
    changelog = kind is RelationKind.CHANGELOG

    def place(name: str) -> dict[str, Any]:
        return {"position": draft.places.get(name, where)}

    if kind is RelationKind.TABLE:
        check_table_store(connector, faults, **place("store"))
        refuse_times(given, faults, place)
        faults.raise_if_any()
    refuse_unbuilt(given, statement.properties, connector)
    meant = table_entity(store, connector, given, fqn.name, faults, place)
    entity = str(meant.value)
    check_entity_name(connector, entity, faults, position=draft.places.get("topic") or where)
    if connector.tables:
        refuse_records(_plain(statement), faults, place)
    else:
        check_sink_fit(connector, given, left, changelog, faults, place)
    faults.raise_if_any()
    _refuse_loop(draft, store.name, entity, draft.places.get("topic") or where)
    columns = new_columns(draft.analyzed, where)
    formats = _formats(draft, connector, columns)
    value_format = str(formats["value.format"].value) if "value.format" in formats else TABLE_FORMAT
    if not connector.tables:
        check_map_keys(value_format, columns, faults, position=where)
    if kind is RelationKind.TABLE:
        formats = {}
    effective = {
        "store": chosen,
        "topic": meant,
        # Rows of a table are not written in a format; its changes are read in one.
        **({} if connector.tables else formats),
        **kind_options(connector, given, columns, value_format, faults, place),
        **_entity_properties(draft, store, entity, left),
    }
    if not connector.tables:
        keys = draft.logical.primary_key or given.key_columns
        key_format = str(formats["key.format"].value) if "key.format" in formats else None
        effective |= record_places(given, columns, keys, (value_format, key_format), faults, place)
    if connector.tables:
        existing = draft.live.entity(store.name, entity)
        check_table(connector, existing, columns, draft.logical.primary_key, where)
    check_timestamp(given.timestamp, columns, faults, position=draft.places.get("timestamp"))
    faults.raise_if_any()

    def text(name: str) -> str | None:
        return str(formats[name].value) if name in formats else None

    sink = Relation(
        meta=assumed_meta(draft.env.clock.now(), str(fqn)),
        fqn=fqn,
        kind=kind,
        columns=columns,
        store=store.name,
        entity=entity,
        value_format="" if kind is RelationKind.TABLE else value_format,
        key_format=text("key.format"),
        key_type=text("key.type"),
        timestamp=given.timestamp,
        timestamp_format=given.timestamp_format,
        properties={k: v.value for k, v in statement.properties.items()},
        effective=effective,
        primary_key=draft.logical.primary_key,
        comment=statement.comment,
    )
    return _finish(draft, query_kind, statement, sink, draft.logical.sql)


def _formats(draft: Draft, connector: Connector, columns: tuple[Column, ...]) -> dict[str, Effective]:
    """How records are written."""
    logical = draft.logical
    if connector.tables:
        keys = logical.primary_key
        return primary_key_formats(draft.given, keys, columns, draft.places) if keys else {}
    left = logical.left_most.relation
    keys, exact = logical.primary_key, connector.exact_keys
    found = sink_formats(draft.given, left, logical.aggregation, columns, draft.places, keys, exact=exact)
    return found if connector.keyed else {"value.format": found["value.format"]}


def _plain(statement: ContinuousStatement) -> dict[str, Any]:
    return {canonical_name(k): v.value for k, v in statement.properties.items()}


def _new_name(draft: Draft, statement: CreateAs) -> Fqn:
    fqn = qualify(statement.name, draft.context)
    if not draft.view.has_schema(fqn.database, fqn.schema):
        known = draft.view.has_database(fqn.database)
        noun = "schema" if known else "database"
        shown = f"{quote(fqn.database)}.{quote(fqn.schema)}" if known else quote(fqn.database)
        raise RequestError(
            "unknown-relation",
            sentence(f"{noun} {shown} does not exist"),
            position=statement.name.position,
            sqlstate=MISSING[noun],
        )
    return fqn


def _plan_view(draft: Draft, statement: CreateMaterializedViewAs) -> PlannedQuery:
    fqn, logical = _new_name(draft, statement), draft.logical
    columns = new_columns(draft.analyzed, statement.name.position)
    given = read_view_properties(statement.properties)
    sink = view_relation(draft.env, statement, fqn, columns, logical.primary_key, given)
    target = view_sink(sink, given, deletes=logical.deletes)
    job = plan_job(draft.live, logical, target, logical.sql, statement.query_properties)
    return PlannedQuery(
        kind=QueryKind.CREATE_MATERIALIZED_VIEW_AS,
        sql=statement.text,
        sink=sink,
        sources=_sources(logical),
        entity_action="create",
        job=job,
        logical=logical,
        stores=draft.live.stores,
        effective=sink.effective,
    )


def _sources(logical: LogicalPlan) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(s.relation.fqn) for s in logical.scans))


def _plan_insert(draft: Draft, statement: InsertInto) -> PlannedQuery:
    target = draft.view.resolve(statement.name, draft.context)
    where = statement.name.position
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
    refuse_unbuilt(draft.given, statement.properties, draft.live.connector(target.store))
    _refuse_loop(draft, target.store, target.entity, where)
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
        refuse_records(_plain(statement), faults, lambda key: {"position": draft.places.get(key, where)})
        faults.raise_if_any()
        check_table(connector, entity, target.columns, target.primary_key, where)
    sql = wrap_insert(draft.logical.sql, draft.analyzed, target.columns, deletes=draft.logical.deletes)
    return _finish(draft, QueryKind.INSERT_INTO, statement, target, sql)


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


def _finish(
    draft: Draft, kind: QueryKind, statement: ContinuousStatement, sink: Relation, sql: str
) -> PlannedQuery:
    live = draft.live
    live.store(sink.store)
    exists = live.entity(sink.store, sink.entity) is not None
    target = store_sink(live, sink, draft.given, draft.logical)
    schemas = sink_schemas(live, sink, target.key_columns, statement.name.position)
    target = target.model_copy(update=schemas)
    return PlannedQuery(
        kind=kind,
        sql=statement.text,
        sink=sink,
        sources=_sources(draft.logical),
        entity_action="reuse" if exists else "create",
        job=plan_job(
            live, draft.logical, target, sql, statement.query_properties, draft.given.delivery_guarantee
        ),
        logical=draft.logical,
        stores=live.stores,
        effective=sink.effective,
    )


def _choose_store(draft: Draft) -> Effective:
    if draft.given.store:
        return Effective(draft.given.store, Origin.EXPLICIT)
    if draft.context.store:
        return Effective(draft.context.store, Origin.SESSION)
    if draft.env.settings.default_store:
        return Effective(draft.env.settings.default_store, Origin.DEFAULT)
    raise RequestError(
        "property-required",
        "No store is named for the sink and the session has none.",
        hint="WITH ('store' = …), or USE STORE first",
    )


def _entity_properties(draft: Draft, store: Store, entity: str, left: Relation) -> dict[str, Effective]:
    live = draft.live
    connector = live.connector(store.name)
    existing = live.entity(store.name, entity)
    left_kind = live.store(left.store).kind
    return infer_sink_properties(
        SinkRequest(
            kind=store.kind,
            store=store.name,
            declared=connector.needed_properties(draft.given.configs),
            explicit=draft.given.entity,
            positions=draft.places,
            existing=existing,
            left_most=LeftMostSource(str(left.fqn), left_kind, live.source_entity(left)),
            limits={} if existing else connector.property_limits(draft.env.settings.store_timeout),
        )
    )


def _refuse_loop(draft: Draft, store: str, entity: str, position: Position) -> None:
    for scan in draft.logical.scans:
        if (scan.relation.store, scan.relation.entity) == (store, entity):
            raise RequestError(
                "invalid-property",
                f"The sink's entity '{entity}' in store '{store}' is also read by this query (as "
                f"{scan.relation.fqn}), which would feed it with its own output for ever.",
                position=position,
                hint="Write to another topic.",
            )

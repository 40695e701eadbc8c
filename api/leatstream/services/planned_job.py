"""The JobSpec of a planned statement: sources, sink, mode, settings. No identity, no checkpoint yet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from leatstream.connectors.base import Connector, Entity
from leatstream.errors import Faults, RequestError
from leatstream.formats.described import FORMATS as DESCRIBED
from leatstream.model.objects import Column, Relation, RelationKind, Store
from leatstream.model.registered import SchemaRegistry
from leatstream.plan.job_spec import (
    READER_KIND,
    ChangeFeed,
    ColumnSpec,
    Delivery,
    JobSpec,
    LinkSpec,
    LookupSpec,
    Mode,
    OperatorSpec,
    RegistryRef,
    SinkSpec,
    SnapshotSpec,
    SourceSpec,
    StoreRef,
)
from leatstream.plan.logical import LogicalPlan, Lookup, Scan
from leatstream.plan.mode import Shape, choose_mode
from leatstream.ports import UnitOfWork
from leatstream.services.change_feeds import change_feeds
from leatstream.services.environment import Environment
from leatstream.services.error_logs import check_error_logs
from leatstream.services.live_stores import LiveStores
from leatstream.services.record_schemas import descriptor_of
from leatstream.services.table_sinks import TABLE_FORMAT
from leatstream.sql.relation_properties import STORE_FAMILIES, RelationProperties
from leatstream.sql.source_properties import SourceOptions, read_source_options
from leatstream.sql.statements import Properties

TRIGGER = "query.trigger"
_TRIGGERS = ("continuous", "available_now")
_MODES = ("auto", "realtime", "micro_batch")
_QUERY_PROPERTIES = ("query.name", "mode", "from.savepoint", "from.query", TRIGGER)
# One task writes what goes to a store in one transaction.
_OFFSETS, _VIEW_OFFSETS, _BATCH_OFFSETS = 500_000, 50_000, 100_000


def plan_job(
    live: LiveStores,
    logical: LogicalPlan,
    sink: SinkSpec,
    sql: str,
    properties: Properties,
    guarantee: str | None = None,
) -> JobSpec:
    """Write the JobSpec.

    Args:
        live: stores and entities.
        logical: the bound SELECT.
        sink: where the rows go.
        sql: Spark SQL whose columns are the sink's, then the hidden ones.
        properties: of QUERY WITH.
        guarantee: delivery as the user asked for it; None = what the sink promises first.

    Raises:
        RequestError: ``unsupported`` or ``invalid-property``, for what the job cannot do.
    """
    env = live.env
    wanted = _wanted_mode(properties)
    once = available_now(properties)
    _check_sources(live, logical)
    _check_sink(env, logical, sink.store)
    options = [read_source_options(scan.properties) for scan in logical.streams]
    check_error_logs(live, logical, options, sink)
    feeds = change_feeds(live, logical, options, sink.store.kind)
    delay = _delay(logical, env.settings.watermark_delay_ms)
    sources = [
        _source(live, scan, option, delay, feed, once=once)
        for scan, option, feed in zip(logical.streams, options, feeds, strict=True)
    ]
    partitions = [_partitions(live.source_entity(scan.relation)) for scan in logical.streams]
    delivery = _delivery(env, sink, guarantee)
    mode, reason = choose_mode(
        Shape(
            delivery=delivery,
            stateful=logical.stateful,
            realtime_sources=all(_realtime(env, source.store.kind) for source in sources),
            realtime_sink=_realtime(env, sink.store.kind),
            skips_records=any(source.on_error == "ignore" for source in sources),
            source_partitions=partitions,
            slots=env.settings.slots,
            lookups=bool(logical.lookups),
            user_functions=bool(logical.functions),
            described=any(f in DESCRIBED for f in _formats(sources, sink)),
            wanted="micro_batch" if once else wanted,
        )
    )
    if once:
        reason = "it works off what there is, batch by batch, and completes"
        _check_once(sources, properties)
    if wanted == "realtime" and mode is not Mode.REALTIME:
        raise RequestError(
            "unsupported",
            f"this query cannot run in real-time mode: {reason}",
            position=properties["mode"].position,
            hint="leave the query property 'mode' out",
        )
    return JobSpec(
        query_id="",
        query_name="",
        generation=0,
        attempt=0,
        fencing_token="",
        sql=sql,
        sources=sources,
        sink=sink,
        mode=mode,
        mode_reason=reason,
        output_mode="update" if _updated_by_spark(logical) else "append",
        operator=_operator(logical, options),
        lookups=[_lookup(live, one) for one in logical.lookups],
        distinct=logical.distinct,
        delivery=delivery,
        max_offsets_per_trigger=_most_offsets(env, sink, delivery, lookups=bool(logical.lookups)),
        checkpoint="",
        state=dict(logical.state),
        conf={"spark.sql.shuffle.partitions": _shuffle_partitions(logical, partitions)},
        trigger_interval_ms=_interval(env, sink),
        available_now=once,
    )


def _most_offsets(env: Environment, sink: SinkSpec, delivery: Delivery, *, lookups: bool) -> int:
    # A view's batch passes through the driver's own process, so it is bounded more tightly.
    if sink.view is not None:
        return _VIEW_OFFSETS
    connector_class = env.connector_classes.get(sink.store.kind)
    in_one_task = connector_class is not None and not connector_class.takes_rows
    # A batch that looks rows up is held until it is joined.
    return _BATCH_OFFSETS if lookups or (in_one_task and delivery is Delivery.EXACTLY_ONCE) else _OFFSETS


def _check_sources(live: LiveStores, logical: LogicalPlan) -> None:
    faults = Faults()
    for scan in logical.streams:
        kind = live.store(scan.relation.store).kind
        connector_class = live.env.connector_classes.get(kind)
        if connector_class is not None and not connector_class.capabilities.source:
            detail = f"{scan.relation.fqn} is in a store of kind {kind}, which queries cannot read yet"
            faults.add("unsupported", detail, position=scan.position)
    faults.raise_if_any()


def _delivery(env: Environment, sink: SinkSpec, wanted: str | None) -> Delivery:
    # A view's batch is one transaction that holds its number, so that none counts twice.
    if sink.view is not None:
        return Delivery.EXACTLY_ONCE
    connector_class = env.connector_classes.get(sink.store.kind)
    promised = connector_class.capabilities.delivery if connector_class else ()
    names = [guarantee.name for guarantee in promised]
    if wanted in names:
        return Delivery(wanted)
    return Delivery(names[0]) if names else Delivery.AT_LEAST_ONCE


def _interval(env: Environment, sink: SinkSpec) -> int:
    connector_class = env.connector_classes.get(sink.store.kind)
    return connector_class.trigger_interval_ms(sink.options) if connector_class else 0


def _formats(sources: Sequence[SourceSpec], sink: SinkSpec) -> list[str | None]:
    read = [f for source in sources for f in (source.value_format, source.key_format)]
    return [*read, sink.value_format, sink.key_format]


def _check_sink(env: Environment, logical: LogicalPlan, store: StoreRef) -> None:
    if store.kind == READER_KIND:
        return
    connector_class = env.connector_classes.get(store.kind)
    if connector_class is not None and not connector_class.capabilities.sink:
        raise RequestError(
            "unsupported",
            f"queries cannot write to stores of kind {store.kind} yet",
            position=logical.left_most.position,
            hint="write to a store of another kind",
        )
    batchwise = _batchwise(logical)
    if batchwise is not None and not (connector_class and connector_class.capabilities.batches):
        raise RequestError(
            "unsupported",
            f"{batchwise} cannot write to {_shown(store)}",
            position=logical.left_most.position,
            hint="write to a Kafka store, and copy from there by a query of its own",
        )


def _batchwise(logical: LogicalPlan) -> str | None:
    """What of the query is worked off batch by batch, in Python; None where Spark runs all of it."""
    if logical.operator is not None:
        return "joins with changelogs and aggregates over them"
    if logical.pattern is not None:
        return "MATCH_RECOGNIZE"
    return "joins with tables" if logical.lookups else None


def _shown(store: StoreRef) -> str:
    return "materialized views" if store.kind == "view" else f"stores of kind {store.kind}"


def _updated_by_spark(logical: LogicalPlan) -> bool:
    return logical.operator is None and logical.aggregation is not None and logical.aggregation.update


def refuse_unbuilt(given: RelationProperties, properties: Properties, sink: Connector) -> None:
    """Refuse, at plan, what the jobs cannot do; RequestError with every fault."""
    faults = Faults()
    promised = [guarantee.name for guarantee in sink.capabilities.delivery]
    if given.delivery_guarantee not in (None, Delivery.AT_LEAST_ONCE.value, *promised):
        reason = f"exactly_once is not built yet for stores of kind {sink.kind}"
        _unbuilt(faults, properties, "delivery.guarantee", reason, "at_least_once")
    if given.sink_timestamp_strategy not in (None, "proc.time"):
        reason = "Spark's Kafka sink does not write a record's time"
        _unbuilt(faults, properties, "sink.timestamp.strategy", reason, "proc.time")
    faults.raise_if_any()


def _unbuilt(faults: Faults, properties: Properties, name: str, reason: str, instead: str) -> None:
    value = properties.get(name)
    position = value.position if value else None
    faults.add("unsupported", f"{name}: {reason}", position=position, hint=f"use {instead}")


def query_name(properties: Properties) -> str | None:
    """The query property ``query.name``."""
    value = properties.get("query.name")
    return str(value.value) if value else None


def _wanted_mode(properties: Properties) -> str:
    faults = Faults()
    for key, value in properties.items():
        if key not in _QUERY_PROPERTIES:
            known = ", ".join(_QUERY_PROPERTIES)
            faults.add(
                "invalid-property", f"unknown query property {key}; known: {known}", position=value.position
            )
    mode = properties.get("mode")
    wanted = str(mode.value).lower() if mode else "auto"
    if wanted not in _MODES and mode is not None:
        faults.add("invalid-property", f"mode is one of {', '.join(_MODES)}", position=mode.position)
    faults.raise_if_any()
    return wanted


def available_now(properties: Properties) -> bool:
    """Whether the query works off what there is and completes; RequestError invalid-property."""
    value = properties.get(TRIGGER)
    if value is None:
        return False
    word = str(value.value).lower()
    if word not in _TRIGGERS:
        raise RequestError(
            "invalid-property", f"{TRIGGER} is one of {', '.join(_TRIGGERS)}", position=value.position
        )
    return word == "available_now"


def _check_once(sources: Sequence[SourceSpec], properties: Properties) -> None:
    place = properties[TRIGGER].position
    kinds = sorted({source.store.kind for source in sources if source.store.kind != "kafka"})
    if kinds:
        raise RequestError(
            "unsupported",
            f"'{TRIGGER}' = 'available_now' reads Kafka; this query reads stores of kind {', '.join(kinds)}",
            position=place,
            hint="leave it out: the query then runs until it is stopped",
        )


def store_ref(store: Store, registry: SchemaRegistry | None = None) -> StoreRef:
    """How a job reaches the store and its schema registry: settings and secret references, no values."""
    return StoreRef(
        name=store.name,
        kind=store.kind,
        config=dict(store.config),
        secrets=dict(store.secrets),
        registry=_registry_ref(registry) if registry is not None else None,
    )


def fresh_ref(unit: UnitOfWork, name: str) -> StoreRef | None:
    """The same with the store's and the registry's settings as they are now; None if the store is gone."""
    store = unit.stores.find(name)
    if store is None:
        return None
    named = store.schema_registry
    return store_ref(store, unit.schema_registries.find(named) if named is not None else None)


def _registry_ref(registry: SchemaRegistry) -> RegistryRef:
    return RegistryRef(
        name=registry.name,
        kind=registry.kind,
        uris=registry.uris,
        username=registry.username,
        password=registry.secrets.get("password"),
        ca_certificate=registry.ca_certificate,
    )


def _columns(columns: Sequence[Column]) -> list[ColumnSpec]:
    return [ColumnSpec(name=c.name, type=str(c.type), not_null=c.not_null) for c in columns]


def _source(
    live: LiveStores,
    scan: Scan,
    options: SourceOptions,
    delay: int | None,
    feed: ChangeFeed | None,
    *,
    once: bool,
) -> SourceSpec:
    relation = scan.relation
    own = options.watermark_delay_ms
    store = live.store(relation.store)
    return SourceSpec(
        view=scan.view,
        relation=str(relation.fqn),
        store=store_ref(store, live.registry(store.name)),
        entity=relation.entity,
        columns=_columns(relation.columns),
        value_format=relation.value_format,
        key_format=relation.key_format,
        key_type=relation.key_type,
        timestamp=options.timestamp or relation.timestamp,
        timestamp_format=relation.timestamp_format,
        # What comes after its start is not there for a job that completes.
        starting_position=options.starting_position or ("earliest" if once else _from(relation)),
        starting_timestamp_ms=options.starting_timestamp_ms,
        on_error=options.on_error,
        watermark_delay_ms=delay if delay is None or own is None else own,
        idle_timeout_ms=options.idle_timeout_ms if delay is not None else None,
        log_entity=options.log_topic,
        descriptor=descriptor_of(live.view, relation),
        primary_key=list(relation.primary_key),
        options=_options(relation),
        feed=feed,
    )


def _options(relation: Relation) -> dict[str, str]:
    """What the store kind's own words say of the relation."""
    return {k: str(v.value) for k, v in relation.effective.items() if k.startswith(STORE_FAMILIES)}


def _delay(logical: LogicalPlan, default: int) -> int | None:
    """How late rows may be: one delay for all sources, as every join waits for the slowest."""
    if not logical.timed:
        return None
    return max([default if j.grace_ms is None else j.grace_ms for j in logical.joins], default=default)


def _from(relation: Relation) -> Literal["earliest", "latest"]:
    """Rows of a changelog count from the first on: they are the state that a table would have."""
    return "earliest" if relation.kind is RelationKind.CHANGELOG else "latest"


def _operator(logical: LogicalPlan, options: Sequence[SourceOptions]) -> OperatorSpec | None:
    if logical.matches is not None:
        return OperatorSpec(kind="match-recognize", pattern=logical.matches.spec)
    if logical.operator is None:
        return None
    history = {scan.view: one.history_ms for scan, one in zip(logical.streams, options, strict=True)}
    snapshots = [
        SnapshotSpec(
            view=s.view,
            keys=list(s.keys),
            versions=s.versions,
            history_ms=history[s.view] if s.versions else None,
        )
        for s in logical.operator.snapshots
    ]
    links = [
        LinkSpec(view=one.view, relation=one.relation, values=list(one.values))
        for one in logical.operator.links
    ]
    return OperatorSpec(kind=logical.operator.kind, snapshots=snapshots, links=links)


def _lookup(live: LiveStores, lookup: Lookup) -> LookupSpec:
    relation = lookup.scan.relation
    return LookupSpec(
        view=lookup.scan.view,
        relation=str(relation.fqn),
        store=store_ref(live.store(relation.store)),
        entity=relation.entity,
        columns=_columns(relation.columns),
        left=lookup.left,
        keys=list(lookup.keys),
        values=list(lookup.values),
        cache_ttl_ms=lookup.cache_ttl_ms,
    )


def store_sink(live: LiveStores, sink: Relation, given: RelationProperties, logical: LogicalPlan) -> SinkSpec:
    """How a job writes to a store."""
    store = live.store(sink.store)
    return SinkSpec(
        relation=str(sink.fqn),
        store=store_ref(store, live.registry(store.name)),
        entity=sink.entity,
        columns=_columns(sink.columns),
        value_format=sink.value_format or TABLE_FORMAT,
        key_format=sink.key_format,
        key_type=sink.key_type,
        key_columns=list(sink.primary_key or given.key_columns),
        deletes=logical.deletes,
        options=_options(sink),
    )


def _realtime(env: Environment, kind: str) -> bool:
    connector_class = env.connector_classes.get(kind)
    return connector_class is not None and connector_class.capabilities.realtime


def _partitions(entity: Entity | None) -> int:
    """How many tasks read the entity."""
    first = next(iter(entity.properties.values()), None) if entity else None
    return first or 1


def _shuffle_partitions(logical: LogicalPlan, partitions: Sequence[int]) -> str:
    """Frozen with the checkpoint of a stateful query, so it follows the sources and not the machine."""
    return str(max([2, *partitions])) if logical.stateful or logical.lookups else "1"

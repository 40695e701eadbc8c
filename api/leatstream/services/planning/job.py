"""The JobSpec of a planned statement: sources, sink, mode, settings. No identity, no checkpoint yet."""

from __future__ import annotations

from collections.abc import Sequence

from leatstream.connectors.base import Connector
from leatstream.connectors.entities import Entity
from leatstream.connectors.registry import kinds_that, kinds_without
from leatstream.errors import Faults, RequestError, sentence
from leatstream.formats.described import FORMATS as DESCRIBED
from leatstream.model.names import quote
from leatstream.plan.job_spec import (
    READER_KIND,
    Delivery,
    Isolation,
    JobSpec,
    Mode,
    SinkSpec,
    SourceSpec,
    StoreRef,
)
from leatstream.plan.logical import LogicalPlan
from leatstream.plan.mode import Shape, choose_mode
from leatstream.services.environment import Environment
from leatstream.services.planning.change_feeds import change_feeds
from leatstream.services.planning.error_logs import check_error_logs
from leatstream.services.planning.live_stores import LiveStores
from leatstream.services.planning.query_properties import (
    DRIVER,
    MODE,
    TRIGGER,
    available_now,
    batch_interval_ms,
    check_words,
    isolation_of,
    json_reader,
    target_batch_ms,
    wanted_mode,
)
from leatstream.services.planning.run_time_places import places_of
from leatstream.services.planning.specs import lookup_spec, operator_spec, source_spec, watermark_delay
from leatstream.services.planning.views import VIEW_STORE
from leatstream.sql.relation_properties import RelationProperties
from leatstream.sql.source_properties import read_source_options
from leatstream.sql.statements import Properties

# A query that looks for records all the time leaves nothing to those beside it.
_SHARED_INTERVAL = 500
# One task writes what one transaction of a store contains.
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
    check_words(properties)
    wanted = wanted_mode(properties)
    once = available_now(properties)
    isolation = isolation_of(properties)
    shared = isolation is Isolation.SHARED
    if shared:
        _refuse_shared_functions(logical, properties)
    check_readable(live, logical)
    _check_sink(env, logical, sink.store)
    options = [read_source_options(scan.properties) for scan in logical.streams]
    check_error_logs(live, logical, options, sink)
    feeds = change_feeds(live, logical, options, sink.store.kind)
    delay = watermark_delay(logical, env.settings.watermark_delay_ms)
    sources = [
        source_spec(live, scan, option, delay, feed, once=once)
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
            wanted="micro_batch" if once or shared else wanted,
        )
    )
    if shared:
        reason = "it shares its driver, where real-time mode would hold task slots for itself all the time"
    if once:
        reason = "it processes the records that exist, batch by batch, and completes"
        _check_once(sources, properties)
    if wanted == "realtime" and mode is not Mode.REALTIME:
        raise RequestError(
            "unsupported",
            f"This query cannot run in real-time mode: {reason}.",
            hint="Leave the query property 'mode' out.",
            **properties[MODE].place,
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
        operator=operator_spec(logical, options),
        lookups=[lookup_spec(live, one) for one in logical.lookups],
        distinct=logical.distinct,
        delivery=delivery,
        max_offsets_per_trigger=_most_offsets(env, sink, delivery, lookups=bool(logical.lookups)),
        target_batch_ms=target_batch_ms(properties, mode),
        json_reader=json_reader(properties, mode, isolation),
        checkpoint="",
        state=dict(logical.state),
        places=places_of(logical, sql),
        conf={"spark.sql.shuffle.partitions": _shuffle_partitions(logical, partitions)},
        trigger_interval_ms=max(
            batch_interval_ms(properties, mode), _interval(env, sink), _SHARED_INTERVAL if shared else 0
        ),
        available_now=once,
        driver=isolation,
    )


def _most_offsets(env: Environment, sink: SinkSpec, delivery: Delivery, *, lookups: bool) -> int:
    # A view's batch passes through the driver's own process, so it is bounded more tightly.
    if sink.view is not None:
        return _VIEW_OFFSETS
    connector_class = env.connector_classes.get(sink.store.kind)
    in_one_task = connector_class is not None and not connector_class.takes_rows
    # A batch that looks rows up is held until it is joined.
    return _BATCH_OFFSETS if lookups or (in_one_task and delivery is Delivery.EXACTLY_ONCE) else _OFFSETS


def check_readable(live: LiveStores, logical: LogicalPlan) -> None:
    """Refuse sources in stores that queries do not read; RequestError unsupported."""
    faults = Faults()
    for scan in logical.streams:
        kind = live.store(scan.relation.store).kind
        connector_class = live.env.connector_classes.get(kind)
        if connector_class is not None and not connector_class.capabilities.source:
            detail = f"{scan.relation.fqn} is in a store of kind {kind}, which queries cannot read."
            faults.add(
                "unsupported", detail, position=scan.position, hint=_instead_of_reading(connector_class)
            )
    faults.raise_if_any()


def _instead_of_reading(connector: type[Connector]) -> str:
    """The nearest thing that works with a store that is no source."""
    can = connector.capabilities
    if can.lookup:
        return "Join its table with a stream: its rows can be looked up."
    if can.sink:
        return f"Write to it with INSERT INTO, and read from a store of kind {kinds_that('source')}."
    return f"Read from a store of kind {kinds_that('source')}."


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
    return connector_class.sink_interval_ms(sink) if connector_class else 0


def _formats(sources: Sequence[SourceSpec], sink: SinkSpec) -> list[str | None]:
    read = [f for source in sources for f in (source.value_format, source.key_format)]
    return [*read, sink.value_format, sink.key_format]


def _check_sink(env: Environment, logical: LogicalPlan, store: StoreRef) -> None:
    if store.kind in (READER_KIND, VIEW_STORE.kind):
        return
    connector_class = env.connector_classes.get(store.kind)
    if connector_class is not None and not connector_class.capabilities.sink:
        raise RequestError(
            "unsupported",
            f"Queries cannot write to stores of kind {store.kind}.",
            position=logical.left_most.position,
            hint=f"Write to a store of kind {kinds_that('sink')}.",
        )
    batchwise = _batchwise(logical)
    if batchwise is not None and not (connector_class and connector_class.capabilities.batches):
        raise RequestError(
            "unsupported",
            f"{batchwise} cannot write to stores of kind {store.kind}.",
            position=logical.left_most.position,
            hint=f"Write to a store of kind {kinds_that('batches')}, and copy from there by another query.",
        )


def _batchwise(logical: LogicalPlan) -> str | None:
    """What of the query is processed batch by batch, in Python; None where Spark runs all of it."""
    if logical.operator is not None:
        return "joins with changelogs and aggregates over them"
    if logical.pattern is not None:
        return "MATCH_RECOGNIZE"
    return "joins with tables" if logical.lookups else None


def _updated_by_spark(logical: LogicalPlan) -> bool:
    return logical.operator is None and logical.aggregation is not None and logical.aggregation.update


def refuse_unbuilt(given: RelationProperties, properties: Properties, sink: Connector) -> None:
    """Refuse, at plan, what the jobs cannot do; RequestError with every fault.

    Args:
        given: properties of the sink.
        properties: of the query.
        sink: connector of its store.
    """
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
    faults.add("unsupported", f"{name}: {reason}.", position=position, hint=f"Use {instead}.")


def _refuse_shared_functions(logical: LogicalPlan, properties: Properties) -> None:
    """Users' code can read and change whatever is in its driver: Spark's Python workers serve all queries."""
    names = sorted({quote(use.function.name) for use in logical.functions})
    if names:
        what = f"function {names[0]} is" if len(names) == 1 else f"functions {', '.join(names)} are"
        raise RequestError(
            "unsupported",
            sentence(f"{what} users' code, which could read and change the queries that share its driver"),
            hint=f"Leave '{DRIVER}' out: the query then has a driver of its own.",
            **properties[DRIVER].place,
        )


def _check_once(sources: Sequence[SourceSpec], properties: Properties) -> None:
    kinds = kinds_without("bounded_runs", (source.store.kind for source in sources))
    if kinds:
        raise RequestError(
            "unsupported",
            f"'{TRIGGER}' = 'available_now' reads stores of kind {kinds_that('bounded_runs')}; this query "
            f"reads stores of kind {', '.join(kinds)}.",
            **properties[TRIGGER].place,
            hint="Leave it out: the query then runs until it is stopped.",
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

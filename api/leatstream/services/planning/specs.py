"""The parts of a JobSpec: how a job reaches stores, reads sources, looks rows up, and writes its sink."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from leatstream.connectors.registry import property_families
from leatstream.errors import Position, RequestError
from leatstream.model.objects import Column, Relation, RelationKind, Store
from leatstream.model.registered import SchemaRegistry
from leatstream.plan.job_spec import (
    ChangeFeed,
    ColumnSpec,
    LinkSpec,
    LookupSpec,
    OperatorSpec,
    RegistryRef,
    SinkSpec,
    SnapshotSpec,
    SourceSpec,
    StoreRef,
)
from leatstream.plan.logical import Link, LogicalPlan, Lookup, Scan
from leatstream.ports import UnitOfWork
from leatstream.services.planning.live_stores import LiveStores
from leatstream.services.planning.record_places import headers_column, key_columns, key_only
from leatstream.services.planning.record_schemas import descriptor_of
from leatstream.services.planning.table_sinks import TABLE_FORMAT
from leatstream.sql.relation_properties import RelationProperties
from leatstream.sql.source_properties import SourceOptions


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
    """The same with the store's and the registry's settings as they are now; None without the store."""
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


def source_spec(
    live: LiveStores,
    scan: Scan,
    options: SourceOptions,
    delay: int | None,
    feed: ChangeFeed | None,
    *,
    once: bool,
) -> SourceSpec:
    """What a job reads of a stream; RequestError unsupported where its store's records have no headers.

    Args:
        live: stores and entities.
        scan: the stream in FROM.
        options: said behind it.
        delay: see ``watermark_delay``; a source may have one of its own.
        feed: of a table whose changes are read.
        once: whether the job completes.
    """
    relation = scan.relation
    if scan.headers and not live.connector(relation.store).capabilities.headers:
        kind = live.store(relation.store).kind
        detail = f"Records of {relation.fqn} have no headers: its store is of kind {kind}."
        raise RequestError("unsupported", detail, position=scan.position, hint="Leave rowheaders out.")
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
        max_ahead_ms=options.max_ahead_ms,
        log_entity=options.log_topic,
        descriptor=descriptor_of(live.view, relation),
        primary_key=list(relation.primary_key),
        key_only=key_only(relation),
        headers_column=headers_column(relation),
        options=_options(relation),
        feed=feed,
        headers=scan.headers,
    )


def sample_spec(live: LiveStores, relation: Relation) -> SourceSpec:
    """What a job would read of a relation by ``SELECT * FROM`` it.

    Args:
        live: stores and entities.
        relation: that is read.
    """
    scan = Scan("leat_src_0", relation.fqn.name, relation, Position(1, 1, 0))
    return source_spec(live, scan, SourceOptions(), None, None, once=False)


def lookup_spec(live: LiveStores, lookup: Lookup) -> LookupSpec:
    """How a job looks rows of a table up."""
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


def operator_spec(logical: LogicalPlan, options: Sequence[SourceOptions]) -> OperatorSpec | None:
    """What of a query is processed batch by batch, in Python; None where Spark runs all of it."""
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
    groups = logical.operator.groups
    return OperatorSpec(
        kind=logical.operator.kind,
        snapshots=snapshots,
        links=[_link(one) for one in logical.operator.links],
        groups=_link(groups) if groups is not None else None,
    )


def _link(link: Link) -> LinkSpec:
    return LinkSpec(view=link.view, relation=link.relation, values=list(link.values))


def store_sink(live: LiveStores, sink: Relation, given: RelationProperties, logical: LogicalPlan) -> SinkSpec:
    """How a job writes to a store.

    Args:
        live: stores, asked once each.
        sink: the relation that is written.
        given: its properties.
        logical: the bound SELECT.
    """
    store = live.store(sink.store)
    return SinkSpec(
        relation=str(sink.fqn),
        store=store_ref(store, live.registry(store.name)),
        entity=sink.entity,
        columns=_columns(sink.columns),
        value_format=sink.value_format or TABLE_FORMAT,
        key_format=sink.key_format,
        key_type=sink.key_type,
        key_columns=list(sink.primary_key or given.key_columns) or _own_key(sink),
        key_only=key_only(sink),
        headers_column=headers_column(sink),
        deletes=logical.deletes,
        options=_options(sink),
    )


def _own_key(sink: Relation) -> list[str]:
    """The key columns of a stream that an INSERT writes into, where its records are not whole without."""
    return [column.name for column in key_columns(sink)] if key_only(sink) else []


def _columns(columns: Sequence[Column]) -> list[ColumnSpec]:
    return [ColumnSpec(name=c.name, type=str(c.type), not_null=c.not_null) for c in columns]


def _options(relation: Relation) -> dict[str, str]:
    """What the store kind's own words say of the relation."""
    return {k: str(v.value) for k, v in relation.effective.items() if k.startswith(property_families())}


def watermark_delay(logical: LogicalPlan, default: int) -> int | None:
    """How late rows may be: one delay for all sources, as every join waits for the slowest."""
    if not logical.timed:
        return None
    return max([default if j.grace_ms is None else j.grace_ms for j in logical.joins], default=default)


def _from(relation: Relation) -> Literal["earliest", "latest"]:
    """Rows of a changelog count from the first on: they are the state that a table would have."""
    return "earliest" if relation.kind is RelationKind.CHANGELOG else "latest"

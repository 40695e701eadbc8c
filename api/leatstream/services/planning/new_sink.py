"""CREATE … AS: the new relation that it writes to, stage by stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

from leatstream.connectors.base import Connector
from leatstream.errors import Faults, RequestError
from leatstream.inference.sink_properties import LeftMostSource, SinkRequest, infer_sink_properties
from leatstream.model.names import Fqn
from leatstream.model.objects import Column, Effective, Origin, QueryKind, Relation, RelationKind, Store
from leatstream.services.planning.draft import Draft, new_name, refuse_loop
from leatstream.services.planning.finish import finish
from leatstream.services.planning.job import refuse_unbuilt
from leatstream.services.planning.query import PlannedQuery
from leatstream.services.planning.record_places import record_places
from leatstream.services.planning.relation_draft import check_entity_name, check_timestamp
from leatstream.services.planning.sink_columns import new_columns
from leatstream.services.planning.sink_formats import (
    check_map_keys,
    primary_key_formats,
    sink_formats,
    written_properties,
)
from leatstream.services.planning.store_fit import check_sink_fit, kind_options
from leatstream.services.planning.table_relations import check_table_store, refuse_times
from leatstream.services.planning.table_sinks import TABLE_FORMAT, check_table, refuse_records, table_entity
from leatstream.services.staging.catalog_view import assumed_meta
from leatstream.sql.statements import CreateAs, CreateChangelogAs, CreateStreamAs, CreateTableAs

_KINDS: Mapping[type[CreateAs], tuple[RelationKind, QueryKind]] = {
    CreateStreamAs: (RelationKind.STREAM, QueryKind.CREATE_STREAM_AS),
    CreateChangelogAs: (RelationKind.CHANGELOG, QueryKind.CREATE_CHANGELOG_AS),
    CreateTableAs: (RelationKind.TABLE, QueryKind.CREATE_TABLE_AS),
}


@dataclass(slots=True)
class NewSink:
    """The relation that a CREATE … AS makes, as far as the stages have come.

    Attributes:
        draft: the statement.
        chosen: its store's name, and why that one.
        store: as it is named.
        connector: of the store.
        faults: found so far. A stage raises them before another one would only repeat them.
        entity: the entity's name, and why that one.
        formats: the effective formats of keys and values; none of a table.
        value_format: the format of values; rows of a store's table count as one.
        effective: all properties, with their origins.
    """

    draft: Draft
    fqn: Fqn
    kind: RelationKind
    chosen: Effective
    store: Store
    connector: Connector
    faults: Faults = field(default_factory=Faults)
    entity: Effective = field(init=False)
    columns: tuple[Column, ...] = field(init=False)
    formats: dict[str, Effective] = field(init=False)
    value_format: str = field(init=False)
    effective: dict[str, Effective] = field(init=False)

    @property
    def entity_name(self) -> str:
        """The entity's name, once it is chosen."""
        return str(self.entity.value)

    def format(self, name: str) -> str | None:
        """One of the formats; None where there is none."""
        return str(self.formats[name].value) if name in self.formats else None


def plan_create(draft: Draft) -> PlannedQuery:
    """The plan of CREATE STREAM, CHANGELOG or TABLE … AS.

    Raises:
        RequestError: everything that is wrong with the new relation.
    """
    statement = cast("CreateAs", draft.statement)
    kind, query_kind = _KINDS[type(statement)]
    fqn = new_name(draft)
    chosen = _choose_store(draft)
    store = draft.live.store(str(chosen.value), draft.places.get("store"))
    sink = NewSink(draft, fqn, kind, chosen, store, draft.live.connector(store.name))
    for stage in _STAGES:
        stage(sink)
    return finish(draft, query_kind, _relation(sink, statement.comment), draft.logical.sql)


def _check_table_declared(sink: NewSink) -> None:
    if sink.kind is RelationKind.TABLE:
        check_table_store(sink.connector, sink.faults, **sink.draft.place("store"))
        refuse_times(sink.draft.given, sink.faults, sink.draft.place)
        sink.faults.raise_if_any()


def _check_built(sink: NewSink) -> None:
    refuse_unbuilt(sink.draft.given, sink.draft.statement.properties, sink.connector)


def _choose_entity(sink: NewSink) -> None:
    draft = sink.draft
    sink.entity = table_entity(
        sink.store, sink.connector, draft.given, sink.fqn.name, sink.faults, draft.place
    )
    where = draft.places.get("topic") or draft.where
    check_entity_name(sink.connector, sink.entity_name, sink.faults, position=where)


def _check_properties(sink: NewSink) -> None:
    draft = sink.draft
    if sink.connector.tables:
        refuse_records(draft.properties, sink.faults, draft.place)
    else:
        left, changelog = draft.logical.left_most.relation, sink.kind is RelationKind.CHANGELOG
        check_sink_fit(sink.connector, draft.given, left, changelog, sink.faults, draft.place)
    sink.faults.raise_if_any()


def _check_loop(sink: NewSink) -> None:
    where = sink.draft.places.get("topic") or sink.draft.where
    refuse_loop(sink.draft, sink.store.name, sink.entity_name, where)


def _choose_columns(sink: NewSink) -> None:
    sink.columns = new_columns(sink.draft.analyzed, sink.draft.where)


def _choose_formats(sink: NewSink) -> None:
    sink.formats = _formats(sink.draft, sink.connector, sink.columns)
    sink.value_format = sink.format("value.format") or TABLE_FORMAT
    if not sink.connector.tables:
        check_map_keys(sink.value_format, sink.columns, sink.faults, position=sink.draft.where)
    if sink.kind is RelationKind.TABLE:
        sink.formats = {}


def _collect_properties(sink: NewSink) -> None:
    draft, connector = sink.draft, sink.connector
    sink.effective = {
        "store": sink.chosen,
        "topic": sink.entity,
        **written_properties(draft.given),
        # Rows of a table are not written in a format; its changes are read in one.
        **({} if connector.tables else sink.formats),
        **kind_options(connector, draft.given, sink.columns, sink.value_format, sink.faults, draft.place),
        **_entity_properties(draft, sink.store, sink.entity_name, draft.logical.left_most.relation),
    }


def _place_columns(sink: NewSink) -> None:
    """Which columns are in records' keys and headers, and whether a table that exists has them all."""
    draft, keys = sink.draft, sink.draft.logical.primary_key
    if sink.connector.tables:
        existing = draft.live.entity(sink.store.name, sink.entity_name)
        check_table(sink.connector, existing, sink.columns, keys, draft.where)
        return
    formats = (sink.value_format, sink.format("key.format"))
    keyed = keys or draft.given.key_columns
    sink.effective |= record_places(draft.given, sink.columns, keyed, formats, sink.faults, draft.place)


def _check_times(sink: NewSink) -> None:
    where = sink.draft.places.get("timestamp")
    check_timestamp(sink.draft.given.timestamp, sink.columns, sink.faults, position=where)
    sink.faults.raise_if_any()


_STAGES: tuple[Callable[[NewSink], None], ...] = (
    _check_table_declared,
    _check_built,
    _choose_entity,
    _check_properties,
    _check_loop,
    _choose_columns,
    _choose_formats,
    _collect_properties,
    _place_columns,
    _check_times,
)


def _relation(sink: NewSink, comment: str | None) -> Relation:
    draft = sink.draft
    table = sink.kind is RelationKind.TABLE
    return Relation(
        meta=assumed_meta(draft.env.clock.now(), str(sink.fqn)),
        fqn=sink.fqn,
        kind=sink.kind,
        columns=sink.columns,
        store=sink.store.name,
        entity=sink.entity_name,
        value_format="" if table else sink.value_format,
        key_format=sink.format("key.format"),
        key_type=sink.format("key.type"),
        timestamp=draft.given.timestamp,
        timestamp_format=draft.given.timestamp_format,
        properties={k: v.value for k, v in draft.statement.properties.items()},
        effective=sink.effective,
        primary_key=draft.logical.primary_key,
        comment=comment,
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

"""A declared stream, changelog or table, checked against its store before anything is stored or made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from leatstream.connectors.base import Connector
from leatstream.connectors.entities import Entity
from leatstream.errors import Faults, LeatstreamError, RequestError, StoreError
from leatstream.inference.sink_properties import SinkRequest, infer_sink_properties
from leatstream.model.names import Fqn, nearest, quote
from leatstream.model.objects import (
    HIDDEN_PREFIX,
    Column,
    Effective,
    Meta,
    Origin,
    Relation,
    RelationKind,
    Store,
)
from leatstream.services.environment import Environment
from leatstream.services.environment.desk import visible_entities
from leatstream.services.nouns.relation_definition import RelationDefinition
from leatstream.services.planning.record_places import column_named, record_places
from leatstream.services.planning.sink_formats import check_map_keys, primary_key_formats, written_properties
from leatstream.services.planning.store_fit import check_declared_fit, kind_options
from leatstream.services.planning.table_relations import check_table_store, refuse_times, table_definition
from leatstream.services.planning.table_sinks import TABLE_FORMAT, refuse_records, table_entity
from leatstream.sql.relation_properties import RelationProperties, read_relation_properties

# Two values of these may be equal and be written differently, or cannot be compared.
_NO_KEYS = ("MAP", "ARRAY", "STRUCT", "FLOAT")
_TIMESTAMP_KINDS = ("BIGINT", "TIMESTAMP", "TIMESTAMP_LTZ", "VARCHAR")


@dataclass(frozen=True, slots=True)
class DraftRelation:
    """A checked relation that is not stored yet, and what must happen to its entity."""

    relation: Relation
    entity_exists: bool
    entity_properties: Mapping[str, int]
    entity_configs: Mapping[str, str]


def read_body(body: RelationDefinition) -> RelationProperties:
    """The WITH keys of a body; RequestError with every fault, at the member that holds it."""
    try:
        return read_relation_properties(body.as_properties(), changelog=body.kind is RelationKind.CHANGELOG)
    except RequestError as error:
        error.faults = tuple(
            replace(fault, **_pointer((fault.pointer or "").removeprefix("#/properties/")))
            if (fault.pointer or "").startswith("#/properties/")
            else fault
            for fault in error.faults
        )
        raise


def draft_relation(
    env: Environment,
    store: Store,
    fqn: Fqn,
    body: RelationDefinition,
    read: RelationProperties,
    meta: Meta,
    planned_entity: Callable[[str, str], Entity | None] | None = None,
) -> DraftRelation:
    """Check a declared stream, changelog or table against its store, without changing anything.

    Args:
        env: the environment.
        store: holds the entity.
        fqn: the relation's name.
        body: what the user wrote.
        read: its properties, typed.
        meta: of the drafted relation.
        planned_entity: gives (store, entity) that the same plan makes.
    """
    if body.kind is RelationKind.MATERIALIZED_VIEW:
        detail = "Materialized views are made by queries: CREATE MATERIALIZED VIEW … AS SELECT."
        raise RequestError("unsupported", detail, pointer="#/kind")
    connector = env.connect(store)
    faults = Faults()
    table = body.kind is RelationKind.TABLE
    if table:
        check_table_store(connector, faults, pointer="#/store")
        refuse_times(read, faults, _pointer)
    meant = table_entity(store, connector, read, fqn.name, faults, _pointer)
    entity_name = str(meant.value)
    _check_shape(body, read, faults, connector)
    check_entity_name(connector, entity_name, faults, pointer="#/topic")
    value_format = read.value_format or (TABLE_FORMAT if connector.tables else "")
    if connector.tables:
        refuse_records(body.as_properties(), faults, _pointer)
    elif not table:
        check_declared_fit(connector, read, body.kind is RelationKind.CHANGELOG, faults, _pointer)
    options = kind_options(connector, read, body.columns, value_format, faults, _pointer)
    if not connector.tables:
        check_map_keys(value_format, body.columns, faults, pointer="#/columns")
    faults.raise_if_any()
    entity = connector.find_entity(entity_name, env.settings.store_timeout)
    if planned_entity is not None:
        planned = planned_entity(store.name, entity_name)
        entity = planned if entity is None else entity.planned(planned)
    if table:
        body = table_definition(connector, fqn, body, entity, entity_name)
    elif entity is None and connector.tables:
        raise StoreError(
            "entity-not-found",
            f"Store {quote(store.name)} has no table {entity_name}, which {fqn} would stand for.",
            hint="Make it by CREATE ENTITY, or let CREATE … AS SELECT make the one that it needs.",
        )
    effective: dict[str, Effective] = {
        "store": Effective(store.name, Origin.EXPLICIT if read.store else Origin.DEFAULT),
        "topic": meant,
        **written_properties(read),
    }
    reader = f"{body.kind.value} {fqn}"
    effective |= options | _infer(env, connector, store, read, entity, entity_name, reader)
    key_format, key_type = read.key_format, read.key_type
    if body.kind is RelationKind.CHANGELOG:
        form, exact = value_format or "json", connector.exact_keys
        key = primary_key_formats(read, body.primary_key, body.columns, {}, form, exact=exact)
        effective |= {} if connector.tables else key
        key_format, key_type = key["key.format"].value, key["key.type"].value
    if not (table or connector.tables):
        keys = body.primary_key or _named_keys(read, body.columns, faults)
        effective |= record_places(read, body.columns, keys, (value_format, key_format), faults, _pointer)
        faults.raise_if_any()
    relation = Relation(
        meta=meta,
        fqn=fqn,
        kind=body.kind,
        columns=body.columns,
        store=store.name,
        entity=entity_name,
        value_format="" if table else value_format,
        key_format=key_format,
        key_type=key_type,
        primary_key=body.primary_key,
        timestamp=read.timestamp,
        timestamp_format=read.timestamp_format,
        properties=dict(body.properties),
        effective=effective,
        comment=body.comment,
    )
    properties = {
        p.name: int(effective[p.name].value) for p in connector.entity_properties if p.name in effective
    }
    return DraftRelation(relation, entity is not None, properties, dict(read.configs))


def _named_keys(read: RelationProperties, columns: Sequence[Column], faults: Faults) -> list[str]:
    """The columns of 'key.columns'; a name that no column has is noted."""
    found: list[str] = []
    for name in read.key_columns:
        column = column_named(columns, name)
        if column is None:
            detail = f"Key column {name} is not a column of the stream."
            faults.add("unknown-column", detail, **_pointer("key.columns"))
        else:
            found.append(column.name)
    return found


def _pointer(name: str) -> dict[str, Any]:
    """Where a property is in a relation's body."""
    fields = ("topic", "value.format", "key.format", "key.type", "timestamp", "timestamp.format")
    return {
        "pointer": f"#/{name.replace('.', '_')}" if name in fields else f"#/properties/{name}".rstrip("/")
    }


def _infer(
    env: Environment,
    connector: Connector,
    store: Store,
    read: RelationProperties,
    entity: Entity | None,
    name: str,
    reader: str,
) -> dict[str, Effective]:
    limits = {} if entity else connector.property_limits(env.settings.store_timeout)
    declared = connector.needed_properties(read.configs)
    near = None
    if entity is None and any(p.name not in read.entity for p in declared):
        near = _near_entity(env, connector, store.name, name)
    return infer_sink_properties(
        SinkRequest(
            kind=store.kind,
            store=store.name,
            declared=declared,
            explicit=read.entity,
            existing=entity,
            limits=limits,
            entity=name,
            reader=reader,
            near=near,
        )
    )


def _near_entity(env: Environment, connector: Connector, store: str, name: str) -> str | None:
    """An entity that may have been meant; None where none is near, or the store does not list them."""
    try:
        live = connector.list_entities(env.settings.store_timeout)
    except LeatstreamError:
        return None
    visible = visible_entities(env, store)
    names = [entity.name for entity in live if visible(entity.name)]
    return nearest(name, names)


def _check_shape(
    body: RelationDefinition, read: RelationProperties, faults: Faults, connector: Connector
) -> None:
    if not body.columns and body.kind is not RelationKind.TABLE:
        others = "with 'value.format' = 'avro' a schema registry may give them"
        faults.add(
            "validation",
            f"A {body.kind.value} needs at least one column.",
            pointer="#/columns",
            hint=f"Name the columns; {'GENERATE COLUMNS shows them' if connector.holds_schemas else others}.",
        )
    seen: set[str] = set()
    for index, column in enumerate(body.columns):
        where = f"#/columns/{index}/name"
        if column.name.lower() in seen:
            faults.add("validation", f"Column {column.name} is declared twice.", pointer=where)
        if column.name.startswith(HIDDEN_PREFIX):
            faults.add("validation", f"Column names may not start with {HIDDEN_PREFIX}.", pointer=where)
        seen.add(column.name.lower())
    _check_primary_key(body, faults)
    if read.value_format is None and not connector.tables and body.kind is not RelationKind.TABLE:
        faults.add(
            "property-required",
            "'value.format' must be given.",
            hint="WITH ('value.format' = 'json')",
            pointer="#/value_format",
        )
    if body.kind is not RelationKind.TABLE:
        check_timestamp(read.timestamp, body.columns, faults, pointer="#/timestamp")


def _check_primary_key(body: RelationDefinition, faults: Faults) -> None:
    where = "#/primary_key"
    if body.kind is RelationKind.STREAM:
        if body.primary_key:
            detail = "A stream has no primary key."
            faults.add("validation", detail, pointer=where, hint="Make it a changelog, or leave the key out.")
        return
    if not body.primary_key and body.kind is RelationKind.CHANGELOG:
        detail = "A changelog needs a primary key: the columns that identify a row."
        faults.add("validation", detail, pointer=where)
    if body.primary_key and not body.columns and body.kind is RelationKind.TABLE:
        detail = "A table whose columns are left out has the primary key of the store's table."
        faults.add("validation", detail, pointer=where, hint="Leave it out too, or name the columns.")
        return
    types = {column.name: column.type for column in body.columns}
    for index, name in enumerate(body.primary_key):
        at = f"{where}/{index}"
        if name not in types:
            detail = f"{quote(name)} of the primary key is not a column of the {body.kind.value}."
            faults.add("unknown-column", detail, pointer=at)
        elif name in body.primary_key[:index]:
            faults.add("validation", f"The primary key names {quote(name)} twice.", pointer=at)
        elif types[name].kind in _NO_KEYS:
            detail = f"Column {quote(name)} is {types[name]}, which cannot tell rows apart."
            faults.add("type-mismatch", detail, pointer=at)


def check_timestamp(name: str | None, columns: Sequence[Column], faults: Faults, **where: Any) -> None:
    """Note a timestamp column that does not exist or has no type that can tell time.

    Args:
        name: of the column; None = none is named.
        columns: of the relation.
        faults: takes what is wrong.
        where: position or pointer of the fault.
    """
    if name is None:
        return
    kind = next((c.type.kind for c in columns if c.name == name), None)
    if kind is None:
        faults.add(
            "unknown-column", f"Timestamp column {quote(name)} is not a column of the stream.", **where
        )
    elif kind not in _TIMESTAMP_KINDS:
        detail = f"Timestamp column {quote(name)} is {kind}; {', '.join(_TIMESTAMP_KINDS)} can give the time."
        faults.add("type-mismatch", detail, **where)


def check_entity_name(connector: Connector, name: str, faults: Faults, **where: Any) -> None:
    """Note a name that the store's kind cannot have.

    Args:
        connector: of the store.
        name: of the entity.
        faults: takes what is wrong.
        where: position or pointer of the fault.
    """
    fault = connector.entity_name_fault(name)
    if fault is not None:
        detail = f"Store {quote(connector.name)} cannot have a topic '{name}': {fault}."
        faults.add("invalid-property", detail, hint="Name another: 'topic' = '…'.", **where)


def ensure_entity(env: Environment, store: Store, draft: DraftRelation) -> bool:
    """Create the relation's entity if it is not there; whether this call made it.

    Args:
        env: the environment.
        store: that it is in.
        draft: the relation, planned.
    """
    if draft.entity_exists:
        return False
    env.connect(store).create_entity(draft.relation.entity, draft.entity_properties, draft.entity_configs)
    return True

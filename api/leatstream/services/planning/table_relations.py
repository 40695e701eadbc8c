"""CREATE TABLE: a relation that stands for a table of a store, checked against the existing table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from leatstream.connectors.base import Connector
from leatstream.connectors.entities import Entity
from leatstream.errors import Faults, Position, RequestError, StoreError, sentence
from leatstream.model.names import Fqn, quote
from leatstream.model.objects import Column, Relation
from leatstream.services.nouns.relation_definition import RelationDefinition
from leatstream.sql.relation_properties import RelationProperties

Where = Callable[[str], Mapping[str, Any]]


def check_table_store(connector: Connector, faults: Faults, **where: Any) -> None:
    """Note a store whose entities are no tables.

    Args:
        connector: of the store.
        faults: takes what is wrong.
        where: position or pointer of the fault.
    """
    if not connector.tables:
        detail = (
            f"Store {quote(connector.name)} is of kind {connector.kind}, whose entities are no tables "
            "of rows and columns."
        )
        hint = "Name a PostgreSQL store, or CREATE STREAM or CHANGELOG."
        faults.add("unsupported", detail, hint=hint, **where)


def table_definition(
    connector: Connector,
    fqn: Fqn,
    body: RelationDefinition,
    entity: Entity | None,
    entity_name: str,
) -> RelationDefinition:
    """The definition with the store's columns and primary key where columns are left out.

    Args:
        connector: of the table's store.
        fqn: the relation's name.
        body: what the user wrote.
        entity: the table as it is, or one that the same plan makes, whose columns are not known.
        entity_name: the table's name.

    Raises:
        StoreError: entity-not-found, there is no such table.
        RequestError: everything in which the columns and the key are not those of the table.
    """
    if entity is None:
        raise StoreError(
            "entity-not-found",
            f"Store {quote(connector.name)} has no table {entity_name}, which {fqn} would stand for.",
            hint="Make it by CREATE ENTITY, or let CREATE TABLE … AS SELECT make the one that it needs.",
        )
    if entity.table is None:
        if not body.columns:
            detail = f"Table {entity_name} is only planned, so its columns cannot be taken from it."
            raise RequestError("validation", detail, pointer="#/columns", hint="Name the columns.")
        return body
    if not body.columns:
        return replace(
            body,
            columns=tuple(Column(c.name, c.type, c.not_null) for c in entity.table.columns),
            primary_key=entity.table.primary_key,
        )
    faults = Faults()
    name = f"table {entity_name} of store {quote(connector.name)}"
    for misfit in connector.read_misfits(entity.table, body.columns, body.primary_key):
        faults.add(
            "type-mismatch", sentence(f"{name}: {misfit.detail}"), pointer="#/columns", hint=misfit.hint
        )
    faults.raise_if_any()
    return body


def refuse_times(read: RelationProperties, faults: Faults, where: Where) -> None:
    """Note properties of event time: rows of a table have none.

    Args:
        read: properties of the relation.
        faults: takes what is wrong.
        where: position or pointer of a property.
    """
    given = {"timestamp": read.timestamp, "timestamp.format": read.timestamp_format}
    for key, value in given.items():
        if value is not None:
            detail = f"{key} has no meaning for a table: its rows have no event time."
            faults.add("invalid-property", detail, hint="Leave it out.", **where(key))


def check_lookup_table(
    connector: Connector, relation: Relation, entity: Entity | None, position: Position
) -> None:
    """Check, at plan, that a table's rows can still be read as the relation's.

    Args:
        connector: of the store.
        relation: that is looked up in.
        entity: its table; None = there is none.
        position: where a fault is shown.

    Raises:
        RequestError: type-mismatch, with every fault; unsupported, where the kind of store has no lookups.
    """
    if not connector.capabilities.lookup:
        detail = f"{relation.fqn} is in a store of kind {connector.kind}, in which rows cannot be looked up."
        raise RequestError("unsupported", detail, position=position)
    if entity is None or entity.table is None:
        return
    faults = Faults()
    for misfit in connector.read_misfits(entity.table, relation.columns, ()):
        detail = f"Table {entity.name} of store {quote(connector.name)}: {misfit.detail}."
        faults.add("type-mismatch", detail, position=position, hint=misfit.hint)
    faults.raise_if_any()

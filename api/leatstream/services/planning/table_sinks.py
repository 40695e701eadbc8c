"""Relations over tables: which table is meant, and whether a query's rows fit into it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from leatstream.connectors.base import Connector
from leatstream.connectors.entities import Entity
from leatstream.errors import Faults, Position
from leatstream.model.names import quote
from leatstream.model.objects import Column, Effective, Origin, Store
from leatstream.sql.relation_properties import RelationProperties

# Properties of records' bytes, and what each may say of a table all the same.
_RECORDS = {
    "value.format": "json",
    "value.columns.exclude": None,
    "key.format": "json",
    "key.type": None,
    "key.columns": None,
    "headers.column": None,
    "sink.timestamp.strategy": "proc.time",
}
TABLE_FORMAT = "json"
"""What a relation over a table says of its values' format: nothing is written in it."""
Where = Callable[[str], Mapping[str, Any]]


def table_entity(
    store: Store, connector: Connector, given: RelationProperties, default: str, faults: Faults, where: Where
) -> Effective:
    """The entity that a relation's properties name, with its origin; what is wrong is noted.

    Args:
        store: the relation's.
        connector: of the store.
        given: the relation's WITH.
        default: the relation's own name.
        faults: take what is wrong.
        where: gives ``position`` or ``pointer`` of a property.
    """
    named = {key: given.other[key] for key in connector.table_names if key in given.other}
    if not connector.tables:
        entity = connector.canonical_entity(given.topic or default)
        return Effective(entity, Origin.EXPLICIT if given.topic else Origin.DEFAULT)
    names = {key: value for key, value in named.items() if isinstance(value, str) and value}
    for key in named.keys() - names.keys():
        faults.add("invalid-property", f"{key} must be a name.", **where(key))
    entity, wrong = connector.named_entity(names, default)
    for fault in wrong:
        faults.add("invalid-property", fault.detail, hint=fault.hint, **where(fault.name))
    named = {key: value for key, value in named.items() if key not in connector.store_names}
    if given.topic and named:
        *_, table = connector.table_names
        detail = "'topic' and the table's own properties both name the entity."
        hint = f"Leave one of 'topic' and {table} out."
        faults.add("invalid-property", detail, hint=hint, **where("topic"))
    if given.topic:
        return Effective(connector.canonical_entity(given.topic), Origin.EXPLICIT)
    return Effective(connector.canonical_entity(entity), Origin.EXPLICIT if named else Origin.DEFAULT)


def refuse_records(given: Mapping[str, Any], faults: Faults, where: Where) -> None:
    """Note properties of records' bytes: rows of a table have columns.

    Args:
        given: properties of the sink.
        faults: takes what is wrong.
        where: position or pointer of a property.
    """
    for key, harmless in _RECORDS.items():
        if key in given and str(given[key]).lower() != harmless:
            detail = f"{key} has no meaning for a table: its rows have columns, not records of bytes."
            faults.add("invalid-property", detail, hint="Leave it out.", **where(key))


def check_table(
    connector: Connector,
    entity: Entity | None,
    columns: Sequence[Column],
    primary_key: Sequence[str],
    position: Position,
) -> None:
    """Check that a sink's rows fit into the existing table.

    Args:
        connector: of the store.
        entity: the table; None = it is to be made.
        columns: of the sink.
        primary_key: of the sink; empty = rows are appended.
        position: where a fault is shown.

    Raises:
        RequestError: type-mismatch, with every fault.
    """
    if entity is None or entity.table is None:
        return
    faults = Faults()
    for misfit in connector.table_misfits(entity.table, columns, primary_key):
        detail = f"Table {entity.name} of store {quote(connector.name)}: {misfit.detail}."
        faults.add("type-mismatch", detail, position=position, hint=misfit.hint)
    faults.raise_if_any()

"""Columns and key of a table that is to be made, as people write them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from leatstream.connectors.base import Connector
from leatstream.connectors.entities import Entity
from leatstream.errors import (
    Faults,
    LeatstreamError,
    Position,
    RequestError,
    no_entity,
    sentence,
)
from leatstream.model.names import quote
from leatstream.model.objects import Column
from leatstream.services.relations.declarations import columns_of
from leatstream.sql import statements as ast
from leatstream.sql.parser import parse
from leatstream.sql.relation_properties import TABLE_COLUMNS

_EXAMPLE = f"{TABLE_COLUMNS[0]!r} = 'id BIGINT, name VARCHAR NOT NULL, PRIMARY KEY (id)'"


@dataclass(frozen=True, slots=True)
class TableShape:
    """What a table is made of."""

    columns: tuple[Column, ...]
    primary_key: tuple[str, ...] = ()


def read_shape(properties: ast.Properties) -> TableShape | None:
    """Columns of CREATE ENTITY … WITH; None where it names none.

    Raises:
        RequestError: invalid-property, the text is no list of columns.
    """
    key, *more = [key for key in TABLE_COLUMNS if key in properties] or [""]
    if not key:
        return None
    value = properties[key]
    if more:
        raise _wrong(f"{key!r} and {more[0]!r} are the same property.", value.position)
    text = str(value.value)
    kind = "CHANGELOG" if "primary" in text.lower() else "STREAM"
    try:
        (statement,) = parse(f"CREATE {kind} t ({text});")
        if not isinstance(statement, ast.CreateStream) or statement.properties or statement.comment:
            raise ValueError
        keys = statement.primary_key if isinstance(statement, ast.CreateChangelog) else ()
        return TableShape(columns_of(statement.columns), tuple(key.parts[0] for key in keys))
    except (LeatstreamError, ValueError) as error:
        why = f": {error.faults[0].detail}" if isinstance(error, LeatstreamError) else ""
        raise _wrong(sentence(f"{key!r} must be a list of columns{why}"), value.position) from None


def _wrong(detail: str, position: Position) -> RequestError:
    return RequestError("invalid-property", detail, position=position, hint=f"Write {_EXAMPLE}.")


def check_shape(connector: Connector, shape: TableShape | None) -> TableShape:
    """The shape of a new table, which has to come back as it is written.

    Raises:
        RequestError: property-required or type-mismatch, with every fault.
    """
    if shape is None or not shape.columns:
        detail = f"A table of store {quote(connector.name)} is made of columns, and none are given."
        raise RequestError(
            "property-required",
            detail,
            pointer=f"#/{connector.kind}/columns",
            hint=f"In SQL write {_EXAMPLE}.",
        )
    faults = Faults()
    names = [column.name for column in shape.columns]
    for index, column in enumerate(shape.columns):
        where: dict[str, Any] = {"pointer": f"#/{connector.kind}/columns/{index}"}
        if column.name in names[:index]:
            faults.add("validation", f"Column {quote(column.name)} is named twice.", **where)
        kept = connector.kept_type(column.type)
        if kept != column.type:
            detail = f"Column {quote(column.name)}: a table keeps {column.type} as {kept}."
            faults.add("type-mismatch", detail, hint=f"Write {kept}.", **where)
    for index, name in enumerate(shape.primary_key):
        if name not in names or name in shape.primary_key[:index]:
            detail = f"The primary key names {quote(name)}, which is no column or stands there twice."
            faults.add("unknown-column", detail, pointer=f"#/{connector.kind}/primary_key/{index}")
    faults.raise_if_any()
    return shape


def bring_table(
    connector: Connector,
    entity: str,
    old: Entity | None,
    shape: TableShape | None,
    configs: dict[str, str],
    timeout: float,
) -> bool:
    """Make a table, or bring one to its settings; whether anything changed.

    Args:
        connector: of the store.
        entity: name of the table.
        old: the table as it is; None = it is new.
        shape: columns and key that it is to have; None = they stay.
        configs: settings in the store's own words.
        timeout: seconds for the store.

    Raises:
        RequestError: the shape cannot be made.
        StoreError: entity-conflict, the table has other columns, which are not changed.
    """
    if old is None:
        given = check_shape(connector, shape)
        connector.create_table(entity, given.columns, given.primary_key)
        if configs:
            connector.update_entity(entity, {}, configs)
        return True
    if shape is not None and shape.columns:
        connector.create_table(entity, shape.columns, shape.primary_key)
    present = connector.find_entity(entity, timeout)
    if present is None:
        raise no_entity(quote(connector.name), entity)
    wanted = {**present.configs, **configs}
    if wanted == dict(present.configs):
        return False
    connector.update_entity(entity, {}, wanted)
    return True

"""From a statement's parts to the arguments of the service functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leatstream.errors import Faults
from leatstream.model.names import did_you_mean, nearest, quote
from leatstream.model.objects import Column, RelationKind
from leatstream.model.types import known_types, parse_type
from leatstream.services.environment import Context
from leatstream.services.nouns.relation_definition import RelationDefinition
from leatstream.sql import statements as ast
from leatstream.sql.relation_properties import TABLE_COLUMNS, read_relation_properties


def entity_properties(properties: ast.Properties) -> tuple[dict[str, int], dict[str, str]]:
    """Entity properties and configs of CREATE ENTITY … WITH."""
    read = read_relation_properties(properties)
    faults = Faults()
    for key in sorted(set(read.other) - set(TABLE_COLUMNS)):
        faults.add(
            "invalid-property", f"{key} is no property of an entity.", position=properties[key].position
        )
    faults.raise_if_any()
    return dict(read.entity), dict(read.configs)


def columns_of(definitions: tuple[ast.ColumnDefinition, ...]) -> tuple[Column, ...]:
    """Columns with their types read; every unknown type is reported with its position."""
    faults = Faults()
    columns: list[Column] = []
    for definition in definitions:
        try:
            kind = parse_type(definition.type)
            columns.append(Column(definition.name, kind, definition.not_null, definition.comment))
        except ValueError as error:
            near = nearest(definition.type.upper(), known_types())
            hint = f"Did you mean {near}?" if near is not None else None
            faults.add("type-mismatch", str(error), position=definition.type_position, hint=hint)
    faults.raise_if_any()
    return tuple(columns)


def relation_definition(statement: ast.CreateStream, context: Context) -> RelationDefinition:
    """The definition a CREATE STREAM, CHANGELOG or TABLE spells out."""
    properties: Mapping[str, Any] = {k: v.value for k, v in statement.properties.items()}
    changelog = isinstance(statement, ast.CreateChangelog)
    keys = statement.primary_key if isinstance(statement, ast.CreateChangelog | ast.CreateTable) else ()
    read = read_relation_properties(statement.properties, changelog=changelog)
    _check_primary_key(statement, keys)
    typed = {"store", "topic", "value.format", "key.format", "key.type", "timestamp", "timestamp.format"}
    return RelationDefinition(
        columns=columns_of(statement.columns),
        kind=kind_of_relation(statement),
        primary_key=tuple(key.parts[0] for key in keys),
        store=read.store or context.store,
        topic=read.topic,
        value_format=read.value_format,
        key_format=read.key_format,
        key_type=read.key_type,
        timestamp=read.timestamp,
        timestamp_format=read.timestamp_format,
        properties={k: v for k, v in properties.items() if k not in typed},
        comment=statement.comment,
    )


def kind_of_relation(statement: ast.CreateStream) -> RelationKind:
    """What a declaration declares."""
    if isinstance(statement, ast.CreateTable):
        return RelationKind.TABLE
    return RelationKind.CHANGELOG if isinstance(statement, ast.CreateChangelog) else RelationKind.STREAM


def _check_primary_key(statement: ast.CreateStream, keys: tuple[ast.Name, ...]) -> None:
    faults = Faults()
    names = [column.name for column in statement.columns]
    for index, key in enumerate(keys):
        name = key.parts[0]
        if name not in names:
            faults.add(
                "unknown-column",
                f"The primary key names {quote(name)}, which is not a column.",
                position=key.position,
                hint=did_you_mean(name, names),
            )
        elif name in (earlier.parts[0] for earlier in keys[:index]):
            faults.add("validation", f"The primary key names {quote(name)} twice.", position=key.position)
    faults.raise_if_any()

"""From a statement's parts to the arguments of the service functions."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, count
from typing import Any

from leatstream.errors import MISSING, Faults, RequestError, sentence
from leatstream.model.names import Fqn, quote
from leatstream.model.objects import Column, RelationKind
from leatstream.model.types import parse_type
from leatstream.services.catalog_view import did_you_mean
from leatstream.services.environment import Context, Environment
from leatstream.services.planning.query_properties import query_name
from leatstream.services.relation_draft import RelationDefinition
from leatstream.sql import statements as ast
from leatstream.sql.relation_properties import TABLE_COLUMNS, read_relation_properties


def single(name: ast.Name) -> str:
    """The part of a name of one part."""
    if len(name.parts) != 1:
        raise RequestError(
            "sql-syntax",
            f"{'.'.join(name.parts)} has {len(name.parts)} parts; one is expected.",
            position=name.position,
        )
    return name.parts[0]


def entity_name(name: ast.Name) -> str:
    """A topic's name. Dots are part of it: Kafka topics often have them."""
    return ".".join(name.parts)


def qualify_schema(name: ast.Name, database: ast.Name | None, context: Context) -> tuple[str, str]:
    """Database and schema that ``[db.]schema [IN DATABASE db]`` means."""
    if len(name.parts) == 2 and database is None:
        return name.parts[0], name.parts[1]
    schema = single(name)
    chosen = single(database) if database else context.database
    if chosen is None:
        raise RequestError(
            "unknown-relation",
            f"No database is chosen for schema {quote(schema)}.",
            position=name.position,
            hint="Write database.schema, or USE DATABASE first.",
            sqlstate=MISSING["database"],
        )
    return chosen, schema


def store_of(env: Environment, name: ast.Name | None, context: Context) -> str:
    """The store a statement means: named, else of the context, else the default."""
    if name is not None:
        return single(name)
    chosen = context.store or env.settings.default_store
    if chosen is None:
        raise RequestError(
            "property-required",
            "No store is named and the session has none.",
            hint="IN STORE …, or USE STORE first",
        )
    return chosen


def entity_properties(properties: ast.Properties) -> tuple[dict[str, int], dict[str, str]]:
    """Entity properties and configs of CREATE ENTITY … WITH."""
    read = read_relation_properties(properties)
    faults = Faults()
    for key in sorted(set(read.other) - {TABLE_COLUMNS}):
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
            faults.add("type-mismatch", sentence(str(error)), position=definition.type_position)
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


def suggest_query_name(
    env: Environment, statement: ast.CreateAs | ast.InsertInto, fqn: Fqn, application: str | None = None
) -> str:
    """``query.name`` if given, else the sink's name, numbered if taken.

    An application's INSERT has the application's name before it: several may write into one stream, and a
    plan is to tell the same name whichever of them is made first.
    """
    given = query_name(statement.query_properties)
    if given is not None:
        return given
    base = fqn.name if isinstance(statement, ast.CreateAs) else f"insert_into_{fqn.name}"
    if application is not None and isinstance(statement, ast.InsertInto):
        base = f"{application}_{base}"
    names = chain((base,), (f"{base}_{number}" for number in count(2)))
    with env.open_unit(write=False) as unit:
        # One by one: a reader of all queries has to start over when any of them changes.
        return next(name for name in names if unit.queries.find(name) is None)

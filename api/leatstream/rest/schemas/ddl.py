"""A relation as the statement that makes it."""

from __future__ import annotations

from typing import Any

from leatstream.model.names import quote
from leatstream.model.objects import Column, Relation, RelationKind


def text(value: Any) -> str:
    """A WITH value as SQL writes it."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int | float):
        return str(value)
    return "'" + str(value).replace("'", "''") + "'"


def _column(column: Column) -> str:
    return f"{quote(column.name)} {column.type}{' NOT NULL' if column.not_null else ''}"


def create_relation(relation: Relation) -> str:
    """CREATE STREAM, CHANGELOG or TABLE with full name, columns, and every property that was given."""
    if relation.kind is RelationKind.MATERIALIZED_VIEW:
        return _create_view(relation)
    given = {
        "store": relation.store,
        "topic": relation.entity,
        "value.format": relation.value_format or None,
        "key.format": relation.key_format,
        # A changelog's key has the type of its primary key.
        "key.type": None if relation.primary_key else relation.key_type,
        "timestamp": relation.timestamp,
        "timestamp.format": relation.timestamp_format,
        **relation.properties,
    }
    columns = ", ".join(_column(column) for column in relation.columns)
    if relation.primary_key:
        columns += f", PRIMARY KEY ({', '.join(map(quote, relation.primary_key))})"
    properties = ", ".join(
        f"{text(name)}={text(value)}" for name, value in given.items() if value is not None
    )
    return f"CREATE {relation.kind.value.upper()} {relation.fqn} ({columns}) WITH ({properties});"


def _create_view(relation: Relation) -> str:
    """What can be said without the query's own text: that stands in the query."""
    columns = ", ".join(_column(column) for column in relation.columns)
    properties = ", ".join(f"{text(name)}={text(value)}" for name, value in relation.properties.items())
    shown = f" WITH ({properties})" if properties else ""
    return f"CREATE MATERIALIZED VIEW {relation.fqn} ({columns}){shown};"

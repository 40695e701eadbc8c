"""A relation as the statement that makes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leatstream.connectors.registry import table_words
from leatstream.model.names import PLAIN, quote
from leatstream.model.objects import Column, Origin, Relation, RelationKind
from leatstream.sql.generation.words import name as sql_name
from leatstream.sql.generation.words import string
from leatstream.sql.relation_properties import canonical_name


class Word(str):
    """A WITH value that is written without quotes: a keyword, or a name that has its own."""


def text(value: Any) -> str:
    """A WITH value as SQL writes it."""
    if isinstance(value, Word):
        return str(value)
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int | float):
        return str(value)
    return string(str(value))


def pairs(given: Mapping[str, Any]) -> str:
    """``'key'='value', …`` of a WITH list, without those that have none."""
    return ", ".join(f"{text(key)}={text(value)}" for key, value in given.items() if value is not None)


def comment(words: str | None) -> str:
    """`` COMMENT 'words'``, or nothing."""
    return "" if words is None else f" COMMENT {string(words)}"


def _column(column: Column) -> str:
    not_null = " NOT NULL" if column.not_null else ""
    return f"{sql_name(column.name)} {column.type}{not_null}{comment(column.comment)}"


def named_topic(relation: Relation) -> str | None:
    """The entity behind a relation, where the user named it; None = it follows from the relation's name."""
    topic = relation.effective.get("topic")
    # A table may be named by its store's own words, which stand among the properties.
    elsewhere = any(canonical_name(key) in table_words() for key in relation.properties)
    named = topic is None or (topic.origin is Origin.EXPLICIT and not elsewhere)
    return (relation.entity if named else None) or None


def named_value_format(relation: Relation) -> str | None:
    """The format of values, where the user named it or it was inherited; rows of a table have none."""
    unsaid = bool(relation.effective) and "value.format" not in relation.effective
    return None if unsaid else relation.value_format or None


def named_key_format(relation: Relation) -> str | None:
    """The format of keys, but of a declared changelog whose primary key gives it."""
    said = relation.effective.get("key.format")
    # Rows of a table have no keys of records: nothing was said of them.
    derived = said is None or said.origin is Origin.DEFAULT
    return None if is_declared_changelog(relation) and derived else relation.key_format


def is_declared_changelog(relation: Relation) -> bool:
    """Whether it is a changelog that no query made."""
    return relation.kind is RelationKind.CHANGELOG and relation.created_by_query is None


def create_relation(relation: Relation) -> str:
    """CREATE STREAM, CHANGELOG or TABLE with full name, columns, and every property that was given."""
    if relation.kind is RelationKind.MATERIALIZED_VIEW:
        return _create_view(relation)
    given = {
        # A text folds to lower case, a name in quotes does not.
        "store": relation.store if PLAIN.match(relation.store) else Word(quote(relation.store)),
        "topic": named_topic(relation),
        "value.format": named_value_format(relation),
        "key.format": named_key_format(relation),
        # A changelog's key has the type of its primary key.
        "key.type": None if relation.primary_key else relation.key_type,
        "timestamp": relation.timestamp,
        "timestamp.format": relation.timestamp_format,
        **relation.properties,
    }
    columns = ", ".join(_column(column) for column in relation.columns)
    if relation.primary_key:
        columns += f", PRIMARY KEY ({', '.join(map(sql_name, relation.primary_key))})"
    head = f"CREATE {relation.kind.value.upper()} {relation.fqn} ({columns}){comment(relation.comment)}"
    return f"{head} WITH ({pairs(given)});"


def _create_view(relation: Relation) -> str:
    """What can be said without the query's own text: that stands in the query."""
    columns = ", ".join(_column(column) for column in relation.columns)
    shown = f" WITH ({pairs(relation.properties)})" if relation.properties else ""
    return f"CREATE MATERIALIZED VIEW {relation.fqn} ({columns}){shown};"

"""A Query's statement, put together from a SELECT and where its rows go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from leatstream_cdktf._shim import tf
from leatstream_cdktf._sql import first_word, has_token, quote_exact, quote_name, quote_property, quote_text
from leatstream_cdktf.l2._names import DatabaseLike, SchemaLike, StoreLike, store_name

PropertyValue: TypeAlias = str | int | float | bool | tf.IResolvable
#: Words of a relation's kind in SQL.
KINDS = {
    "stream": "STREAM",
    "changelog": "CHANGELOG",
    "table": "TABLE",
    "materialized_view": "MATERIALIZED VIEW",
}
_SELECTS = frozenset({"SELECT", "WITH", "FROM", "VALUES"})
_STATEMENTS = frozenset({"CREATE", "INSERT"})


@dataclass(frozen=True, kw_only=True)
class Sink:
    """A new relation that a query makes and writes: ``CREATE STREAM name WITH (…) AS SELECT …``.

    What is left out is worked out by leatstream, as far as it can be known: partitions and replicas of the
    topic from the query's left-most source, the value format likewise, the store from the query's ``store``.

    Attributes:
        name: the new relation's name.
        kind: ``stream`` (the default), ``changelog``, ``table`` or ``materialized_view``.
        store: the store that its topic or table lies in, as a construct or by its exact name. A view lies in
            leatstream's own database if it is left out.
        topic: the topic's name; the relation's name when left out.
        value_format: ``json`` and so on.
        key_format: the format of the records' keys.
        key_type: the SQL type of a primitive key.
        timestamp: the exact name of the column that holds the event time.
        timestamp_format: ``sql`` or ``iso8601``, as the writer does it; both are always read.
        schema: the schema that the relation belongs to; the query's when left out.
        database: the database of a schema that is given by name.
        properties: other properties of the WITH clause, such as ``{"topic.partitions": 3}``.
    """

    name: str
    kind: str = "stream"
    store: StoreLike | None = None
    topic: str | None = None
    value_format: str | None = None
    key_format: str | None = None
    key_type: str | None = None
    timestamp: str | None = None
    timestamp_format: str | None = None
    schema: SchemaLike | None = None
    database: DatabaseLike | None = None
    properties: Mapping[str, PropertyValue] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the kind.

        Raises:
            ValueError: there is no such kind.
        """
        if self.kind not in KINDS:
            raise ValueError(f"the sink {self.name!r} has kind {self.kind!r}; use {', '.join(KINDS)}")

    def all_properties(self) -> dict[str, PropertyValue]:
        """The WITH clause's properties, typed ones first.

        Raises:
            ValueError: one is given twice, as an argument and in ``properties``.
        """
        typed: dict[str, PropertyValue | None] = {
            "store": None if self.store is None else store_name(self.store),
            "topic": self.topic,
            "value.format": self.value_format,
            "key.format": self.key_format,
            "key.type": self.key_type,
            "timestamp": self.timestamp,
            "timestamp.format": self.timestamp_format,
        }
        given: dict[str, PropertyValue] = {key: value for key, value in typed.items() if value is not None}
        twice = [key for key in self.properties if key.lower() in given]
        if twice:
            arguments = ", ".join(f"{key.replace('.', '_')}= and properties[{key!r}]" for key in twice)
            raise ValueError(f"the sink {self.name!r} has a property twice: {arguments}; keep one of them")
        return given | dict(self.properties)


def create_as(kind: str, parts: Sequence[str], properties: Mapping[str, PropertyValue], select: str) -> str:
    """``CREATE STREAM … AS SELECT …``, or the same for another kind of relation.

    Args:
        kind: a key of ``KINDS``.
        parts: the relation's name and what comes before it, each exact.
        properties: the WITH clause.
        select: the SELECT, with its references already in place.
    """
    name = ".".join(quote_exact(part) if has_token(part) else quote_name(part) for part in parts)
    clause = ",\n".join(f"  {quote_text(key)} = {literal(key, value)}" for key, value in properties.items())
    return f"CREATE {KINDS[kind]} {name}" + (f" WITH (\n{clause}\n)" if clause else "") + f" AS\n{select}"


def literal(key: str, value: PropertyValue) -> str:
    """A property's value as SQL writes it."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return quote_property(key, value)
    # A number that only Terraform knows is a token disguised as a number.
    if tf.Token.is_unresolved(value):
        return tf.Token.as_string(value)
    return str(value)


def check_form(sql: str, has_sink: bool) -> None:
    """Tell a SELECT from a whole statement.

    Raises:
        ValueError: the text and the presence of a sink do not go together.
    """
    word = first_word(sql)
    if not sql.strip():
        raise ValueError("sql is empty; write a SELECT and say with sink= where its rows go")
    if has_sink and word not in _SELECTS:
        raise ValueError(
            f"sql starts with {word or sql.strip()[:20]!r} and sink is given; write only the "
            "SELECT, or leave sink out and write the whole statement"
        )
    if not has_sink and word in _SELECTS:
        raise ValueError(
            f"sql starts with {word!r}, so sink must say where the rows go: sink=Sink(name=…, store=…) makes "
            "a new stream, sink=<a Stream> writes to one that exists"
        )
    if not has_sink and word not in _STATEMENTS:
        raise ValueError(
            f"sql starts with {word or sql.strip()[:20]!r}; a query is a SELECT with a sink, or "
            "a whole CREATE STREAM … AS SELECT … or INSERT INTO … SELECT …"
        )

"""Properties of relations and sinks: canonical names, with the aliases of both vocabularies.

Those of entities and of single kinds of store are the connectors' own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from leatstream.connectors.registry import connector_classes, property_families
from leatstream.model.names import nearest, split
from leatstream.model.types import parse_type
from leatstream.sql.property_values import Given, PropertyReader
from leatstream.sql.source_properties import KNOWN as OF_SOURCES
from leatstream.sql.statements import Value

PLAIN = (
    "store",
    "topic",
    "value.format",
    "value.descriptor.source",
    "value.descriptor.name",
    "key.format",
    "key.type",
    "key.columns",
    "value.columns.exclude",
    "headers.column",
    "timestamp",
    "timestamp.format",
    "sink.timestamp.strategy",
    "delivery.guarantee",
)
_BASE = "The schema follows the columns, and takes the names of the subject's newest schema."
_DESCRIPTOR = "Keys in protobuf need a schema registry; only values are read by a descriptor source."
UNBUILT = {
    "key.descriptor.name": _DESCRIPTOR,
    "enable.upsert.mode": "It belongs to changelogs, whose rows are upserts in any case.",
    "avro.base.store.name": _BASE,
    "avro.base.subject.key": _BASE,
    "avro.base.subject.value": _BASE,
}
TABLE_COLUMNS = ("table.columns", "postgresql.columns")
"""Columns of CREATE ENTITY in a store of tables; the second one is an alias."""
UPSERTS = "enable.upsert.mode"
FORMATS = ("json", "avro", "protobuf", "json_schema", "primitive", "csv", "parquet")
KEY_FORMATS = ("primitive", "json", "avro", "protobuf", "json_schema")
KEY_TYPES = ("SMALLINT", "INTEGER", "BIGINT", "DOUBLE", "VARCHAR")


@cache
def _entity_names() -> Mapping[str, tuple[str, ...]]:
    """Entity properties of every kind, with their aliases."""
    return {
        one.name: one.aliases for found in connector_classes().values() for one in found.entity_properties
    }


@cache
def _aliases() -> Mapping[str, str]:
    return {alias: name for name, aliases in _entity_names().items() for alias in aliases}


@dataclass(frozen=True, slots=True)
class RelationProperties:
    """WITH of a relation or sink, typed. None = not given.

    Attributes:
        topic: the entity, exact.
        descriptor_source, descriptor_name: of bare Protobuf messages: where their type stands, its full name.
        key_type: canonical type text.
        key_columns: columns (folded) that make the record key.
        value_columns_exclude: those of them that are not in the value.
        headers_column: column that is the record's headers, and not in the value.
        timestamp: column of event time.
        entity: canonical property (``topic.partitions``) to number.
        configs: the entity's own settings in the store's words (``retention.ms``).
        other: properties of other store kinds' families, as written.
    """

    store: str | None = None
    topic: str | None = None
    value_format: str | None = None
    descriptor_source: str | None = None
    descriptor_name: str | None = None
    key_format: str | None = None
    key_type: str | None = None
    key_columns: tuple[str, ...] = ()
    value_columns_exclude: tuple[str, ...] = ()
    headers_column: str | None = None
    timestamp: str | None = None
    timestamp_format: str | None = None
    sink_timestamp_strategy: str | None = None
    delivery_guarantee: str | None = None
    entity: Mapping[str, int] = field(default_factory=dict)
    configs: Mapping[str, str] = field(default_factory=dict)
    other: Mapping[str, Any] = field(default_factory=dict)


def canonical_name(key: str) -> str:
    """Give a property's one name: ``kafka.partitions`` is topic.partitions; unknown ones stay as they are."""
    key = key.strip().lower()
    if key in _aliases() or key in _entity_names():
        return _aliases().get(key, key)
    config = _config(key)
    return config[0] if config else key


def read_relation_properties(
    given: Given, *, changelog: bool = False, into: bool = False
) -> RelationProperties:
    """Check and type a WITH list (SQL values, or plain ones from a REST body's ``properties``).

    Args:
        given: the list.
        changelog: whether it is a changelog's, whose key is its primary key.
        into: whether it is of an INSERT, whose target has the key's format.

    Raises:
        RequestError: invalid-property or unsupported, with every fault found.
    """
    reader = PropertyReader(given, "relation")
    _refuse_unknown(reader, changelog=changelog)
    found = RelationProperties(
        store=reader.name("store"),
        topic=reader.text("topic"),
        value_format=_format(reader, "value.format", FORMATS),
        descriptor_source=reader.name("value.descriptor.source"),
        descriptor_name=reader.text("value.descriptor.name"),
        key_format=_format(reader, "key.format", KEY_FORMATS),
        key_type=_key_type(reader),
        key_columns=_columns(reader, "key.columns"),
        value_columns_exclude=_columns(reader, "value.columns.exclude"),
        headers_column=reader.name("headers.column"),
        timestamp=reader.name("timestamp"),
        timestamp_format=reader.choice("timestamp.format", ("sql", "iso8601")),
        sink_timestamp_strategy=reader.choice("sink.timestamp.strategy", ("proc.time", "event.time")),
        delivery_guarantee=reader.choice("delivery.guarantee", ("at_least_once", "exactly_once")),
        entity=_entity(reader),
        configs=_configs(reader),
        other={k: reader.raw(k) for k in reader.given if _is_of_a_kind(k)},
    )
    _check_descriptor(reader, found)
    if changelog:
        for key in {"key.type", "key.columns"} & reader.given.keys():
            reader.wrong(key, f"{key!r} is not for changelogs: the primary key is the record's key.")
    else:
        _check_key(reader, found, into=into)
    reader.faults.raise_if_any()
    return found


def _is_of_a_kind(key: str) -> bool:
    """Whether a property is one that only relations in some kind of store have; the connector judges it."""
    entity = key in _entity_names() or key in _aliases()
    return key.startswith((*property_families(), *TABLE_COLUMNS)) and not entity and _config(key) is None


def _config(key: str) -> tuple[str, str] | None:
    """The one name of an entity's setting, and the store's word for it."""
    if key in _aliases() or key in _entity_names():
        return None
    found = (connector.config_word(key) for connector in connector_classes().values())
    return next((word for word in found if word is not None), None)


def _check_upserts(reader: PropertyReader) -> None:
    if not reader.flag(UPSERTS, True):
        hint = "Leave it out, or CREATE STREAM to keep every row."
        reader.faults.add(
            "unsupported",
            f"{UPSERTS!r} = FALSE: rows of a changelog are upserts.",
            hint=hint,
            **reader.where(UPSERTS),
        )


def _refuse_unknown(reader: PropertyReader, *, changelog: bool) -> None:
    configs = (key for found in connector_classes().values() for key in found.entity_configs)
    known = [*PLAIN, *TABLE_COLUMNS, *_entity_names(), *_aliases(), *configs]
    for key in reader.given:
        if key == UPSERTS and changelog:
            _check_upserts(reader)
        elif key in UNBUILT:
            reader.unbuilt(key, UNBUILT[key])
        elif key not in known and _config(key) is None and not key.startswith(property_families()):
            if key in OF_SOURCES:
                reader.elsewhere(key, f"It is a property of a source: FROM name WITH ({key!r} = …).")
                continue
            # Of the two formats, nobody means that of keys.
            near = "value.format" if key == "format" else nearest(key, known)
            reader.unknown(key, [near] if near else [*PLAIN, *_entity_names(), "kafka.topic.<setting>"])


def _format(reader: PropertyReader, key: str, built: tuple[str, ...]) -> str | None:
    word = reader.choice(key, FORMATS)
    if word is None or word in built:
        return word
    detail = f"{key!r} = {word} is not supported."
    reader.faults.add("unsupported", detail, hint=f"Available: {', '.join(built)}.", **reader.where(key))
    return None


def _key_type(reader: PropertyReader) -> str | None:
    text = reader.text("key.type")
    if text is None:
        return None
    try:
        parsed = str(parse_type(text))
    except ValueError as error:
        reader.wrong("key.type", f"'key.type': {error}.")
        return None
    if parsed.split("(")[0] not in KEY_TYPES:
        reader.wrong("key.type", f"A primitive key is {', '.join(KEY_TYPES[:-1])} or {KEY_TYPES[-1]}.")
        return None
    return parsed


def _columns(reader: PropertyReader, key: str) -> tuple[str, ...]:
    text = reader.text(key)
    if text is None:
        return ()
    given = reader.given[key]
    if isinstance(given, Value) and given.kind == "identifier":
        return (text,)
    columns: list[str] = []
    for part in text.split(","):
        try:
            (name,) = split(part.strip()) if isinstance(given, Value) else (part.strip(),)
        except ValueError:
            reader.wrong(key, f"{key!r} must be a list of column names separated by commas.")
            return ()
        columns.append(name)
    return tuple(columns)


def _entity(reader: PropertyReader) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, aliases in _entity_names().items():
        keys = [key for key in (name, *aliases) if key in reader.given]
        for key in keys:
            number = reader.number(key)
            if number is not None and found.setdefault(name, number) != number:
                first = keys[0]
                reader.wrong(key, f"{first!r} and {key!r} are the same property with different values.")
    return found


def _configs(reader: PropertyReader) -> dict[str, str]:
    found: dict[str, str] = {}
    for key in reader.given:
        word = _config(key)
        if word is None:
            continue
        config = word[1]
        value = reader.raw(key)
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if found.setdefault(config, text) != text:
            reader.wrong(key, f"The setting {config!r} is given twice with different values.")
    return found


def _check_descriptor(reader: PropertyReader, found: RelationProperties) -> None:
    pair = {
        "value.descriptor.source": found.descriptor_source,
        "value.descriptor.name": found.descriptor_name,
    }
    given = [key for key in pair if key in reader.given]
    if len(given) == 1:
        (other,) = set(pair) - set(given)
        reader.wrong(given[0], f"{given[0]!r} needs {other!r}.")
    elif given and found.value_format not in (None, "protobuf"):
        reader.wrong(given[0], f"{given[0]!r} is for 'value.format' = 'protobuf'.")


def _check_key(reader: PropertyReader, found: RelationProperties, *, into: bool) -> None:
    given = reader.given
    if "key.type" in given and "key.columns" in given:
        hint = "Leave 'key.type' out: the key column's type is used."
        reader.wrong("key.type", "'key.type' and 'key.columns' exclude each other.", hint)
    if "value.columns.exclude" in given and "key.columns" not in given:
        hint = "Add 'key.columns': what is not in the value is in the key."
        reader.wrong("value.columns.exclude", "'value.columns.exclude' needs 'key.columns'.", hint)
    if ("key.type" in given or "key.columns" in given) and "key.format" not in given and not into:
        key = "key.type" if "key.type" in given else "key.columns"
        reader.wrong(key, f"{key!r} needs 'key.format'.", "Add 'key.format' = 'primitive'.")
    if found.key_format == "primitive" and len(found.key_columns) > 1:
        reader.wrong("key.columns", "A primitive key is made of exactly one column.")
    if found.key_format not in (None, "primitive") and "key.type" in given:
        reader.wrong("key.type", "'key.type' is for primitive keys: others are read by their schema.")

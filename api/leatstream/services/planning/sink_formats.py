"""How a new sink's records are written: value format, key format, and which columns make the key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from leatstream.errors import Faults, Position
from leatstream.formats.described import FORMATS as DESCRIBED
from leatstream.formats.primitive import KEY_TYPES
from leatstream.model.names import quote
from leatstream.model.objects import Column, Effective, Origin, Relation
from leatstream.model.types import DataType
from leatstream.plan.logical import Aggregation
from leatstream.sql.relation_properties import RelationProperties

Places = Mapping[str, Position]


def sink_formats(
    given: RelationProperties,
    left: Relation,
    aggregation: Aggregation | None,
    columns: Sequence[Column],
    places: Places,
    keys: Sequence[str] = (),
    *,
    exact: bool = True,
) -> dict[str, Effective]:
    """Value and key properties in force, each with its origin.

    Args:
        given: the sink's WITH.
        left: the left-most source.
        aggregation: of the SELECT.
        columns: of the sink.
        places: canonical property name to where the user wrote it.
        keys: the primary key, of a changelog.
        exact: whether the sink's store keeps keys as they are (``Connector.exact_keys``).

    Raises:
        RequestError: a key that cannot be made of these columns.
    """
    origin = Origin.EXPLICIT if given.value_format else Origin.LEFT_MOST_SOURCE
    source = None if given.value_format else str(left.fqn)
    value = {"value.format": Effective(given.value_format or left.value_format, origin, source)}
    if aggregation is not None and aggregation.update:
        keys = aggregation.keys
    if keys:
        form = str(value["value.format"].value)
        return value | primary_key_formats(given, keys, columns, places, form, exact=exact)
    if aggregation is None:
        _check_key_columns(given, columns, places)
        return value | _row_key(given, left)
    _check_key_columns(given, columns, places, needed=True)
    return value | _given_key(given)


def written_properties(given: RelationProperties) -> dict[str, Effective]:
    """What the user wrote of a relation's records; inferred properties add to these or replace them."""
    found = {
        "value.format": given.value_format,
        "value.descriptor.source": given.descriptor_source,
        "value.descriptor.name": given.descriptor_name,
        "key.format": given.key_format,
        "key.type": given.key_type,
        "key.columns": ", ".join(map(quote, given.key_columns)) or None,
        "timestamp": given.timestamp,
        "timestamp.format": given.timestamp_format,
        "sink.timestamp.strategy": given.sink_timestamp_strategy,
        "delivery.guarantee": given.delivery_guarantee,
    }
    return {name: Effective(value, Origin.EXPLICIT) for name, value in found.items() if value is not None}


def _row_key(given: RelationProperties, left: Relation) -> dict[str, Effective]:
    """A row's key is the left-most record's, unless the user has another made."""
    if given.key_format:
        return _given_key(given)
    if left.key_format not in (None, "primitive"):
        # A key that is an object is written as it is; its columns are not the sink's.
        return {}
    found = {"key.format": left.key_format, "key.type": left.key_type}
    return {
        k: Effective(v, Origin.LEFT_MOST_SOURCE, str(left.fqn)) for k, v in found.items() if v is not None
    }


def _given_key(given: RelationProperties) -> dict[str, Effective]:
    found = {"key.format": given.key_format, "key.type": given.key_type}
    return {k: Effective(v, Origin.EXPLICIT) for k, v in found.items() if v is not None}


def primary_key_formats(
    given: RelationProperties,
    keys: Sequence[str],
    columns: Sequence[Column],
    places: Places,
    value_format: str = "json",
    *,
    exact: bool = True,
) -> dict[str, Effective]:
    """A changelog's record key: one plain column as it is, else an object of the key's columns.

    A store that keeps a digest of some keys gets JSON, which is text and never empty: what takes a row back
    has nothing but its key.

    Args:
        given: properties of the sink.
        keys: names of the key's columns.
        columns: of the sink.
        places: canonical property name to where the user wrote it.
        value_format: of the sink.
        exact: whether the sink's store keeps keys as they are (``Connector.exact_keys``).

    Raises:
        RequestError: invalid-property, for a primitive key that cannot be made of these columns; unsupported,
            for keys that the store would not keep.
    """
    types = {column.name: column.type for column in columns}
    plain = len(keys) == 1 and types[keys[0]].kind in KEY_TYPES
    if given.key_format == "primitive" and not plain:
        faults = Faults()
        shown = ", ".join(f"{quote(key)} {types[key]}" for key in keys)
        faults.add(
            "invalid-property",
            f"A primitive key is one column of type {', '.join(KEY_TYPES)}, but the primary key is {shown}.",
            position=places.get("key.format"),
            hint="Leave 'key.format' out, or write 'key.format' = 'json'.",
        )
        faults.raise_if_any()
    own = value_format if value_format in DESCRIBED and exact else "json"
    format_ = given.key_format or ("primitive" if plain and exact else own)
    struct = DataType("STRUCT", arguments=tuple(types[key] for key in keys), fields=tuple(keys))
    type_ = types[keys[0]] if format_ == "primitive" else struct
    if not exact and format_ != "json" and type_.kind != "VARCHAR":
        faults = Faults()
        faults.add(
            "unsupported",
            f"The store keeps a digest of keys that are no text, so with 'key.format' = '{format_}' and "
            f"a key of type {type_} no record says which row it retracts.",
            position=places.get("key.format"),
            hint="Leave 'key.format' out, or write 'key.format' = 'json'.",
        )
        faults.raise_if_any()
    origin = Origin.EXPLICIT if given.key_format else Origin.DEFAULT
    return {
        "key.format": Effective(format_, origin),
        "key.type": Effective(str(type_), Origin.DEFAULT),
        "key.columns": Effective(", ".join(map(quote, keys)), Origin.DEFAULT),
    }


def check_map_keys(format_: str, columns: Sequence[Column], faults: Faults, **where: Any) -> None:
    """Note columns with a map whose keys the format has no form for.

    Args:
        format_: of the records.
        columns: that they hold.
        faults: takes what is wrong.
        where: position or pointer of the fault.
    """
    if format_ not in ("json", "avro", "json_schema"):
        return
    for column in columns:
        for kind in _parts(column.type):
            if kind.kind == "MAP" and kind.arguments[0].kind != "VARCHAR":
                key, name = kind.arguments[0], quote(column.name)
                detail = f"Column {name}: a map in {format_} has VARCHAR keys, not {key}."
                faults.add("type-mismatch", detail, hint="Write MAP<VARCHAR, …>, and CAST the keys.", **where)


def _parts(kind: DataType) -> Iterator[DataType]:
    yield kind
    for part in kind.arguments:
        yield from _parts(part)


def _check_key_columns(
    given: RelationProperties, columns: Sequence[Column], places: Places, *, needed: bool = False
) -> None:
    names = {c.name for c in columns}
    faults = Faults()
    for name in given.key_columns:
        if name not in names:
            where = places.get("key.columns")
            faults.add(
                "unknown-column", f"Key column {quote(name)} is not a column of the sink.", position=where
            )
    if needed and given.key_format and not given.key_columns:
        faults.add(
            "property-required",
            "A group has no record's key to pass on: 'key.columns' must be given with 'key.format'.",
            position=places.get("key.format"),
        )
    faults.raise_if_any()

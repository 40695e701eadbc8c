"""Single records of formats with schemas: written by INSERT … VALUES, and made readable for PRINT."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from leatstream.connectors.entities import NewRecord, Record
from leatstream.errors import Position, RequestError, StoreError
from leatstream.formats.described import FORMATS, Description, Encoder, subject_of
from leatstream.formats.plain_values import Undecodable, Unencodable
from leatstream.formats.registered_json import RegisteredJson
from leatstream.formats.registered_schema import schema_type
from leatstream.formats.registry_client import Schema
from leatstream.formats.values import json_record, primitive_bytes
from leatstream.model.objects import Column, Relation
from leatstream.services.environment import Environment
from leatstream.services.nouns.schema_registries import held_password, open_registry
from leatstream.services.planning.live_stores import LiveStores
from leatstream.services.planning.record_places import headers_column, value_columns
from leatstream.services.planning.record_schemas import sink_schemas


def make_records(
    live: LiveStores,
    relation: Relation,
    keys: Sequence[Column],
    rows: Sequence[Sequence[Any]],
    position: Position,
    *,
    register: bool,
) -> list[NewRecord]:
    """Records of rows, in the relation's formats.

    Args:
        live: stores and registries.
        relation: the stream or changelog.
        keys: columns that make the record key; none = no key.
        rows: one value per column, as ``sql.constants.value_of`` gives them.
        position: of the statement.
        register: whether schemas are registered; a dry run only asks whether they would be taken.

    Raises:
        RequestError: a value has no form in the format, or a schema would be refused.
        StoreError: the registry cannot be asked.
    """
    schemas: Mapping[str, str] = {}
    if not (relation.value_format in FORMATS and live.connector(relation.store).holds_schemas):
        schemas = sink_schemas(live, relation, [c.name for c in keys], position)
    numbers = _registered(live, relation, schemas, position) if register else dict.fromkeys(schemas, 0)
    inside = value_columns(relation)
    headers = [column for column in relation.columns if column.name == headers_column(relation)]
    value, key = (
        _encoder(format_, columns, numbers.get(part), schemas.get(part))
        for part, format_, columns in (
            ("value_schema", relation.value_format, inside),
            ("key_schema", relation.key_format, keys),
        )
    )
    by_column = live.connector(relation.store).tables
    try:
        return [
            NewRecord(
                _key(relation, keys, _chosen(relation, keys, row), key, by_column=by_column),
                _value(relation, inside, _chosen(relation, inside, row), value),
                _headers(*_chosen(relation, headers, row)),
            )
            for row in rows
        ]
    except Unencodable as error:
        detail = f"A row cannot be written as {relation.value_format.upper()}: {error}."
        raise RequestError("type-mismatch", detail, position=position) from None


def _chosen(relation: Relation, columns: Sequence[Column], row: Sequence[Any]) -> list[Any]:
    return [row[relation.columns.index(column)] for column in columns]


def _key(
    relation: Relation,
    columns: Sequence[Column],
    values: Sequence[Any],
    form: Encoder | None,
    *,
    by_column: bool,
) -> bytes | None:
    if form is not None:
        return form.record(values)
    if not columns:
        return None
    if relation.key_format == "json" or by_column:
        return json_record(columns, values)
    return primitive_bytes(values[0], relation.key_type or str(columns[0].type))


def _value(
    relation: Relation, columns: Sequence[Column], values: Sequence[Any], form: Encoder | None
) -> bytes | None:
    if form is not None:
        return form.record(values)
    if relation.value_format == "primitive":
        return primitive_bytes(values[0], str(columns[0].type))
    return json_record(columns, values)


def _headers(entries: Mapping[str, str | bytes | None] | None = None) -> tuple[tuple[str, bytes | None], ...]:
    """The headers of a record, from the column's value; texts in UTF-8."""
    given = (entries or {}).items()
    return tuple((name, value.encode() if isinstance(value, str) else value) for name, value in given)


def _encoder(
    format_: str | None, columns: Sequence[Column], number: int | None, schema: str | None
) -> Encoder | None:
    if format_ not in FORMATS or number is None:
        return None
    description = Description(
        format_ or "",
        tuple(c.name for c in columns),
        tuple(str(c.type) for c in columns),
        tuple(c.not_null for c in columns),
        schema=schema if format_ == "protobuf" else None,
    )
    return Encoder(description, number)


def _registered(
    live: LiveStores, relation: Relation, schemas: Mapping[str, str], position: Position
) -> dict[str, int]:
    """The ids of the schemas, registered if they are not yet."""
    found: dict[str, int] = {}
    for part, format_ in (("value", relation.value_format), ("key", relation.key_format)):
        text = schemas.get(f"{part}_schema")
        if text is not None:
            client = live.registry_client(relation.store, format_ or "", position)
            schema = Schema(schema_type(format_ or ""), text)
            found[f"{part}_schema"] = client.register(subject_of(relation.entity, part), schema)
    return found


def readable(env: Environment, store: str, records: Iterator[Record | None]) -> Iterator[Record | None]:
    """The records with keys and values as JSON where the store's schema registry knows their schemas.

    Args:
        env: the environment.
        store: name of the store.
        records: as they come; None while idle.
    """
    with env.open_unit(write=False) as unit:
        found = unit.stores.find(store)
        name = found.schema_registry if found is not None else None
        registry = unit.schema_registries.find(name) if name is not None else None
        password = held_password(unit, registry) if registry is not None else None
    if registry is None:
        yield from records
        return
    client = open_registry(env, registry, password)
    reader = RegisteredJson(client)
    try:
        for record in records:
            if record is None:
                yield None
            else:
                yield replace(record, key=_shown(reader, record.key), value=_shown(reader, record.value))
    finally:
        client.close()
        if isinstance(records, Generator):
            records.close()


def _shown(reader: RegisteredJson, raw: bytes | None) -> bytes | None:
    try:
        return None if raw is None else reader.text(raw)
    except (Undecodable, StoreError):
        # What cannot be read is shown as it lies there.
        return raw

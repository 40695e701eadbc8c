"""Schemas of records, where a schema registry keeps them: those of sinks, and columns taken from them."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Sequence
from dataclasses import replace

from leatstream.errors import Faults, Position, RequestError, sentence
from leatstream.formats.avro_columns import record_name
from leatstream.formats.avro_schema import UnfitSchema
from leatstream.formats.described import FORMATS, subject_of
from leatstream.formats.protobuf_schema import columns_of as protobuf_columns
from leatstream.formats.protobuf_schema import message_of
from leatstream.formats.registered_schema import columns_of, schema_text, schema_type
from leatstream.formats.registry_client import RegistryClient, Schema
from leatstream.model.names import quote
from leatstream.model.objects import Column, Relation
from leatstream.plan.job_spec import DescriptorRef
from leatstream.services.nouns.relation_definition import RelationDefinition
from leatstream.services.planning.live_stores import LiveStores
from leatstream.services.planning.record_places import value_columns
from leatstream.services.staging.catalog_view import CatalogView
from leatstream.sql.relation_properties import RelationProperties

_SOURCE, _MESSAGE = "value.descriptor.source", "value.descriptor.name"


def sink_schemas(
    live: LiveStores, sink: Relation, key_columns: Sequence[str], position: Position | None
) -> dict[str, str]:
    """What a sink's records are written by: ``value_schema`` and ``key_schema``, where its formats have them.

    The job registers them, unless the store's files hold them.

    Args:
        live: stores and registries.
        sink: the relation to be written.
        key_columns: columns that make the record key.
        position: where the statement names the sink.

    Raises:
        RequestError: property-required without a registry; ``schema-incompatible`` with the registry's own
            reasons; ``type-mismatch`` for columns that the format has no form for.
        StoreError: the registry cannot be asked.
    """
    found: dict[str, str] = {}
    if sink.value_format in FORMATS and sink.find_property(_SOURCE) is not None:
        detail = f"Records of {sink.fqn} are described by a descriptor source, by which they are only read."
        raise RequestError("unsupported", detail, position=position, hint="Use a schema registry.")
    if sink.value_format in FORMATS and live.connector(sink.store).holds_schemas:
        name = record_name(sink.fqn.database, sink.fqn.schema, sink.fqn.name)
        return {"value_schema": _text(sink, name, sink.value_format, sink.columns, None, position)}
    if sink.value_format in FORMATS:
        found["value_schema"] = _checked(live, sink, "value", value_columns(sink), position)
    if sink.key_format in FORMATS and key_columns:
        by_name = {column.name: column for column in sink.columns}
        columns = [by_name[name] for name in key_columns]
        found["key_schema"] = _checked(live, sink, "key", columns, position)
    return found


def _checked(
    live: LiveStores, sink: Relation, part: str, columns: Sequence[Column], position: Position | None
) -> str:
    format_ = (sink.value_format if part == "value" else sink.key_format) or ""
    client = live.registry_client(sink.store, f"'{part}.format' = {format_}", position)
    subject = subject_of(sink.entity, part)
    newest = client.latest(subject)
    fqn = sink.fqn
    name = record_name(fqn.database, fqn.schema, f"{fqn.name}_{part}")
    text = _text(sink, name, format_, columns, newest, position)
    if newest is not None:
        _refuse_incompatible(client, subject, Schema(schema_type(format_), text), newest, position)
    return text


def _text(
    sink: Relation,
    name: str,
    format_: str,
    columns: Sequence[Column],
    newest: Schema | None,
    position: Position | None,
) -> str:
    try:
        return schema_text(format_, columns, name, newest)
    except UnfitSchema as error:
        detail = f"{sink.fqn} cannot be written as {format_.upper()}: {error}."
        raise RequestError("type-mismatch", detail, position=position) from None


def _refuse_incompatible(
    client: RegistryClient, subject: str, schema: Schema, newest: Schema, position: Position | None
) -> None:
    faults = Faults()
    hint = "Choose the columns so that they fit, another topic, or change the subject's compatibility."
    if newest.type != schema.type:
        detail = f"Subject {quote(subject)} holds schemas of type {newest.type}, not {schema.type}."
        faults.add("schema-incompatible", detail, position=position, hint=hint)
    else:
        for reason in client.incompatibilities(subject, schema):
            detail = sentence(f"Subject {quote(subject)} would not take the sink's schema: {reason}")
            faults.add("schema-incompatible", detail, position=position, hint=hint)
    faults.raise_if_any()


def descriptor_of(view: CatalogView, relation: Relation) -> DescriptorRef | None:
    """The type of a stream's bare Protobuf messages; None where its records name schemas.

    Raises:
        CatalogError: not-found, for a descriptor source that was deleted.
    """
    source = relation.find_property(_SOURCE)
    if relation.value_format != "protobuf" or source is None:
        return None
    files = view.require_descriptor_set(str(source))
    return DescriptorRef(message=str(relation.find_property(_MESSAGE) or ""), files=files)


def _described_columns(
    live: LiveStores, body: RelationDefinition, read: RelationProperties
) -> RelationDefinition:
    source, name = read.descriptor_source or "", read.descriptor_name or ""
    files = live.view.require_descriptor_set(source)
    try:
        message = message_of(b64decode(files), name)
        columns = body.columns or protobuf_columns(message)
    except UnfitSchema as error:
        detail = f"Descriptor source {quote(source)}: {error}."
        raise RequestError("validation", detail, pointer=f"#/properties/{_MESSAGE}") from None
    # The names as they are, whichever way they were written.
    others = {k: v for k, v in body.properties.items() if str(k).strip().lower() not in (_SOURCE, _MESSAGE)}
    return replace(body, columns=columns, properties=others | {_SOURCE: source, _MESSAGE: name})


def with_columns(
    live: LiveStores, store: str, name: str, body: RelationDefinition, read: RelationProperties
) -> RelationDefinition:
    """What the user wrote of a relation, with the registry's columns where columns are left out.

    Args:
        live: stores and registries.
        store: the relation's.
        name: the relation's last name, which its entity has unless it is named.
        body: what the user wrote.
        read: its properties, typed.

    Raises:
        RequestError, StoreError: as ``registered_columns``.
    """
    if read.value_format in FORMATS:
        connector = live.connector(store)
        if connector.holds_schemas or read.value_format not in connector.value_formats:
            return body  # which is refused for that, or needs no registry
    if read.descriptor_source is not None:
        return _described_columns(live, body, read)
    for part, format_ in (("value", read.value_format), ("key", read.key_format)):
        if format_ in FORMATS:
            live.registry_client(store, f"'{part}.format' = {format_}")
    if body.columns or read.value_format not in FORMATS:
        return body
    return replace(body, columns=registered_columns(live, store, read.topic or name, read.value_format))


def registered_columns(live: LiveStores, store: str, entity: str, format_: str) -> tuple[Column, ...]:
    """The columns of an entity's records, as its subject's newest schema describes them.

    Args:
        live: stores, asked once each.
        store: name of the store.
        entity: name of the entity.
        format_: of its records.

    Raises:
        RequestError: property-required without a registry, ``validation`` without a schema there or with one
            that columns cannot be made of.
        StoreError: the registry cannot be asked.
    """
    client = live.registry_client(store, f"'value.format' = {format_}")
    subject = subject_of(entity, "value")
    schema = client.latest(subject)
    if schema is None:
        raise RequestError(
            "validation",
            f"Schema registry {quote(client.address.name)} has no subject {quote(subject)}, so no columns "
            "can be taken from it.",
            pointer="#/columns",
            hint="Name the columns.",
        )
    try:
        if schema.type != schema_type(format_):
            raise UnfitSchema(f"it is of type {schema.type}, not {schema_type(format_)}")
        return columns_of(schema)
    except UnfitSchema as error:
        raise RequestError(
            "validation",
            f"No columns can be made of schema {schema.id} of subject {quote(subject)}: {error}.",
            pointer="#/columns",
            hint="Name the columns; a field that is not named is passed over.",
        ) from None


def check_described(live: LiveStores, relation: Relation, position: Position | None) -> None:
    """Check that a relation's records can be read: formats with schemas need a registry.

    Args:
        live: stores, asked once each.
        relation: that is read.
        position: where a fault is shown.

    Raises:
        RequestError: property-required.
    """
    if live.connector(relation.store).holds_schemas:
        return
    bare = descriptor_of(live.view, relation) is not None
    for part, format_ in (("value", relation.value_format), ("key", relation.key_format)):
        if format_ in FORMATS and not (bare and part == "value"):
            live.registry_client(relation.store, f"'{part}.format' = {format_}", position)

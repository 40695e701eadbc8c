"""What a registered schema of any format says: columns of its records, and the schema of columns."""

from __future__ import annotations

from collections.abc import Sequence

from leatstream.formats import avro_columns, avro_schema, json_schema, protobuf_schema
from leatstream.formats.avro_schema import AvroType, UnfitSchema
from leatstream.formats.registry_client import Schema, texts_of
from leatstream.model.objects import Column


def columns_of(schema: Schema) -> tuple[Column, ...]:
    """The columns that records of a schema have; all may be NULL. Of Protobuf: of its first message.

    Raises:
        UnfitSchema: columns cannot be made of it.
    """
    if schema.type == "AVRO":
        return avro_columns.columns_of(parsed_avro(schema))
    if schema.type == "PROTOBUF":
        file = protobuf_schema.open_file(schema)
        return protobuf_schema.columns_of(protobuf_schema.message_at(file, (0,)))
    if schema.type == "JSON":
        return json_schema.columns_of(schema.text, {name: other.text for name, other in schema.references})
    raise UnfitSchema(f"it is of type {schema.type}, which is not read")


def schema_type(format_: str) -> str:
    """The registry's word for a format: ``AVRO``, ``PROTOBUF`` or ``JSON``."""
    return "JSON" if format_ == "json_schema" else format_.upper()


def schema_text(format_: str, columns: Sequence[Column], name: str, newest: Schema | None) -> str:
    """The schema of records with these columns.

    Args:
        format_: ``avro``, ``protobuf`` or ``json_schema``.
        columns: of the sink.
        name: full name of the record.
        newest: the subject's newest schema; its names, and of Protobuf the field numbers, are kept.

    Raises:
        UnfitSchema: the format has no form for the columns.
    """
    if newest is not None and newest.type != schema_type(format_):
        newest = None
    if format_ == "avro":
        return avro_columns.schema_text(columns, name, _like_avro(newest))
    if format_ == "json_schema":
        return json_schema.schema_text(columns, name)
    like = None
    if newest is not None:
        try:
            like = protobuf_schema.message_at(protobuf_schema.open_file(newest), (0,))
        except UnfitSchema:
            like = None
    text = protobuf_schema.schema_text(columns, name, like)
    protobuf_schema.open_file(Schema("PROTOBUF", text))
    return text


def parsed_avro(schema: Schema) -> AvroType:
    """The tree of an Avro schema; UnfitSchema."""
    *references, text = texts_of(schema)
    return avro_schema.parse_schema(text, references)


def _like_avro(newest: Schema | None) -> AvroType | None:
    try:
        return None if newest is None else parsed_avro(newest)
    except UnfitSchema:
        return None

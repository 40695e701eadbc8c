"""Avro schemas turned into columns, and columns into schemas."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from leatstream.formats.avro_schema import AvroType, Parts, UnfitSchema
from leatstream.model.objects import Column
from leatstream.model.types import DataType

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

# -- schemas to columns --------------------------------------------------------------------------------------

_COLUMN_KINDS = {
    "boolean": "BOOLEAN",
    "int": "INTEGER",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "bytes": "BYTES",
    "fixed": "BYTES",
    "string": "VARCHAR",
    "enum": "VARCHAR",
}
_LOGICAL_KINDS = {
    "date": "DATE",
    "time-millis": "TIME",
    "time-micros": "TIME",
    "timestamp-millis": "TIMESTAMP_LTZ",
    "timestamp-micros": "TIMESTAMP_LTZ",
    "local-timestamp-millis": "TIMESTAMP",
    "local-timestamp-micros": "TIMESTAMP",
    "uuid": "VARCHAR",
}


def columns_of(schema: AvroType) -> tuple[Column, ...]:
    """The columns that records of a schema have; all may be NULL, as the next schema may say so.

    Raises:
        UnfitSchema: it is no record, or a field has a type that no column can have.
    """
    if schema.kind != "record" or not schema.fields:
        raise UnfitSchema(f"it describes {schema.kind}, not a record with fields")
    columns, parts = [], Parts()
    for name, part in zip(schema.fields, schema.parts, strict=True):
        try:
            columns.append(Column(name, column_type(part, parts)))
        except UnfitSchema as error:
            raise UnfitSchema(f"field {name[:100]}: {error}") from None
    return tuple(columns)


def column_type(kind: AvroType, parts: Parts) -> DataType:
    """The column type that holds every value of a schema's type.

    Raises:
        UnfitSchema: there is none.
    """
    parts.another()
    there = kind.present()
    if there.logical == "decimal":
        if there.precision <= 38:
            return DataType("DECIMAL", (there.precision, there.scale))
        return DataType("BYTES")
    if there.logical in _LOGICAL_KINDS:
        return DataType(_LOGICAL_KINDS[there.logical])
    if there.kind in _COLUMN_KINDS:
        return DataType(_COLUMN_KINDS[there.kind])
    if there.kind == "array":
        return DataType("ARRAY", arguments=(column_type(there.parts[0], parts),))
    if there.kind == "map":
        return DataType("MAP", arguments=(DataType("VARCHAR"), column_type(there.parts[0], parts)))
    if there.kind == "record" and there.fields:
        inner = tuple(column_type(part, parts) for part in there.parts)
        return DataType("STRUCT", arguments=inner, fields=there.fields)
    raise UnfitSchema(f"no column type holds {there.kind}")


# -- columns to schemas --------------------------------------------------------------------------------------

_WRITTEN: dict[str, Any] = {
    "BOOLEAN": "boolean",
    "TINYINT": "int",
    "SMALLINT": "int",
    "INTEGER": "int",
    "BIGINT": "long",
    "FLOAT": "float",
    "DOUBLE": "double",
    "VARCHAR": "string",
    "BYTES": "bytes",
    "VARBINARY": "bytes",
    "DATE": {"type": "int", "logicalType": "date"},
    "TIME": {"type": "long", "logicalType": "time-micros"},
    "TIMESTAMP": {"type": "long", "logicalType": "local-timestamp-micros"},
    "TIMESTAMP_LTZ": {"type": "long", "logicalType": "timestamp-micros"},
}


def schema_text(columns: Sequence[Column], name: str, like: AvroType | None = None) -> str:
    """The schema of records with these columns.

    Args:
        columns: of the sink.
        name: full name of the record.
        like: the subject's newest schema: its records' names are kept, which compatibility asks for.

    Raises:
        UnfitSchema: a name that Avro cannot have, or a type that it cannot hold.
    """
    struct = DataType(
        "STRUCT", arguments=tuple(c.type for c in columns), fields=tuple(c.name for c in columns)
    )
    node = _record(struct, name, like, frozenset(c.name for c in columns if c.not_null))
    return json.dumps(node, separators=(",", ":"), ensure_ascii=False)


def record_name(*parts: str) -> str:
    """A legal full name made of any words."""
    return ".".join(
        re.sub(r"[^A-Za-z0-9_]", "_", part if part[:1].isalpha() else f"_{part}") for part in parts
    )


def _record(struct: DataType, name: str, like: AvroType | None, needed: frozenset[str]) -> Any:
    known: dict[str, AvroType] = {}
    if like is not None and like.kind == "record":
        name = like.name
        known = dict(zip(like.fields, like.parts, strict=True))
    fields = []
    for field, kind in zip(struct.fields, struct.arguments, strict=True):
        if not _NAME.match(field):
            raise UnfitSchema(
                f"{field[:100]!r} is no name for an Avro field (letters, digits and _): "
                "give the column another, with AS"
            )
        inner = _written(kind, f"{name}_{field}", _under(known.get(field)))
        node: dict[str, Any] = {"name": field, "type": inner if field in needed else ["null", inner]}
        fields.append(node if field in needed else node | {"default": None})
    space, _, own = name.rpartition(".")
    return {"type": "record", "name": own, **({"namespace": space} if space else {}), "fields": fields}


def _written(kind: DataType, name: str, like: AvroType | None) -> Any:
    if kind.kind == "DECIMAL":
        precision, scale = (*kind.parameters, 0)[:2] if kind.parameters else (10, 0)
        return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
    if kind.kind == "ARRAY":
        items = _written(kind.arguments[0], f"{name}_item", _part(like, "array"))
        return {"type": "array", "items": ["null", items]}
    if kind.kind == "MAP":
        if kind.arguments[0].kind != "VARCHAR":
            raise UnfitSchema(f"a map in Avro has VARCHAR keys, not {kind.arguments[0]}")
        values = _written(kind.arguments[1], f"{name}_value", _part(like, "map"))
        return {"type": "map", "values": ["null", values]}
    if kind.kind == "STRUCT":
        return _record(kind, name, like, frozenset())
    return _WRITTEN[kind.kind]


def _under(like: AvroType | None) -> AvroType | None:
    try:
        return None if like is None else like.present()
    except UnfitSchema:
        return None


def _part(like: AvroType | None, kind: str) -> AvroType | None:
    return _under(like.parts[0]) if like is not None and like.kind == kind else None

"""Protobuf schemas as descriptors, their columns, and the schema that is written for columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from leatstream.formats.avro_schema import Parts, UnfitSchema
from leatstream.formats.proto_text import read_proto
from leatstream.formats.registry_client import Schema
from leatstream.model.objects import Column
from leatstream.model.types import DataType

TIMESTAMP, DURATION = "google.protobuf.Timestamp", "google.protobuf.Duration"
WRAPPERS = frozenset(
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
_KINDS = {
    1: "DOUBLE",
    2: "FLOAT",
    3: "BIGINT",
    5: "INTEGER",
    7: "BIGINT",
    8: "BOOLEAN",
    9: "VARCHAR",
    12: "BYTES",
    13: "BIGINT",
    14: "VARCHAR",
    15: "INTEGER",
    16: "BIGINT",
    17: "INTEGER",
    18: "BIGINT",
}
_UNSIGNED = (4, 6)  # uint64 and fixed64
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")


def open_file(schema: Schema) -> Any:
    """The file descriptor of a schema, with those it refers to.

    Raises:
        UnfitSchema: it cannot be read.
    """
    from google.protobuf import descriptor_pool

    pool = descriptor_pool.DescriptorPool()
    _add_known(pool)
    try:
        for name, other in schema.references:
            if name not in _known_files():
                pool.AddSerializedFile(read_proto(other.text, name).SerializeToString())
        pool.AddSerializedFile(read_proto(schema.text, "leat.proto").SerializeToString())
        found = pool.FindFileByName("leat.proto")
    except (TypeError, KeyError, ValueError) as error:
        if isinstance(error, UnfitSchema):
            raise
        raise UnfitSchema("its types do not fit together, or one of its imports is missing") from None
    if not found.message_types_by_name:
        raise UnfitSchema("it holds no message")
    return found


def message_of(files: bytes, name: str) -> Any:
    """A message of a compiled descriptor set.

    Raises:
        UnfitSchema: the set cannot be used, or has no such message.
    """
    from google.protobuf import descriptor_pool
    from google.protobuf.descriptor_pb2 import FileDescriptorSet
    from google.protobuf.message import DecodeError

    pool = descriptor_pool.DescriptorPool()
    known = _known_files()
    try:
        found = FileDescriptorSet.FromString(files)
        given = {file.name for file in found.file}
        for file_name, file in known.items():
            if file_name not in given:
                pool.AddSerializedFile(file.serialized_pb)
        for file in found.file:
            pool.AddSerializedFile(file.SerializeToString())
        return pool.FindMessageTypeByName(name)
    except (TypeError, DecodeError) as error:
        raise UnfitSchema(
            f"the descriptor set cannot be used ({type(error).__name__}): was it made with --include_imports?"
        ) from None
    except KeyError:
        raise UnfitSchema(f"the descriptor set has no message {name[:200]}") from None


def _known_files() -> dict[str, Any]:
    from google.protobuf import (
        any_pb2,
        duration_pb2,
        empty_pb2,
        struct_pb2,
        timestamp_pb2,
        wrappers_pb2,
    )

    modules = (any_pb2, duration_pb2, empty_pb2, struct_pb2, timestamp_pb2, wrappers_pb2)
    return {module.DESCRIPTOR.name: module.DESCRIPTOR for module in modules}


def _add_known(pool: Any) -> None:
    for file in _known_files().values():
        pool.AddSerializedFile(file.serialized_pb)


def message_at(file: Any, path: Sequence[int]) -> Any:
    """The message at a place in its file: the index of a message, then those of messages inside.

    Raises:
        UnfitSchema: there is none.
    """
    inside = list(file.message_types_by_name.values())
    found: Any = None
    for index in path:
        if not 0 <= index < len(inside):
            raise UnfitSchema("it has no message at the record's place")
        found = inside[index]
        inside = list(found.nested_types)
    return found


def columns_of(message: Any) -> tuple[Column, ...]:
    """The columns that a message's fields make.

    Raises:
        UnfitSchema: a field has a type that no column can have.
    """
    if not message.fields:
        raise UnfitSchema(f"message {message.full_name} has no fields")
    parts = Parts()
    return tuple(Column(f.name, _column_type(f, (), parts)) for f in message.fields)


def _column_type(field: Any, seen: tuple[str, ...], parts: Parts) -> DataType:
    """The column type of a field; UnfitSchema where there is none."""
    parts.another()
    if is_map(field):
        key, value = field.message_type.fields_by_name["key"], field.message_type.fields_by_name["value"]
        return DataType("MAP", arguments=(_single(key, seen, parts), _single(value, seen, parts)))
    if field.is_repeated:
        return DataType("ARRAY", arguments=(_single(field, seen, parts),))
    return _single(field, seen, parts)


def is_map(field: Any) -> bool:
    """Whether a field is a map."""
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _single(field: Any, seen: tuple[str, ...], parts: Parts) -> DataType:
    if field.type in _UNSIGNED:
        return DataType("DECIMAL", (20, 0))
    if field.type in _KINDS:
        return DataType(_KINDS[field.type])
    message = field.message_type
    name = message.full_name
    if name == TIMESTAMP:
        return DataType("TIMESTAMP_LTZ")
    if name == DURATION:
        return DataType("DECIMAL", (21, 9))
    if name in WRAPPERS:
        return _single(message.fields_by_name["value"], seen, parts)
    if name in seen or name.startswith("google.protobuf.") or not message.fields:
        why = "holds itself" if name in seen else "has no column type"
        raise UnfitSchema(f"field {field.name}: message {name} {why}")
    inner = tuple(_column_type(f, (*seen, name), parts) for f in message.fields)
    return DataType("STRUCT", arguments=inner, fields=tuple(f.name for f in message.fields))


# -- columns to schemas --------------------------------------------------------------------------------------

_WRITTEN = {
    "BOOLEAN": "bool",
    "TINYINT": "int32",
    "SMALLINT": "int32",
    "INTEGER": "int32",
    "BIGINT": "int64",
    "FLOAT": "float",
    "DOUBLE": "double",
    "DECIMAL": "string",
    "VARCHAR": "string",
    "TIME": "string",
    "DATE": "string",
    "BYTES": "bytes",
    "VARBINARY": "bytes",
    "TIMESTAMP": TIMESTAMP,
    "TIMESTAMP_LTZ": TIMESTAMP,
}


def schema_text(columns: Sequence[Column], name: str, like: Any = None) -> str:
    """The .proto file of records with these columns.

    Args:
        columns: of the sink.
        name: full name of the message.
        like: the message of the subject's newest schema: its names and field numbers are kept.

    Raises:
        UnfitSchema: a name that Protobuf cannot have, or a type that it cannot hold.
    """
    full = like.full_name if like is not None else name
    package, _, own = full.rpartition(".")
    lines = ['syntax = "proto3";']
    lines += [f"package {package};"] if package else []
    lines += ['import "google/protobuf/timestamp.proto";'] if _has_time([c.type for c in columns]) else []
    pairs = [(c.name, c.type, c.not_null) for c in columns]
    return "\n".join([*lines, *_message(own, pairs, like, "")]) + "\n"


def _has_time(types: Sequence[DataType]) -> bool:
    return any(t.kind.startswith("TIMESTAMP") or _has_time(t.arguments) for t in types)


def _message(name: str, fields: Sequence[tuple[str, DataType, bool]], like: Any, pad: str) -> list[str]:
    known = {f.name: f.number for f in like.fields} if like is not None else {}
    fresh = max(known.values(), default=0)
    lines, inner = [f"{pad}message {name} {{"], pad + "  "
    for field, kind, needed in fields:
        if not _NAME.match(field):
            raise UnfitSchema(
                f"{field[:100]!r} is no name for a Protobuf field (letters, digits and _): "
                "give the column another, with AS"
            )
        number = known.get(field)
        if number is None:
            fresh += 1 if not 18_999 <= fresh < 19_999 else 1_001
            number = fresh
        old = like.fields_by_name.get(field) if like is not None else None
        word, nested = _field_type(field, kind, old, inner)
        lines += nested
        label = "" if needed or kind.kind in ("ARRAY", "MAP") else "optional "
        lines.append(f"{inner}{label}{word} {field} = {number};")
    return [*lines, f"{pad}}}"]


def _field_type(field: str, kind: DataType, like: Any, pad: str) -> tuple[str, list[str]]:
    """The type as .proto writes it, and the messages that it needs."""
    if kind.kind == "ARRAY":
        word, nested = _item(field, kind.arguments[0], like, pad)
        return f"repeated {word}", nested
    if kind.kind == "MAP":
        if kind.arguments[0].kind != "VARCHAR":
            raise UnfitSchema(f"column {field}: a map in Protobuf is written with VARCHAR keys")
        value = like.message_type.fields_by_name.get("value") if like is not None and is_map(like) else None
        word, nested = _item(field, kind.arguments[1], value, pad)
        return f"map<string, {word}>", nested
    return _item(field, kind, like, pad)


def _item(field: str, kind: DataType, like: Any, pad: str) -> tuple[str, list[str]]:
    if kind.kind in _WRITTEN:
        return _WRITTEN[kind.kind], []
    if kind.kind != "STRUCT":
        raise UnfitSchema(f"column {field}: Protobuf has no {kind.kind} directly in an ARRAY or MAP")
    old = like.message_type if like is not None and like.message_type is not None else None
    old = None if old is not None and (is_map(like) or old.full_name.startswith("google.")) else old
    name = old.name if old is not None else "".join(p[:1].upper() + p[1:] for p in field.split("_")) + "Value"
    pairs = [(n, t, False) for n, t in zip(kind.fields, kind.arguments, strict=True)]
    return name, _message(name, pairs, old, pad)

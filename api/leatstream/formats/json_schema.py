"""JSON Schema turned into columns, and columns into JSON Schema.

What a column type does not hold, such as values of several types, becomes VARCHAR: the value's JSON text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from leatstream.formats.avro_schema import Parts, UnfitSchema
from leatstream.model.objects import Column
from leatstream.model.types import DataType

_DRAFT = "http://json-schema.org/draft-07/schema#"
_DEEPEST = 32
_TEXT = DataType("VARCHAR")

# -- schemas to columns --------------------------------------------------------------------------------------

_FORMATS = {"date": "DATE", "date-time": "TIMESTAMP_LTZ"}
_KINDS = {"boolean": "BOOLEAN", "integer": "BIGINT", "number": "DOUBLE"}


def columns_of(text: str, references: Mapping[str, str]) -> tuple[Column, ...]:
    """The columns that records of a schema have; all may be NULL.

    Args:
        text: the schema.
        references: name to text of the schemas that it refers to.

    Raises:
        UnfitSchema: it does not describe an object with properties.
    """
    documents = _Documents(_parsed(text), references)
    home, node = documents.present(documents.main, documents.main, 0)
    properties = node.get("properties")
    if not isinstance(properties, Mapping) or not properties:
        raise UnfitSchema("it does not describe an object with properties")
    columns = []
    for name, part in properties.items():
        try:
            columns.append(Column(str(name), documents.column_type(home, part, 1)))
        except UnfitSchema as error:
            raise UnfitSchema(f"property {str(name)[:100]}: {error}") from None
    return tuple(columns)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise UnfitSchema("it is not JSON") from None


class _Documents:
    """A schema and those it refers to; a node is given with the document that it stands in."""

    def __init__(self, main: Any, references: Mapping[str, str]) -> None:
        self.main = main
        self._parts = Parts()
        self._others = {name: _parsed(text) for name, text in references.items()}

    def column_type(self, home: Any, node: Any, depth: int) -> DataType:
        """The column type that holds every value of a node."""
        self._parts.another()
        home, there = self.present(home, node, depth)
        kind = _type_of(there)
        if kind == "string":
            if there.get("contentEncoding") == "base64":
                return DataType("BYTES")
            return DataType(_FORMATS.get(str(there.get("format")), "VARCHAR"))
        if kind in _KINDS:
            return DataType(_KINDS[kind])
        if kind == "array" and isinstance(there.get("items"), Mapping):
            return DataType("ARRAY", arguments=(self.column_type(home, there["items"], depth + 1),))
        if kind == "object":
            return self._object(home, there, depth)
        return _TEXT

    def _object(self, home: Any, node: Mapping[str, Any], depth: int) -> DataType:
        properties, others = node.get("properties"), node.get("additionalProperties")
        if isinstance(properties, Mapping) and properties:
            parts = tuple(self.column_type(home, part, depth + 1) for part in properties.values())
            return DataType("STRUCT", arguments=parts, fields=tuple(map(str, properties)))
        if isinstance(others, Mapping):
            return DataType("MAP", arguments=(_TEXT, self.column_type(home, others, depth + 1)))
        return _TEXT

    def present(self, home: Any, node: Any, depth: int) -> tuple[Any, Mapping[str, Any]]:
        """What a node is when it is there: references followed, null left out of unions."""
        for _ in range(_DEEPEST):
            if depth > _DEEPEST:
                break
            if not isinstance(node, Mapping):
                return home, {}
            reference = node.get("$ref")
            if isinstance(reference, str):
                home, node = self._at(home, reference)
                continue
            choices = node.get("oneOf") or node.get("anyOf")
            if not isinstance(choices, list):
                return home, node
            left = [one for one in choices if not (isinstance(one, Mapping) and one.get("type") == "null")]
            if len(left) != 1:
                return home, {}
            node = left[0]
        raise UnfitSchema("it is nested too deep, or refers to itself")

    def _at(self, home: Any, reference: str) -> tuple[Any, Any]:
        name, _, pointer = reference.partition("#")
        if name:
            home = self._others.get(name)
            if home is None:
                raise UnfitSchema(f"it refers to {name[:100]}, which the registry does not tell of")
        node = home
        for part in filter(None, unquote(pointer).split("/")):
            word = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(node, Mapping) or word not in node:
                raise UnfitSchema(f"it refers to {reference[:100]}, which is not there")
            node = node[word]
        return home, node


def _type_of(node: Mapping[str, Any]) -> str | None:
    """The one type that a node's values have besides null; None for several or any."""
    declared = node.get("type")
    kinds = [kind for kind in declared if kind != "null"] if isinstance(declared, list) else [declared]
    if len(kinds) == 1 and kinds[0] is not None:
        return str(kinds[0])
    if sorted(map(str, kinds)) == ["integer", "number"]:
        return "number"
    if declared is None:
        values = node.get("enum")
        if isinstance(values, list) and all(isinstance(one, str | None) for one in values):
            return "string"
        return "object" if isinstance(node.get("properties"), Mapping) else None
    return None


# -- columns to schemas --------------------------------------------------------------------------------------

_WRITTEN: dict[str, dict[str, Any]] = {
    "BOOLEAN": {"type": "boolean"},
    **{key: {"type": "integer"} for key in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")},
    **{key: {"type": "number"} for key in ("FLOAT", "DOUBLE", "DECIMAL")},
    "VARCHAR": {"type": "string"},
    **{key: {"type": "string", "contentEncoding": "base64"} for key in ("BYTES", "VARBINARY")},
    "DATE": {"type": "string", "format": "date"},
    # Without a zone these are not what JSON Schema calls a time and a date-time.
    "TIME": {"type": "string"},
    "TIMESTAMP": {"type": "string"},
    "TIMESTAMP_LTZ": {"type": "string", "format": "date-time"},
}


def schema_text(columns: Sequence[Column], name: str) -> str:
    """The schema of records with these columns, of a closed object: then another column is compatible.

    Raises:
        UnfitSchema: a type that JSON cannot hold.
    """
    struct = DataType(
        "STRUCT", arguments=tuple(c.type for c in columns), fields=tuple(c.name for c in columns)
    )
    node = {
        "$schema": _DRAFT,
        "title": name,
        **_object_of(struct, frozenset(c.name for c in columns if c.not_null)),
    }
    return json.dumps(node, separators=(",", ":"), ensure_ascii=False)


def _object_of(struct: DataType, needed: frozenset[str]) -> dict[str, Any]:
    parts = {
        name: _node(kind) if name in needed else _nullable(_node(kind))
        for name, kind in zip(struct.fields, struct.arguments, strict=True)
    }
    required = {"required": [name for name in struct.fields if name in needed]} if needed else {}
    return {"type": "object", "properties": parts, **required, "additionalProperties": False}


def _nullable(node: dict[str, Any]) -> dict[str, Any]:
    return {"oneOf": [{"type": "null"}, node]}


def _node(kind: DataType) -> dict[str, Any]:
    if kind.kind == "ARRAY":
        return {"type": "array", "items": _nullable(_node(kind.arguments[0]))}
    if kind.kind == "MAP":
        if kind.arguments[0].kind != "VARCHAR":
            raise UnfitSchema(f"a map in JSON has VARCHAR keys, not {kind.arguments[0]}")
        return {"type": "object", "additionalProperties": _nullable(_node(kind.arguments[1]))}
    if kind.kind == "STRUCT":
        return _object_of(kind, frozenset())
    return _WRITTEN[kind.kind]

"""Avro schemas, read into a small tree.

Recursive types, unions of more than null and one type (other than of numbers), and arrays whose items take no
bytes are refused: the first two have no column type, and of the last a damaged record could claim any number.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

_PRIMITIVE = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_NUMBERS = ("int", "long", "float", "double")
_DEEPEST = 40
_MOST_FIELDS = 5_000


class UnfitSchema(ValueError):
    """A schema that cannot be used; its text is a sentence that names fields and types and no value."""


class Parts:
    """Counts the types that a column's type is made of.

    A schema that names a type twice, which names another twice, and so on, is short and would give columns
    without end.
    """

    def __init__(self) -> None:
        self.count = 0

    def another(self) -> None:
        """Count one; UnfitSchema where they are too many."""
        self.count += 1
        if self.count > _MOST_FIELDS:
            raise UnfitSchema(f"its columns would have more than {_MOST_FIELDS} parts")


@dataclass(frozen=True, slots=True)
class AvroType:
    """A type of a schema.

    Attributes:
        kind: ``int``, ``record``, ``union`` …
        name: full name, of records, enums and fixed.
        logical: such as ``timestamp-millis``; None where it is unknown or does not fit.
        parts: types of a record's fields, of a union's branches, of an array's items or a map's values.
        fields: names, as long as ``parts``, of a record.
        symbols: of an enum.
        size: of fixed, bytes.
        precision, scale: of a decimal.
    """

    kind: str
    name: str = ""
    logical: str | None = None
    parts: tuple[AvroType, ...] = ()
    fields: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()
    size: int = 0
    precision: int = 0
    scale: int = 0

    @property
    def nullable(self) -> bool:
        """Whether null is among its values."""
        return self.kind == "null" or any(p.kind == "null" for p in self.parts if self.kind == "union")

    def present(self) -> AvroType:
        """The type of a value that is there: a union of null and one type is that one.

        Raises:
            UnfitSchema: a union of several types that are not all numbers.
        """
        if self.kind != "union":
            return self
        there = [part for part in self.parts if part.kind != "null"]
        if len(there) == 1:
            return there[0]
        if there and all(p.kind in _NUMBERS and p.logical is None for p in there):
            return max(there, key=lambda part: _NUMBERS.index(part.kind))
        kinds = ", ".join(part.kind for part in self.parts)
        raise UnfitSchema(f"it is a union of {kinds}; a column takes null and one type")


def parse_schema(text: str, references: Iterable[str] = ()) -> AvroType:
    """Read a schema's JSON.

    Args:
        text: the schema.
        references: texts of the schemas that its names come from, in order.

    Raises:
        UnfitSchema: it is no Avro schema, or holds what is refused.
    """
    reader = _Reader()
    for other in references:
        reader.read(_load(other))
    return reader.read(_load(text))


def _load(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        if re.fullmatch(r"[a-z]+", text):
            return text  # a primitive type may stand without its quotes
        raise UnfitSchema("it is not JSON") from None


class _Reader:
    def __init__(self) -> None:
        self.named: dict[str, AvroType | None] = {}  # None while it is being read
        self.count = 0

    def read(self, node: Any, space: str = "", depth: int = 0) -> AvroType:
        self.count += 1
        if depth > _DEEPEST or self.count > _MOST_FIELDS:
            raise UnfitSchema("it is too large or nests too deep")
        if isinstance(node, str):
            return self._name(node, space)
        if isinstance(node, list):
            parts = tuple(self.read(item, space, depth + 1) for item in node)
            if any(part.kind == "union" for part in parts) or not parts:
                raise UnfitSchema("a union stands directly in a union, or is empty")
            return AvroType("union", parts=parts)
        if not isinstance(node, dict) or "type" not in node:
            raise UnfitSchema("a type is missing")
        kind = node["type"]
        if not isinstance(kind, str):
            return self.read(kind, space, depth + 1)
        if kind in ("record", "error", "enum", "fixed"):
            return self._definition(node, "record" if kind == "error" else kind, space, depth)
        if kind in ("array", "map"):
            part = self.read(node.get("items" if kind == "array" else "values"), space, depth + 1)
            if kind == "array" and smallest(part) == 0:
                raise UnfitSchema("an array's items take no bytes")
            return AvroType(kind, parts=(part,))
        return _logical(self._name(kind, space), node)

    def _name(self, word: str, space: str) -> AvroType:
        if word in _PRIMITIVE:
            return AvroType(word)
        full = word if "." in word or not space else f"{space}.{word}"
        full = full if full in self.named else word
        if full not in self.named:
            raise UnfitSchema(f"it speaks of a type {word[:100]} that it does not have")
        found = self.named[full]
        if found is None:
            raise UnfitSchema(f"its type {word[:100]} holds itself, which no column type can")
        return found

    def _definition(self, node: dict[str, Any], kind: str, space: str, depth: int) -> AvroType:
        name = node.get("name")
        if not isinstance(name, str) or not name:
            raise UnfitSchema(f"a {kind} has no name")
        own = node.get("namespace")
        full = name if "." in name else f"{own if isinstance(own, str) else space}.{name}".lstrip(".")
        inner = full.rpartition(".")[0]
        self.named[full] = None
        made = self._made(node, kind, full, inner, depth)
        self.named[full] = made
        return made

    def _made(self, node: dict[str, Any], kind: str, full: str, inner: str, depth: int) -> AvroType:
        if kind == "enum":
            symbols = tuple(map(str, node.get("symbols") or ()))
            if not symbols:
                raise UnfitSchema(f"the enum {full[:100]} has no symbols")
            return AvroType("enum", full, symbols=symbols)
        if kind == "fixed":
            size = node.get("size")
            if not isinstance(size, int) or size < 0:
                raise UnfitSchema(f"the fixed {full[:100]} has no size")
            return _logical(AvroType("fixed", full, size=size), node)
        names: list[str] = []
        parts: list[AvroType] = []
        for item in node.get("fields") or ():
            if not isinstance(item, dict) or not isinstance(item.get("name"), str):
                raise UnfitSchema(f"a field of {full[:100]} has no name")
            names.append(item["name"])
            parts.append(self.read(item.get("type"), inner, depth + 1))
        return AvroType("record", full, parts=tuple(parts), fields=tuple(names))


_LOGICAL = {
    "date": "int",
    "time-millis": "int",
    "time-micros": "long",
    "timestamp-millis": "long",
    "timestamp-micros": "long",
    "timestamp-nanos": "long",
    "local-timestamp-millis": "long",
    "local-timestamp-micros": "long",
    "local-timestamp-nanos": "long",
}


def _logical(plain: AvroType, node: dict[str, Any]) -> AvroType:
    """The type with its logical one; as Avro wants it, one that does not fit is passed over."""
    word = node.get("logicalType")
    if word == "decimal" and plain.kind in ("bytes", "fixed"):
        precision, scale = node.get("precision"), node.get("scale", 0)
        if isinstance(precision, int) and isinstance(scale, int) and 0 <= scale <= precision and precision:
            return AvroType(
                plain.kind, plain.name, "decimal", size=plain.size, precision=precision, scale=scale
            )
    elif word == "uuid" and (plain.kind == "string" or (plain.kind == "fixed" and plain.size == 16)):
        return AvroType(plain.kind, plain.name, "uuid", size=plain.size)
    elif _LOGICAL.get(word or "") == plain.kind:
        return AvroType(plain.kind, logical=word)
    return plain


def smallest(kind: AvroType, known: dict[int, int] | None = None) -> int:
    """Fewest bytes that a value takes; ``known`` is what was found already, by a type's identity."""
    known = {} if known is None else known
    if kind.kind == "null":
        return 0
    if kind.kind != "record":
        return kind.size if kind.kind == "fixed" else 1
    if id(kind) not in known:
        known[id(kind)] = sum(smallest(part, known) for part in kind.parts)
    return known[id(kind)]


def plain_schema(kind: AvroType, seen: set[str] | None = None) -> Any:
    """The schema without logical types, defaults and comments: what the bytes alone ask for."""
    seen = set() if seen is None else seen
    if kind.kind in _PRIMITIVE:
        return kind.kind
    if kind.kind == "union":
        return [plain_schema(part, seen) for part in kind.parts]
    if kind.kind == "array":
        return {"type": "array", "items": plain_schema(kind.parts[0], seen)}
    if kind.kind == "map":
        return {"type": "map", "values": plain_schema(kind.parts[0], seen)}
    if kind.name in seen:
        return kind.name
    seen.add(kind.name)
    if kind.kind == "enum":
        return {"type": "enum", "name": kind.name, "symbols": list(kind.symbols)}
    if kind.kind == "fixed":
        return {"type": "fixed", "name": kind.name, "size": kind.size}
    fields = [
        {"name": n, "type": plain_schema(p, seen)} for n, p in zip(kind.fields, kind.parts, strict=True)
    ]
    return {"type": "record", "name": kind.name, "fields": fields}

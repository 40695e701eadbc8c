"""Reads .proto files, which is how registries keep Protobuf schemas, into descriptors.

Syntax proto2 and proto3. Services, options and extensions are passed over: they say nothing of a record's
bytes. Groups and editions are refused.
"""

from __future__ import annotations

import re
from typing import Any

from leatstream.formats.avro_schema import UnfitSchema

_TOKEN = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/|(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')"""
    r"""|(?P<word>\.?[A-Za-z_][\w.]*)|(?P<number>[-+]?[0-9][\w.+-]*)|(?P<mark>[{}\[\]()<>=;,:.+-])""",
    re.S,
)
_SCALARS = {
    "double": 1,
    "float": 2,
    "int64": 3,
    "uint64": 4,
    "int32": 5,
    "fixed64": 6,
    "fixed32": 7,
    "bool": 8,
    "string": 9,
    "bytes": 12,
    "uint32": 13,
    "sfixed32": 15,
    "sfixed64": 16,
    "sint32": 17,
    "sint64": 18,
}
_LABELS = {"optional": 1, "required": 2, "repeated": 3}
_SKIPPED = ("option", "reserved", "extensions")
_DEEPEST = 30
_LONGEST = 1_000_000


def read_proto(text: str, name: str) -> Any:
    """The descriptor (``FileDescriptorProto``) of a .proto file.

    Args:
        text: the file.
        name: under which others import it.

    Raises:
        UnfitSchema: the text is no .proto file, or holds what is refused.
    """
    if len(text) > _LONGEST:
        raise UnfitSchema("it is too long")
    return _Parser(text, name).file()


class _Parser:
    def __init__(self, text: str, name: str) -> None:
        from google.protobuf.descriptor_pb2 import FileDescriptorProto

        self.tokens: list[str] = []
        at = 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise UnfitSchema("it is no .proto file")
            if match.lastgroup is not None:
                self.tokens.append(match.group(0))
            at = match.end()
        self.at = 0
        self.made = FileDescriptorProto(name=name, syntax="proto2")

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, wanted: str = "") -> str:
        piece = self.peek()
        if not piece or (wanted and piece != wanted):
            raise UnfitSchema(f"{wanted or 'more'} is missing behind piece {self.at} of its text")
        self.at += 1
        return piece

    def skip(self) -> None:
        """To the end of a statement or block."""
        depth = 0
        while True:
            piece = self.take()
            depth += (piece == "{") - (piece == "}")
            if depth == 0 and piece in (";", "}"):
                return

    def file(self) -> Any:
        while self.peek():
            word = self.take()
            if word in ("syntax", "edition"):
                self.take("=")
                syntax = self.take()[1:-1]
                self.take(";")
                if syntax not in ("proto2", "proto3"):
                    raise UnfitSchema(f"its syntax is {syntax[:20]}; proto2 and proto3 are read")
                self.made.syntax = syntax
            elif word == "package":
                self.made.package = self.take()
                self.take(";")
            elif word == "import":
                piece = self.take()
                piece = self.take() if piece in ("public", "weak") else piece
                self.made.dependency.append(piece[1:-1])
                self.take(";")
            elif word == "message":
                self.message(self.made.message_type.add(), 0)
            elif word == "enum":
                self.enum(self.made.enum_type.add())
            elif word in ("option", "service", "extend"):
                self.skip()
            elif word != ";":
                raise UnfitSchema(f"it is no .proto file (at {word[:20]!r})")
        return self.made

    def message(self, node: Any, depth: int) -> None:
        if depth > _DEEPEST:
            raise UnfitSchema("its messages nest too deep")
        node.name = self.take()
        self.take("{")
        lone: list[Any] = []
        while self.peek() != "}":
            word = self.take()
            if word == "message":
                self.message(node.nested_type.add(), depth + 1)
            elif word == "enum":
                self.enum(node.enum_type.add())
            elif word == "oneof":
                self.oneof(node)
            elif word == "map" and self.peek() == "<":
                self.map(node)
            elif word in _SKIPPED or word == "extend":
                self.skip()
            elif word != ";":
                field = self.field(node, word)
                if field.proto3_optional:
                    lone.append(field)
        self.take("}")
        for field in lone:
            field.oneof_index = len(node.oneof_decl)
            node.oneof_decl.add(name=f"_{field.name}")

    def field(self, node: Any, word: str) -> Any:
        field = node.field.add(label=_LABELS.get(word, 1))
        if word in _LABELS:
            field.proto3_optional = word == "optional" and self.made.syntax == "proto3"
            word = self.take()
        if word == "group":
            raise UnfitSchema("it has a group, which is not read")
        self._typed(field, word)
        field.name = self.take()
        self._numbered(field)
        return field

    def _typed(self, field: Any, word: str) -> None:
        if word in _SCALARS:
            field.type = _SCALARS[word]
        else:
            field.type_name = word

    def _numbered(self, field: Any) -> None:
        self.take("=")
        number = self.take()
        try:
            field.number = int(number, 0)
        except ValueError:
            raise UnfitSchema("a field has no number") from None
        while self.peek() != ";":
            self.take()
        self.take(";")

    def oneof(self, node: Any) -> None:
        index = len(node.oneof_decl)
        node.oneof_decl.add(name=self.take())
        self.take("{")
        while self.peek() != "}":
            word = self.take()
            if word == "option":
                self.skip()
            elif word != ";":
                self.field(node, word).oneof_index = index
        self.take("}")

    def map(self, node: Any) -> None:
        self.take("<")
        key = self.take()
        self.take(",")
        value = self.take()
        self.take(">")
        field = node.field.add(label=3, name=self.take())
        self._numbered(field)
        entry = "".join(part[:1].upper() + part[1:] for part in field.name.split("_")) + "Entry"
        field.type_name = entry
        inner = node.nested_type.add(name=entry)
        inner.options.map_entry = True
        self._typed(inner.field.add(name="key", number=1, label=1), key)
        self._typed(inner.field.add(name="value", number=2, label=1), value)

    def enum(self, node: Any) -> None:
        node.name = self.take()
        self.take("{")
        while self.peek() != "}":
            word = self.take()
            if word == "option":
                start = self.at
                self.skip()
                words = self.tokens[start : self.at]
                node.options.allow_alias = node.options.allow_alias or words[:3] == [
                    "allow_alias",
                    "=",
                    "true",
                ]
            elif word == "reserved":
                self.skip()
            elif word != ";":
                value = node.value.add(name=word)
                self._numbered(value)
        self.take("}")

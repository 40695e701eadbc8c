"""Column types: DeltaStream's names, their parameters, and the Spark type each stands for.

Source: reference/deltastream.md §2.7 of the design notes; docs/sql/types.md lists them for users.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from leatstream.model.names import quote

_SIMPLE = {
    "BOOLEAN": "BOOLEAN",
    "TINYINT": "TINYINT",
    "SMALLINT": "SMALLINT",
    "INTEGER": "INT",
    "BIGINT": "BIGINT",
    "FLOAT": "FLOAT",
    "DOUBLE": "DOUBLE",
    "DATE": "DATE",
    "BYTES": "BINARY",
    # Spark 4.2 has no TIME type outside previews: kept as text hh:mm:ss[.fraction].
    "TIME": "STRING",
    "VARCHAR": "STRING",
    "VARBINARY": "BINARY",
    "TIMESTAMP": "TIMESTAMP_NTZ",
    "TIMESTAMP_LTZ": "TIMESTAMP",
}
_ALIASES = {"INT": "INTEGER", "STRING": "VARCHAR", "BOOL": "BOOLEAN", "REAL": "FLOAT", "NUMERIC": "DECIMAL"}
_LENGTH_KINDS = {"VARCHAR", "VARBINARY"}
_PRECISION_KINDS = {"TIME", "TIMESTAMP", "TIMESTAMP_LTZ"}
_FROM_SPARK = {
    "boolean": "BOOLEAN",
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "date": "DATE",
    "binary": "BYTES",
    "string": "VARCHAR",
    "timestamp_ntz": "TIMESTAMP",
    "timestamp": "TIMESTAMP_LTZ",
}
_TOKEN = re.compile(r'\s*([A-Za-z_][A-Za-z0-9_$]*|"(?:[^"]|"")+"|`(?:[^`]|``)+`|\d+|[<>(),:])')


@dataclass(frozen=True, slots=True)
class DataType:
    """A column type.

    Attributes:
        kind: canonical upper-case name, such as ``VARCHAR`` or ``STRUCT``.
        parameters: length or precision and scale, as written.
        arguments: element types of ARRAY and MAP, field types of STRUCT.
        fields: field names of STRUCT, as long as ``arguments``.
    """

    kind: str
    parameters: tuple[int, ...] = ()
    arguments: tuple[DataType, ...] = ()
    fields: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.kind == "STRUCT":
            inner = ", ".join(f"{quote(n)} {t}" for n, t in zip(self.fields, self.arguments, strict=True))
            return f"STRUCT<{inner}>"
        if self.arguments:
            return f"{self.kind}<{', '.join(map(str, self.arguments))}>"
        if self.parameters:
            return f"{self.kind}({', '.join(map(str, self.parameters))})"
        return self.kind

    def spark(self) -> str:
        """The type as Spark SQL writes it."""
        if self.kind == "STRUCT":
            pairs = zip(self.fields, self.arguments, strict=True)
            return "STRUCT<" + ", ".join(f"`{n.replace('`', '``')}`: {t.spark()}" for n, t in pairs) + ">"
        if self.kind in ("ARRAY", "MAP"):
            return f"{self.kind}<{', '.join(t.spark() for t in self.arguments)}>"
        if self.kind == "DECIMAL":
            precision, scale = (*self.parameters, 0)[:2] if self.parameters else (10, 0)
            return f"DECIMAL({precision}, {scale})"
        return _SIMPLE[self.kind]


class _Reader:
    """Reads one type from text, token by token."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[str] = []
        at = 0
        while at < len(text.rstrip()):
            match = _TOKEN.match(text, at)
            if match is None:
                raise ValueError(f"unexpected {text[at:].strip()[:20]!r} in type {text!r}")
            self.tokens.append(match.group(1))
            at = match.end()
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, expected: str = "") -> str:
        token = self.peek()
        if not token or (expected and token != expected):
            raise ValueError(f"expected {expected or 'more'} in type {self.text!r}")
        self.at += 1
        return token

    def numbers(self) -> tuple[int, ...]:
        found: list[int] = []
        if self.peek() != "(":
            return ()
        self.take("(")
        while True:
            token = self.take()
            if not token.isdigit():
                raise ValueError(f"expected a number, found {token!r} in type {self.text!r}")
            found.append(int(token))
            if self.peek() != ",":
                break
            self.take(",")
        self.take(")")
        return tuple(found)

    def type(self, depth: int = 0) -> DataType:
        if depth > 32:
            raise ValueError("types nest at most 32 deep")
        word = self.take().upper()
        kind = _ALIASES.get(word, word)
        if kind in ("ARRAY", "MAP"):
            self.take("<")
            arguments = [self.type(depth + 1)]
            if kind == "MAP":
                self.take(",")
                arguments.append(self.type(depth + 1))
            self.take(">")
            return DataType(kind, arguments=tuple(arguments))
        if kind == "STRUCT":
            return self._struct(depth)
        if kind != "DECIMAL" and kind not in _SIMPLE:
            raise ValueError(f"unknown type {word!r}; known: {', '.join(known_types())}")
        return DataType(kind, _checked(kind, self.numbers()))

    def _struct(self, depth: int) -> DataType:
        names: list[str] = []
        types: list[DataType] = []
        self.take("<")
        while True:
            raw = self.take()
            if raw in "<>(),:":
                raise ValueError(f"expected a field name in type {self.text!r}")
            names.append(raw[1:-1].replace(raw[0] * 2, raw[0]) if raw[0] in '"`' else raw.lower())
            if self.peek() == ":":
                self.take(":")
            types.append(self.type(depth + 1))
            if self.peek() != ",":
                break
            self.take(",")
        self.take(">")
        return DataType("STRUCT", arguments=tuple(types), fields=tuple(names))


def _checked(kind: str, numbers: tuple[int, ...]) -> tuple[int, ...]:
    limit = 2 if kind == "DECIMAL" else 1 if kind in _LENGTH_KINDS | _PRECISION_KINDS else 0
    if len(numbers) > limit:
        raise ValueError(f"{kind} takes {limit or 'no'} parameter{'s' if limit > 1 else ''}")
    if kind == "DECIMAL" and numbers:
        precision, scale = (*numbers, 0)[:2]
        if not (1 <= precision <= 38 and 0 <= scale <= precision):
            raise ValueError("DECIMAL takes a precision of 1 to 38 and a scale of 0 up to the precision")
    if kind in _PRECISION_KINDS and numbers and numbers[0] > 9:
        raise ValueError(f"{kind} takes a precision of 0 to 9")
    if kind in _LENGTH_KINDS and numbers and numbers[0] < 1:
        raise ValueError(f"{kind} takes a length of at least 1")
    return numbers


def known_types() -> list[str]:
    """The canonical type names, sorted."""
    return sorted([*_SIMPLE, "ARRAY", "DECIMAL", "MAP", "STRUCT"])


def parse_type(text: str) -> DataType:
    """Read a type as SQL writes it: ``VARCHAR``, ``decimal(10, 2)``, ``STRUCT<a BIGINT, b ARRAY<VARCHAR>>``.

    Raises:
        ValueError: the text is not a type; the message says why.
    """
    reader = _Reader(text)
    parsed = reader.type()
    if reader.peek():
        raise ValueError(f"unexpected {reader.peek()!r} after type in {text!r}")
    return parsed


def from_spark(text: str) -> DataType:
    """Read Spark's ``simpleString`` of a type, such as ``struct<a:bigint>`` or ``decimal(10,2)``.

    Raises:
        ValueError: Spark's type has no counterpart here.
    """
    spark_words = {k.upper(): v for k, v in _FROM_SPARK.items()}

    def rename(match: re.Match[str]) -> str:
        return spark_words.get(match.group(0).upper(), match.group(0))

    # Only type words are renamed: a field name is always followed by a colon.
    return parse_type(re.sub(r"(?<![`\w])[a-z_]+(?![\w:`])", rename, text))

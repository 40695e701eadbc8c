"""From a row's values as PostgreSQL writes them (text) to records: a JSON value and a key, both bytes.

The declared type of a column decides on its form, so that ``formats.json`` reads it back: numbers bare,
BYTES in base64, TIMESTAMP_LTZ with ``Z``, what PostgreSQL has as json or jsonb as JSON where the column is an
ARRAY, MAP or STRUCT.
"""

from __future__ import annotations

import json
import re
import struct
from base64 import b64encode
from collections.abc import Callable, Sequence

from leatstream.connectors.postgres.pgoutput import Unchanged, Values
from leatstream.errors import StoreError
from leatstream.model.types import DataType, parse_type

JSON_TYPES = (114, 3802)  # json, jsonb
_JSON_ARRAYS = {199: 114, 3807: 3802}
_SPECIAL = re.compile(rb'[\x00-\x1f"\\]')
_WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
_NUMBERS = ("DECIMAL", "FLOAT", "DOUBLE")
_PACKED = {"SMALLINT": ">h", "INTEGER": ">i", "BIGINT": ">q", "DOUBLE": ">d"}
_BOOLEANS = {b"t": b"true", b"f": b"false"}
Write = Callable[[bytes], bytes]
Row = Callable[[Values], bytes]


def text(value: bytes) -> bytes:
    """A JSON string."""
    if _SPECIAL.search(value) is None:
        return b'"' + value + b'"'
    # Bytes that are no UTF-8 stay, and make the record undecodable: a database may be SQL_ASCII.
    return json.dumps(value.decode("utf-8", "surrogateescape"), ensure_ascii=False).encode(
        "utf-8", "surrogateescape"
    )


def number(value: bytes) -> bytes:
    """A JSON number; NaN and the infinities, which JSON lacks, as text."""
    return value if value[-1:].isdigit() else b'"' + value + b'"'


def _boolean(value: bytes) -> bytes:
    return _BOOLEANS.get(value) or text(value)


def _binary(value: bytes) -> bytes:
    if value[:2] != b"\\x":
        raise StoreError(
            "store-rejected",
            "PostgreSQL wrote a bytea in another form than hex, which the session is set to.",
            hint="A connection pooler between must keep a session's settings: session mode does.",
        )
    return b'"' + b64encode(bytes.fromhex(value[2:].decode("ascii"))) + b'"'


def _dated(value: bytes) -> bytes:
    """A date, with its time or without; what is none from the years 1 to 9999 must be no other value."""
    if value[4:5] != b"-" or value.endswith(b"BC"):  # also infinity
        return b'"out of range: ' + value + b'"'
    return b'"' + value + b'"'


def _instant(value: bytes) -> bytes:
    """The session's time zone is UTC, which PostgreSQL writes ``+00``."""
    return _dated(value[:-3] + b"Z" if value.endswith(b"+00") else value)


def _bare(value: bytes) -> bytes:
    return value


def writer(kind: DataType, type_oid: int) -> Write:
    """How a value of a PostgreSQL type is written for a column of a declared type."""
    if kind.kind in _WHOLE:
        return _bare
    if kind.kind in _NUMBERS:
        return number
    if kind.kind == "BOOLEAN":
        return _boolean
    if kind.kind in ("BYTES", "VARBINARY"):
        return _binary
    if kind.kind == "TIMESTAMP_LTZ":
        return _instant
    if kind.kind in ("DATE", "TIMESTAMP"):
        return _dated
    if kind.arguments and type_oid in JSON_TYPES:
        return _bare
    if kind.kind == "ARRAY":
        leaf = kind
        while leaf.kind == "ARRAY":  # PostgreSQL's arrays have one type, however deep they are
            leaf = leaf.arguments[0]
        element = writer(leaf, _JSON_ARRAYS.get(type_oid, 0))
        return lambda value: _array(value, element)
    return text


def row_writer(columns: Sequence[tuple[str, DataType]], shape: Sequence[tuple[str, int]]) -> Row:
    """How a whole row is written as a JSON object of the declared columns.

    Args:
        columns: declared names and types; one that the table does not have is left out.
        shape: the table's names and type oids, in the order of its values.
    """
    places = {name: (index, oid) for index, (name, oid) in enumerate(shape)}
    parts = []
    for name, kind in columns:
        if name in places:
            index, oid = places[name]
            prefix = json.dumps(name, ensure_ascii=False).encode() + b":"
            parts.append((prefix, prefix + b"null", index, writer(kind, oid)))

    def write(values: Values) -> bytes:
        found = [
            prefix + put(value) if isinstance(value := values[index], bytes) else nothing
            for prefix, nothing, index, put in parts
        ]
        return b"{" + b",".join(found) + b"}"

    return write


def key_writer(
    columns: Sequence[tuple[str, DataType]], shape: Sequence[tuple[str, int]], primitive: bool
) -> Row:
    """How the record key is written: one plain value as Kafka's serializers do, or a JSON object."""
    if not primitive:
        return row_writer(columns, shape)
    ((name, kind),) = columns
    index = [column for column, _ in shape].index(name)
    packed = _PACKED.get(kind.kind)
    if packed is None:
        return lambda values: _sent(values[index])
    pack = struct.Struct(packed).pack
    read = float if kind.kind == "DOUBLE" else int
    return lambda values: pack(read(_sent(values[index])))


def _sent(value: bytes | Unchanged | None) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError("a key column has no value")
    return value


def declared(columns: Sequence[tuple[str, str]]) -> list[tuple[str, DataType]]:
    """Names and parsed types."""
    return [(name, parse_type(kind)) for name, kind in columns]


def _array(value: bytes, element: Write) -> bytes:
    """PostgreSQL's ``{1,NULL,"a b"}`` as a JSON array; arrays in it too. Lower bounds are left out."""
    if value[:1] == b"[":
        value = value.partition(b"=")[2]
    found, at = _elements(value, 0, element)
    if at != len(value):
        raise ValueError("an array goes on behind its end")
    return found


def _elements(value: bytes, at: int, element: Write) -> tuple[bytes, int]:
    if value[at : at + 1] != b"{":
        raise ValueError("an array does not begin with a brace")
    parts, at = [], at + 1
    while value[at : at + 1] != b"}":
        head = value[at : at + 1]
        if head == b"{":
            part, at = _elements(value, at, element)
        elif head == b'"':
            part, at = _quoted(value, at + 1)
            part = element(part)
        else:
            end = at
            while value[end : end + 1] not in (b",", b"}"):
                if end >= len(value):
                    raise ValueError("an array has no end")
                end += 1
            part = b"null" if value[at:end] == b"NULL" else element(value[at:end])
            at = end
        parts.append(part)
        if value[at : at + 1] == b",":
            at += 1
        elif value[at : at + 1] != b"}":
            raise ValueError("an array has no end")
    return b"[" + b",".join(parts) + b"]", at + 1


def _quoted(value: bytes, at: int) -> tuple[bytes, int]:
    found = bytearray()
    while (head := value[at : at + 1]) != b'"':
        if head == b"\\":
            at += 1
            head = value[at : at + 1]
        if not head:
            raise ValueError("a quoted element has no end")
        found += head
        at += 1
    return bytes(found), at + 1

"""Records that a producer has put together into one, as the Kinesis Producer Library does.

Such a record is four magic bytes, a Protobuf message, and the message's MD5. The message has a table of
partition keys (field 1) and the records (field 3), each with its key's place in that table (1) and its
data (3).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

_MAGIC = b"\xf3\x89\x9a\xc2"
_DIGEST = 16  # bytes
_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5  # Protobuf's wire types
_KEY_TABLE, _RECORDS = 1, 3
_KEY, _DATA = 1, 3


def apart(record: Mapping[str, Any]) -> list[tuple[bytes, bytes, str]]:
    """Partition key, data and sequence number of the records in a record of Kinesis, mostly one.

    Those of an aggregate have the record's sequence number and, behind a point, their place in it. What has
    the magic bytes but is no aggregate is taken as it is.
    """
    key, data, number = record["PartitionKey"].encode(), record["Data"], record["SequenceNumber"]
    if data[:4] == _MAGIC and len(data) > len(_MAGIC) + _DIGEST:
        message = data[len(_MAGIC) : -_DIGEST]
        if hashlib.md5(message, usedforsecurity=False).digest() == data[-_DIGEST:]:
            try:
                return [(k, d, f"{number}.{i}") for i, (k, d) in enumerate(_records(message))]
            except (IndexError, KeyError, TypeError):  # it is of another producer
                pass
    return [(key, data, number)]


def _records(message: bytes) -> list[tuple[bytes, bytes]]:
    keys: list[bytes] = []
    found: list[dict[int, Any]] = []
    for field, value in _fields(message):
        if field == _KEY_TABLE:
            keys.append(_whole(value))
        elif field == _RECORDS:
            found.append(dict(_fields(_whole(value))))
    return [(keys[one[_KEY]], _whole(one[_DATA])) for one in found]


def _whole(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError("a number where bytes should be")
    return value


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Number and value of each field; IndexError or TypeError for what is no message."""
    at = 0
    while at < len(message):
        tag, at = _number(message, at)
        kind = tag & 7
        if kind == _VARINT:
            value, at = _number(message, at)
            yield tag >> 3, value
            continue
        if kind not in (_BYTES, _FIXED_64, _FIXED_32):
            raise TypeError("no wire type of Protobuf")
        size = {_FIXED_64: 8, _FIXED_32: 4}.get(kind)
        if size is None:
            size, at = _number(message, at)
        if at + size > len(message):
            raise IndexError("a field is cut off")
        yield tag >> 3, message[at : at + size]
        at += size


def _number(message: bytes, at: int) -> tuple[int, int]:
    """A varint, and what follows it."""
    value = shift = 0
    while True:
        byte = message[at]
        value, shift, at = value | (byte & 0x7F) << shift, shift + 7, at + 1
        if byte < 0x80:
            return value, at

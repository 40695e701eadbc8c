"""What the Kinesis Producer Library makes of several records."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence


def aggregate(records: Sequence[tuple[str, bytes]]) -> bytes:
    """One record that holds these, keys and data; with hash keys and tags, which readers pass over."""
    keys = list(dict.fromkeys(key for key, _ in records))
    message = b"".join(_field(1, key.encode()) for key in keys) + _field(2, b"1234")
    for key, data in records:
        tag = _field(4, _field(1, b"t") + _field(2, b"v"))
        message += _field(3, b"\x08" + _varint(keys.index(key)) + b"\x10\x00" + _field(3, data) + tag)
    return b"\xf3\x89\x9a\xc2" + message + hashlib.md5(message, usedforsecurity=False).digest()


def _field(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])

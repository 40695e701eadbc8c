"""Reads compiled protobuf descriptor sets (``protoc --descriptor_set_out``) as far as their messages go.

Read by hand: the few fields wanted are stable since 2008, and what a user uploads meets no code that was
generated for something else.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

_MOST_MESSAGES = 10_000
_MOST_NESTED = 32


class Message(NamedTuple):
    """A message type: full name, file, names of its fields."""

    name: str
    file: str
    fields: tuple[str, ...]


def read_messages(data: bytes) -> list[Message]:
    """The messages of a descriptor set, nested ones too, without those that stand for maps.

    Args:
        data: the file's bytes.

    Raises:
        ValueError: these bytes are no descriptor set; the text says why and quotes nothing of it.
    """
    found: list[Message] = []
    files = [value for number, value in _fields(data) if number == 1 and isinstance(value, bytes)]
    if not files:
        raise ValueError("it holds no file; compile it with protoc --descriptor_set_out=…")
    for file in files:
        _read_file(file, found)
    if not found:
        raise ValueError("it holds no message")
    if len({message.name for message in found}) < len(found):
        raise ValueError("it holds two messages of one name")
    return sorted(found)


def _read_file(data: bytes, found: list[Message]) -> None:
    name, package = "", ""
    messages: list[bytes] = []
    for number, value in _fields(data):
        if number == 1:
            name = _text(value)
        elif number == 2:
            package = _text(value)
        elif number == 4:
            messages.append(_bytes(value))
    if not name:
        raise ValueError("it holds a file without a name")
    for message in messages:
        _read_message(message, package, name, found, 0)


def _read_message(data: bytes, scope: str, file: str, found: list[Message], depth: int) -> None:
    if depth > _MOST_NESTED or len(found) >= _MOST_MESSAGES:
        raise ValueError(f"it holds more than {_MOST_MESSAGES} messages or nests deeper than {_MOST_NESTED}")
    name, is_map = "", False
    fields: list[str] = []
    nested: list[bytes] = []
    for number, value in _fields(data):
        if number == 1:
            name = _text(value)
        elif number == 2:
            fields.append(next((_text(v) for n, v in _fields(_bytes(value)) if n == 1), ""))
        elif number == 3:
            nested.append(_bytes(value))
        elif number == 7:
            is_map = any(n == 7 and v == 1 for n, v in _fields(_bytes(value)))
    if not name or not all(fields):
        raise ValueError("it holds a message or a field without a name")
    full = f"{scope}.{name}" if scope else name
    if not is_map:
        found.append(Message(full, file, tuple(fields)))
    for one in nested:
        _read_message(one, full, file, found, depth + 1)


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Numbers and values of a message in the wire format."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if number == 0:
            raise ValueError("it is damaged, or another kind of file")
        if wire == 0:
            value, at = _varint(data, at)
            yield number, value
            continue
        length, at = _varint(data, at) if wire == 2 else ({1: 8, 5: 4}.get(wire, -1), at)
        if length < 0 or at + length > len(data):
            raise ValueError("it is damaged, or another kind of file")
        yield number, data[at : at + length]
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ValueError("it is damaged, or another kind of file")


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("it is damaged, or another kind of file")
    return value


def _text(value: int | bytes) -> str:
    try:
        text = _bytes(value).decode()
    except UnicodeDecodeError:
        text = "\x00"  # its own text would quote the input
    if len(text) > 1000 or not text.isprintable():
        raise ValueError("it is damaged, or another kind of file")
    return text

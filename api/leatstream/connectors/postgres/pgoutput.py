"""PostgreSQL's logical replication messages (``pgoutput``, protocol version 1, values as text).

Pure functions over bytes. A value is its text in UTF-8, None for NULL, or ``UNCHANGED`` for a large value
that the change did not touch: the server does not send it.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final, NamedTuple

_EPOCH_US = 946_684_800_000_000  # 2000-01-01, where PostgreSQL's clock begins, in microseconds since 1970
_BEGIN, _COMMIT = struct.Struct(">QqI"), struct.Struct(">BQQq")
_SHORT, _LONG, _COUNT = struct.Struct(">h"), struct.Struct(">i"), struct.Struct(">I")


class MalformedMessage(ValueError):
    """Bytes that are no message of the protocol."""


class Unchanged:
    """The mark of a value that was not sent."""

    def __repr__(self) -> str:
        return "UNCHANGED"


UNCHANGED: Final = Unchanged()
Values = list[bytes | Unchanged | None]


@dataclass(frozen=True, slots=True)
class Begin:
    """A transaction's first message; ``commit_lsn`` is where its commit stands in the log."""

    commit_lsn: int
    commit_us: int
    xid: int


@dataclass(frozen=True, slots=True)
class Commit:
    """A transaction's last message; ``end_lsn`` is the first byte behind it."""

    commit_lsn: int
    end_lsn: int
    commit_us: int


@dataclass(frozen=True, slots=True)
class RelationColumn:
    """A column; ``key``: of the replica identity; ``modifier``: of its type, as ``format_type`` takes it."""

    name: str
    type: int
    key: bool
    modifier: int = -1


@dataclass(frozen=True, slots=True)
class RelationShape:
    """A table as it was when the changes behind this message were made.

    Attributes:
        identity: ``d`` primary key, ``f`` whole row, ``i`` an index, ``n`` nothing.
    """

    oid: int
    schema: str
    name: str
    identity: str
    columns: tuple[RelationColumn, ...]


class Change(NamedTuple):
    """A row that was inserted, updated or deleted.

    Attributes:
        op: ``c``, ``u`` or ``d``.
        key: old values of the replica identity's columns, where they tell more than ``new``.
        old: the whole old row, of tables that log it.
        new: the row afterwards; None for ``d``.
    """

    op: str
    relation: int
    key: Values | None
    old: Values | None
    new: Values | None


@dataclass(frozen=True, slots=True)
class Truncate:
    """Tables that were emptied."""

    relations: tuple[int, ...]


Message = Begin | Commit | RelationShape | Change | Truncate | None


def decode(data: bytes) -> Message:
    """Read one message; None for those that say nothing of rows (types, origins, messages of applications).

    Raises:
        MalformedMessage: it is none.
    """
    try:
        return _decode(data)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise MalformedMessage(f"a message of {len(data)} bytes ends early or is no text") from error


def _decode(data: bytes) -> Message:
    kind = data[0]
    if kind == 0x49:  # I
        _expect(data, 5, b"N")
        new, end = _values(data, 6)
        found: Message = Change("c", _COUNT.unpack_from(data, 1)[0], None, None, new)
    elif kind == 0x55:  # U
        found, end = _update(data)
    elif kind == 0x44:  # D
        before, end = _values(data, 6)
        found = _with_old("d", data, before, None)
    elif kind == 0x42:  # B
        lsn, at, xid = _BEGIN.unpack_from(data, 1)
        found, end = Begin(lsn, at + _EPOCH_US, xid), 21
    elif kind == 0x43:  # C
        _flags, lsn, after, at = _COMMIT.unpack_from(data, 1)
        found, end = Commit(lsn, after, at + _EPOCH_US), 26
    elif kind == 0x52:  # R
        found, end = _relation(data)
    elif kind == 0x54:  # T
        found, end = _truncate(data)
    elif kind in b"YOM":
        return None
    else:
        raise MalformedMessage(f"there is no message of kind {kind:#04x}")
    if end != len(data):
        raise MalformedMessage(f"a message of kind {chr(kind)} has {len(data) - end} bytes too many")
    return found


def _update(data: bytes) -> tuple[Change, int]:
    if data[5] == 0x4E:  # N
        new, end = _values(data, 6)
        return Change("u", _COUNT.unpack_from(data, 1)[0], None, None, new), end
    before, at = _values(data, 6)
    _expect(data, at, b"N")
    new, end = _values(data, at + 1)
    return _with_old("u", data, before, new), end


def _with_old(op: str, data: bytes, before: Values, new: Values | None) -> Change:
    relation = _COUNT.unpack_from(data, 1)[0]
    if data[5] == 0x4B:  # K
        return Change(op, relation, before, None, new)
    _expect(data, 5, b"O")
    return Change(op, relation, None, before, new)


def _expect(data: bytes, at: int, mark: bytes) -> None:
    if data[at] != mark[0]:
        raise MalformedMessage(f"byte {at} is {data[at]:#04x}, not {mark.decode()}")


def _values(data: bytes, at: int) -> tuple[Values, int]:
    (count,) = _SHORT.unpack_from(data, at)
    at += 2
    found: Values = []
    add, size = found.append, len(data)
    for _ in range(count):
        kind = data[at]
        if kind == 0x74:  # t
            start = at + 5
            at = start + int.from_bytes(data[at + 1 : start], "big")
            if start > size or at > size:
                raise MalformedMessage("a value is longer than its message")
            add(data[start:at])
        elif kind == 0x6E:  # n
            add(None)
            at += 1
        elif kind == 0x75:  # u
            add(UNCHANGED)
            at += 1
        else:
            raise MalformedMessage(f"there is no value of kind {kind:#04x}")
    return found, at


def _relation(data: bytes) -> tuple[RelationShape, int]:
    (oid,) = _COUNT.unpack_from(data, 1)
    schema, at = _text(data, 5)
    name, at = _text(data, at)
    identity, (count,) = chr(data[at]), _SHORT.unpack_from(data, at + 1)
    at += 3
    columns: list[RelationColumn] = []
    for _ in range(count):
        key = bool(data[at] & 1)
        column, at = _text(data, at + 1)
        (oid_of_type,), (modifier,) = _COUNT.unpack_from(data, at), _LONG.unpack_from(data, at + 4)
        columns.append(RelationColumn(column, oid_of_type, key, modifier))
        at += 8
    return RelationShape(oid, schema or "pg_catalog", name, identity, tuple(columns)), at


def _truncate(data: bytes) -> tuple[Truncate, int]:
    (count,) = _COUNT.unpack_from(data, 1)
    end = 6 + 4 * count
    if end > len(data):
        raise MalformedMessage("a truncation names fewer tables than it says")
    return Truncate(tuple(_COUNT.unpack_from(data, 6 + 4 * i)[0] for i in range(count))), end


def _text(data: bytes, at: int) -> tuple[str, int]:
    end = data.find(0, at)
    if end < 0:
        raise MalformedMessage("a name has no end")
    return data[at:end].decode(), end + 1


def format_lsn(lsn: int) -> str:
    """A place in the log as PostgreSQL writes it, such as ``16/B374D848``."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def parse_lsn(text: str) -> int:
    """Read back what ``format_lsn`` wrote.

    Raises:
        ValueError: it is no such place.
    """
    high, slash, low = text.partition("/")
    if not slash:
        raise ValueError(f"{text!r} is no place in the log")
    return (int(high, 16) << 32) | int(low, 16)

"""Which files a query has read: the offset that the checkpoint keeps, and how it moves. No I/O.

An offset holds the files of its own batch, so that a batch which is repeated reads the same versions of the
same files; the digests of the files read so far that are not older than ``floor``; and nothing of older
files, which are not looked at any more.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from leatstream.connectors.s3.admin import Found

MOST_SEEN = 20_000  # beyond, the oldest are forgotten, and files as old as they are passed over
FLOOR, SEEN, BATCH, FILES, FIRST = "floor", "seen", "batch", "files", "first"


@dataclass(frozen=True, slots=True)
class Bounds:
    """Of one micro-batch, and how late a file may appear: milliseconds behind the newest file read."""

    files: int
    size: int
    late_ms: int


def beginning(entity: str, floor: int, seen: Iterable[Found] = ()) -> dict[str, Any]:
    """The offset of a query that has read nothing; older files than ``floor``, and ``seen``, are left out."""
    known: dict[int, list[str]] = {}
    for file in seen:
        known.setdefault(file.modified, []).append(digest(file.key))
    return _offset(entity, 0, floor, known, []) | {FIRST: True}


def begun(offset: Mapping[str, Any]) -> dict[str, Any]:
    """The first offset as one that differs from where the query begins, though no file has come yet.

    Spark makes no batch where nothing has moved; but the first batch is what fixes the beginning.
    """
    return {name: value for name, value in offset.items() if name != FIRST}


def pending(offset: Mapping[str, Any], files: Iterable[Found]) -> list[Found]:
    """The files not read yet, in the order in which they will be."""
    seen = {name for _, names in offset[SEEN] for name in names}
    fresh = [f for f in files if f.modified >= offset[FLOOR] and digest(f.key) not in seen]
    return sorted(fresh, key=lambda f: (f.modified, f.key))


def advance(
    offset: Mapping[str, Any], entity: str, waiting: list[Found], bounds: Bounds
) -> tuple[dict[str, Any], list[Found]]:
    """The next offset, and what still waits. A file larger than a batch may be makes one of its own.

    Args:
        offset: where to go on.
        entity: its name.
        waiting: from ``pending``; at least one.
        bounds: of the batch.
    """
    taken, size = 0, 0
    for file in waiting[: bounds.files]:
        if taken and size + file.size > bounds.size:
            break
        taken, size = taken + 1, size + file.size
    batch, left = waiting[:taken], waiting[taken:]
    known = {ms: list(names) for ms, names in offset[SEEN]}
    for file in batch:
        known.setdefault(file.modified, []).append(digest(file.key))
    oldest_left = left[0].modified if left else None
    floor = max(offset[FLOOR], max(known) - bounds.late_ms)
    if oldest_left is not None:
        floor = min(floor, oldest_left)
    floor = _forget(known, floor, oldest_left)
    done = int(offset[entity][FILES]) + taken
    return _offset(entity, done, floor, known, batch), left


def batch_of(offset: Mapping[str, Any]) -> list[Found]:
    """The files of an offset's batch."""
    return [Found(*item) for item in offset[BATCH]]


def digest(key: str) -> str:
    """Eleven characters that stand for a key."""
    return base64.b64encode(hashlib.blake2b(key.encode(), digest_size=8).digest()).decode().rstrip("=")


def _forget(known: dict[int, list[str]], floor: int, oldest_left: int | None) -> int:
    for ms in [ms for ms in known if ms < floor]:
        del known[ms]
    count = sum(map(len, known.values()))
    for ms in sorted(known):
        if count <= MOST_SEEN or (oldest_left is not None and ms >= oldest_left) or len(known) == 1:
            break
        count -= len(known.pop(ms))
        floor = ms + 1
    return floor


def _offset(
    entity: str, done: int, floor: int, known: Mapping[int, list[str]], batch: list[Found]
) -> dict[str, Any]:
    return {
        FLOOR: floor,
        SEEN: [[ms, known[ms]] for ms in sorted(known)],
        BATCH: [[f.key, f.size, f.etag, f.modified] for f in batch],
        # The part that people see; a text, as it counts files and not records.
        entity: {FILES: str(done)},
    }

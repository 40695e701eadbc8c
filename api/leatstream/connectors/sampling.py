"""A few records of an entity, for people who look at its relation."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Generator, Iterator
from dataclasses import dataclass

from leatstream.connectors.entities import Record

MOST_BYTES = 32 << 20  # that are read for one sample
IDLE = 0.5  # seconds without a record after which an entity counts as read


@dataclass(frozen=True, slots=True)
class Sampled:
    """What was read, the oldest first.

    Attributes:
        whole: whether time and bytes were enough: else there may be others in place of these.
    """

    records: list[Record]
    whole: bool = True


def size_of(record: Record) -> int:
    """Bytes of its key and value."""
    return len(record.key or b"") + len(record.value or b"")


def taken(records: Iterator[Record | None], *, newest: bool, limit: int, timeout: float) -> Sampled:
    """The first or the last of records that end; the iterator is closed.

    Args:
        records: of an entity, from its beginning; None while there are none.
        newest: whether the last ones are wanted.
        limit: the most of them.
        timeout: seconds.
    """
    end, size = time.monotonic() + timeout, 0
    kept: deque[Record] = deque(maxlen=limit)
    try:
        for record in records:
            if record is not None:
                kept.append(record)
                size += size_of(record)
                if not newest and len(kept) == limit:
                    break
            if time.monotonic() > end or size > MOST_BYTES:
                return Sampled(list(kept), whole=False)
        return Sampled(list(kept))
    finally:
        if isinstance(records, Generator):
            records.close()

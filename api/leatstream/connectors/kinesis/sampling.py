"""The newest records of a stream, for people. AWS cannot read backwards: ever earlier times are tried."""

from __future__ import annotations

import time
from heapq import heappush, heappushpop
from itertools import count

from leatstream.connectors.entities import Record, RecordsFrom
from leatstream.connectors.kinesis.admin import KinesisAdmin
from leatstream.connectors.kinesis.records import records
from leatstream.connectors.sampling import MOST_BYTES, Sampled, size_of

# Seconds before now. A stretch with too few records is read again with the next one, which costs little.
_REACHES = (2, 60, 1_800, 21_600)


def newest_of(admin: KinesisAdmin, stream: str, limit: int, timeout: float) -> Sampled:
    """The newest records by their time, the oldest first; the beginning is read only if there are too few.

    Args:
        admin: of the store.
        stream: its name.
        limit: the most records.
        timeout: seconds.

    Raises:
        StoreError: store-auth-failed, or the stream is not there any more.
    """
    end = time.monotonic() + timeout
    now = int(time.time() * 1000)
    for reach in _REACHES:
        found = _last(admin, stream, RecordsFrom(since=now - reach * 1000), limit, end)
        if len(found.records) == limit or not found.whole:
            return found
    return _last(admin, stream, RecordsFrom(beginning=True), limit, end)


def _last(admin: KinesisAdmin, stream: str, start: RecordsFrom, limit: int, end: float) -> Sampled:
    """The newest of the records from a place on, up to what is there now."""
    kept: list[tuple[int, int, Record]] = []
    size, numbers = 0, count()
    whole = True
    for record in records(admin, stream, start, None, None, existing=True):
        if record is not None:
            entry = (record.timestamp or 0, next(numbers), record)
            if len(kept) < limit:
                heappush(kept, entry)
            else:
                heappushpop(kept, entry)
            size += size_of(record)
        if time.monotonic() > end or size > MOST_BYTES:
            whole = False
            break
    return Sampled([record for _, _, record in sorted(kept, key=lambda one: one[:2])], whole)

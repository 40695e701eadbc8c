"""Which of an entity's records a person sees, and how fast."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from leatstream.connectors.entities import Record, RecordsFrom
from leatstream.model.instants import milliseconds

_LOOK = 0.1  # seconds


@dataclass(frozen=True, slots=True)
class RecordsWanted:
    """What a person wants to see of an entity's records.

    Attributes:
        start: where the reading begins.
        text: part of the key or value, in any case; None = any record.
        limit: the most records; None = no bound.
        rate: the most records a second; the others come later. None = as fast as they can be read.
        idle_timeout: seconds without a record that end it; None = none.
    """

    start: RecordsFrom = field(default_factory=RecordsFrom)
    text: str | None = None
    limit: int | None = None
    rate: int | None = None
    idle_timeout: float | None = None

    def fits(self, record: Record) -> bool:
        """Whether the text is in its key or value."""
        if self.text is None:
            return True
        wanted = self.text.casefold()
        return any(
            wanted in (raw or b"").decode(errors="replace").casefold() for raw in (record.key, record.value)
        )


def records_from(
    beginning: bool, since: datetime | None, partition: str | None, offset: int | None
) -> RecordsFrom:
    """A beginning as requests write it.

    Args:
        beginning: whether existing records are wanted.
        since: the first time that is wanted; without a zone it is UTC, and one before 1970 means all.
        partition: the only one that is wanted.
        offset: the first one of that partition.
    """
    return RecordsFrom(beginning, None if since is None else max(0, milliseconds(since)), partition, offset)


def chosen(
    records: Iterator[Record | None],
    wanted: RecordsWanted,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Record | None]:
    """The records that are wanted; None now and then, so that a reader that has left is noticed.

    Args:
        records: as they come; None while idle.
        wanted: what a person wants to see.
        now: a monotonic clock, in seconds.
        sleep: waits so many seconds.
    """
    seen, sent, since = 0, 0, now()
    reported = since
    for record in records:
        if record is None or not wanted.fits(record):
            if now() - reported >= _LOOK:
                reported = now()
                yield None
            continue
        while wanted.rate is not None and sent >= wanted.rate and now() - since < 1.0:
            sleep(_LOOK)
            yield None
        if now() - since >= 1.0:  # also after a silence, in which nothing was saved up
            sent, since = 0, now()
        seen, sent, reported = seen + 1, sent + 1, now()
        yield record
        if seen == wanted.limit:
            return

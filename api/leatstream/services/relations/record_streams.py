"""Which of an entity's records a person sees, and how fast."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from leatstream.connectors.entities import Record, RecordsFrom

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
    told = since
    for record in records:
        if record is None or not wanted.fits(record):
            if now() - told >= _LOOK:
                told = now()
                yield None
            continue
        while wanted.rate is not None and sent >= wanted.rate and now() - since < 1.0:
            sleep(_LOOK)
            yield None
        if now() - since >= 1.0:  # also after a silence, in which nothing was saved up
            sent, since = 0, now()
        seen, sent, told = seen + 1, sent + 1, now()
        yield record
        if seen == wanted.limit:
            return

"""How long ago a query looked up the ends of its sources, which its lag is counted to.

A batch looks them up as it begins. While nothing comes there are no batches, and Spark looks again and again:
a query that has found nothing new is at the ends as of that look.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

# Spark sets so many statuses between the end of a trigger and the beginning of the next one, at most.
_OF_ONE_TRIGGER = 2


class LagAge:
    """The age of one query's lag.

    Args:
        realtime: whether batches read until they end; their reports have the ends of then.
        now: a monotonic clock, in seconds.
        wall: the time of day, in epoch seconds, as Spark reports it.
    """

    def __init__(
        self,
        *,
        realtime: bool,
        now: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._realtime = realtime
        self._now = now
        self._wall = wall
        self._looked: float | None = None
        # Statuses of a query that waits and has nothing to read, each with when it was seen last.
        self._idle: deque[tuple[object, float]] = deque(maxlen=_OF_ONE_TRIGGER + 1)

    def take(self, reports: Iterable[Mapping[str, Any]]) -> None:
        """Take in reports of batches."""
        for report in reports:
            began = 0.0 if self._realtime else self._wall() - _seconds(str(report["timestamp"]))
            self._note(self._now() - max(0.0, began))

    def waits(self, status: object) -> None:
        """Take in that the query waits for the next look, as the last one has found nothing.

        Args:
            status: another one each time that Spark sets it.
        """
        if self._idle and self._idle[-1][0] == status:
            self._idle.pop()
        self._idle.append((status, self._now()))
        if len(self._idle) > _OF_ONE_TRIGGER:
            # The newest status is of a trigger that began after the oldest of them was seen.
            self._note(self._idle[0][1])

    def seconds(self) -> float | None:
        """The age; None before the first look."""
        return None if self._looked is None else round(max(0.0, self._now() - self._looked), 3)

    def _note(self, at: float) -> None:
        self._looked = at if self._looked is None else max(self._looked, at)


def _seconds(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp).timestamp()

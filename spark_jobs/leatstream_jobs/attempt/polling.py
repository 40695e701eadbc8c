"""How often Spark asks the sources of a query whether there is something new.

Between two batches it asks every ten milliseconds, for ever, which costs a silent query more than anything
else. The pause is a field of the running query, set when that begins: here it is made longer while nothing
comes, and short again with the first batch that has rows.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from leatstream_jobs.attempt.progress import is_tick

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_LOG = logging.getLogger("leatstream_jobs")
SHORT_MS = 10
# Seconds without a row, and the pause from then on: what a record waits at most that comes after a silence.
QUIET = ((5.0, 200), (20.0, 500))


class Polling:
    """The pause of one query in micro-batch mode.

    Args:
        now: a monotonic clock, in seconds.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._last = now()
        self._failed = False
        self.pause_ms = SHORT_MS

    def after(self, reports: Iterable[Mapping[str, Any]]) -> int:
        """The pause, of the reports since the last look."""
        sources = [s for report in reports for s in report.get("sources") or [] if not is_tick(s)]
        if any(int(s.get("numInputRows") or 0) for s in sources):
            self._last = self._now()
        quiet = self._now() - self._last
        self.pause_ms = max((pause for seconds, pause in QUIET if quiet >= seconds), default=SHORT_MS)
        return self.pause_ms

    def look(self, query: StreamingQuery, reports: Iterable[Mapping[str, Any]]) -> None:
        """Set the pause where it has changed; a fault leaves it as it was, and is logged once."""
        before = self.pause_ms
        if self._failed or self.after(reports) == before:
            return
        try:
            set_pause(query, self.pause_ms)
        except Exception as error:
            self._failed, self.pause_ms = True, before
            _LOG.warning("the pause between two looks stays at %d ms (%s)", before, type(error).__name__)


def set_pause(query: StreamingQuery, milliseconds: int) -> None:
    """Have a running query wait so long between two looks for new data."""
    execution: Any = query._jsq.streamingQuery()
    kind = execution.getClass()
    while kind.getSimpleName() != "StreamExecution":
        kind = kind.getSuperclass()
    field = kind.getDeclaredField("pollingDelayMs")
    field.setAccessible(True)
    field.setLong(execution, milliseconds)

"""Whether a running query gets on, and if not, what it waits for.

Figures are those of the last batch. A query whose broker hangs keeps them, and its state, for as long as
Spark's client waits: its pulse is what shows it. A sign of life is a report of a batch, a row that is read,
or a new status of Spark's own loop, which sets one each time that it asks the sources.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from leatstream.plan.job_spec import JobSpec, Mode, SourceSpec

# How long a healthy query may be still, at least: Spark asks its sources twice a second.
SHORTEST = 20.0
# A store that has not answered for so long is what the query waits for, whatever the figures say.
UNANSWERED = 8.0
_BATCHES = 5
_MORE = 3.0  # a batch may take so many times as long as the longest of the last ones
_AT_WORK = "Processing"  # of Spark's word for a batch whose offsets are written down
_PLANNING = 30.0  # between two batches of real-time mode


class Pulse:
    """The pulse of one query.

    Args:
        spec: of the query.
        now: a monotonic clock, in seconds.
    """

    def __init__(self, spec: JobSpec, now: Callable[[], float] = time.monotonic) -> None:
        self._spec = spec
        self._now = now
        self._last = now()
        self._seen: tuple[object, ...] = ()
        self._message = ""
        self._reported = False
        self._took: deque[float] = deque(maxlen=_BATCHES)
        self._silent: dict[str, tuple[float, str]] = {}

    def look(self, marks: Sequence[object], message: str, reports: Sequence[Mapping[str, Any]] = ()) -> None:
        """Take in what is seen of the query.

        Args:
            marks: what differs from the last look if the query has done something.
            message: Spark's own word for what it does.
            reports: of the batches since the last look.
        """
        if tuple(marks) != self._seen or reports:
            self._last = self._now()
        self._seen, self._message = tuple(marks), message
        self._reported = self._reported or bool(reports)
        self._took.extend(float(report.get("batchDuration") or 0) / 1000 for report in reports)

    def answered(self, store: str, fault: str | None) -> None:
        """Note whether a source's store has answered; ``fault`` says why not."""
        if fault is None:
            self._silent.pop(store, None)
        else:
            self._silent[store] = self._silent.get(store, (self._now(), fault))[0], fault

    @property
    def rhythm(self) -> float:
        """Seconds that the query, being well, may go without a sign of life."""
        if self._spec.mode is Mode.REALTIME:
            return self._spec.realtime_batch_ms / 1000 + _PLANNING
        usual = max(self._took, default=0.0) * _MORE
        return max(SHORTEST, self._spec.trigger_interval_ms / 1000 + SHORTEST, usual)

    @property
    def first_batch(self) -> bool:
        """Whether the first batch is being processed. It contains the backlog, so it may take minutes."""
        return not self._reported and _AT_WORK in self._message

    def waits_for(self) -> str | None:
        """What the query waits for, in words; None while it gets on."""
        still = self._now() - self._last
        for store, (since, fault) in sorted(self._silent.items()):
            if self._now() - since >= UNANSWERED:
                return f"store {store} does not answer: {fault.removeprefix(f'Store {store}: ').rstrip('.')}"
        return self._in_words() if still > self.rhythm else None

    def as_json(self) -> dict[str, Any]:
        """The heartbeat's ``pulse``."""
        return {
            "age_seconds": round(self._now() - self._last, 3),
            "rhythm_seconds": round(self.rhythm, 3),
            "waits_for": self.waits_for(),
        }

    def _in_words(self) -> str:
        text = self._message
        source = self._named(text)
        if "Getting offsets" in text or "latest offset" in text:
            what = f"{source.entity} in store {source.store.name}" if source else "a source"
            return f"{what} does not say what there is to read"
        if _AT_WORK in text:
            return "the batch at work takes longer than those before it"
        if "Writing offsets" in text or "Committing" in text:
            return f"the checkpoint {self._spec.checkpoint} cannot be written"
        if "Initializing" in text:
            return "the sources are being opened"
        return "Spark has not begun another batch"

    def _named(self, text: str) -> SourceSpec | None:
        named = [source for source in self._spec.sources if source.entity in text]
        if len(self._spec.sources) == 1:
            named = self._spec.sources
        return named[0] if named else None

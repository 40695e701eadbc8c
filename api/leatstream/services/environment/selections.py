"""Interactive SELECTs while they last: rows wait here, within bounds, between a driver and a reader.

Nothing of it is stored. SELECTs end with this process: their drivers learn it at their next call.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from leatstream.plan.job_spec import JobSpec
from leatstream.services.environment.rights import Rights

QUEUED_ROWS, QUEUED_BYTES = 2000, 2 * 1024 * 1024
UNREAD_SECONDS = 30.0  # from the statement to its reader
SILENT_SECONDS = 60.0  # between two words of a driver that has begun: Spark may be slow to start
LONGEST_SECONDS = 3600.0
LET_GO_SECONDS = 20.0  # for the driver to be idle again, after the end


@dataclass(frozen=True, slots=True)
class Row:
    """A row: ``+I`` (new), ``+U`` (replaces the one of its key) or ``-D`` (its key only), and its JSON."""

    op: str
    text: str


@dataclass(slots=True)
class Selection:
    """One SELECT on its way.

    Attributes:
        owner: the principal who may read it, once.
        limit: rows after which it ends, as the SQL says.
        driver: who runs it.
        problem: why its job failed: ``{code, detail, …}``.
        ended: when it ended (monotonic seconds); None while it lasts.
        kept_for: what its reader might do whose token has ended: one who may do as much may read on.
        until: when its time is over (monotonic seconds); 0 before its first reader.
        given: how many rows its readers got.
        given_size: length of their JSON.
    """

    id: str
    owner: str
    job: JobSpec
    limit: int | None = None
    driver: str = ""
    reading: bool = False
    problem: Mapping[str, Any] | None = None
    ended: float | None = None
    deadline: float = 0.0
    kept_for: Rights | None = None
    until: float = 0.0
    given: int = 0
    given_size: int = 0
    heard: float | None = None
    sequence: int = 0
    rows: deque[Row] = field(default_factory=deque)
    size: int = 0
    changed: threading.Condition = field(default_factory=threading.Condition)

    def offer(self, sequence: int, rows: Sequence[Row]) -> bool:
        """Take rows of the driver; False while there is no room. What was taken before is not taken again."""
        with self.changed:
            self.heard = time.monotonic()
            if self.ended is not None or sequence <= self.sequence:
                return True
            if rows and self.rows and (len(self.rows) >= QUEUED_ROWS or self.size >= QUEUED_BYTES):
                return False
            self.sequence = sequence
            self.rows.extend(rows)
            self.size += sum(len(row.text) for row in rows)
            self.changed.notify_all()
            return True

    def take(self, timeout: float) -> list[Row]:
        """What waits; after ``timeout`` seconds, or at the end, nothing."""
        with self.changed:
            if not self.rows and self.ended is None:
                self.changed.wait(timeout)
            found = list(self.rows)
            self.rows.clear()
            self.size = 0
            return found

    def give_back(self, rows: Sequence[Row]) -> None:
        """Rows that were taken and not sent: they are the next ones."""
        with self.changed:
            self.rows.extendleft(reversed(rows))
            self.size += sum(len(row.text) for row in rows)

    def end(self, problem: Mapping[str, Any] | None = None) -> None:
        """It is over; the first reason counts."""
        with self.changed:
            if self.ended is None:
                self.ended = time.monotonic()
                self.problem = problem
                self.changed.notify_all()

    def overdue(self, now: float) -> str | None:
        """Why it has to end by itself, if it has to."""
        if self.ended is None:
            if not self.reading and now > self.deadline:
                return "nobody has read it"
            if self.reading and now > self.deadline:
                return "its time is over"
            if self.heard is not None and now - self.heard > SILENT_SECONDS:
                return "its driver is silent"
        return None


class Selections:
    """Those that last, by id."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._all: dict[str, Selection] = {}

    def add(self, selection: Selection) -> None:
        """Begin: it waits for its reader."""
        selection.deadline = time.monotonic() + UNREAD_SECONDS
        with self._lock:
            self._all[selection.id] = selection

    def find(self, selection_id: str | None) -> Selection | None:
        """The selection, also for a little while after its end."""
        with self._lock:
            return self._all.get(selection_id or "")

    def lasting(self) -> list[Selection]:
        """All that have not ended."""
        with self._lock:
            return [s for s in self._all.values() if s.ended is None]

    def holds(self, driver: str, selection_id: str) -> bool:
        """Whether this driver runs it, or is still letting go of it."""
        found = self.find(selection_id)
        return found is not None and found.driver == driver and not self._gone(found, time.monotonic())

    def forget(self, when: Callable[[Selection], None]) -> None:
        """Forget those whose end is long past; ``when`` is called with each."""
        now = time.monotonic()
        with self._lock:
            gone = [s for s in self._all.values() if self._gone(s, now)]
            for selection in gone:
                del self._all[selection.id]
        for selection in gone:
            when(selection)

    def _gone(self, selection: Selection, now: float) -> bool:
        return selection.ended is not None and now - selection.ended > LET_GO_SECONDS

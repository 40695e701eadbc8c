"""How far a query has read, reported at intervals to the stores' own lag tools."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from functools import partial

from leatstream.errors import LeatstreamError
from leatstream_jobs.attempt.progress import Progress
from leatstream_jobs.reading.scans import Scan

_LOG = logging.getLogger("leatstream_jobs")
EVERY = 5.0  # seconds
_TIMEOUT = 3.0


class OffsetMirror:
    """Copies the offsets of committed batches; a failure is logged once and harms nothing."""

    def __init__(self, query: str) -> None:
        self._query = query
        self._former: str | None = None
        self._handed_on = False
        self._told: dict[str, dict[str, int]] = {}
        self._complaints: set[str] = set()
        self._next = 0.0

    def look(self, scans: Sequence[Scan], progress: Progress, *, last: bool = False) -> None:
        """Tell what is new since the last time, at most every five seconds.

        Args:
            scans: the query's sources.
            progress: of the attempt.
            last: the query has stopped, so do not wait for the next time.
        """
        if self._handed_on or (not last and time.monotonic() < self._next):
            return
        self._next = time.monotonic() + EVERY
        ends = progress.ends()
        for scan in scans:
            entity = scan.source.entity
            offsets = ends.get(scan.source.relation, {})
            known = {p: at for p, at in offsets.items() if isinstance(at, int)}
            if known and self._told.get(entity) != known:
                self._tell(scan, known)
        if self._former is not None:
            former, self._former = self._former, None
            for scan in scans:
                self._try(partial(scan.connector.forget_offsets, former, _TIMEOUT), scan)

    def rename(self, query: str | None) -> None:
        """The query is called otherwise from now on: it has taken over from another, or another from it.

        One that has handed its name on, and has it now with a word behind, stops soon and reports no more:
        its earlier reports belong to the other.

        Args:
            query: its name; None if nothing is known of it.
        """
        if query is None or query == self._query:
            return
        self._handed_on = self._handed_on or query.startswith(f"{self._query}__")
        self._former, self._query = self._query, query
        self._told, self._next = {}, 0.0

    def _tell(self, scan: Scan, offsets: dict[str, int]) -> None:
        entity = scan.source.entity
        tell = partial(scan.connector.mirror_offsets, self._query, entity, offsets, _TIMEOUT)
        if self._try(tell, scan):
            self._told[entity] = offsets

    def _try(self, call: Callable[[], None], scan: Scan) -> bool:
        try:
            call()
        except LeatstreamError as error:
            if error.detail not in self._complaints:
                self._complaints.add(error.detail)
                entity = scan.source.entity
                _LOG.warning("lag tools do not see how far %s is read: %s", entity, error.detail)
            return False
        return True

"""How far a query has read, told to the stores' own lag tools now and then."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from leatstream.errors import LeatstreamError
from leatstream_jobs.progress import Progress
from leatstream_jobs.scans import Scan

_LOG = logging.getLogger("leatstream_jobs")
EVERY = 5.0  # seconds
_TIMEOUT = 3.0


class OffsetMirror:
    """Copies the offsets of committed batches; what goes wrong is logged once and harms nothing."""

    def __init__(self, query: str) -> None:
        self._query = query
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
        if not last and time.monotonic() < self._next:
            return
        self._next = time.monotonic() + EVERY
        ends = progress.ends()
        for scan in scans:
            entity = scan.source.entity
            offsets = ends.get(scan.source.relation, {})
            known = {p: at for p, at in offsets.items() if isinstance(at, int)}
            if known and self._told.get(entity) != known:
                self._tell(scan, known)

    def _tell(self, scan: Scan, offsets: dict[str, int]) -> None:
        entity = scan.source.entity
        try:
            scan.connector.mirror_offsets(self._query, entity, offsets, _TIMEOUT)
            self._told[entity] = offsets
        except LeatstreamError as error:
            if error.detail not in self._complaints:
                self._complaints.add(error.detail)
                _LOG.warning("lag tools do not see how far %s is read: %s", entity, error.detail)

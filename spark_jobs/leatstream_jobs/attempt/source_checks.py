"""Whether the sources of a job are still the entities that its offsets are of."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from leatstream.connectors.base import Connector
from leatstream.errors import StoreError
from leatstream.plan.job_spec import SourceSpec, StoreRef
from leatstream_jobs.attempt.failures import Failure, source_gone
from leatstream_jobs.attempt.source_identities import SourceIdentities

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from leatstream.connectors.entities import SourceWatch
    from leatstream_jobs.reading.scans import Scan

_LOG = logging.getLogger("leatstream_jobs")
SOURCE_CHECK = 5.0  # seconds between two looks


class SourceChecks:
    """Notices a source's entity that was deleted or created again; Spark itself may wait for it for ever.

    Attributes:
        watches: what the sources' stores keep for this reader, by view.

    Args:
        answered: is called with each store: whether it has answered, or why not.
    """

    def __init__(
        self,
        spark: SparkSession,
        checkpoint: str,
        watches: dict[str, SourceWatch | None],
        answered: Callable[[str, str | None], None],
    ) -> None:
        self.watches = watches
        self._answered = answered
        self._known = SourceIdentities(spark, checkpoint)
        self._identities: dict[str, str] = {}
        self._kept = False
        self._next = 0.0

    def compare(
        self, sources: Sequence[SourceSpec], connect: Callable[[StoreRef], Connector]
    ) -> Failure | None:
        """Check before the start that the sources are the checkpoint's; StoreError if one does not answer."""
        self._identities = self._known.read()
        self._kept = bool(self._identities)
        for source in sources if self._kept else ():
            before = self._identities.get(source.view)
            now = connect(source.store).incarnation(source.entity)
            if now is None or before not in (None, now):
                return source_gone(source, recreated=now is not None)
        return None

    def look(self, scans: Sequence[Scan], *, at_once: bool = False) -> Failure | None:
        """Look every now and then; what is wrong, if anything."""
        if not at_once and time.monotonic() < self._next:
            return None
        self._next = time.monotonic() + SOURCE_CHECK
        for scan in scans:
            try:
                now = scan.connector.incarnation(scan.source.entity, timeout=3.0)
                self.watches[scan.source.view] = scan.connector.watch_source(scan.source)
            except StoreError as error:
                # A store that is unreachable for a while is no reason to fail: Spark's clients wait too.
                _LOG.warning("source %s could not be checked: %s", scan.source.relation, error.detail)
                self._answered(scan.source.store.name, error.detail)
                continue
            self._answered(scan.source.store.name, None)
            before = self._identities.setdefault(scan.source.view, now or "")
            if now is None or now != before:
                return source_gone(scan.source, recreated=now is not None)
        if not self._kept and len(self._identities) == len(scans):
            self._keep()
        return None

    def _keep(self) -> None:
        """Write them down for later attempts; a fault that lasts ends the job, which reports it."""
        try:
            self._known.write(self._identities)
            self._kept = True
        except Exception as error:
            _LOG.warning("the sources' identities were not kept (%s); trying again", type(error).__name__)

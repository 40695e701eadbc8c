"""Whether the sinks of a job still exist."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from leatstream.connectors.base import Connector
from leatstream.connectors.registry import connector_classes
from leatstream.errors import StoreError
from leatstream.plan.job_spec import SinkSpec, StoreRef
from leatstream_jobs.attempt import source_checks
from leatstream_jobs.attempt.failures import Failure, sink_gone

_LOG = logging.getLogger("leatstream_jobs")


class SinkChecks:
    """Notices a sink's entity that was deleted: a producer waits a minute for it, a silent query for ever.

    Only in stores where the look costs nothing and writes fail late; others refuse the next write at once.

    Args:
        sinks: of the job.
        answered: is called with each store: whether it has answered, or why not.
    """

    def __init__(self, sinks: Sequence[SinkSpec], answered: Callable[[str, str | None], None]) -> None:
        kinds = connector_classes()
        self._sinks = [s for s in sinks if s.view is None and _is_watched(kinds.get(s.store.kind))]
        self._answered = answered
        self._missing: set[str] = set()
        self._next = 0.0

    def look(self, connect: Callable[[StoreRef], Connector]) -> Failure | None:
        """Look every now and then; the failure of a sink that was missing at two looks in a row.

        Its failure is final, and a broker that has just started may not know a topic yet.
        """
        if time.monotonic() < self._next:
            return None
        self._next = time.monotonic() + source_checks.SOURCE_CHECK
        for sink in self._sinks:
            try:
                exists = connect(sink.store).incarnation(sink.entity, timeout=3.0) is not None
            except StoreError as error:
                _LOG.warning("sink %s could not be checked: %s", sink.relation, error.detail)
                self._answered(sink.store.name, error.detail)
                continue
            self._answered(sink.store.name, None)
            if exists:
                self._missing.discard(sink.relation)
            elif sink.relation in self._missing:
                return sink_gone(sink)
            else:
                self._missing.add(sink.relation)
        return None


def _is_watched(kind: type[Connector] | None) -> bool:
    return kind is not None and kind.sinks_watched

"""Bytes that a query has read and written, as far as somebody has counted them while they passed.

Nothing is measured per record here: clients of the stores count by themselves, and sinks know the size of
what they have sent. Where nobody has counted, nothing is told.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from leatstream.connectors.registry import connector_classes
from leatstream.connectors.traffic import reader_of
from leatstream.plan.job_spec import JobSpec
from leatstream_jobs.batch_sink import exactly_once, has_rows
from leatstream_jobs.batches import BatchSink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from leatstream.connectors.traffic import Traffic as Clients

EVERY = 10.0  # seconds: a look takes a call into the JVM, or several, for each client
_LOG = logging.getLogger("leatstream_jobs")


class Meter:
    """Bytes since this was made.

    Attributes:
        total: None once it is not known any more.

    Args:
        look: gives the bytes that each client has counted since it was made, by the client's name.
    """

    def __init__(self, look: Callable[[], Mapping[str, int]]) -> None:
        self._look = look
        self._before = dict(look())
        self._moved: set[str] = set()
        self.total: int | None = 0

    def look(self) -> None:
        """Take in what has been counted since."""
        found = dict(self._look())
        gains = {name: count - self._gone_by(name, count) for name, count in found.items()}
        # One that was at work when it was closed may have counted more than was seen.
        if self.total is not None and not self._moved - set(found):
            self.total += sum(gains.values())
        else:
            self.total = None
        self._moved = {name for name, gain in gains.items() if gain}
        self._before = found

    def _gone_by(self, name: str, count: int) -> int:
        before = self._before.get(name, 0)
        return before if count >= before else 0


class Traffic:
    """The bytes of one attempt.

    Attributes:
        sinks: those of the job and its members that take batches, in their order; set when they are open.

    Args:
        spark: the job's session; nothing of the job runs yet.
        spec: the job.
        now: a clock that never goes back, in seconds.
    """

    _writers: ClassVar[dict[str, list[Traffic]]] = {}
    _claiming: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, spark: SparkSession, spec: JobSpec, now: Callable[[], float] = time.monotonic) -> None:
        self.sinks: Sequence[BatchSink] = ()
        self._now = now
        self._next = now() + EVERY
        self._reading = _meter_of_sources(spark, spec)
        self._writing: dict[str, Meter | None] = {}
        self._count_themselves: list[int] = []
        for place, one in enumerate((spec, *(spec.of_member(member) for member in spec.members))):
            clients = _clients_of_sink(spark, one)
            if clients is None:
                self._count_themselves.append(place)
            elif one.sink.entity not in self._writing:
                self._writing[one.sink.entity] = _meter(clients.sent, one.sink.entity)
        self._doubtful: set[str] = set()
        self._claim()

    def look(self, *, last: bool = False) -> None:
        """Take in what the clients have counted, every ten seconds; ``last``: now."""
        if not last and self._now() < self._next:
            return
        self._next = self._now() + EVERY
        self._reading = _looked(self._reading)
        self._writing = {name: _looked(meter) for name, meter in self._writing.items()}

    def as_json(self) -> dict[str, Any]:
        """``input_bytes_total`` and ``output_bytes_total`` since the attempt began; None: not known."""
        read = self._reading.total if self._reading is not None else None
        return {"input_bytes_total": read, "output_bytes_total": _sum(self._written())}

    def end(self) -> None:
        """The attempt writes no more."""
        with self._claiming:
            for entity in self._writing:
                self._writers[entity].remove(self)
                if not self._writers[entity]:
                    del self._writers[entity]

    def _written(self) -> list[int | None]:
        totals = [
            meter.total if meter is not None and entity not in self._doubtful else None
            for entity, meter in self._writing.items()
        ]
        for place in self._count_themselves:
            totals.append(self.sinks[place].written_bytes if place < len(self.sinks) else None)
        return totals

    def _claim(self) -> None:
        """Clients tell where they write, not for whom: two jobs of a process may not write there."""
        with self._claiming:
            for entity in self._writing:
                there = self._writers.setdefault(entity, [])
                there.append(self)
                if len(there) > 1:
                    for one in there:
                        one._doubtful.add(entity)


def _meter_of_sources(spark: SparkSession, spec: JobSpec) -> Meter | None:
    """One for all sources: their clients are known by the job that they read for."""
    kinds = {source.store.kind for source in spec.sources}
    clients = [_clients(spark, kind) for kind in kinds]
    # Of two kinds, one counts nothing yet: then nobody knows the sum.
    if len(clients) != 1 or clients[0] is None:
        return None
    return _meter(clients[0].read, reader_of(spec.query_id))


def _clients_of_sink(spark: SparkSession, spec: JobSpec) -> Clients | None:
    """Who counts what is written; None where it is the sink itself, or nobody."""
    if spec.sink.view is not None or has_rows(spec.sink) or exactly_once(spec):
        return None
    return _clients(spark, spec.sink.store.kind)


def _clients(spark: SparkSession, kind: str) -> Clients | None:
    try:
        found = connector_classes().get(kind)
        return found.traffic(spark) if found is not None else None
    except Exception as error:
        _LOG.debug("bytes cannot be counted: %s", type(error).__name__)
        return None


def _meter(look: Callable[[str], Mapping[str, int]], name: str) -> Meter | None:
    try:
        return Meter(lambda: look(name))
    except Exception as error:
        _LOG.debug("bytes cannot be counted: %s", type(error).__name__)
        return None


def _looked(meter: Meter | None) -> Meter | None:
    """The meter, having looked; figures are for people, and none is worth a query that works."""
    if meter is None:
        return None
    try:
        meter.look()
    except Exception as error:
        _LOG.debug("bytes cannot be counted: %s", type(error).__name__)
        return None
    return meter


def _sum(totals: Sequence[int | None]) -> int | None:
    known = [total for total in totals if total is not None]
    return sum(known) if len(known) == len(totals) else None

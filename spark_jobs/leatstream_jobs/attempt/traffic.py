"""Bytes that a query has read and written, and rows that Spark does not count, from those who know them.

Clients of the stores count by themselves, and sinks know what they have sent. Records whose clients do not
count are measured as Spark hands them on (``scans.measured``). Where nobody has counted, nothing is reported.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from leatstream.connectors.traffic import reader_of
from leatstream.plan.job_spec import JobSpec, Mode
from leatstream_jobs.attempt.progress import Progress
from leatstream_jobs.batches.common import BatchSink
from leatstream_jobs.runtime.clients import clients_of
from leatstream_jobs.writing.batch_sink import by_batches, exactly_once, has_rows

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


@dataclass(slots=True)
class _Sent:
    """What clients have sent to an entity; ``rows`` where Spark does not count them."""

    size: Meter | None
    rows: Meter | None

    def look(self) -> None:
        self.size, self.rows = _looked(self.size), _looked(self.rows)


class Traffic:
    """What one attempt has read and written.

    Attributes:
        sinks: those of the job and its members that take batches, in their order; set when they are open.

    Args:
        spark: the job's session; nothing of the job runs yet.
        spec: the job.
        now: a monotonic clock, in seconds.
    """

    _writers: ClassVar[dict[str, list[Traffic]]] = {}
    _claiming: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, spark: SparkSession, spec: JobSpec, now: Callable[[], float] = time.monotonic) -> None:
        self.sinks: Sequence[BatchSink] = ()
        self._now = now
        self._looked = now()
        self._reading = _readers(spark, spec)
        self._rows: int | None = 0
        self._rate: float | None = None
        self._writing: dict[str, _Sent] = {}
        self._count_themselves: list[int] = []
        self._measured = False
        batches = by_batches(spec)
        for place, one in enumerate((spec, *(spec.of_member(member) for member in spec.members))):
            clients, entity = _clients_of_sink(spark, one), one.sink.entity
            if clients is None and (batches or spec.mode is Mode.REALTIME):
                self._count_themselves.append(place)
            elif clients is None:
                self._measured = True
            elif entity not in self._writing:
                rows = _meter(clients.records_sent, entity) if batches else None
                self._writing[entity] = _Sent(_meter(clients.sent, entity), rows)
        self._doubtful: set[str] = set()
        self._claim()

    def look(self, *, last: bool = False) -> None:
        """Take in what the clients have counted, every ten seconds; ``last``: now."""
        now = self._now()
        if not last and now < self._looked + EVERY:
            return
        self._reading = [_looked(meter) for meter in self._reading]
        for sent in self._writing.values():
            sent.look()
        before, self._rows = self._rows, self._written()[0]
        self._rate = None
        if before is not None and self._rows is not None and now > self._looked:
            self._rate = round((self._rows - before) / (now - self._looked), 3)
        self._looked = now

    def as_json(self, progress: Progress) -> dict[str, Any]:
        """``input_bytes_total`` and ``output_bytes_total`` since the attempt began; None: not known.

        And where Spark does not count what is written, ``output_rows_total`` and ``output_rows_per_second``
        of the last ten seconds.

        Args:
            progress: gives the bytes of records whose clients do not count.
        """
        rows, size = self._written()
        size = progress.sent_bytes if self._measured else size
        meters = (None if meter is None else meter.total for meter in self._reading)
        read = _sum([progress.read_bytes, *meters])
        found: dict[str, Any] = {"input_bytes_total": read, "output_bytes_total": size}
        if self.sinks:
            found |= {"output_rows_total": rows, "output_rows_per_second": self._rate}
        return found

    def end(self) -> None:
        """The attempt writes no more."""
        with self._claiming:
            for entity in self._writing:
                self._writers[entity].remove(self)
                if not self._writers[entity]:
                    del self._writers[entity]

    def _written(self) -> tuple[int | None, int | None]:
        """Rows and bytes."""
        rows, sizes = list[int | None](), list[int | None]()
        for entity, sent in self._writing.items():
            for meter, totals in ((sent.rows, rows), (sent.size, sizes)):
                totals.append(None if meter is None or entity in self._doubtful else meter.total)
        for place in self._count_themselves:
            written = self.sinks[place].written if place < len(self.sinks) else None
            rows.append(None if written is None else written.rows)
            sizes.append(None if written is None else written.size)
        return _sum(rows), _sum(sizes)

    def _claim(self) -> None:
        """Clients tell where they write, not for whom: two jobs of a process may not write there."""
        with self._claiming:
            for entity in self._writing:
                there = self._writers.setdefault(entity, [])
                there.append(self)
                if len(there) > 1:
                    for one in there:
                        one._doubtful.add(entity)


def _readers(spark: SparkSession, spec: JobSpec) -> list[Meter | None]:
    """One for the sources of each kind whose clients count: they are known by the job that they read for."""
    meters = list[Meter | None]()
    for kind in {source.store.kind for source in spec.sources}:
        clients = clients_of(spark, kind)
        if clients is not None:
            meters.append(_meter(clients.read, reader_of(spec.query_id)))
        elif spec.mode is Mode.REALTIME:
            meters.append(None)  # records are not measured in a batch that lasts
    return meters


def _clients_of_sink(spark: SparkSession, spec: JobSpec) -> Clients | None:
    """Who counts what is written; None where it is the sink itself, or nobody."""
    if has_rows(spec.sink) or exactly_once(spec):
        return None
    return clients_of(spark, spec.sink.store.kind)


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


def _sum(totals: Iterable[int | None]) -> int | None:
    total = 0
    for one in totals:
        if one is None:
            return None
        total += one
    return total

"""Back-pressure: how many records a micro-batch takes, so that it lasts about as long as is wanted.

Spark reads ``maxOffsetsPerTrigger`` once, when a query starts. But it asks each source for its next offsets
with a limit that it keeps by source, and reads again for every batch: that one is exchanged between batches.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from leatstream.connectors.registry import kinds_without
from leatstream_jobs.attempt.progress import is_tick

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from leatstream.plan.job_spec import JobSpec

_LOG = logging.getLogger("leatstream_jobs")
FIRST, FIRST_OF_SEVERAL, LEAST = 100_000, 5_000, 1_000
_STEP = 2.0  # a batch is at most so much longer or shorter than the one before
_FULL = 0.9  # of the limit: more was there, so that the limit is what ended the batch
_CLOSE = 0.1  # the limit stays where it is as near as this to the one that would be right


def first_limit(spec: JobSpec) -> int:
    """Records of each source that the first batch takes at most."""
    # Only these are asked again before each batch; the others keep what they begin with.
    adapts = not kinds_without("batch_bounds", (source.store.kind for source in spec.sources))
    if spec.target_batch_ms is None or not adapts:
        return spec.max_offsets_per_trigger
    # The calls of users' functions in a batch have one time-out, and a planned batch is repeated as it is:
    # one that is too large would fail for ever.
    if spec.functions:
        return min(spec.max_offsets_per_trigger, LEAST)
    # A join may make hundreds of rows of each record: how many is known after a batch.
    return min(spec.max_offsets_per_trigger, FIRST_OF_SEVERAL if len(spec.sources) > 1 else FIRST)


class BatchSize:
    """The limit of one query's batches, in records of each source.

    Args:
        spec: of the job; its ``max_offsets_per_trigger`` is never exceeded.
    """

    def __init__(self, spec: JobSpec) -> None:
        self._most, self._target_ms = spec.max_offsets_per_trigger, spec.target_batch_ms
        self.limit = first_limit(spec)
        self._failed = False

    def after(self, report: Mapping[str, Any]) -> int:
        """The limit after a batch, of Spark's report of it."""
        if self._target_ms is None:
            return self.limit
        sources = [s for s in report.get("sources") or [] if not is_tick(s)]
        largest = max((int(s.get("numInputRows") or 0) for s in sources), default=0)
        took = float((report.get("durationMs") or {}).get("triggerExecution") or 0)
        full, slow = largest >= _FULL * self.limit, took > self._target_ms
        if not largest or took <= 0 or not (full or slow):
            # It ended because there was no more: that says nothing about a batch that is full.
            return self.limit
        right = largest * self._target_ms / took
        if full and abs(right - self.limit) <= _CLOSE * self.limit:
            return self.limit
        floor = min(LEAST, self._most)
        bounded = min(max(right, self.limit / _STEP), self.limit * _STEP)
        self.limit = int(min(max(bounded, floor), self._most))
        return self.limit

    def look(self, spark: SparkSession, query: StreamingQuery, reports: Iterable[Mapping[str, Any]]) -> None:
        """Set the limit for the next batch; a fault leaves it as it was, and is logged once.

        Args:
            spark: the query's session.
            query: that runs.
            reports: of its batches since the last look, oldest first.
        """
        if self._failed:
            return
        before = self.limit
        for report in reports:
            self.after(report)
        if self.limit == before:
            return
        try:
            set_limit(spark, query, self.limit)
        except Exception as error:
            self._failed, self.limit = True, before
            _LOG.warning("the size of batches stays at %d (%s)", before, type(error).__name__)


def set_limit(spark: SparkSession, query: StreamingQuery, records: int) -> None:
    """Have every source that takes a number of records at most take another one, from the next batch on."""
    execution: Any = query._jsq.streamingQuery()
    limits = execution.uniqueSources()
    jvm: Any = spark._jvm
    wanted = getattr(jvm, "org.apache.spark.sql.connector.read.streaming.ReadLimit").maxRows(records)
    entries = limits.iterator()
    while entries.hasNext():
        entry = entries.next()
        if entry._2().getClass() == wanted.getClass():
            limits = limits.updated(entry._1(), wanted)
    getattr(execution, "uniqueSources_$eq")(limits)

"""Several queries as one job: each batch of their source is read and decoded once, for all of them.

Their sinks are written one after the other, each with the batch's number. If one of them cannot be written
the batch fails for all, and is repeated for all: what a sink has of it already is its own business, as
whenever a batch is repeated (exactly once by the number, or at least once).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from leatstream.plan.job_spec import JobSpec
from leatstream_jobs.batches.common import Batches, BatchSink, keeping
from leatstream_jobs.reading.scans import Scan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class JointPart:
    """One of the queries.

    Attributes:
        spec: the job as it were if it had this query alone.
        sink: its own.
    """

    spec: JobSpec
    sink: BatchSink


class JointBatches(Batches):
    """Writes each batch to every sink.

    Attributes:
        at_work: the query whose rows were being written.

    Args:
        scan: the source that all of them read.
        parts: the queries, the one that leads first.
    """

    def __init__(self, scan: Scan, parts: Sequence[JointPart]) -> None:
        super().__init__()
        self.at_work = parts[0].spec
        self._view = scan.source.view
        self._parts = parts

    def _run(self, batch: DataFrame, number: int) -> None:
        """Write one batch to every sink."""
        with keeping(batch):
            batch.createOrReplaceTempView(self._view)
            for part in self._parts:
                self.at_work = part.spec
                part.sink.write(part.sink.shape(batch.sparkSession.sql(part.spec.sql)), number)

"""Sinks that take whole micro-batches, one after the other, each once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leatstream_jobs.batches.common import Batches, BatchSink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class WrittenBatches(Batches):
    """Hands each batch to its sink; the SQL is run by Spark as it streams.

    Args:
        sink: of the job.
    """

    adaptive = True

    def __init__(self, sink: BatchSink) -> None:
        super().__init__()
        self._sink = sink

    def _run(self, batch: DataFrame, number: int) -> None:
        self._sink.write(batch, number)

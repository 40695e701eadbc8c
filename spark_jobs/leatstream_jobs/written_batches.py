"""Sinks that take whole micro-batches, one after the other, each once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leatstream_jobs.batches import BatchSink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class WrittenBatches:
    """Takes Spark's micro-batches.

    Attributes:
        error: what a batch failed with; Spark itself only tells that Python code failed.

    Args:
        sink: of the job.
    """

    def __init__(self, sink: BatchSink) -> None:
        self.error: Exception | None = None
        self._sink = sink

    def __call__(self, frame: DataFrame, number: int) -> None:
        """Write one micro-batch."""
        try:
            self._sink.write(frame, number)
        except Exception as error:
            self.error = error
            raise

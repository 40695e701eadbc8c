"""A micro-batch that one task of Spark writes, in one transaction of its store."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from leatstream.connectors.store_marks import find_mark, marked
from leatstream.errors import StoreError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

Batches = Iterator["pa.RecordBatch"]


def write_in_one_task(frame: DataFrame, task: Callable[[Batches], Batches]) -> int:
    """Have the whole frame written by a task that is made with ``counted``; returns when it is there.

    Returns:
        What the task has counted.

    Raises:
        RuntimeError: with a mark of ``store_marks``: what the sink's store says, or one of the sources'.
    """
    from pyspark.sql import functions as F

    try:
        # All of the batch is computed, and its state kept, even where nothing is written: a replay.
        counts = frame.repartition(1).mapInArrow(task, "written bigint").agg(F.sum("written")).collect()
    except Exception as error:
        found = find_mark(str(error))
        if found is None:
            raise
        raise RuntimeError(marked(found[0], StoreError(found[1], found[2]))) from None
    return int(counts[0][0] or 0)


def counted(batches: Batches, write: Callable[[Batches], int]) -> Batches:
    """What a task gives: ``written``, the count that ``write`` tells. Nothing is written of an empty batch.

    Raises:
        RuntimeError: with the mark of the StoreError that ``write`` raised.
    """
    import pyarrow as pa

    full = (batch for batch in batches if batch.num_rows)
    first = next(full, None)
    count = 0
    try:
        if first is not None:
            count = write(itertools.chain([first], full))
    except StoreError as error:
        raise RuntimeError(marked("sink", error)) from None
    yield pa.record_batch({"written": pa.array([count], pa.int64())})

"""A micro-batch that one task of Spark writes, in one transaction of its store."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from leatstream.connectors.store_marks import find_mark, marked
from leatstream.connectors.writers import COUNTS, Written, counts, told
from leatstream.errors import StoreError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

Batches = Iterator["pa.RecordBatch"]


def write_in_one_task(frame: DataFrame, task: Callable[[Batches], Batches]) -> Written:
    """Have the whole frame written by a task that is made with ``counted``; returns when it is there.

    Args:
        frame: the batch; rows of a key stay in their order.
        task: takes it, and gives what it has written.

    Raises:
        RuntimeError: with a mark of ``store_marks``: what the sink's store says, or one of the sources'.
    """
    try:
        # All of the batch is computed, and its state kept, even where nothing is written: a replay.
        return told(frame.repartition(1).mapInArrow(task, COUNTS))
    except Exception as error:
        mark = find_mark(str(error))
        if mark is None:
            raise
        raise RuntimeError(marked(mark[0], StoreError(mark[1], mark[2]))) from None


def counted(batches: Batches, write: Callable[[Batches], Written]) -> Batches:
    """What a task gives: ``Written``, as ``write`` tells it. Nothing is written of an empty batch.

    Raises:
        RuntimeError: with the mark of the StoreError that ``write`` raised.
    """
    full = (batch for batch in batches if batch.num_rows)
    first = next(full, None)
    written = Written()
    try:
        if first is not None:
            written = write(itertools.chain([first], full))
    except StoreError as error:
        raise RuntimeError(marked("sink", error)) from None
    yield counts(written)

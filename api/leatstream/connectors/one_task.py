"""A micro-batch that one task of Spark writes, in one transaction of its store."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING

from leatstream.connectors.arrow_tasks import ArrowTasks, Batches
from leatstream.connectors.store_marks import find_mark, marked
from leatstream.connectors.writers import Written, counts
from leatstream.errors import StoreError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def write_in_one_task(tasks: ArrowTasks, frame: DataFrame, task: Callable[[Batches], Batches]) -> Written:
    """Have the whole frame written by a task that is made with ``counted``; returns when it is there.

    Args:
        tasks: the writer's own.
        frame: the batch; rows of a key stay in their order.
        task: takes it, and gives what it has written.

    Raises:
        RuntimeError: with a mark of ``store_marks``: what the sink's store says, or one of the sources'.
    """
    try:
        return sum((Written(**row) for row in tasks.run(frame, task, one=True)), Written())
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

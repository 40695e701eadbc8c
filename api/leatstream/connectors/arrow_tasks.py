"""Tasks of Spark that take rows in Arrow, as the JVM makes them.

``mapInArrow`` hands rows to Python while it computes them, and ``repartition`` before it moves them one by
one. Here tasks of the JVM make Arrow batches first, as ``toArrow`` does, and these are moved and handed on
whole: half the time for 200,000 rows (bench/tables.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

Batches = Iterator["pa.RecordBatch"]
_SCHEMAS = "org.apache.spark.sql.util.ArrowUtils"
_ZONE = "UTC"  # as the sessions of ``start_session``
_FIRST, _MOST = 64, 10_000  # rows of an Arrow batch
_SIZE = 1 << 20  # bytes of one


class ArrowTasks:
    """Runs the tasks of one writer.

    The JVM makes Arrow batches of a number of rows, whatever their size, and holds each whole. So the number
    follows from the size of the last rows. The first batch has few, as rows may be large.
    """

    def __init__(self) -> None:
        self._rows = _FIRST

    def run(self, frame: DataFrame, task: Callable[[Batches], Batches], *, one: bool = False) -> list[Any]:
        """Run the tasks; returns when all have ended.

        Args:
            frame: computed by its own tasks.
            task: takes the rows of a partition, and gives a few.
            one: whether a single task takes all partitions; each one's rows stay in their order.

        Returns:
            The rows that the tasks gave, as dictionaries.

        Raises:
            PySparkException: what a task raised, as text.
        """
        from pyspark import RDD
        from pyspark.serializers import NoOpSerializer

        java, context = frame._jdf, frame.sparkSession.sparkContext
        jvm: Any = context._jvm
        schema = getattr(jvm, _SCHEMAS).toArrowSchema(java.schema(), _ZONE, True, False)
        made = java.toArrowBatchRdd(self._rows, _ZONE, True, False).toJavaRDD()
        if one:
            # One partition too: the task begins when all is computed, and state is kept whatever it reads.
            made = made.repartition(1)
        batches: Any = RDD(made, context, NoOpSerializer())
        work = functools.partial(_run, bytes(schema.serializeAsMessage()), task)
        found = batches.mapPartitions(work).collect()
        rows, size = (sum(counts[i] for counts, _ in found) for i in range(2))
        if size:
            self._rows = max(1, min(_MOST, _SIZE * rows // size))
        return [row for _, given in found for row in given]


def _run(schema: bytes, task: Callable[[Batches], Batches], messages: Iterable[bytes]) -> Iterator[Any]:
    """In a worker: how many rows and bytes there were, and what the task gave."""
    import pyarrow as pa

    known = pa.ipc.read_schema(pa.py_buffer(schema))
    rows = size = 0

    def read() -> Batches:
        nonlocal rows, size
        for message in messages:
            batch = pa.ipc.read_record_batch(pa.py_buffer(message), known)
            rows, size = rows + batch.num_rows, size + len(message)
            yield batch

    given = [row for batch in task(read()) for row in batch.to_pylist()]
    yield (rows, size), given

"""Whether a checkpoint is as new as what its sink holds.

An older one, restored from a backup, would give new batches numbers that the sink has seen. The sink would
take them for replays, and their new records would be lost silently.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from leatstream.errors import JobError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from leatstream.plan.job_spec import JobSpec


def keeps_up(spark: SparkSession, spec: JobSpec, committed: int | None) -> None:
    """See that every batch the sink holds is known to the checkpoint: Spark notes one before it writes it.

    Args:
        spark: for the file system of the checkpoint.
        spec: the job.
        committed: number of the last batch in the sink; None for none of this checkpoint.

    Raises:
        JobError: checkpoint-damaged.
    """
    if committed is None:
        return
    known = _last_batch(spark, spec.checkpoint)
    if known is None or known < committed:
        at = "nothing" if known is None else f"batch {known}"
        raise JobError(
            "checkpoint-damaged",
            f"The checkpoint {spec.checkpoint} knows of {at}, but the sink holds batch {committed} of "
            "this query: the checkpoint was deleted, or restored from a backup that is older than the sink.",
        )


def _last_batch(spark: SparkSession, checkpoint: str) -> int | None:
    context: Any = spark.sparkContext
    jvm = context._jvm
    path = getattr(jvm, "org.apache.hadoop.fs.Path")(f"{checkpoint.rstrip('/')}/offsets")
    files = path.getFileSystem(context._jsc.hadoopConfiguration())
    if not files.exists(path):
        return None
    names = [str(one.getPath().getName()) for one in files.listStatus(path)]
    return max((int(name) for name in names if name.isdigit()), default=None)

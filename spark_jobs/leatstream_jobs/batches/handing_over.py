"""A version of a query takes over from another at one place of their sources (docs/adr/0019).

Until then it is silent: it reads, keeps state and writes nothing. The last silent batch is planned here, in
Spark's own log of what it is about to do: Spark runs again what is planned there and not committed, and takes
its end from there. So however often that batch is tried, it ends where the version before has ended.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from leatstream.connectors.writers import Written
from leatstream.errors import JobError
from leatstream.plan.hand_over import HandOver, Reached, matched, positions_in
from leatstream.plan.job_spec import JobSpec
from leatstream_jobs.batches.common import BatchSink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_VERSION = "v1"
_US = 1000  # microseconds of a millisecond
_OFFSET_LOG = "org.apache.spark.sql.execution.streaming.checkpointing.OffsetSeqLog"


class BatchLog:
    """What Spark has planned and committed of one query, by the files of its checkpoint.

    Args:
        spark: whose file systems are used.
        checkpoint: URI.
    """

    def __init__(self, spark: SparkSession, checkpoint: str) -> None:
        self._spark, self._root = spark, checkpoint.rstrip("/")
        self._jvm: Any = spark._jvm

    def last(self, folder: str) -> int | None:
        """Number of the newest batch in ``offsets`` or ``commits``."""
        path, files = self._path(folder)
        if not files.exists(path):
            return None
        names = [str(one.getPath().getName()) for one in files.listStatus(path)]
        return max((int(name) for name in names if name.isdigit()), default=None)

    def read(self, folder: str, batch: int) -> str:
        """What is written of a batch."""
        path, files = self._path(f"{folder}/{batch}")
        stream = files.open(path)
        try:
            return str(getattr(self._jvm, "org.apache.commons.io.IOUtils").toString(stream, "UTF-8"))
        finally:
            stream.close()

    def plan(self, batch: int, text: str) -> None:
        """Plan a batch, in place of whatever was planned from that number on."""
        made = getattr(self._jvm, _OFFSET_LOG)(self._spark._jsparkSession, f"{self._root}/offsets", True)
        made.purgeAfter(batch - 1)
        stream = getattr(self._jvm, "java.io.ByteArrayInputStream")(bytearray(text.encode()))
        if not made.add(batch, made.deserialize(stream)):
            raise JobError("job-failed", f"Batch {batch} of {self._root} was planned by another driver.")

    def _path(self, name: str) -> tuple[Any, Any]:
        path = getattr(self._jvm, "org.apache.hadoop.fs.Path")(f"{self._root}/{name}")
        return path, path.getFileSystem(self._spark._jsparkSession.sessionState().newHadoopConf())


def writes_all(spark: SparkSession, spec: JobSpec) -> bool:
    """Whether every batch of this attempt is written; the one at which it takes over is planned if need be.

    Raises:
        JobError: checkpoint-damaged, where the checkpoint is not that of the hand-over.
    """
    if spec.silent:
        return False
    if spec.hand_over is None:
        return True
    log = BatchLog(spark, spec.checkpoint)
    committed, batch = log.last("commits"), spec.hand_over.batch
    if committed is not None and committed >= batch:
        return True
    if committed != batch - 1:
        raise JobError(
            "checkpoint-damaged",
            f"The checkpoint {spec.checkpoint} has batches up to {committed}, and the query was to take over "
            f"with batch {batch}: it was deleted, or restored from a backup.",
        )
    before, commit = log.read("offsets", committed), log.read("commits", committed)
    wanted = planned_entry(before, commit, spec.hand_over, round(time.time() * 1000))
    if log.last("offsets") != batch or not same_plan(log.read("offsets", batch), wanted):
        log.plan(batch, wanted)
    return False


def planned_entry(before: str, commit: str, hand_over: HandOver, now_ms: int) -> str:
    """The offset log's entry of the batch at which a query takes over.

    Args:
        before: the entry of the batch before it.
        commit: that one's entry of the log of commits.
        hand_over: where it takes over.
        now_ms: the time, milliseconds from the epoch.

    Raises:
        JobError: checkpoint-damaged, where the job reads other topics than the version before it.
    """
    version, head, *lines = before.splitlines()
    metadata = json.loads(head)
    positions = [positions_in(line) for line in lines]
    ends = matched([one for one in positions if one is not None], hand_over.offsets)
    if version != _VERSION or ends is None:
        raise JobError(
            "checkpoint-damaged", "The query's log of offsets does not fit where it is to take over."
        )
    metadata["batchWatermarkMs"] = max(_next_watermark(head, commit), (hand_over.watermark_us or 0) // _US)
    metadata["batchTimestampMs"] = now_ms
    left = iter(ends)
    positioned = [
        line if at is None else _json(next(left)) for line, at in zip(lines, positions, strict=True)
    ]
    return "\n".join([version, _json(metadata), *positioned])


def same_plan(one: str, other: str) -> bool:
    """Whether two entries plan the same batch, whenever they were written."""
    return _without_time(one) == _without_time(other)


def reached(
    spark: SparkSession, spec: JobSpec, pattern_us: int | None, begun: int | None, *, in_order: bool
) -> dict[str, Any] | None:
    """How far a job has come that has ended (``Reached``); None for not a batch yet.

    Args:
        spark: for the file system of the checkpoint.
        spec: the job.
        pattern_us: the watermark of a row pattern, which Spark does not know.
        begun: the newest batch that was worked at in Python.
        in_order: whether it was let end.
    """
    log = BatchLog(spark, spec.checkpoint)
    last = log.last("commits")
    if last is None:
        return None
    _, head, *lines = log.read("offsets", last).splitlines()
    used: int | None = json.loads(head)["batchWatermarkMs"] * _US
    coming: int | None = _next_watermark(head, log.read("commits", last)) * _US
    if not spec.has_watermark:
        used = coming = None
    elif spec.is_batch_job:
        used = coming = pattern_us
    found = Reached(
        checkpoint=spec.checkpoint_name,
        batch=last,
        offsets=[one for one in map(positions_in, lines) if one is not None],
        watermark_us=used,
        next_watermark_us=coming,
        whole=in_order and (begun is None or begun <= last),
    )
    return found.model_dump(mode="json")


def hushed(spec: JobSpec, sink: BatchSink) -> BatchSink:
    """The sink; batches that are not to be written are processed without writing."""
    last = None if spec.silent or spec.hand_over is None else spec.hand_over.batch
    if last is None and not spec.silent:
        return sink

    def put(frame: DataFrame, number: int) -> Written | None:
        if last is not None and number > last:
            return sink.put(frame, number)
        frame.write.format("noop").mode("overwrite").save()
        return Written()

    return BatchSink(sink.shape, put)


def _next_watermark(head: str, commit: str) -> int:
    found = json.loads(commit.splitlines()[1]).get("nextBatchWatermarkMs", 0)
    return max(int(json.loads(head)["batchWatermarkMs"]), int(found))


def _without_time(entry: str) -> tuple[object, ...]:
    version, head, *lines = entry.splitlines()
    return version, {**json.loads(head), "batchTimestampMs": 0}, [positions_in(one) or one for one in lines]


def _json(document: object) -> str:
    return json.dumps(document, separators=(",", ":"))

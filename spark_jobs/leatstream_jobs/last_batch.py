"""Lets a query end between two batches: Spark's own ``stop`` cuts off the one at work.

What a batch that was cut off had written comes again after the next start: Kafka's sink cannot take it back.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_EVENTS_MS = 2000


def let_end(spark: SparkSession, query: StreamingQuery) -> None:
    """Have the query end after the batch at work; ``works`` tells when it has, ``stop`` still cuts it off.

    This is the half of ``StreamExecution.stop`` that does not interrupt: the query's thread looks at its
    state before every batch. It looks once more between a batch's plan and its first job, and interrupts
    itself there, which leaves behind a job that writes; so no job may begin any more where none is at work.
    """
    context: Any = spark.sparkContext._jsc.sc()
    if not _has_jobs(spark, str(query.runId)):
        context.cancelJobGroupAndFutureJobs(str(query.runId))
    state = _execution(query).state()
    ended = f"{_package(state.get())}.TERMINATED$"
    loader = _execution(query).getClass().getClassLoader()
    state.set(loader.loadClass(ended).getField("MODULE$").get(None))


def _has_jobs(spark: SparkSession, group: str) -> bool:
    """Whether jobs of this query are at work; in a shared driver there are those of others too."""
    if _told_at_work(spark, group):
        return True
    # A job that has just begun is known when the events on their way have arrived.
    context: Any = spark.sparkContext._jsc.sc()
    with contextlib.suppress(Exception):  # a busy driver may never be quiet
        context.listenerBus().waitUntilEmpty(_EVENTS_MS)
    return _told_at_work(spark, group)


def _told_at_work(spark: SparkSession, group: str) -> bool:
    tracker = spark.sparkContext.statusTracker()
    found = (tracker.getJobInfo(number) for number in tracker.getJobIdsForGroup(group))
    return any(job is not None and job.status == "RUNNING" for job in found)


def works(query: StreamingQuery) -> bool:
    """Whether the thread of the query is still there."""
    return bool(_execution(query).queryExecutionThread().isAlive())


def _execution(query: StreamingQuery) -> Any:
    java: Any = query._jsq
    return java.streamingQuery()


def _package(thing: Any) -> str:
    name: str = thing.getClass().getName()
    return name.rpartition(".")[0]

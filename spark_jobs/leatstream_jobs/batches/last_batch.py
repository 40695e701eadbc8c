"""Lets a query end between two batches: Spark's own ``stop`` cuts off the one at work.

What a batch that was cut off had written comes again after the next start: Kafka's sink cannot take it back.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from leatstream_jobs.batches.common import Batches

_TRIES = 20


def let_end(spark: SparkSession, query: StreamingQuery, batches: Batches | None = None) -> None:
    """Have the query end after the batch at work; ``works`` says when it has, ``stop`` still cuts it off.

    Args:
        spark: the query's session.
        query: that runs.
        batches: of a query whose batches are processed in Python, which may be between two jobs of a batch.

    This is the half of ``StreamExecution.stop`` that does not interrupt: the query's thread looks at its
    state before every batch. It looks once more between a batch's plan and its first job, and interrupts
    itself there, which leaves behind a job that writes; so no job may begin any more where none is at work.
    """
    execution, state = _execution(query), _execution(query).state()
    begun = _batches_at_work(spark, query, batches)
    if not begun:
        _let_no_job_begin(spark, query)
    ended = f"{_package(state.get())}.TERMINATED$"
    loader = execution.getClass().getClassLoader()
    state.set(loader.loadClass(ended).getField("MODULE$").get(None))
    now = str(execution.getLatestExecutionContext().batchId())
    if begun and now not in begun and now not in _batches_at_work(spark, query, batches):
        # That batch was over before the state was read, and the next one had begun.
        _let_no_job_begin(spark, query)


def stop(spark: SparkSession, query: StreamingQuery) -> None:
    """Stop a query now, cutting off what is at work; nothing of it writes any more."""
    query.stop()
    # Spark leaves the jobs alone where the query's thread has ended before, as one that interrupts itself.
    if _with_jobs(spark, query):
        _let_no_job_begin(spark, query)


def _let_no_job_begin(spark: SparkSession, query: StreamingQuery) -> None:
    context: Any = spark.sparkContext._jsc.sc()
    context.cancelJobGroupAndFutureJobs(str(query.runId))


def _batches_at_work(spark: SparkSession, query: StreamingQuery, batches: Batches | None) -> set[str]:
    """Numbers of the query's batches that are processed in Python, or with a job."""
    number = batches.number if batches is not None else None
    return _with_jobs(spark, query) | (set() if number is None else {str(number)})


def _with_jobs(spark: SparkSession, query: StreamingQuery) -> set[str]:
    """By the scheduler's own books.

    The status tracker hears of a job's begin and end later, by as much as a second on a busy machine.
    """
    for _ in range(_TRIES):
        with contextlib.suppress(Exception):  # they may change while they are read
            return _read_books(spark, str(query.runId))
    return _read_books(spark, str(query.runId))


def _read_books(spark: SparkSession, group: str) -> set[str]:
    context: Any = spark.sparkContext._jsc.sc()
    jobs, found = context.dagScheduler().activeJobs().iterator(), set()
    while jobs.hasNext():
        properties = jobs.next().properties()
        if properties is not None and properties.getProperty("spark.jobGroup.id") == group:
            found.add(str(properties.getProperty("streaming.sql.batchId")))
    return found


def works(query: StreamingQuery) -> bool:
    """Whether the thread of the query is still there."""
    return bool(_execution(query).queryExecutionThread().isAlive())


def _execution(query: StreamingQuery) -> Any:
    java: Any = query._jsq
    return java.streamingQuery()


def _package(thing: Any) -> str:
    name: str = thing.getClass().getName()
    return name.rpartition(".")[0]

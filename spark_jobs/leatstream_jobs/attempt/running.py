"""When a query counts as running: from then on no record that arrives is missed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from leatstream.plan.job_spec import Mode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from leatstream_jobs.attempt.progress import Progress

_LOOK = 0.02  # seconds; a look costs about a millisecond


class Waited(Exception):
    """What was waited for did not come in time."""


def is_running(spark: SparkSession, query: StreamingQuery, mode: Mode, progress: Progress) -> bool:
    """Whether the starting offsets are fixed and the query works.

    Micro-batch: the first batch, possibly of no records, is committed. Real-time: that is not before
    ``realtime_batch_ms``; there the sign is that all tasks are at work, as they start with fixed offsets.
    """
    progress.look(query)
    if progress.latest is not None:
        return True
    return mode is Mode.REALTIME and _tasks_at_work(spark, query)


def wait_for(condition: Callable[[], bool], timeout: float) -> None:
    """Look again and again until the condition holds.

    Raises:
        Waited: it did not hold within ``timeout`` seconds.
    """
    end = time.monotonic() + timeout
    while not condition():
        if time.monotonic() >= end:
            raise Waited(f"nothing happened within {timeout:g} s")
        time.sleep(_LOOK)


def _tasks_at_work(spark: SparkSession, query: StreamingQuery) -> bool:
    tracker = spark.sparkContext.statusTracker()
    for job in tracker.getJobIdsForGroup(str(query.runId)):
        info = tracker.getJobInfo(job)
        for stage in info.stageIds if info else ():
            found = tracker.getStageInfo(stage)
            if found and 0 < found.numTasks <= found.numActiveTasks + found.numCompletedTasks:
                return True
    return False

"""One query after another in a JVM: nothing of the first is left when the second begins."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark import InheritableThread

from leatstream_jobs.runtime import session
from leatstream_jobs.runtime.session import free_of_queries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(autouse=True)
def _alone(spark: SparkSession, eventually: Callable[..., Any]) -> None:
    """Tests before may have cut off a task in Kafka's client, which goes on for as much as a minute."""
    eventually(lambda: free_of_queries(spark), 90)


def test_state_is_closed_and_opened_again(spark: SparkSession, tmp_path: Path) -> None:
    jvm: Any = spark.sparkContext._jvm
    stores = getattr(getattr(jvm, "org.apache.spark.sql.execution.streaming.state.StateStore$"), "MODULE$")
    source = tmp_path / "in"
    source.mkdir()
    told: list[set[str]] = []

    def run(number: int, *names: str) -> None:
        (source / f"{number}.txt").write_text("\n".join(names))
        rows = spark.newSession().readStream.text(str(source)).dropDuplicates(["value"])
        kept = rows.writeStream.foreachBatch(lambda frame, _: told.append({r.value for r in frame.collect()}))
        query = kept.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start()
        query.awaitTermination(60)
        assert query.exception() is None

    run(0, "a", "b")
    assert stores.isMaintenanceRunning()
    assert free_of_queries(spark)
    assert not stores.isMaintenanceRunning()
    run(1, "b", "c")
    assert told == [{"a", "b"}, {"c"}]
    assert stores.isMaintenanceRunning()


def test_a_task_that_is_still_at_work_keeps_a_driver_from_another_query(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, eventually: Callable[..., Any]
) -> None:
    monkeypatch.setattr(session, "_TASKS_END", 0.1)
    begun, over = tmp_path / "begun", tmp_path / "over"

    def work(_rows: Any) -> None:
        begun.touch()
        while not over.exists():
            time.sleep(0.02)

    job = InheritableThread(target=lambda: spark.range(1).foreachPartition(work))
    job.start()
    eventually(begun.exists)
    try:
        assert not free_of_queries(spark)
    finally:
        over.touch()
        job.join()
    assert free_of_queries(spark)

"""Silent sources: a tick closes windows, is no row, and is there again after a restart; a driver makes them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from small_api import Pool
from statement_cases import FileStore, job_of

from leatstream_jobs.attempt import run_query
from leatstream_jobs.reading.idle import tick_folder, write_tick

pytestmark = pytest.mark.spark
COLUMNS = "k VARCHAR, n BIGINT, at TIMESTAMP"
SQL = (
    "CREATE STREAM c AS SELECT k, sum(n) AS n FROM TUMBLE(s, SIZE 1 MINUTE) WHERE n > 0"
    " GROUP BY window_start, window_end, k"
)
MIDNIGHT = 1_767_225_600_000  # 2026-01-01, milliseconds


def row(k: str, n: int, at: str) -> dict[str, Any]:
    return {"k": k, "n": n, "at": f"2026-01-01 {at}"}


def test_a_tick_tells_the_time(spark: SparkSession, job: Callable[..., Any], tmp_path: Path) -> None:
    spec = job_of(spark, {"sql": SQL, "columns": COLUMNS}, job, ("s", "out"))
    sources = [source.model_copy(update={"idle_timeout_ms": 1000}) for source in spec.sources]
    conf = {"spark.sql.shuffle.partitions": "1"}
    spec = spec.model_copy(update={"sources": sources, "conf": conf})
    store: Any = FileStore(tmp_path / "records")
    folder = tick_folder(spec.checkpoint, "leat_src_0")
    store.put(0, [row("a", 1, "00:00:05"), row("a", 2, "00:00:59"), row("b", 4, "00:01:09")])

    def written() -> list[list[Any]]:
        return sorted(list(value.values()) for pairs in store.written.values() for _, value in pairs)

    query = run_query.start(spark, spec, lambda _: store, 2).query
    try:
        query.processAllAvailable()
        assert written() == []
        # The delay of 10 s counts for ticks too.
        write_tick(spark, folder, MIDNIGHT + 69_999)
        query.processAllAvailable()
        assert written() == []
        write_tick(spark, folder, MIDNIGHT + 70_000)
        query.processAllAvailable()
        assert written() == [["a", 3]]
    finally:
        query.stop()
    query = run_query.start(spark, spec, lambda _: store, 2).query
    try:
        store.put(1, [row("a", 100, "00:00:30"), row("b", 8, "00:01:20")])
        query.processAllAvailable()
        write_tick(spark, folder, MIDNIGHT + 200_000)
        query.processAllAvailable()
        assert written() == [["a", 3], ["b", 12]]
        states = [s for r in query.recentProgress for s in json.loads(r.json)["stateOperators"]]
        assert sum(s["numRowsDroppedByWatermark"] for s in states) == 1
    finally:
        query.stop()


def test_a_tick_ends_sessions(spark: SparkSession, job: Callable[..., Any], tmp_path: Path) -> None:
    """Not those that a late row may still join, nor one that two late rows have made of two."""
    sql = SQL.replace("TUMBLE(s, SIZE 1 MINUTE)", "SESSION(s, GAP 1 MINUTE)")
    spec = job_of(spark, {"sql": sql, "columns": COLUMNS}, job, ("s", "out"))
    sources = [source.model_copy(update={"idle_timeout_ms": 1000}) for source in spec.sources]
    conf = {"spark.sql.shuffle.partitions": "1"}
    spec = spec.model_copy(update={"sources": sources, "conf": conf})
    store: Any = FileStore(tmp_path / "records")
    folder = tick_folder(spec.checkpoint, "leat_src_0")
    store.put(0, [row("a", 1, "00:00:00"), row("a", 2, "00:01:05"), row("b", 4, "00:00:01")])
    written = []
    query = run_query.start(spark, spec, lambda _: store, 2).query
    try:
        for number, (tick, records) in enumerate(
            [
                (65_000, [row("a", 8, "00:00:30")]),
                (71_000, [row("b", 16, "00:00:01")]),
                (134_999, []),
                (135_000, []),
            ]
        ):
            query.processAllAvailable()
            write_tick(spark, folder, MIDNIGHT + tick)
            query.processAllAvailable()
            written.append(sorted(list(v.values()) for pairs in store.written.values() for _, v in pairs))
            if records:
                store.put(number + 1, records)
        states = [s for r in query.recentProgress for s in json.loads(r.json)["stateOperators"]]
        assert sum(s["numRowsDroppedByWatermark"] for s in states) == 1
    finally:
        query.stop()
    assert written == [[], [["b", 4]], [["b", 4]], [["a", 11], ["b", 4]]]


def test_a_driver_closes_the_windows_of_a_silent_source(
    pool: Pool, spark: SparkSession, job: Any, topic: Callable[..., str], produce: Any, rows: Any
) -> None:
    source, sink = topic(1), topic(1)
    spec = job_of(spark, {"sql": SQL, "columns": COLUMNS}, job, (source, sink))
    document = spec.model_dump(mode="json")
    document["sources"][0]["idle_timeout_ms"] = 500
    driver = pool.take()
    produce(source, row("a", 1, "00:00:05"), row("a", 2, "00:00:59"), row("b", 4, "00:01:10"))
    driver.run(document)
    assert sorted(tuple(r.values()) for r in rows(sink, 2)) == [("a", 3), ("b", 4)]
    # A tick is no record of the user's.
    assert driver.wait_progress(lambda p: p["state_rows"] == 0)["input_rows_total"] == 3

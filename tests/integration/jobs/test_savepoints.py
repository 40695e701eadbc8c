"""A new query takes up a copied checkpoint on real Spark: it reads on where the other was, and counts go on.

That statements may differ, and which, is shown by test_changes.py, which copies checkpoints too.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attempts import Host, attempt, written
from pyspark.sql import SparkSession
from statement_cases import FileStore, job_of

from leatstream.dev.java import find_java, java_environment
from leatstream.services.queries.checkpoints.files import copy_offsets, offsets_of
from leatstream.storage.checkpoint_directory import CheckpointDirectory
from leatstream.storage.checkpoint_url import CheckpointUrl
from leatstream.storage.hadoop_client import HadoopClient
from leatstream_jobs.attempt import run_query

pytestmark = [pytest.mark.spark, pytest.mark.core]
SQL = "SELECT id, __leat_rowkey, __leat_rowtime FROM leat_src_0"


def test_offsets_alone_while_the_other_goes_on(
    spark: SparkSession,
    job: Any,
    topic: Callable[..., str],
    produce: Any,
    rows: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Host, "heartbeat_seconds", 0.1)
    source, blue, green = topic(1), topic(1), topic(1)
    scan = {"entity": source, "columns": "id BIGINT"}
    produce(source, *({"id": n} for n in range(5)))
    first = job([scan], blue, SQL, "id BIGINT", checkpoint=(tmp_path / "blue").as_uri())
    attempt(spark, first, written(5))
    files = CheckpointDirectory(tmp_path)
    assert offsets_of(files, "blue", ["r"]) == {"r": {source: {"0": 5}}}
    copy_offsets(files, "blue", "green")
    produce(source, *({"id": n} for n in range(5, 8)))
    # The source is the one that the offsets are of.
    second = job([scan], green, SQL, "id BIGINT", checkpoint=(tmp_path / "green").as_uri())
    assert attempt(spark, second, written(3))["state"] == "stopped"
    assert [r["id"] for r in rows(green, 3)] == [5, 6, 7]
    assert attempt(spark, first | {"attempt": 2}, written(3))["state"] == "stopped"
    assert [r["id"] for r in rows(blue, 8)] == list(range(8))


def test_state_goes_on_in_a_copy(spark: SparkSession, job: Callable[..., Any], tmp_path: Path) -> None:
    case = {
        "sql": "CREATE CHANGELOG c AS SELECT k, sum(n) AS n FROM s GROUP BY k",
        "columns": "k VARCHAR, n BIGINT",
    }
    spec = job_of(spark, {**case, "timestamp": None}, job, ("s", "out"))
    spec = spec.model_copy(update={"conf": {"spark.sql.shuffle.partitions": "1"}})
    store: Any = FileStore(tmp_path / "records")
    store.put(0, [{"k": "a", "n": 1}, {"k": "b", "n": 5}])

    def run(place: Path) -> list[Any]:
        store.written.clear()
        copied = spec.model_copy(update={"checkpoint": place.as_uri(), "query_id": place.name})
        query = run_query.start(spark, copied, lambda _: store, 2).query
        try:
            query.processAllAvailable()
        finally:
            query.stop()
        return [value for pairs in store.written.values() for _, value in pairs]

    assert sorted(v["n"] for v in run(tmp_path / "first")) == [1, 5]
    java = find_java()
    assert java is not None
    files = CheckpointUrl(tmp_path.as_uri(), HadoopClient(java_environment(java), {}))
    files.copy("first", "savepoint")
    store.put(1, [{"k": "a", "n": 2}])
    assert [v["n"] for v in run(tmp_path / "first")] == [3]
    shutil.rmtree(tmp_path / "first")
    CheckpointDirectory(tmp_path).copy("savepoint", "second")
    files.close()
    assert [v["n"] for v in run(tmp_path / "second")] == [3]


def test_a_job_completes_and_goes_on_with_what_is_new(
    spark: SparkSession, job: Any, topic: Callable[..., str], produce: Any, rows: Any, tmp_path: Path
) -> None:
    source, sink = topic(1), topic(1)
    sums = "SELECT id, count(*) AS c, CAST(CAST(id AS STRING) AS BINARY) AS __leat_rowkey, max(__leat_rowtime) AS __leat_rowtime"
    scan = {"entity": source, "columns": "id BIGINT"}
    place = (tmp_path / "once").as_uri()
    spec = job([scan], sink, f"{sums} FROM leat_src_0 GROUP BY id", "id BIGINT, c BIGINT", checkpoint=place)
    spec |= {"available_now": True, "max_offsets_per_trigger": 2, "output_mode": "update"}
    produce(source, *({"id": n} for n in (1, 2, 1)))
    told = attempt(spark, spec)
    assert (told["state"], told.get("error"), told["progress"]["input_rows_total"]) == ("completed", None, 3)
    assert told["progress"]["batch_id"] >= 1, "the bound of a batch holds"
    produce(source, {"id": 1})
    assert attempt(spark, spec | {"attempt": 2})["state"] == "completed"
    assert rows(sink, 4)[-1] == {"id": 1, "c": 3}
    assert (tmp_path / "once" / "leat_sources.json").exists()

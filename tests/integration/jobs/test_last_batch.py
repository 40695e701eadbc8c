"""A query that is stopped ends between two batches: at least once is once, then."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from attempts import Host, attempt
from pyspark.sql import SparkSession

from leatstream_jobs.attempt import attempt as attempts
from leatstream_jobs.runtime.session import free_of_queries

pytestmark = pytest.mark.spark
# Each row takes 20 ms, so that a batch is at work at nearly any moment.
SLOWLY = (
    "SELECT id, __leat_rowkey, __leat_rowtime FROM leat_src_0 "
    "WHERE java_method('java.util.concurrent.locks.LockSupport', 'parkNanos', {nanos}L) = 'x' OR id >= 0"
)


@pytest.fixture(autouse=True)
def _quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Host, "heartbeat_seconds", 0.05)


def numbers_in(folder: Path) -> list[int]:
    return sorted(int(path.name) for path in folder.iterdir() if path.name.isdigit())


def test_nothing_is_repeated(
    spark: SparkSession, job: Any, topic: Callable[..., str], produce: Any, rows: Any, tmp_path: Path
) -> None:
    source, sink = topic(1), topic(1)
    produce(source, *({"id": n} for n in range(120)))
    scan = {"entity": source, "columns": "id BIGINT"}
    commits = tmp_path / "g1" / "commits"
    sql = SLOWLY.format(nanos=20_000_000)
    spec = job([scan], sink, sql, "id BIGINT", checkpoint=commits.parent.as_uri(), max_offsets_per_trigger=10)
    spec["trigger_interval_ms"] = 1

    def some(beat: Mapping[str, Any]) -> bool:
        return ((beat.get("progress") or {}).get("output_rows_total") or 0) >= 20

    for number in range(1, 4):
        assert attempt(spark, spec | {"attempt": number}, some)["state"] == "stopped"
    assert numbers_in(commits)[-1] < 11, "it was stopped on the way"
    last = attempt(spark, spec | {"attempt": 4}, lambda _: numbers_in(commits)[-1] >= 11)
    assert last["state"] == "stopped"
    assert [row["id"] for row in rows(sink, 120)] == list(range(120))


def test_a_batch_that_lasts_too_long_is_cut_off(
    spark: SparkSession,
    job: Any,
    topic: Callable[..., str],
    produce: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    eventually: Callable[..., Any],
) -> None:
    monkeypatch.setattr(attempts, "LAST_BATCH", 0.2)
    source, sink = topic(1), topic(1)
    produce(source, *({"id": n} for n in range(20)))
    scan, sql = {"entity": source, "columns": "id BIGINT"}, SLOWLY.format(nanos=3_000_000_000)
    spec = job([scan], sink, sql, "id BIGINT", checkpoint=(tmp_path / "g1").as_uri())
    offsets = tmp_path / "g1" / "offsets"
    told = attempt(spark, spec, lambda _: offsets.exists() and bool(numbers_in(offsets)))
    assert told["state"] == "stopped"
    assert numbers_in(tmp_path / "g1" / "commits") == []
    # Its topic must be there until then: Kafka's client looks for one that is gone for a minute, cut off or not.
    eventually(lambda: free_of_queries(spark))

"""A version of a query takes over from another on real Spark: together they give everything, and nothing twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attempts import Host, attempt
from pyspark.sql import SparkSession
from statement_cases import job_of

from leatstream.plan.hand_over import Reached, covers
from leatstream.plan.job_spec import JobSpec
from leatstream_jobs.batches.common import BatchSink
from leatstream_jobs.batches.handing_over import writes_all
from leatstream_jobs.writing import batch_sink

pytestmark = [pytest.mark.spark, pytest.mark.timeout(400)]
SECONDS = 180.0  # that an attempt may take
WINDOWS = "SELECT unix_timestamp(window_start) % 3600 AS s, {} FROM TUMBLE(s, SIZE 10 SECONDS) GROUP BY window_start, window_end"
RISES = """SELECT * FROM s MATCH_RECOGNIZE (PARTITION BY k ORDER BY rowtime MEASURES {}
  PATTERN (x y) DEFINE x AS n % 10 = 0, y AS n % 10 = 1)"""
# No row has a partner, which is known when event time has passed it.
ALONE = "SELECT a.n AS f, {} FROM s a LEFT JOIN s b WITHIN 2 SECONDS ON a.n + 5 = b.n WHERE a.n % 10 = 0"
# Versions whose state differs, and the first second of each result, by a result of each.
CASES = {
    "windows": (WINDOWS, "count(*) AS c", "sum(n) AS t, count(*) AS c", lambda row: row["s"]),
    "rows": (ALONE, "b.n AS bn", "b.m AS bm, a.k AS k", lambda row: row["f"]),
    "matches": (RISES, "FIRST(n) AS f", "LAST(n) - 1 AS f, LAST(m) AS m", lambda row: row["f"]),
}

NEW = {"windows": {"t", "c"}, "matches": {"m"}, "rows": {"bm"}}


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Host, "heartbeat_seconds", 0.1)


def at(second: int) -> dict[str, Any]:
    time = f"2026-01-01 00:{second // 60:02}:{second % 60:02}"
    return {"k": "a", "n": second, "m": 1, "at": time}


def past(second: int) -> Callable[[Any], bool]:
    """Whether results are given up to this second of event time."""
    told = at(second)["at"].replace(" ", "T")
    return lambda beat: ((beat.get("progress") or {}).get("watermark") or "") >= told


@pytest.mark.parametrize(
    ("name", "crash"),
    [
        ("windows", "worked"),
        pytest.param("matches", "planned", marks=pytest.mark.long),
        pytest.param("rows", "planned", marks=pytest.mark.long),
    ],
)
def test_it_writes_what_the_version_before_has_not(
    spark: SparkSession,
    job: Any,
    topic: Callable[..., str],
    produce: Any,
    rows: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    crash: str,
) -> None:
    source, sink = topic(1), topic(1)
    text, old, new, second_of = CASES[name]

    def version(what: str, place: str) -> dict[str, Any]:
        sql = f"CREATE STREAM c AS {text.format(what)}"
        case = {"sql": sql, "columns": "k VARCHAR, n BIGINT, m BIGINT, at TIMESTAMP", "delay_ms": 0}
        spec = job_of(spark, case, job, (source, sink))
        return spec.model_dump(mode="json") | {"checkpoint": (tmp_path / place / "g1").as_uri()}

    blue, green = version(old, "blue"), version(new, "green")
    produce(source, *map(at, range(25)))
    silent = attempt(spark, green | {"silent": True}, past(24), SECONDS)
    produce(source, *map(at, range(25, 37)))
    ended = attempt(spark, blue, past(36), SECONDS)
    before, after = Reached.model_validate(ended["reached"]), Reached.model_validate(silent["reached"])
    assert covers(before, after)
    reads = 2 if name == "rows" else 1
    assert (before.offsets, after.offsets) == ([{source: {"0": 37}}] * reads, [{source: {"0": 25}}] * reads)
    given = 3 if name == "windows" else 4
    assert sorted(map(second_of, rows(sink, given))) == [10 * i for i in range(given)]
    produce(source, *map(at, range(37, 65)))
    told = {"checkpoint": "g1", "batch": after.batch + 1, "offsets": before.offsets}
    told["watermark_us"] = before.watermark_us
    loud = green | {"hand_over": told, "attempt": 2}
    writes_all(spark, JobSpec.model_validate(loud))
    if crash == "worked":
        _fail_once(monkeypatch, spark, loud, after.batch + 1)
    last = attempt(spark, loud | {"attempt": 4}, past(64), SECONDS)
    assert (last["state"], last.get("error")) == ("stopped", None)
    count = 6 if name == "windows" else 7
    found = sorted(rows(sink, count), key=second_of)
    assert [second_of(row) for row in found] == [10 * i for i in range(count)], "all of them, and each once"
    assert [set(row) - {"s", "f", "k"} for row in found[-2:]] == [NEW[name]] * 2
    if name == "windows":
        assert [row["c"] for row in found] == [10] * count
        assert found[3] == {"s": 30, "t": sum(range(30, 40)), "c": 10}, "a window that was open is complete"
        # From then on it is a job as any other, with the sink that it would have anyway.
        produce(source, *map(at, range(65, 75)))
        attempt(spark, loud | {"attempt": 5}, past(74), SECONDS)
        assert second_of(rows(sink, count + 1)[-1]) == 10 * count


def _fail_once(
    monkeypatch: pytest.MonkeyPatch, spark: SparkSession, loud: dict[str, Any], batch: int
) -> None:
    """An attempt dies when the batch at which it takes over has been worked off and is not committed yet."""
    hushed = batch_sink.hushed

    def failing(spec: JobSpec, sink: BatchSink) -> BatchSink:
        made = hushed(spec, sink)

        def put(frame: Any, number: int) -> int | None:
            made.put(frame, number)
            assert number == batch
            raise RuntimeError("killed")

        return BatchSink(made.shape, put)

    with monkeypatch.context() as patch:
        patch.setattr(batch_sink, "hushed", failing)
        assert attempt(spark, loud | {"attempt": 3}, seconds=SECONDS)["state"] == "failed"

"""Aggregates as real Spark computes them, batch by batch, against written-down results.

A case of tests/fixtures/queries tells a statement over the stream ``s``, the records of each batch, and what
each batch writes, in any order: pairs of record key (text, or 0x… where it is none) and value. ``dropped`` is
how many late rows Spark tells, those of one group in one batch as one; with ``restart`` the job is stopped and started between the batches.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from short_form import one_in
from statement_cases import NOW, Pairs, job_of, ordered, shown_key

from leatstream.connectors.kafka.connector import KafkaConnector
from leatstream_jobs.attempt import run_query

pytestmark = pytest.mark.spark
FOLDER = Path(__file__).parents[2] / "fixtures" / "queries"
CASES = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))}


class Run:
    """A compiled statement over one topic, run batch by batch."""

    def __init__(
        self, spark: SparkSession, kafka: KafkaConnector, job: Callable[..., Any], case: dict[str, Any]
    ) -> None:
        self.spark, self.kafka, self.source, self.sink = spark, kafka, case["source"], case["sink"]
        self.spec = job_of(spark, case, job, (self.source, self.sink))
        self.seen = 0
        self.dropped = 0
        self.query: Any = None

    def batch(self) -> Pairs:
        """Work off what the topic has; gives what that wrote."""
        if self.query is None:
            self.query = run_query.start(self.spark, self.spec, lambda _: self.kafka, 2).query
        self.query.processAllAvailable()
        found = self.kafka.read_records(self.sink, from_beginning=True, limit=None, idle_timeout=0.5)
        records = [r for r in found if r is not None][self.seen :]
        self.seen += len(records)
        return [(shown_key(r.key), json.loads(r.value) if r.value is not None else None) for r in records]

    def stop(self) -> None:
        """End the job; its checkpoint stays."""
        if self.query is not None:
            for report in self.query.recentProgress:
                states = json.loads(report.json)["stateOperators"]
                self.dropped += sum(s["numRowsDroppedByWatermark"] for s in states)
            self.query.stop()
            self.query = None


@pytest.fixture
def start(
    spark: SparkSession, kafka: KafkaConnector, job: Callable[..., Any], topic: Callable[..., str]
) -> Iterator[Callable[..., Run]]:
    runs: list[Run] = []

    def begin(**case: Any) -> Run:
        topics = {"source": topic(1), "sink": topic(1)}
        runs.append(Run(spark, kafka, job, {"timestamp": "at", "delay_ms": 10_000, **case, **topics}))
        return runs[-1]

    yield begin
    for run in runs:
        run.stop()


@pytest.mark.parametrize("name", one_in(2, CASES))
def test_case(name: str, start: Callable[..., Run], produce: Callable[..., None]) -> None:
    case = CASES[name]
    run = start(**{k: case[k] for k in ("sql", "columns", "timestamp", "delay_ms")})
    for number, (records, expected) in enumerate(zip(case["batches"], case["expected"], strict=True)):
        produce(run.source, *records)
        assert ordered(run.batch()) == ordered(expected), f"batch {number}"
        if case.get("restart"):
            run.stop()
    run.stop()
    assert run.dropped == case["dropped"]


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_random_rows_in_any_order(seed: int, start: Callable[..., Run], produce: Callable[..., None]) -> None:
    chance = random.Random(seed)
    run = start(
        sql="CREATE CHANGELOG c AS SELECT window_start, k, count(*) AS c, sum(n) AS total, min(n) AS low,"
        " avg(n) AS mean FROM HOP(s, SIZE 20 MINUTES, ADVANCE BY 5 MINUTES) GROUP BY window_start, window_end, k",
        columns="k VARCHAR, n BIGINT, at TIMESTAMP",
        delay_ms=86_400_000,
    )
    groups: dict[tuple[str, str], list[int]] = {}
    kept: dict[str | None, Any] = {}
    for _ in range(3):
        rows = []
        for _ in range(200):
            k, n, minute = chance.choice("abc"), chance.randint(-9, 9), chance.randint(0, 180)
            at = NOW + timedelta(minutes=minute, milliseconds=chance.randint(0, 59_999))
            rows.append({"k": k, "n": n, "at": at.strftime("%Y-%m-%d %H:%M:%S.%f")})
            first = NOW + timedelta(minutes=minute // 5 * 5)
            for back in range(4):
                begin = (first - timedelta(minutes=5 * back)).strftime("%Y-%m-%d %H:%M:%S")
                groups.setdefault((begin, k), []).append(n)
        produce(run.source, *rows)
        kept |= dict(run.batch())
    wanted = {
        (begin, k): {"c": len(v), "total": sum(v), "low": min(v), "mean": sum(v) / len(v)}
        for (begin, k), v in groups.items()
    }
    found = {(v.pop("window_start"), v.pop("k")): v for v in kept.values()}
    assert found == wanted

"""Bytes in and out of queries between topics, against what lies in them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attempts import Host, attempt
from pyspark.sql import SparkSession

from leatstream_jobs.attempt import run_query, traffic

pytestmark = pytest.mark.spark
SQL = "SELECT id, text, __leat_rowkey, __leat_rowtime FROM leat_src_0"
COLUMNS = "id BIGINT, text STRING"
FRAMING = 100  # bytes of a record at most beside its key and value, its part of the batch's included


@pytest.mark.parametrize("way", ["by Spark", "by batches", "exactly once"])
def test_bytes_are_those_of_the_records_and_count_from_the_attempt_on(
    spark: SparkSession,
    job: Any,
    topic: Callable[..., str],
    produce: Any,
    kafka: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    way: str,
) -> None:
    exact = way == "exactly once"
    delivery = "exactly_once" if exact else "at_least_once"
    if way == "by batches":
        for module in (traffic, run_query):
            monkeypatch.setattr(module, "by_batches", lambda _: True)
    monkeypatch.setattr(Host, "heartbeat_seconds", 0.1)
    monkeypatch.setattr(traffic, "EVERY", 0.1)
    source, sink = topic(2), topic(1)
    scan = {"entity": source, "columns": COLUMNS}
    spec = job([scan], sink, SQL, COLUMNS, checkpoint=(tmp_path / "c").as_uri(), delivery=delivery)
    done = 0
    for number, count in ((1, 40), (2, 10)):
        produce(source, *({"id": n, "text": "x" * 1000} for n in range(done, done + count)))

        def enough(beat: Any, count: int = count) -> bool:
            return bool((beat.get("progress") or {}).get("input_rows_total") == count)

        told = attempt(spark, spec | {"attempt": number}, enough)["progress"]
        least = _size(kafka, source, done, count)
        assert least <= told["input_bytes_total"] <= least + count * FRAMING, told
        assert told["output_rows_total"] == count
        least = _size(kafka, sink, done, count)
        most = least if exact else least + count * FRAMING
        assert least <= told["output_bytes_total"] <= most, told
        done += count
    if exact:
        kafka.forget_batches(spec["query_id"], 10.0)


def _size(kafka: Any, topic: str, first: int, count: int) -> int:
    """Bytes of the keys and values of so many records, from the one with this id on."""
    records = list(kafka.read_records(topic, from_beginning=True, limit=None, idle_timeout=0.5))
    chosen = [one for one in records if one and first <= json.loads(one.value)["id"] < first + count]
    assert len(chosen) == count
    return sum(len(one.key or b"") + len(one.value) for one in chosen)

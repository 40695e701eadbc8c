"""Deletions without an event time of their own, among rows whose times a column tells: random records, a model."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from leatstream_jobs.changelogs.snapshot_rows import IS, newest, replaced, union, versions

pytestmark = pytest.mark.spark
SCHEMA = "c0 STRING, c1 BIGINT, __leat_rowtime TIMESTAMP, __leat_rowmeta STRUCT<offset: BIGINT>, __leat_deleted BOOLEAN"
NULL_KEY = None
Record = tuple[str | None, int, int, bool]  # key, place in the topic, seconds, whether it is a deletion


def _records(chance: random.Random, first: int) -> list[Record]:
    """Rows around one time; deletions' records long before it, about then, and long after it."""
    return [
        (
            chance.choice(["a", "b", "c", NULL_KEY]),
            place,
            (chance.choice([0, 500, 9000]) if gone else 500) + chance.randint(-20, 20),
            gone,
        )
        for place in range(first, first + 30)
        for gone in (chance.random() < 0.4,)
    ]


def _frame(spark: SparkSession, records: list[Record]) -> DataFrame:
    rows = [(key, n, datetime.fromtimestamp(at, UTC), (n,), gone) for key, n, at, gone in records]
    return spark.createDataFrame(rows, SCHEMA)  # type: ignore[type-var]


def _of(records: list[Record], key: str | None) -> list[Record]:
    return [record for record in records if record[0] == key]


def _last(records: list[Record]) -> tuple[int, bool] | None:
    """The place of what counts last, and whether it is a deletion: one record after the other."""
    now: tuple[int, bool] | None = None
    time: float = float("-inf")
    for _, place, at, gone in records:
        if gone or at >= time:
            now, time = (place, gone), time if gone else at
    return now


def _found_at(records: list[Record], at: int) -> int | None:
    """The place of the row that held at a time."""
    dated, since = list[tuple[int, int, bool]](), list[int]()
    for i, (_, place, time, gone) in enumerate(records):
        if gone:
            bounds = list(since)
            for _, _, later, other in records[i + 1 :]:
                if not other and later >= max(bounds, default=0):
                    time = min(time, later)
                    break
            time = max([time, *since])
        else:
            since.append(time)
        dated.append((time, place, gone))
    held = max((one for one in dated if one[0] <= at), default=None)
    return None if held is None or held[2] else held[1]


@pytest.mark.parametrize("seed", [1, 2])
def test_deletions_take_the_place_they_have_in_the_topic(seed: int, spark: SparkSession) -> None:
    chance, known, seen = random.Random(seed), None, list[Record]()
    for batch in range(3):
        records = _records(chance, 30 * batch)
        seen += records
        changed = replaced(_frame(spark, records), known, ["c0"], undated=True).select(f"{IS}.*")
        known = (changed if known is None else union([known, changed])).localCheckpoint()
        found = {row["c0"]: (row["c1"], row["__leat_deleted"]) for row in newest(known, ["c0"]).collect()}
        wanted = {key: _last(_of(seen, key)) for key in ("a", "b", "c", NULL_KEY)}
        assert found == {key: last for key, last in wanted.items() if last is not None}, f"batch {batch}"


@pytest.mark.parametrize("seed", [3, 4])
def test_deletions_count_between_the_rows_around_them(seed: int, spark: SparkSession) -> None:
    """Also where the first of them were put into one file, with their times, before the others came."""
    records = _records(random.Random(seed), 0)
    times = [*range(470, 530), 0, 9000, 9100]
    merged = versions(_frame(spark, records[:15]), ["c0"], undated=True).drop("__leat_until")
    whole = merged.unionByName(_frame(spark, records[15:]))
    rows = versions(whole, ["c0"], undated=True).collect()
    for key in ("a", "b", "c", NULL_KEY):
        held: dict[int, Any] = dict.fromkeys(times)
        for row in rows:
            since, until = row["__leat_rowtime"].timestamp(), row["__leat_until"]
            for at in times:
                if row["c0"] == key and since <= at and (until is None or at < until.timestamp()):
                    held[at] = None if row["__leat_deleted"] else row["c1"]
        assert held == {at: _found_at(_of(records, key), at) for at in times}

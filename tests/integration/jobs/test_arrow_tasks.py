"""Tasks that take rows in Arrow, in a real Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from leatstream.connectors.arrow_tasks import ArrowTasks

COLUMNS = {
    "flag": "id % 2 = 0",
    "tiny": "CAST(id AS TINYINT)",
    "price": "CAST(id AS DECIMAL(20, 3))",
    "name": "IF(id % 3 = 0, NULL, concat('näme ', id))",
    "bytes": "CAST(concat('x', id) AS BINARY)",
    "day": "DATE'2026-01-01' + CAST(id AS INT)",
    "local": "TIMESTAMP_NTZ'2026-01-01 00:00:00.123456'",
    "at": "TIMESTAMP'2026-01-01 00:00:00.123456'",
    "list": "array(id, NULL)",
    "pairs": "map('a', id)",
    "nested": "named_struct('a', id, 'b', array(named_struct('c', concat('', id))))",
}


def shown(batches: Iterator[Any]) -> Iterator[Any]:
    """Each batch: its rows as text, and how many there were."""
    import pyarrow as pa

    for batch in batches:
        rows = json.dumps(batch.to_pylist(), default=str)
        yield pa.record_batch({"rows": pa.array([rows]), "count": pa.array([batch.num_rows])})


def sizes(batches: Iterator[Any]) -> Iterator[Any]:
    import pyarrow as pa

    yield pa.record_batch({"sizes": pa.array([[batch.num_rows for batch in batches]])})


def failing(batches: Iterator[Any]) -> Iterator[Any]:
    raise RuntimeError("LEAT the store is closed LEAT")
    yield from batches


@pytest.mark.core
def test_rows_are_those_of_mapinarrow(spark: SparkSession) -> None:
    frame = spark.range(5).selectExpr(*(f"{made} AS `{name}`" for name, made in COLUMNS.items()))
    expected = frame.coalesce(1).mapInArrow(shown, "rows STRING, `count` BIGINT").collect()
    found = ArrowTasks().run(frame.coalesce(1), shown)
    assert [row["rows"] for row in found] == [row["rows"] for row in expected]
    assert json.loads(found[0]["rows"])[1]["name"] == "näme 1"


def test_one_task_takes_all_partitions_and_keeps_the_order_of_each(spark: SparkSession) -> None:
    frame = spark.range(0, 3_000, 1, 3).selectExpr("spark_partition_id() AS part", "id")
    found = ArrowTasks().run(frame, shown, one=True)
    rows = [row for batch in found for row in json.loads(batch["rows"])]
    assert sorted(row["id"] for row in rows) == list(range(3_000))
    for part in range(3):
        mine = [row["id"] for row in rows if row["part"] == part]
        assert mine == sorted(mine)


def test_without_it_each_partition_has_a_task(spark: SparkSession) -> None:
    found = ArrowTasks().run(spark.range(0, 30, 1, 3).toDF("id"), sizes)
    assert [row["sizes"] for row in found] == [[10], [10], [10]]


@pytest.mark.parametrize(("width", "most"), [(10, 10_000), (20_000, 60)])
def test_batches_are_small_until_the_size_of_rows_is_known(
    spark: SparkSession, width: int, most: int
) -> None:
    """Large rows make batches of about a megabyte, however many they are."""
    tasks = ArrowTasks()
    frame = spark.range(0, 1_000, 1, 1).selectExpr(f"repeat('x', {width}) AS text")
    (first,) = tasks.run(frame, sizes)
    (second,) = tasks.run(frame, sizes)
    assert max(first["sizes"]) <= 64
    assert sum(first["sizes"]) == sum(second["sizes"]) == 1_000
    assert 40 <= max(second["sizes"]) <= min(most, 1_000)


def test_the_one_task_begins_when_all_is_computed(spark: SparkSession) -> None:
    """So a transaction is open while rows are written only, and state is kept where a replay reads none."""
    counter = spark.sparkContext.accumulator(0)

    def count(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            counter.add(batch.num_rows)
            yield batch

    def fails_at_once(_: Iterator[Any]) -> Iterator[Any]:
        raise RuntimeError("LEAT no rows are wanted LEAT")
        yield

    frame = spark.range(0, 1_000, 1, 1).toDF("id").mapInArrow(count, "id BIGINT")
    with pytest.raises(Exception, match="LEAT no rows are wanted LEAT"):
        ArrowTasks().run(frame, fails_at_once, one=True)
    assert counter.value == 1_000


@pytest.mark.parametrize("one", [True, False])
def test_an_empty_frame_gives_nothing(spark: SparkSession, one: bool) -> None:
    assert ArrowTasks().run(spark.range(0).toDF("id"), shown, one=one) == []


@pytest.mark.parametrize("one", [True, False])
def test_what_a_task_raises_is_in_the_error(spark: SparkSession, one: bool) -> None:
    with pytest.raises(Exception, match="LEAT the store is closed LEAT"):
        ArrowTasks().run(spark.range(3).toDF("id"), failing, one=one)


def test_what_the_rows_raise_is_in_the_error(spark: SparkSession) -> None:
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        ArrowTasks().run(spark.range(3).selectExpr("1 / id AS x"), shown, one=True)


def test_workers_talk_over_sockets_of_the_work_directory(spark: SparkSession) -> None:
    assert spark.conf.get("spark.python.unix.domain.socket.enabled") == "true"
    assert len(spark.conf.get("spark.python.unix.domain.socket.dir") or "") < 107 - len("/.uuid.sock") - 36

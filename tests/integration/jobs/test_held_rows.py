"""Which rows the driver holds: few, and none that is wide."""

from __future__ import annotations

from decimal import Decimal

import pytest
from pyspark.sql import SparkSession

from leatstream_jobs.changelogs import snapshot_rows
from leatstream_jobs.changelogs.snapshot_rows import held

SCHEMA = (
    "s STRING, y BINARY, n DECIMAL(9, 2), a ARRAY<STRING>, m MAP<STRING, STRING>, "
    "meta STRUCT<offset: BIGINT, key: STRING, more: STRUCT<b: BINARY>>"
)
ROW = (
    "é",
    bytearray(b"\\x00\\xff"),
    Decimal("1.50"),
    ["a", None],
    {"k": None},
    (7, None, (bytearray(b"x"),)),
)
NULLS = (None,) * 6
WIDE = {
    "text": ("x" * 5_000, *NULLS[1:]),
    "bytes": (None, bytearray(5_000), *NULLS[2:]),
    "elements": (*NULLS[:3], ["x" * 50] * 100, None, None),
    "map": (*NULLS[:4], {"k" * 2_500: "v" * 2_500}, None),
    "nested": (*NULLS[:5], (1, "x", (bytearray(5_000),))),
    "together": ("é" * 1_500, bytearray(1_500), *NULLS[2:]),
}


def test_rows_come_as_they_are(spark: SparkSession) -> None:
    frames = [spark.createDataFrame([ROW, NULLS], SCHEMA), spark.createDataFrame([ROW], SCHEMA)]
    made = held(*frames)
    assert made is not None
    assert made.schema == frames[0].schema
    assert [tuple(row) for row in made.collect()] == [
        tuple(row) for row in frames[0].union(frames[1]).collect()
    ]
    assert "LocalTableScan" in made._jdf.queryExecution().executedPlan().toString()


@pytest.mark.parametrize("row", WIDE.values(), ids=WIDE)
def test_a_wide_row_is_not_held(spark: SparkSession, row: tuple[object, ...]) -> None:
    assert held(spark.createDataFrame([ROW], SCHEMA), spark.createDataFrame([ROW, row], SCHEMA)) is None


def test_many_rows_are_not_held(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_rows, "HELD", 3)
    three = spark.range(3)
    assert held(three) is not None
    assert held(three, spark.range(1)) is None


def test_every_value_stays_as_it_is(spark: SparkSession) -> None:
    """Also what Spark's rows for people would change: the order of maps, days before the calendar's reform."""
    frame = spark.sql(
        "SELECT map('z', 1, 'y', 2, 'x', 3, 'w', 4, 'v', 5, 'u', 6) AS m, DATE '1582-10-10' AS d, "
        "TIMESTAMP '0001-01-01 00:00:00.000001' AS t, TIMESTAMP_NTZ '1582-10-10 00:00:00' AS n, "
        "CAST('-0.0' AS DOUBLE) AS z, CAST('NaN' AS FLOAT) AS f, array(CAST(NULL AS INT), 1) AS a"
    )
    made = held(frame)
    assert made is not None
    shown = ("map_keys(m)", "CAST(d AS STRING)", "unix_micros(t)", "CAST(n AS STRING)", "z", "f", "a")
    assert repr(made.selectExpr(*shown).collect()) == repr(frame.selectExpr(*shown).collect())


def test_frames_go_by_their_columns(spark: SparkSession) -> None:
    made = held(spark.sql("SELECT 1 AS a, 2 AS b"), spark.sql("SELECT 4 AS b, 3 AS a"))
    assert made is not None
    assert [tuple(row) for row in made.collect()] == [(1, 2), (3, 4)]


def test_held_rows_are_joined_with_what_they_come_from(spark: SparkSession) -> None:
    frame = spark.range(4).selectExpr("id", "id % 2 AS half")
    made = held(frame)
    assert made is not None
    both = made.join(frame.where("half = 1"), "id", "left_semi").join(made.toDF("id", "again"), "id")
    assert sorted(tuple(row) for row in both.collect()) == [(1, 1, 1), (3, 1, 1)]

"""Which rows the driver holds: few, and none that is wide."""

from __future__ import annotations

from decimal import Decimal

import pytest
from pyspark.sql import SparkSession

from leatstream_jobs import snapshot_rows
from leatstream_jobs.snapshot_rows import held

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

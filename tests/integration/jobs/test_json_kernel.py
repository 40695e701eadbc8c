"""The kernel beside the expressions in a real Spark: the same rows, the same undecodable records."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from value_cases import CASES, RECORDS

from leatstream.model.objects import ROWKEY, ROWMETA, ROWTIME
from leatstream.plan.job_spec import ColumnSpec, SourceSpec, StoreRef
from leatstream_jobs.attempt.failures import chain_of
from leatstream_jobs.reading import scans
from leatstream_jobs.reading.json_kernel import kernel_of

KINDS = (
    *("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "DOUBLE", "VARCHAR", "DECIMAL(10, 2)"),
    *("DECIMAL(38, 2)", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ"),
)
STORE = StoreRef(name="s", kind="kafka", config={})


def source(columns: Sequence[tuple[str, str]], **more: Any) -> SourceSpec:
    specs = [
        ColumnSpec(name=n, type=t.removesuffix(" NOT NULL"), not_null=t.endswith(" NOT NULL"))
        for n, t in columns
    ]
    return SourceSpec(
        view="v", relation="r", store=STORE, entity="t", columns=specs, value_format="json", **more
    )


def raw(spark: SparkSession, records: Sequence[bytes | None], key: Column | None = None) -> DataFrame:
    rows = [(n, bytearray(v) if v is not None else None) for n, v in enumerate(records)]
    place = F.struct(F.lit("t").alias("topic"), F.lit(0).alias("partition"), F.col("n").alias("offset"))
    return spark.createDataFrame(rows, "n BIGINT, value BINARY").select(
        (F.lit(b"k") if key is None else key).alias("key"),
        "value",
        F.timestamp_millis(F.col("n")).alias("timestamp"),
        place.alias(ROWMETA),
    )


def read(records: DataFrame, spec: SourceSpec, *, by_kernel: bool) -> dict[int, Any]:
    """Rows by the offset of their record; undecodable ones are left out."""
    kernel = kernel_of(spec, "SELECT *") if by_kernel else None
    assert kernel is not None or not by_kernel
    frame = scans.decoded(records, spec, "leat_skipped_v", kernel=kernel)
    named = frame.toDF(*(f"c{i}" for i in range(len(spec.columns))), *frame.columns[len(spec.columns) :])
    assert frame.columns == [*(c.name for c in spec.columns), ROWTIME, ROWKEY, ROWMETA]
    # As texts: NaN equals itself then, -0.0 is not 0.0, and Python has not all of Spark's years.
    texts = [F.col(name).cast("string").alias(name) for name in named.columns if name != ROWMETA]
    return {row[ROWMETA].offset: row for row in named.select(*texts, ROWMETA).collect()}


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_the_kernel_reads_what_the_expressions_read(spark: SparkSession, seed: int) -> None:
    chance = random.Random(seed)
    kinds = chance.sample(KINDS, 4)
    if seed == 3:
        kinds[:2] = ["BIGINT NOT NULL", "VARCHAR NOT NULL"]
    columns = list(zip("abcd", kinds, strict=True))
    own = [[c.text for c in CASES if c.type == kind.removesuffix(" NOT NULL")] for kind in kinds]
    every = [case.text for case in CASES]
    records: list[bytes | None] = [None, *(case.record for case in RECORDS)]
    for number in range(500):
        names = chance.sample("abcdx", chance.randint(1, 5))
        texts = [
            chance.choice(every if name == "x" or chance.random() < 0.1 else own["abcd".index(name)])
            for name in names
        ]
        members = [f'"{name}":{text}' for name, text in zip(names, texts, strict=True)]
        if number % 10 == 0:
            members.append(members[0])
        records.append(("{" + ", ".join(members) + "}").encode())
    frame = raw(spark, records)
    spec = source(columns, on_error="ignore")
    expected, found = (read(frame, spec, by_kernel=by_kernel) for by_kernel in (False, True))
    assert found == expected
    assert 10 < len(expected) < len(records)


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        ("BIGINT", ["1700000000000", "253402300800000", "null", '"5"', "9" * 30]),
        ("VARCHAR", ['"2026-01-05 12:30:00"', '"soon"', "null", '"2026-01-05T12:30:00.5Z"']),
        ("TIMESTAMP_LTZ", ['"2026-01-05T12:30:00Z"', '"2026-01-05"', "null"]),
        ("DATE", ['"2026-01-05"', "null"]),
    ],
)
def test_event_time_is_the_same(spark: SparkSession, kind: str, texts: list[str]) -> None:
    frame = raw(spark, [f'{{"at":{text},"i":{i}}}'.encode() for i, text in enumerate(texts)])
    spec = source([("at", kind), ("i", "BIGINT")], timestamp="at", on_error="ignore")
    expected, found = (read(frame, spec, by_kernel=by_kernel) for by_kernel in (False, True))
    assert found == expected
    assert 0 in expected


@pytest.mark.parametrize("position", [True, False])
def test_state_of_before_can_be_read_on(spark: SparkSession, position: bool) -> None:
    """The rows have the same types, and the same columns may be NULL."""
    frame = raw(spark, [b'{"a":1}'], F.col("value") if position else None)
    columns = [*(("abcdefghijklm"[i], kind) for i, kind in enumerate(KINDS)), ("n", "BIGINT NOT NULL")]
    spec = source(columns)
    names = [*(f"`{name}`" for name, _ in columns), *([ROWMETA] if position else [])]
    kernel = kernel_of(spec, f"SELECT {', '.join(names)} FROM v")
    assert kernel is not None
    assert kernel.position is position
    wide, narrow = (scans.decoded(frame, spec, None, kernel=one).schema for one in (None, kernel))
    assert narrow.fieldNames() == wide.fieldNames()
    place = wide[ROWMETA].dataType
    assert wide[ROWMETA].nullable is narrow[ROWMETA].nullable is False
    assert [f.name for f in place.fields] == [f.name for f in narrow[ROWMETA].dataType.fields]  # type: ignore[attr-defined]
    for one in wide.fieldNames():
        if one != ROWMETA:
            assert narrow[one] == wide[one]


def test_what_ends_the_query_is_the_same(spark: SparkSession) -> None:
    frame = raw(spark, [b'{"i":1}', b'{"i":"1"}', b'{"i":2}'])
    spec = source([("i", "BIGINT"), ("v", "VARCHAR")])
    told = []
    for kernel in (None, kernel_of(spec, "SELECT `i` FROM v")):
        frame_read = scans.decoded(frame, spec, None, kernel=kernel).select("i")
        with pytest.raises(Exception, match=scans.UNDECODABLE) as caught:
            frame_read.collect()
        java = getattr(caught.value, "_origin", None)
        links = [link.message for link in chain_of(java)] if java is not None else [str(caught.value)]
        marks = [text[text.index(scans.UNDECODABLE) :] for text in links if scans.UNDECODABLE in text]
        told.append(marks[-1].split(f"{scans.UNDECODABLE}_END")[0])
    assert told[0] == told[1]
    assert '"offset":1' in told[0]

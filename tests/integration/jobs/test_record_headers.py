"""A column that is the headers of records, as Spark really makes and reads it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from leatstream.connectors.entities import NewRecord
from leatstream.connectors.kafka.connector import KafkaConnector
from leatstream.plan.job_spec import ColumnSpec, SinkSpec, SourceSpec, StoreRef
from leatstream_jobs.reading import scans
from leatstream_jobs.writing import sink_rows

pytestmark = pytest.mark.spark
STORE = StoreRef(name="k", kind="kafka", config={"bootstrap_servers": "localhost:1"})
RAW = "key BINARY, value BINARY, `__leat_rowheaders` MAP<STRING, BINARY>"


def columns(kind: str, *, not_null: bool = False) -> list[ColumnSpec]:
    """The headers stand between the others: places of columns are those of the declaration."""
    return [
        ColumnSpec(name="id", type="BIGINT"),
        ColumnSpec(name="h", type=f"MAP<VARCHAR, {kind}>", not_null=not_null),
        ColumnSpec(name="v", type="VARCHAR"),
    ]


def source(of: list[ColumnSpec], **more: Any) -> SourceSpec:
    return SourceSpec(
        view="leat_src_0",
        relation="demo.public.s",
        store=STORE,
        entity="t",
        columns=of,
        value_format="json",
        headers_column="h",
        on_error="ignore",
        log_entity="log",
        **more,
    )


def raw(
    spark: SparkSession, *records: tuple[bytes | None, bytes | None, dict[str, bytes | None] | None]
) -> DataFrame:
    position = F.struct(F.lit("t").alias("topic"), F.lit(0).alias("partition"), F.lit(7).alias("offset"))
    time = F.lit("2020-01-01 00:00:00").cast("timestamp").alias("timestamp")
    given = [
        (*map(_array, record[:2]), record[2] and {k: _array(v) for k, v in record[2].items()})
        for record in records
    ]
    return spark.createDataFrame(given, RAW).select("*", time, position.alias("__leat_rowmeta"))


def _array(value: bytes | None) -> bytearray | None:
    return None if value is None else bytearray(value)


def read(frame: DataFrame, spec: SourceSpec, metric: str) -> tuple[list[tuple[Any, ...]], list[str]]:
    """The rows, and what is told of the records that are none."""
    rows = scans.decoded(frame, spec, metric)
    scan = scans.Scan(spec, None, None, frame, rows)  # type: ignore[arg-type]
    told = [bytes(record.value).decode() for record in scans.undecodable(scan).collect()]
    return [(r.id, r.h, r.v) for r in rows.select("id", "h", "v").collect()], told


def test_headers_of_bytes_and_of_texts(spark: SparkSession) -> None:
    """Bytes are taken as they are; what is no text makes a record undecodable only where texts are declared."""
    value = b'{"id":1,"v":"x","h":{"of":"the value"}}'
    records = raw(
        spark,
        (None, value, {"a": b"\xff", "b": None}),
        (None, value, None),
        (None, value, {"a": "ü".encode()}),
    )
    rows, told = read(records, source(columns("BYTES")), "bytes")
    assert rows == [
        (1, {"a": bytearray(b"\xff"), "b": None}, "x"),
        (1, None, "x"),
        (1, {"a": bytearray("ü".encode())}, "x"),
    ]
    assert told == []
    both = scans.decoded(records, source(columns("BYTES"), headers=True), "both")
    assert all(r.h == r["__leat_rowheaders"] for r in both.collect())
    rows, told = read(records, source(columns("VARCHAR", not_null=True)), "texts")
    assert rows == [(1, {}, "x"), (1, {"a": "ü"}, "x")]
    (one,) = told
    assert '"reason":"a header, read as h, is no text in UTF-8"' in one


def test_rows_are_written_with_headers_and_read_again(spark: SparkSession) -> None:
    """As bytes and as texts; a row that is taken back has none, neither written nor read."""
    for kind, value in (("BYTES", "binary"), ("VARCHAR", "string")):
        sink = SinkSpec(
            relation="demo.public.out",
            store=STORE,
            entity="out",
            columns=columns(kind),
            value_format="json",
            key_format="primitive",
            key_columns=["id"],
            key_only=["id"],
            headers_column="h",
            deletes=True,
        )
        made = spark.sql(
            f"SELECT * FROM VALUES (7L, map('a', CAST('ü' AS {value}), 'b', NULL), 'x', false),"
            f" (8L, CAST(NULL AS MAP<STRING, {value}>), 'y', false),"
            f" (9L, map('a', CAST('z' AS {value})), 'z', true) AS t(id, h, v, `__leat_deleted`)"
        ).select("*", F.lit(b"k").alias("__leat_rowkey"), F.current_timestamp().alias("__leat_rowtime"))
        shaped = sink_rows.shaped(made, sink).collect()
        assert [r.value and bytes(r.value) for r in shaped] == [b'{"v":"x"}', b'{"v":"y"}', None]
        given = [r.headers and [(h.key, h.value and bytes(h.value)) for h in r.headers] for r in shaped]
        assert given == [[("a", "ü".encode()), ("b", None)], None, None]
        # Somebody else's tombstone may have headers; the row that it takes back has nothing but its key.
        back = [
            (bytes(r.key), r.value and bytes(r.value), dict(h or [("c", b"\xff")]))
            for r, h in zip(shaped, given, strict=True)
        ]
        spec = source(columns(kind), key_format="primitive", primary_key=["id"], key_only=["id"])
        frame = scans.decoded(raw(spark, back[0], (*back[1][:2], None), back[2]), spec, f"back_{value}")
        text = "ü" if kind == "VARCHAR" else bytearray("ü".encode())
        assert [(r.id, r.h, r.v, r["__leat_deleted"]) for r in frame.collect()] == [
            (7, {"a": text, "b": None}, "x", False),
            (8, None, "y", False),
            (9, None, None, True),
        ]


def test_a_logs_records_have_no_headers(spark: SparkSession) -> None:
    records = raw(spark, (b"k", b"no json", {"a": b"1"}), (b"k", b'{"id":1}', {"a": b"2"}))
    spec = source(columns("BYTES"))
    rows = scans.decoded(records, spec, "logged")
    scan = scans.Scan(spec, None, None, records, rows)  # type: ignore[arg-type]
    sink = SinkSpec(
        relation="demo.public.out",
        store=STORE,
        entity="out",
        columns=columns("BYTES"),
        value_format="json",
        headers_column="h",
    )
    frame = sink_rows.with_logs(
        sink_rows.shaped(rows.select("id", "h", "v", "__leat_rowkey", "__leat_rowtime"), sink), "out", [scan]
    )
    found = {r.topic: r.headers for r in frame.collect()}
    assert found == {"out": [("a", bytearray(b"2"))], "log": None}


def test_headers_of_a_changelog_whose_keys_are_like_its_values(spark: SparkSession) -> None:
    """One decoder reads keys and values of such a changelog."""
    key, value = b'{"id":1}', b'{"id":1,"v":"x"}'
    records = raw(spark, (key, value, {"a": b"1"}), (key, None, {"a": b"2"}))
    rows = scans.decoded(records, source(columns("BYTES"), key_format="json", primary_key=["id"]), "alike")
    assert [(r.id, r.h, r.v, r["__leat_deleted"]) for r in rows.collect()] == [
        (1, {"a": bytearray(b"1")}, "x", False),
        (1, None, None, True),
    ]


def test_a_batch_is_written_with_headers(
    spark: SparkSession, kafka: KafkaConnector, topic: Callable[..., str]
) -> None:
    """As operators over kept rows and jobs of several queries write, and as INSERT VALUES does."""
    name = topic(1)
    sink = SinkSpec(
        relation="demo.public.out",
        store=STORE,
        entity=name,
        columns=columns("BYTES"),
        value_format="json",
        headers_column="h",
    )
    made = spark.sql("SELECT 1L AS id, map('a', X'ff', 'b', NULL) AS h, 'x' AS v").select(
        "*", F.lit(b"k").alias("__leat_rowkey"), F.current_timestamp().alias("__leat_rowtime")
    )
    kafka.write_batch(sink_rows.shaped(made, sink), sink)
    twice = (("a", b"1"), ("a", b"2"))
    kafka.write_records(name, [NewRecord(b"k", b"{}", twice), NewRecord(b"k", b"{}")])
    found = kafka.read_records(name, from_beginning=True, limit=3, idle_timeout=10.0)
    assert [record.headers for record in found if record is not None] == [
        (("a", b"\xff"), ("b", None)),
        twice,
        (),
    ]

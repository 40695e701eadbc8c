"""Every pair of key and value formats as Spark really writes and reads it, whole records and garbage."""

from __future__ import annotations

import gzip
import json
import uuid
from functools import reduce
from itertools import product
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from leatstream.formats import registered_schema
from leatstream.model.objects import Column as ModelColumn
from leatstream.model.types import parse_type
from leatstream.plan.job_spec import ColumnSpec, JobSpec, RegistryRef, SinkSpec, SourceSpec, StoreRef
from leatstream_jobs.attempt.marked_faults import find_marked
from leatstream_jobs.reading import scans
from leatstream_jobs.writing import sink_rows
from leatstream_jobs.writing.described_sink import RecordForm, registry_of

FORMATS = ("json", "avro", "protobuf", "primitive")
COLUMNS = [ColumnSpec(name="id", type="BIGINT", not_null=True), ColumnSpec(name="v", type="VARCHAR")]
GARBAGE = {"key": b"\x01", "value": b"\xff\xfe"}


@pytest.fixture(scope="module")
def store(schema_registry: str) -> StoreRef:
    reference = RegistryRef(name="sr", kind="confluent", uris=schema_registry)
    return StoreRef(name="s", kind="kafka", config={"bootstrap_servers": "localhost:1"}, registry=reference)


def schema(form: str, column: ColumnSpec, entity: str) -> str | None:
    if form not in ("avro", "protobuf"):
        return None
    made = [ModelColumn(column.name, parse_type(column.type), column.not_null)]
    return registered_schema.schema_text(form, made, f"demo.public.{entity}_{column.name}", None)


def sink_of(store: StoreRef, key: str, value: str) -> SinkSpec:
    entity = f"t{uuid.uuid4().hex[:8]}"
    return SinkSpec(
        relation="demo.public.out",
        store=store,
        entity=entity,
        columns=COLUMNS,
        value_format=value,
        key_format=key,
        key_columns=["id"],
        key_only=["id"],
        value_schema=schema(value, COLUMNS[1], entity),
        key_schema=schema(key, COLUMNS[0], entity),
        deletes=True,
    )


def source_of(store: StoreRef, key: str, value: str) -> SourceSpec:
    return SourceSpec(
        view="leat_src_0",
        relation="demo.public.s",
        store=store,
        entity="t",
        columns=COLUMNS,
        value_format=value,
        key_format=key,
        primary_key=["id"],
        key_only=["id"],
        on_error="ignore",
        log_entity="log",
    )


def raw(frame: DataFrame) -> DataFrame:
    position = F.struct(F.lit("t").alias("topic"), F.lit(0).alias("partition"), F.lit(7).alias("offset"))
    time = F.lit("2020-01-01 00:00:00").cast("timestamp").alias("timestamp")
    return frame.select("key", "value", time, position.alias("__leat_rowmeta"))


def spoiled(part: str, good: DataFrame) -> DataFrame:
    garbage: Column = F.lit(GARBAGE[part])
    parts = {"key": F.col("key"), "value": F.col("value")} | {part: garbage}
    return good.where(F.col("value").isNotNull()).select(*(c.alias(n) for n, c in parts.items()))


def test_every_pair_of_formats_there_and_back(spark: SparkSession, store: StoreRef) -> None:
    """A row, a tombstone, a garbled key and a garbled value of each of the pairs, in two jobs of Spark."""
    pairs = list(product(FORMATS, FORMATS))
    rows = spark.createDataFrame(
        [(7, "ü", False), (8, None, True)], "id BIGINT, v STRING, `__leat_deleted` BOOLEAN"
    ).select("*", F.lit(b"k").alias("__leat_rowkey"), F.current_timestamp().alias("__leat_rowtime"))
    made = []
    for number, (key, value) in enumerate(pairs):
        sink = sink_of(store, key, value)
        shaped = sink_rows.shaped(rows.coalesce(1), sink, RecordForm.of(sink, {}))
        made.append(shaped.select(F.lit(number).alias("pair"), "key", "value"))
    written = reduce(DataFrame.unionByName, made).collect()
    assert len(written) == 2 * len(pairs)
    assert [r.pair for r in written if r.value is None] == list(range(len(pairs)))

    read, told = [], []
    for number, (key, value) in enumerate(pairs):
        own = [(r.key, r.value) for r in written if r.pair == number]
        good = spark.createDataFrame(own, "key BINARY, value BINARY").coalesce(1)
        records = raw(reduce(DataFrame.unionByName, [good, *(spoiled(part, good) for part in GARBAGE)]))
        spec = source_of(store, key, value)
        frame = scans.decoded(records, spec, f"skipped_{number}", registry_of(store, {}))
        read.append(frame.select(F.lit(number).alias("pair"), "id", "v", "__leat_deleted"))
        scan = scans.Scan(spec, None, None, records, frame, registry_of(store, {}))  # type: ignore[arg-type]
        told.append(scans.undecodable(scan).select(F.lit(number).alias("pair"), "value"))
    found = [tuple(r) for r in reduce(DataFrame.unionByName, read).collect()]
    assert sorted(found, key=str) == sorted(
        (row for n in range(len(pairs)) for row in ((n, 7, "ü", False), (n, 8, None, True))), key=str
    )
    reasons: dict[int, list[str]] = {}
    for row in reduce(DataFrame.unionByName, told).collect():
        reasons.setdefault(row.pair, []).append(json.loads(bytes(row.value))["reason"])
    for number, pair in enumerate(pairs):
        bad_key, bad_value = sorted(reasons[number], key=lambda text: "key" not in text.split(":")[0])
        assert bad_key.startswith("its key cannot be read: "), pair
        assert "key" not in bad_value.split(":")[0], pair


def test_a_tombstone_is_read_by_the_format_of_its_key(spark: SparkSession, store: StoreRef) -> None:
    """Also where the key's columns are in the value too, whose format is another; a key of no row is told."""
    rows = spark.createDataFrame([(8, None, True)], "id BIGINT, v STRING, `__leat_deleted` BOOLEAN").select(
        "*", F.lit(b"k").alias("__leat_rowkey"), F.current_timestamp().alias("__leat_rowtime")
    )
    for key, value in (("protobuf", "json"), ("json", "avro")):
        sink = sink_of(store, key, "primitive").model_copy(update={"key_only": [], "value_format": "json"})
        (record,) = sink_rows.shaped(rows, sink, RecordForm.of(sink, {})).collect()
        own = [(record.key, None), (bytearray(GARBAGE["key"]), None), (None, None)]
        records = raw(spark.createDataFrame(own, "key BINARY, value BINARY"))
        spec = source_of(store, key, value).model_copy(update={"key_only": []})
        frame = scans.decoded(records, spec, f"gone_{key}", registry_of(store, {}))
        found = [(r.id, r.v, r["__leat_deleted"]) for r in frame.collect()]
        assert sorted(found, key=str) == [(8, None, True), (None, None, True)]


def test_a_value_that_is_packed_says_so(spark: SparkSession) -> None:
    """Log services send gzip, which is no JSON as it stands."""
    values = [gzip.compress(b'{"id": 1}'), b'{"id": 2}', b"garbage"]
    records = raw(spark.createDataFrame([(None, value) for value in values], "key BINARY, value BINARY"))
    spec = SourceSpec(
        view="leat_src_0",
        relation="demo.public.s",
        store=StoreRef(name="s", kind="kinesis", config={}),
        entity="t",
        columns=COLUMNS,
        value_format="json",
        on_error="ignore",
    )
    frame = scans.decoded(records, spec, "packed")
    told = scans.undecodable(scans.Scan(spec, None, None, records, frame)).collect()  # type: ignore[arg-type]
    reasons = [json.loads(bytes(row.value))["reason"] for row in told]
    assert [row.id for row in frame.collect()] == [2]
    assert ["gzip" in reason for reason in reasons] == [True, False]


def test_a_row_of_a_file_says_itself_why_it_is_none(spark: SparkSession) -> None:
    """Such as one of a CSV file that has too few fields."""
    said = F.when(F.col("value") == b"no row", F.lit("a row of 1 fields, not 2")).alias("reason")
    records = raw(
        spark.createDataFrame(
            [(None, v) for v in (b"no row", b'{"id": 2}', b"{")], "key BINARY, value BINARY"
        )
    )
    place = {
        "topic": F.lit("d"),
        "partition": F.lit(None).cast("int"),
        "offset": F.lit(7),
        "file": F.lit("1.csv"),
    }
    position = F.struct(*(part.alias(name) for name, part in place.items()), said)
    spec = SourceSpec(
        view="leat_src_0",
        relation="demo.public.s",
        store=StoreRef(name="s", kind="s3", config={}),
        entity="d",
        columns=COLUMNS,
        value_format="csv",
        on_error="ignore",
    )
    files = records.withColumn("__leat_rowmeta", position)
    frame = scans.decoded(files, spec, "files")
    told = scans.undecodable(scans.Scan(spec, None, None, files, frame)).collect()  # type: ignore[arg-type]
    reasons = [json.loads(bytes(row.value))["reason"] for row in told]
    assert [row.id for row in frame.collect()] == [2]
    assert [reason == "a row of 1 fields, not 2" for reason in reasons] == [True, False]
    with pytest.raises(Exception, match="LEAT_UNDECODABLE") as caught:
        scans.decoded(files.limit(1), spec.model_copy(update={"on_error": "terminate"}), None).collect()
    job = JobSpec.model_construct(sources=[spec], lookups=[])
    fault = find_marked([], str(caught.value), job)
    assert fault is not None
    assert fault.sentence.count("a row of 1 fields, not 2") == 1
    assert "1.csv" in fault.sentence


def test_plain_values_end_a_strict_query(spark: SparkSession, store: StoreRef) -> None:
    """Without 'ignore', the first value of another width ends the query, and says of what type it is not."""
    frame = spark.createDataFrame([(bytearray(b"k"), bytearray(b"abc"))], "key BINARY, value BINARY")
    columns: list[Any] = [ColumnSpec(name="n", type="INTEGER")]
    update = {"columns": columns, "primary_key": [], "key_only": [], "on_error": "terminate"}
    spec = source_of(store, "primitive", "primitive").model_copy(update=update)
    with pytest.raises(Exception, match="its bytes are no INTEGER"):
        scans.decoded(raw(frame), spec, None).collect()

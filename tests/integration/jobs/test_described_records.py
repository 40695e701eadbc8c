"""Avro as Spark really reads and writes it, with the schemas in a real registry."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from leatstream.formats import registered_schema
from leatstream.formats.avro_columns import schema_text
from leatstream.formats.described import Description, Encoder
from leatstream.formats.registry_client import RegistryAddress, RegistryClient, Schema
from leatstream.model.objects import Column
from leatstream.model.types import parse_type
from leatstream.plan.job_spec import ColumnSpec, DescriptorRef, RegistryRef, SinkSpec, SourceSpec, StoreRef
from leatstream_jobs.attempt.failures import chain_of, classify
from leatstream_jobs.reading import scans
from leatstream_jobs.writing import sink_rows
from leatstream_jobs.writing.described_sink import RecordForm, registry_of

TYPES = {
    "b": "BOOLEAN",
    "t": "TINYINT",
    "i": "INTEGER",
    "l": "BIGINT",
    "f": "FLOAT",
    "d": "DOUBLE",
    "dec": "DECIMAL(8, 2)",
    "dt": "DATE",
    "tm": "TIME",
    "ntz": "TIMESTAMP",
    "ltz": "TIMESTAMP_LTZ",
    "bin": "VARBINARY",
    "s": "VARCHAR",
    "arr": "ARRAY<INTEGER>",
    "m": "MAP<VARCHAR, TIMESTAMP>",
    "st": "STRUCT<x INTEGER, at TIMESTAMP_LTZ, rows ARRAY<STRUCT<d DATE, n DECIMAL(5, 1)>>>",
}
MOMENT = datetime(2024, 1, 2, 3, 4, 5, 678901)
ROW = (
    True,
    -128,
    -(2**31),
    2**63 - 1,
    1.5,
    -0.1,
    Decimal("12.34"),
    date(2024, 2, 29),
    "23:59:59.5",
    MOMENT,
    MOMENT.replace(tzinfo=UTC),
    bytearray(b"\x00hi"),
    'a"ü\n',
    [1, None, -3],
    {"k": MOMENT, "n": None},
    (7, datetime(1969, 12, 31, tzinfo=UTC), [(date(1, 1, 1), Decimal("-0.1")), None]),
)


@pytest.fixture(scope="module")
def store(schema_registry: str) -> StoreRef:
    reference = RegistryRef(name="sr", kind="confluent", uris=schema_registry)
    return StoreRef(name="s", kind="kafka", config={"bootstrap_servers": "localhost:1"}, registry=reference)


@pytest.fixture(scope="module")
def client(schema_registry: str) -> Iterator[RegistryClient]:
    made = RegistryClient(RegistryAddress.of("sr", "confluent", schema_registry, None, None, None))
    yield made
    made.close()


def columns(**types: str) -> list[ColumnSpec]:
    return [
        ColumnSpec(name=n, type=t.removesuffix(" NOT NULL"), not_null=t.endswith(" NOT NULL"))
        for n, t in types.items()
    ]


def source(store: StoreRef, declared: list[ColumnSpec], **more: Any) -> SourceSpec:
    base: dict[str, Any] = {"view": "leat_src_0", "relation": "demo.public.s0", "entity": "t"}
    return SourceSpec(**base | {"store": store, "columns": declared, "value_format": "avro"} | more)


def raw(spark: SparkSession, *values: bytes | None, key: bytes = b"k") -> DataFrame:
    frame = spark.createDataFrame([(v if v is None else bytearray(v),) for v in values], "value BINARY")
    position = F.struct(F.lit("t").alias("topic"), F.lit(0).alias("partition"), F.lit(7).alias("offset"))
    return frame.coalesce(1).select(
        F.lit(key).alias("key"),
        "value",
        F.lit("2020-01-01 00:00:00").cast("timestamp").alias("timestamp"),
        position.alias("__leat_rowmeta"),
    )


def written(client: RegistryClient, subject: str, declared: list[ColumnSpec], *rows: Any) -> list[bytes]:
    """Records as another producer writes them."""
    made = [Column(c.name, parse_type(c.type), c.not_null) for c in declared]
    number = client.register(subject, Schema("AVRO", schema_text(made, "other.Producer")))
    form = Description(
        "avro",
        tuple(c.name for c in declared),
        tuple(c.type for c in declared),
        tuple(c.not_null for c in declared),
    )
    return [Encoder(form, number).record(row) for row in rows]


@pytest.mark.parametrize("form", ["avro", "protobuf", "json_schema"])
def test_every_type_there_and_back(
    spark: SparkSession, store: StoreRef, client: RegistryClient, form: str
) -> None:
    """A sink writes what a source reads: every type, NULL, and the schema under the topic's subject."""
    declared = columns(**TYPES)
    entity = f"t-{uuid.uuid4().hex[:8]}"
    text = registered_schema.schema_text(
        form, [Column(c.name, parse_type(c.type)) for c in declared], "demo.public.out", None
    )
    sink = SinkSpec(
        relation="demo.public.out",
        store=store,
        entity=entity,
        columns=declared,
        value_format=form,
        value_schema=text,
    )
    ddl = ", ".join(f"`{n}` {parse_type(t).spark()}" for n, t in TYPES.items())
    full, empty = list(ROW), [None] * len(ROW)
    if form == "protobuf":
        # No NULL inside of lists and maps, and an empty one for NULL.
        full[13:15], empty[13:15] = [[1, -3], {"k": MOMENT}], [[], {}]
        full[15] = (7, MOMENT.replace(tzinfo=UTC), [(date(1, 1, 1), Decimal("-0.1")), (None, None)])
    rows = spark.createDataFrame([tuple(full), tuple(empty)], ddl).coalesce(1)
    hidden = rows.select("*", F.lit(b"k").alias("__leat_rowkey"), F.lit(MOMENT).alias("__leat_rowtime"))
    records = sink_rows.shaped(hidden, sink, RecordForm.of(sink, {})).collect()
    found = client.latest(f"{entity}-value")
    assert found is not None
    assert found.id is not None
    assert all(bytes(r.value[:5]) == b"\0" + found.id.to_bytes(4, "big") for r in records)

    read = scans.decoded(
        raw(spark, *(bytes(r.value) for r in records)),
        source(store, declared, value_format=form),
        None,
        registry_of(store, {}),
    )
    back = read.select(*TYPES)
    got = sorted(map(str, back.collect()))
    assert got == sorted(map(str, rows.collect()))


def test_schemas_change_while_a_query_runs(
    spark: SparkSession, store: StoreRef, client: RegistryClient
) -> None:
    """Old and new writers in one batch: each record by its own schema, the columns stay those declared."""
    subject = f"e-{uuid.uuid4().hex[:8]}-value"
    first = written(client, subject, columns(id="BIGINT", name="VARCHAR"), (1, "a"), (2, None))
    wider = columns(name="VARCHAR", id="INTEGER", price="DOUBLE", at="TIMESTAMP_LTZ")
    second = written(client, subject, wider, ("c", 3, 2.5, 1_700_000_000_000_000))
    declared = columns(id="BIGINT NOT NULL", name="VARCHAR", price="DOUBLE")
    rows = scans.decoded(
        raw(spark, first[0], second[0], first[1], None),
        source(store, declared, timestamp=None),
        None,
        registry_of(store, {}),
    )
    found = [tuple(r)[:3] for r in rows.collect()]
    assert found == [(1, "a", None), (3, "c", 2.5), (2, None, None)]


def test_what_cannot_be_read_is_told_apart(
    spark: SparkSession, store: StoreRef, client: RegistryClient
) -> None:
    """Skipped and told why, or the end of the query; never a wrong row, and nothing of the record's content."""
    declared = columns(id="INTEGER NOT NULL", at="TIMESTAMP_LTZ", kind="VARCHAR")
    subject = f"g-{uuid.uuid4().hex[:8]}-value"
    (good,) = written(client, subject, declared, (5, 1_700_000_000_000_000, "secret-content"))
    wide = columns(id="BIGINT", at="TIMESTAMP_LTZ")
    big, absent, late = written(client, subject, wide, (2**40, None), (None, None), (1, 10**18))
    (other,) = written(client, subject, columns(id="BOOLEAN"), (True,))
    bad = {
        big: "a value does not fit its column",
        absent: "it does not fit the columns",
        late: "a time is beyond the years 1 to 9999",
        other: "field id is boolean and its column INTEGER",
        good[:-3]: "its bytes are not of its schema",
        good + b"\0": "bytes follow behind the record",
        b'{"id": 1}': "does not begin with a schema's id",
        b"": "does not begin with a schema's id",
        b"\0\x7f\xff\xff\xff\x02": "the registry has no schema 2147483647",
    }
    spec = source(store, declared, on_error="ignore", log_entity="log")
    address = registry_of(store, {})
    values = raw(spark, good, *bad)
    frame = scans.decoded(values, spec, "skipped", address)
    assert [r.id for r in frame.collect()] == [5]
    scan = scans.Scan(spec, None, None, values, frame, address)  # type: ignore[arg-type]
    told = [json.loads(bytes(r.value)) for r in scans.undecodable(scan).collect()]
    assert len(told) == len(bad)
    for found, reason in zip(told, bad.values(), strict=True):
        assert reason in found["reason"], found
    strict = scans.decoded(raw(spark, good[:-3]), source(store, declared), None, address)
    with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever Spark makes of it
        strict.collect()
    failure = classify(chain_of(caught.value), _job(store, declared))
    assert failure.code == "undecodable-record"
    assert "is not AVRO" in failure.detail
    assert "its bytes are not of its schema" in failure.detail
    assert "secret-content" not in failure.detail


def test_a_registry_that_is_away(spark: SparkSession, store: StoreRef, client: RegistryClient) -> None:
    """The job fails with the registry's name and is worth another try: nothing is skipped."""
    declared = columns(id="INTEGER")
    (good,) = written(client, f"a-{uuid.uuid4().hex[:8]}-value", declared, (5,))
    away = store.model_copy(
        update={"registry": RegistryRef(name="gone", kind="confluent", uris="http://127.0.0.1:1")}
    )
    spec = source(away, declared, on_error="ignore")
    with pytest.raises(Exception) as caught:  # noqa: PT011
        scans.decoded(raw(spark, good), spec, "m2", registry_of(away, {})).collect()
    failure = classify(chain_of(caught.value), _job(away, declared))
    assert (failure.code, failure.condition, failure.as_json()["retryable"]) == (
        "job-failed",
        "registry-unreachable",
        True,
    )
    assert "gone" in failure.detail


def test_a_row_without_a_form_ends_the_query(spark: SparkSession, store: StoreRef) -> None:
    """A TIME finer than Avro's microseconds is not cut in silence."""
    declared = columns(tm="TIME")
    sink = SinkSpec(
        relation="demo.public.out",
        store=store,
        entity=f"f-{uuid.uuid4().hex[:8]}",
        columns=declared,
        value_format="avro",
        value_schema=schema_text([Column("tm", parse_type("TIME"))], "demo.public.out"),
    )
    rows = spark.sql(
        "SELECT '12:00:00.123456789' AS tm, CAST(NULL AS BINARY) AS __leat_rowkey, current_timestamp() AS __leat_rowtime"
    )
    with pytest.raises(Exception) as caught:  # noqa: PT011
        sink_rows.shaped(rows, sink, RecordForm.of(sink, {})).collect()
    failure = classify(chain_of(caught.value), _job(store, declared))
    assert failure.as_json()["retryable"] is False
    assert "cannot be written as AVRO: a TIME is finer than microseconds" in failure.detail


def test_changelog_keys_are_records_too(spark: SparkSession, store: StoreRef, client: RegistryClient) -> None:
    """A record without value takes back the row that its key, an Avro record, names."""
    declared = columns(id="INTEGER", part="VARCHAR", n="DOUBLE NOT NULL")
    (key,) = written(client, f"k-{uuid.uuid4().hex[:8]}-key", columns(id="INTEGER", part="VARCHAR"), (7, "x"))
    spec = source(store, declared, primary_key=["id", "part"], key_format="avro")
    frame = scans.decoded(raw(spark, None, key=key), spec, None, registry_of(store, {}))
    (row,) = frame.collect()
    assert (row.id, row.part, row.n, row["__leat_deleted"]) == (7, "x", None, True)


def _job(store: StoreRef, declared: list[ColumnSpec]) -> Any:
    from leatstream.plan.job_spec import JobSpec

    sink: Callable[..., SinkSpec] = SinkSpec
    return JobSpec(
        query_id="q",
        query_name="q",
        generation=1,
        attempt=1,
        fencing_token="f",
        sql="",
        sources=[source(store, declared)],
        sink=sink(relation="demo.public.out", store=store, entity="o", columns=declared, value_format="avro"),
        mode="micro_batch",
        mode_reason="",
        checkpoint="",
    )


PROTO = """
syntax = "proto3";
package shop;
import "google/protobuf/wrappers.proto";
message Other { int32 z = 1; }
message Order {
  message Line { string sku = 1; }
  enum Kind { RETAIL = 0; TRADE = 1; }
  int64 id = 1;
  Kind kind = 2;
  oneof pay { string card = 3; int32 cash = 4; }
  google.protobuf.StringValue note = 5;
  repeated Line lines = 6;
}
"""


def test_protobuf_of_another_producer(spark: SparkSession, store: StoreRef, client: RegistryClient) -> None:
    """A message that is not the file's first, a oneof, an enum, a wrapper; and what cannot be read."""
    number = client.register(f"p-{uuid.uuid4().hex[:8]}-value", Schema("PROTOBUF", PROTO))
    head = b"\0" + number.to_bytes(4, "big")
    # {id: 5, kind: TRADE, cash: 0, note: "", lines: [{sku: "a"}]} of the second message, written by hand.
    order = head + b"\x02\x02" + b"\x08\x05\x10\x01\x20\x00\x2a\x00\x32\x03\x0a\x01a"
    unknown_kind = head + b"\x02\x02" + b"\x10\x07"
    bad = [head + b"\x02\x09\x08\x05", head + b"\x02\x02\x08", head + b"\x00\x08\x01", head]
    declared = columns(
        id="INTEGER",
        kind="VARCHAR",
        card="VARCHAR",
        cash="BIGINT",
        note="VARCHAR",
        lines="ARRAY<STRUCT<sku VARCHAR>>",
    )
    spec = source(store, declared, value_format="protobuf", on_error="ignore")
    frame = scans.decoded(raw(spark, order, unknown_kind, *bad), spec, "p", registry_of(store, {}))
    found = [tuple(row)[:6] for row in frame.collect()]
    assert found == [
        (5, "TRADE", None, 0, "", [("a",)]),
        (0, "7", None, None, None, []),
        # The first message of the file has none of these fields.
        (None, None, None, None, None, None),
    ]


def test_bare_messages(spark: SparkSession, store: StoreRef) -> None:
    """By a descriptor source: no head, and no registry that would be asked."""
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    from leatstream.formats.proto_text import read_proto

    files = FileDescriptorSet(file=[read_proto(PROTO, "shop.proto")])
    descriptor = DescriptorRef(
        message="shop.Order", files=base64.b64encode(files.SerializeToString()).decode()
    )
    spec = source(store, columns(id="BIGINT", kind="VARCHAR"), value_format="protobuf", descriptor=descriptor)
    frame = scans.decoded(raw(spark, b"\x08\x05\x10\x01", b""), spec, None, None)
    assert [tuple(row)[:2] for row in frame.collect()] == [(5, "TRADE"), (0, "RETAIL")]


def test_a_real_registry_compares_our_json_schemas(client: RegistryClient) -> None:
    """Another column fits the closed object that a sink's schema is; another type does not."""
    subject = f"j-{uuid.uuid4().hex[:8]}-value"

    def schema(**types: str) -> Schema:
        made = [Column(n, parse_type(t)) for n, t in types.items()]
        return Schema("JSON", registered_schema.schema_text("json_schema", made, "d.s.out_value", None))

    first = client.register(subject, schema(a="BIGINT", at="TIMESTAMP_LTZ"))
    assert client.register(subject, schema(a="BIGINT", at="TIMESTAMP_LTZ")) == first
    client._call("PUT", f"/config/{subject}", {"compatibility": "BACKWARD"})
    assert client.incompatibilities(subject, schema(a="BIGINT", at="TIMESTAMP_LTZ", b="VARCHAR")) == []
    assert client.incompatibilities(subject, schema(a="VARCHAR", at="TIMESTAMP_LTZ")) != []
    latest = client.latest(subject)
    assert latest is not None
    assert [(c.name, str(c.type)) for c in registered_schema.columns_of(latest)] == [
        ("a", "BIGINT"),
        ("at", "TIMESTAMP_LTZ"),
    ]

"""Real drivers between a real broker and moto's S3: every format, a kill, files that cannot be read."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from aws_server import REGION, aws_server, bucket, s3_of
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from small_api import Pool, SmallApi

from leatstream.connectors.registry import open_connector
from leatstream.connectors.s3.connector import S3Connector
from leatstream.connectors.s3.options import read_options
from leatstream.connectors.s3.sink import S3Sink
from leatstream.connectors.s3.write import SinkPlan, stem
from leatstream.connectors.store_marks import find_mark
from leatstream.connectors.writers import BatchTarget, Written
from leatstream.formats.avro_columns import schema_text
from leatstream.model.objects import Column
from leatstream.model.types import parse_type
from leatstream.plan.job_spec import ColumnSpec, SinkSpec, StoreRef
from leatstream_jobs.writing.file_rows import file_rows

SECRET, REFERENCE = "a-secret-of-aws", "secret://catalog/2/secret_access_key"
COLUMNS, OUT = "id BIGINT NOT NULL, name VARCHAR", "id BIGINT, name VARCHAR"
ALL = "SELECT id, name, __leat_rowkey, __leat_rowtime FROM leat_src_0"


@pytest.fixture(scope="module")
def aws() -> Iterator[str]:
    with aws_server() as address:
        bucket(address, "data")
        yield address


@pytest.fixture
def settings(aws: str) -> dict[str, Any]:
    return {
        "region": REGION,
        "endpoint_url": aws,
        "access_key_id": "AKIAEXAMPLE",
        "bucket": "data",
        "prefix": "lake",
    }


@pytest.fixture
def s3(settings: dict[str, Any]) -> S3Connector:
    connector = open_connector("s3", "files", settings, {"secret_access_key": SECRET})
    assert isinstance(connector, S3Connector)
    return connector


@pytest.fixture
def store(settings: dict[str, Any], api: SmallApi) -> dict[str, Any]:
    """The store as a JobSpec has it: the secret by reference."""
    api.secrets[REFERENCE] = SECRET
    secrets = {"secret_access_key": REFERENCE}
    return {"name": "files", "kind": "s3", "config": settings, "secrets": secrets}


@pytest.fixture
def directory(s3: S3Connector) -> Iterator[Callable[[], str]]:
    made: list[str] = []

    def make() -> str:
        made.append(f"d-{uuid.uuid4().hex[:8]}")
        s3.create_entity(made[-1], {}, {})
        return made[-1]

    yield make
    for name in made:
        s3.drop_entity(name)


def bodies(aws: str, entity: str) -> dict[str, bytes]:
    """Key below the directory to content."""
    prefix = f"lake/{entity}/"
    listed = s3_of(aws).list_objects_v2(Bucket="data", Prefix=prefix).get("Contents", [])
    names = [item["Key"] for item in listed if item["Size"]]
    return {n[len(prefix) :]: s3_of(aws).get_object(Bucket="data", Key=n)["Body"].read() for n in names}


def put(aws: str, entity: str, name: str, body: bytes) -> None:
    s3_of(aws).put_object(Bucket="data", Key=f"lake/{entity}/{name}", Body=body)


def target_of(checkpoint: Path, query: str = "query_1234") -> BatchTarget:
    """With the checkpoint's id as Spark writes it, which a copy keeps."""
    checkpoint.mkdir(exist_ok=True)
    if not (checkpoint / "metadata").exists():
        (checkpoint / "metadata").write_text(json.dumps({"id": str(uuid.uuid4())}))
    return BatchTarget(query, "q", 1, checkpoint.as_uri())


def test_csv_with_directories_and_files_that_cannot_be_read(
    pool: Pool,
    job: Any,
    topic: Callable[..., str],
    rows: Any,
    store: dict[str, Any],
    s3: S3Connector,
    directory: Callable[[], str],
    aws: str,
    tmp_path: Path,
) -> None:
    source, middle, sink = directory(), directory(), topic()
    lines = [json.dumps({"id": i, "name": "a b/c" if i % 2 else None}) for i in range(10)]
    put(aws, source, "1.json", "\n".join(lines[:5]).encode())
    put(aws, source, "day=1/2.json.gz", gzip.compress("\n".join(lines[5:]).encode()))
    put(aws, source, "3.json.gz", gzip.compress(b'{"id": 10, "name": ""}\n' * 5_000)[:40])
    put(aws, source, "4.json", b'{"id": "eleven"}\n{"id": 12, "name": ""}\n')
    put(aws, source, "name=q/5.json", b'{"id": 20}{"id": 21, "name": "r"}')
    put(aws, source, "_note", b"nothing to read")
    scan = {"entity": source, "columns": COLUMNS, "store": store}
    there = job([scan | {"on_error": "ignore"}], middle, ALL, OUT)
    there["sink"] |= {"store": store, "value_format": "csv"}
    there["sink"]["options"] = {"s3.partition.by": "name", "s3.csv.delimiter": ";", "s3.compression": "gzip"}
    there |= {"delivery": "exactly_once"}
    driver = pool.take()
    driver.run(there, timeout=120)
    progress = driver.wait_progress(lambda p: p["skipped_rows_total"] >= 2)
    assert progress["skipped_rows_total"] == 2
    assert progress["sources"][0]["end_offsets"] == {"files": "5"}
    assert progress["input_bytes_total"] >= sum(map(len, lines))
    pool.give_back(driver)
    written = bodies(aws, middle)
    assert progress["output_rows_total"] == 13
    assert progress["output_bytes_total"] == sum(map(len, written.values()))
    folders = {name.rsplit("/", 1)[0] for name in written}
    assert folders == {"name=a b%2Fc", "name=__HIVE_DEFAULT_PARTITION__", "name=q", "name=r"}
    texts = [gzip.decompress(body).decode() for body in written.values()]
    assert all(text.startswith('"id";"name"\n') for text in texts)

    scan = {"entity": middle, "columns": COLUMNS, "store": store, "value_format": "csv"}
    scan["options"] = {"s3.csv.delimiter": ";"}
    back = pool.take()
    back.run(job([scan], sink, ALL, OUT) | {"checkpoint": (tmp_path / "back").as_uri()}, timeout=120)
    found = {r["id"]: r["name"] for r in rows(sink, 13)}
    assert found == {i: "a b/c" if i % 2 else None for i in range(10)} | {12: "", 20: "q", 21: "r"}
    pool.give_back(back)

    strict = pool.take()
    strict.run(
        job([{"entity": source, "columns": COLUMNS, "store": store}], sink, ALL, OUT)
        | {"checkpoint": (tmp_path / "strict").as_uri()},
        until="failed",
        timeout=120,
    )
    error = strict.last["error"]
    assert error["code"] == "undecodable-record"
    assert "3.json.gz" in error["detail"] or "4.json" in error["detail"]

    put(aws, middle, "name=z/bad.csv", b'"id";"name"\n1;z\n"twelve";z\n')
    exact = pool.take()
    scan |= {"options": {"s3.csv.delimiter": ";"}}
    exact.run(
        job([scan], sink, ALL, OUT) | {"checkpoint": (tmp_path / "e").as_uri()}, until="failed", timeout=120
    )
    error = exact.last["error"]
    assert "name=z/bad.csv" in error["detail"], error
    assert 'column id is BIGINT, the record has the string "twelve"' in error["shown"], error
    assert error["columns"] == ["id"]


def test_fractions_are_written_with_commas_in_csv_only(spark: SparkSession) -> None:
    """Not in directories, nor in the JSON of nested columns."""
    kinds = {"d": "DECIMAL(10,2)", "f": "DOUBLE", "v": "VARCHAR", "a": "ARRAY<DOUBLE>"}
    values = "CAST(-1.50 AS DECIMAL(10,2)), CAST(2.5 AS DOUBLE), '1.5', array(CAST(0.5 AS DOUBLE))"
    rows = spark.sql(
        f"SELECT {values}, CAST(NULL AS BINARY) AS __leat_rowkey, current_timestamp() AS __leat_rowtime"
    )
    sink = SinkSpec(
        relation="d.s.o",
        store=StoreRef(name="files", kind="s3", config={}),
        entity="o",
        columns=[ColumnSpec(name=name, type=kind) for name, kind in kinds.items()],
        value_format="csv",
        options={"s3.csv.decimal.comma": "true", "s3.partition.by": "d"},
    )
    assert tuple(file_rows(rows.toDF(*kinds, "__leat_rowkey", "__leat_rowtime"), sink).first() or ()) == (
        "-1,50",
        "2,5",
        "1.5",
        "[0.5]",
        "-1.50",
    )


TYPES = {
    "id": "BIGINT",
    "price": "DECIMAL(9,2)",
    "ratio": "FLOAT",
    "day": "DATE",
    "clock": "TIME",
    "at": "TIMESTAMP",
    "seen": "TIMESTAMP_LTZ",
    "raw": "BYTES",
    "tags": "ARRAY<VARCHAR>",
    "inner": "STRUCT<a:INTEGER>",
}
LONG = {
    "ratio": "double", "raw": "bytes", "id": "int", "unknown": "string",
    "price": {"type": "fixed", "name": "D", "size": 6, "logicalType": "decimal", "precision": 9, "scale": 1},
    "day": ["null", {"type": "int", "logicalType": "date"}],
    "clock": ["null", {"type": "int", "logicalType": "time-millis"}],
    "at": ["null", {"type": "long", "logicalType": "local-timestamp-millis"}],
    "seen": {"type": "long", "logicalType": "timestamp-micros"},
    "tags": {"type": "array", "items": "string"},
    "inner": ["null", {"type": "record", "name": "I", "fields": [{"name": "a", "type": "int"}]}],
}  # fmt: skip


@pytest.mark.long  # unit/formats/test_avro_files.py has the reader
def test_avro_of_another_writer_into_avro(
    pool: Pool, job: Any, store: dict[str, Any], directory: Callable[[], str], aws: str
) -> None:
    """Each file by its own schema; what cannot be read is skipped and counted."""
    source, sink = directory(), directory()
    moment = datetime(2026, 1, 2, 3, 4, 5, 6000)
    full = {
        "ratio": 0.5, "raw": b"\x00\xff", "id": 1, "unknown": "x", "price": Decimal("-1.5"), "day": moment.date(),
        "clock": time(1, 2, 3, 4000), "at": moment, "seen": moment.replace(tzinfo=UTC), "tags": ["a", "ä"], "inner": {"a": 7},
    }  # fmt: skip
    bare = full | {"id": 2, "price": Decimal("0.1")} | dict.fromkeys(("day", "clock", "at", "inner"))
    wrong = full | {"seen": 2**62}

    def put_avro(name: str, fields: dict[str, Any], *records: Any, cut: int = 0) -> None:
        out = io.BytesIO()
        schema = {
            "type": "record",
            "name": "R",
            "fields": [{"name": n, "type": t} for n, t in fields.items()],
        }
        fastavro.writer(out, schema, records, codec="deflate")
        put(aws, source, name, out.getvalue()[: len(out.getvalue()) - cut])

    put_avro("1.avro", LONG, full, wrong, bare)
    put_avro("part=1/2.avro", {"id": "long"}, {"id": 3}, {"id": 4})
    put_avro("3.avro", {"id": "long"}, {"id": 5}, cut=3)
    put_avro("4.avro", {"id": "string"}, {"id": "six"})
    put(aws, source, "5.avro", b"not at all")
    columns = ", ".join(f"{n} {t}" for n, t in TYPES.items())
    scan = {
        "entity": source,
        "columns": columns,
        "store": store,
        "value_format": "avro",
        "on_error": "ignore",
    }
    names = ", ".join(TYPES)
    there = job([scan], sink, f"SELECT {names}, __leat_rowkey, __leat_rowtime FROM leat_src_0", columns)
    made = [Column(n, parse_type(t)) for n, t in TYPES.items()]
    there["sink"] |= {
        "store": store,
        "value_format": "avro",
        "value_schema": schema_text(made, "demo.public.out"),
    }
    there |= {"delivery": "exactly_once"}
    driver = pool.take()
    driver.run(there, timeout=120)
    assert driver.wait_progress(lambda p: p["skipped_rows_total"] >= 4)["skipped_rows_total"] == 4
    pool.give_back(driver)
    written = bodies(aws, sink)
    assert all(name.endswith(".avro") for name in written)
    readers = [fastavro.reader(io.BytesIO(body)) for body in written.values()]
    assert {(r.codec, r.writer_schema["name"]) for r in readers} == {("deflate", "demo.public.out")}
    found = {row["id"]: row for reader in readers for row in reader}
    del full["unknown"], bare["unknown"]
    nothing = dict.fromkeys(TYPES)
    assert found == {1: full, 2: bare, 3: nothing | {"id": 3}, 4: nothing | {"id": 4}}


def test_avro_files_roll_and_tell_what_has_no_form(
    spark: SparkSession, s3: S3Connector, directory: Callable[[], str], aws: str, tmp_path: Path
) -> None:
    entity = directory()
    types = {"id": "BIGINT", "clock": "TIME", "pad": "VARCHAR"}
    columns = tuple(Column(n, parse_type(t)) for n, t in types.items())
    options = read_options(
        {"s3.file.max.bytes": "1048576", "s3.compression": "none", "s3.partition.by": "id"}, "avro"
    )
    plan = SinkPlan(
        "files", s3.settings, s3.admin.prefix(entity), stem("query_1234", "q", 1), "avro", options, columns, schema_text(columns, "x.y")
    )  # fmt: skip
    target = target_of(tmp_path)
    pad, part = "repeat('x', 80) AS pad", "cast(id % 2 as string) AS __leat_part_0"
    rows = spark.range(40_000, numPartitions=1).selectExpr("id", "'00:00:01.000002' AS clock", pad, part)
    sent = S3Sink(plan, target).apply(rows, 0)
    written = bodies(aws, entity)
    assert sent == Written(40_000, sum(map(len, written.values())))
    assert S3Sink(plan, target).apply(rows, 0) == Written(), "what was sent before counts once"
    assert len(written) >= 4
    assert {name.split("/")[0] for name in written} == {"id=0", "id=1"}
    found = [row["id"] for body in written.values() for row in fastavro.reader(io.BytesIO(body))]
    assert sorted(found) == list(range(40_000))
    late = rows.limit(1).selectExpr("id", "'25:00:00' AS clock", "pad", "__leat_part_0")
    with pytest.raises(Exception, match="LEAT_UNENCODABLE a TIME is beyond the day LEAT_UNENCODABLE_END"):
        S3Sink(plan, target).apply(late, 1)
    assert bodies(aws, entity).keys() == written.keys()


@pytest.mark.core
def test_a_batch_counts_once_wherever_its_writer_dies(
    spark: SparkSession, s3: S3Connector, directory: Callable[[], str], aws: str, tmp_path: Path
) -> None:
    entity = directory()
    plan = SinkPlan(
        "files",
        s3.settings,
        s3.admin.prefix(entity),
        stem("query_1234", "q", 1),
        "parquet",
        read_options({}, "parquet"),
    )
    target = target_of(tmp_path)

    def frame(*ids: int) -> Any:
        return spark.createDataFrame([(i,) for i in ids], "id BIGINT").repartition(2)

    def present() -> list[int]:
        tables = [pq.read_table(io.BytesIO(body)) for body in bodies(aws, entity).values()]
        return sorted(pa.concat_tables(tables).column("id").to_pylist()) if tables else []

    def left() -> int:
        uploads = s3_of(aws).list_multipart_uploads(Bucket="data", Prefix=s3.admin.prefix(entity))
        return len(uploads.get("Uploads", []))

    class Dies(S3Sink):
        def _complete(self, uploads: Any, *, again: bool) -> None:
            super()._complete(uploads[: self.after], again=again)
            raise KeyboardInterrupt

    S3Sink(plan, target).apply(frame(1, 2, 3, 4), 0)
    assert present() == [1, 2, 3, 4]
    for number, after in ((1, 0), (2, 1)):
        dying = Dies(plan, target)
        dying.after = after  # type: ignore[attr-defined]
        with pytest.raises(KeyboardInterrupt):
            dying.apply(frame(*(10 * number + i for i in range(4))), number)
        # The rows of the repetition do not count any more: those that were sent do.
        S3Sink(plan, target).apply(frame(99), number)
        S3Sink(plan, target).apply(frame(98), number)
        assert present()[-4:] == [10 * number + i for i in range(4)]
        assert len(present()) == 4 * (number + 1)

    class DiesBefore(S3Sink):
        def _send(self, frame: Any, number: int) -> Any:
            super()._send(frame, number)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        DiesBefore(plan, target).apply(frame(30, 31, 32, 33), 3)
    assert left() > 0
    S3Sink(plan, target).apply(frame(30, 31, 32, 33), 3)
    assert present()[-4:] == [30, 31, 32, 33]
    assert len(present()) == 16
    assert left() == 0
    S3Sink(plan, target).apply(frame(), 4)
    assert len(present()) == 16
    assert sorted(path.name for path in (tmp_path / "files").glob("*.json")) == ["3.json", "4.json"]
    # Batches without rows for S3 have no number here.
    S3Sink(plan, target).apply(frame(), 9)
    assert [path.name for path in (tmp_path / "files").glob("*.json")] == ["9.json"]


def test_a_checkpoint_that_counts_anew_replaces_no_file(
    spark: SparkSession, s3: S3Connector, directory: Callable[[], str], aws: str, tmp_path: Path
) -> None:
    entity = directory()
    options = read_options({}, "json")
    plan = SinkPlan(
        "files", s3.settings, s3.admin.prefix(entity), stem("query_1234", "q", 1), "json", options
    )
    checkpoint = tmp_path / "g1"
    target = target_of(checkpoint)
    for begun, folder in enumerate((checkpoint, tmp_path / "g2", checkpoint)):
        target = target_of(folder)
        S3Sink(plan, target).apply(one_value(spark, begun), 0)
        shutil.rmtree(checkpoint, ignore_errors=True)  # it is lost
    assert values(aws, entity) == [0, 1, 2]
    # Started again with the same checkpoint, it finds what it has sent.
    S3Sink(plan, target_of(tmp_path / "g2")).apply(one_value(spark, 9), 0)
    assert values(aws, entity) == [0, 1, 2]


def test_a_copied_checkpoint_s_notes_are_its_first_query_s(
    spark: SparkSession, s3: S3Connector, directory: Callable[[], str], aws: str, tmp_path: Path
) -> None:
    first, second = directory(), directory()
    options = read_options({}, "json")

    def sink(query: str, entity: str, folder: Path) -> S3Sink:
        made = stem(query, "q", 1)
        plan = SinkPlan("files", s3.settings, s3.admin.prefix(entity), made, "json", options)
        return S3Sink(plan, target_of(folder, query))

    sink("query_1234", first, tmp_path / "a").apply(one_value(spark, 1), 7)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    # Into the same directory, too: a batch that was not committed is run by both.
    for entity in (second, first):
        shutil.copytree(tmp_path / "b", tmp_path / entity)
        copied = sink("query_5678", entity, tmp_path / entity)
        copied.apply(one_value(spark, 2), 7)
        sink("query_5678", entity, tmp_path / entity).apply(one_value(spark, 3), 7)
    assert values(aws, second) == [2]
    assert values(aws, first) == [1, 2]


def test_notes_of_before_names_told_the_checkpoint_are_found_and_the_batch_is_computed(
    spark: SparkSession, s3: S3Connector, directory: Callable[[], str], aws: str, tmp_path: Path
) -> None:
    entity = directory()
    prefix, client = s3.admin.prefix(entity), s3_of(aws)
    place = {"Bucket": "data", "Key": f"{prefix}former_name-ery_1234-g3-b00000007-p00000.json"}
    upload = client.create_multipart_upload(**place)["UploadId"]
    tag = client.upload_part(**place, UploadId=upload, PartNumber=1, Body=b'{"id": 1}\n')["ETag"]
    (tmp_path / "files").mkdir()
    note = [{"key": place["Key"], "upload": upload, "rows": 1, "size": 10, "parts": [tag]}]
    (tmp_path / "files" / "7.json").write_text(json.dumps(note))
    plan = SinkPlan(
        "files", s3.settings, prefix, stem("query_1234", "q", 4), "json", read_options({}, "json")
    )
    computed = spark.sparkContext.accumulator(0)
    count = F.udf(lambda value: computed.add(1) or value, "binary")
    rows = one_value(spark, 2).select(count("value").alias("value"))
    assert S3Sink(plan, target_of(tmp_path)).apply(rows, 7) == Written()
    assert values(aws, entity) == [1]
    assert computed.value == 1, "the state of a stateful query is kept by computing its batch"


def one_value(spark: SparkSession, number: int) -> Any:
    return spark.range(1).selectExpr(f"cast('{{\"id\": {number}}}' as binary) AS value")


def values(aws: str, entity: str) -> list[int]:
    return sorted(
        json.loads(line)["id"] for body in bodies(aws, entity).values() for line in body.splitlines()
    )


def test_files_roll_and_what_was_sent_is_taken_back_when_a_task_fails(
    spark: SparkSession, s3: S3Connector, directory: Callable[[], str], aws: str, tmp_path: Path
) -> None:
    entity = directory()
    options = read_options({"s3.file.max.bytes": "1048576", "s3.partition.by": "kind"}, "json")
    plan = SinkPlan(
        "files", s3.settings, s3.admin.prefix(entity), stem("query_1234", "q", 1), "json", options
    )
    target = target_of(tmp_path)
    rows = spark.range(40_000, numPartitions=1).selectExpr(
        "cast(concat('{\"id\": ', id, ', \"pad\": \"', repeat('x', 80), '\"}') as binary) AS value",
        "cast(id % 2 as string) AS __leat_part_0",
    )
    S3Sink(plan, target).apply(rows, 0)
    written = bodies(aws, entity)
    assert len(written) >= 4
    assert {name.split("/")[0] for name in written} == {"kind=0", "kind=1"}
    found = [json.loads(line)["id"] for body in written.values() for line in body.splitlines()]
    assert sorted(found) == list(range(40_000))
    broken = rows.selectExpr(
        "if(length(value) = 0, value, cast(raise_error('broken') as binary)) AS value", "__leat_part_0"
    )
    with pytest.raises(Exception, match="broken"):
        S3Sink(plan, target).apply(broken, 1)
    assert bodies(aws, entity).keys() == written.keys()


def test_what_s3_refuses_is_told_of_the_sink(
    spark: SparkSession, settings: dict[str, Any], tmp_path: Path
) -> None:
    config = settings | {"bucket": "not-there"}
    connector = open_connector("s3", "files", config, {"secret_access_key": SECRET})
    assert isinstance(connector, S3Connector)
    options = read_options({}, "json")
    plan = SinkPlan(
        "files", connector.settings, connector.admin.prefix("e"), stem("query_1", "q", 1), "json", options
    )
    rows = spark.range(1).selectExpr("cast('{}' as binary) AS value")
    with pytest.raises(Exception, match="LEAT_STORE") as caught:
        S3Sink(plan, target_of(tmp_path, "query_1")).apply(rows, 0)
    mark = find_mark(str(caught.value))
    assert mark is not None
    role, code, sentence = mark
    assert (role, code) == ("sink", "store-rejected")
    assert "no bucket not-there" in sentence

"""Real drivers between a real broker and moto's Kinesis: both directions, a kill, a stream that goes."""

from __future__ import annotations

import json
import os
import signal
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aws_server import REGION, aws_server
from kinesis_aggregate import aggregate
from small_api import Pool, SmallApi

from leatstream.connectors.kinesis.connector import KinesisConnector
from leatstream.connectors.registry import open_connector

SECRET, REFERENCE = "a-secret-of-aws", "secret://catalog/1/secret_access_key"
COLUMNS, OUT = "id BIGINT NOT NULL, name VARCHAR", "id BIGINT, name VARCHAR"
LARGE = 1_048_500  # in a record just below Kinesis's 1 MiB
ALL = "SELECT id, name, __leat_rowkey, __leat_rowtime FROM leat_src_0"


@pytest.fixture(scope="module")
def aws() -> Iterator[str]:
    with aws_server() as address:
        yield address


@pytest.fixture(scope="module")
def kinesis(aws: str) -> KinesisConnector:
    config = {"region": REGION, "endpoint_url": aws, "access_key_id": "AKIAEXAMPLE"}
    connector = open_connector("kinesis", "streams", config, {"secret_access_key": SECRET})
    assert isinstance(connector, KinesisConnector)
    return connector


@pytest.fixture
def store(aws: str, api: SmallApi) -> dict[str, Any]:
    """The store as a JobSpec has it: the secret by reference."""
    api.secrets[REFERENCE] = SECRET
    config = {"region": REGION, "endpoint_url": aws, "access_key_id": "AKIAEXAMPLE"}
    secrets = {"secret_access_key": REFERENCE}
    return {"name": "streams", "kind": "kinesis", "config": config, "secrets": secrets}


@pytest.fixture
def stream(kinesis: KinesisConnector) -> Iterator[Callable[..., str]]:
    made: list[str] = []

    def make(shards: int = 2) -> str:
        made.append(f"s-{uuid.uuid4().hex[:8]}")
        kinesis.create_entity(made[-1], {"topic.shards": shards}, {})
        return made[-1]

    yield make
    for name in made:
        kinesis.drop_entity(name)


def put(kinesis: KinesisConnector, stream: str, numbers: range) -> None:
    entries = [
        {"PartitionKey": f"k{i}", "Data": json.dumps({"id": i, "name": f"n{i}"}).encode()} for i in numbers
    ]
    for i in range(0, len(entries), 500):
        answer = kinesis.admin.client(30.0).put_records(StreamName=stream, Records=entries[i : i + 500])
        assert answer["FailedRecordCount"] == 0


def no_secret_in(directory: Path) -> None:
    """Neither logs nor plans nor checkpoints tell it."""
    for path in directory.rglob("*"):
        if path.is_file() and path.suffix != ".jar":
            assert SECRET.encode() not in path.read_bytes(), path


def test_kinesis_to_kafka_survives_a_kill_and_notices_that_the_stream_is_gone(
    pool: Pool,
    job: Any,
    topic: Callable[..., str],
    rows: Any,
    store: dict[str, Any],
    kinesis: KinesisConnector,
    stream: Callable[..., str],
    tmp_path: Path,
) -> None:
    source, sink = stream(), topic()
    put(kinesis, source, range(500))
    scan = {"entity": source, "columns": COLUMNS, "store": store}
    spec = job([scan], sink, ALL, OUT, max_offsets_per_trigger=300)
    driver = pool.take()
    pool.prepare()
    driver.run(spec, timeout=180)
    progress = driver.wait_progress(lambda p: p["input_rows_total"] >= 500)
    assert progress["input_rows_total"] == 500
    record = '{{"id": {0}, "name": "n{0}"}}'
    assert progress["input_bytes_total"] == sum(len(f"k{i}{record.format(i)}") for i in range(500))
    assert progress["sources"][0]["entity"] == source
    assert set(progress["sources"][0]["end_offsets"]) == {"shardId-000000000000", "shardId-000000000001"}
    assert sorted(r["id"] for r in rows(sink, 500)) == list(range(500))

    os.kill(driver.process.pid, signal.SIGKILL)
    driver.process.wait(30)
    put(kinesis, source, range(500, 1500))
    again = pool.take()
    pool.prepare()
    again.run(spec | {"attempt": 2})
    rows(sink, 1500)
    # As the Kinesis Producer Library sends them: several in one.
    packed = [(f"k{i}", json.dumps({"id": i, "name": f"n{i}"}).encode()) for i in range(1500, 1600)]
    client = kinesis.admin.client(30.0)
    client.put_record(StreamName=source, PartitionKey="a", Data=aggregate(packed[:70]))
    client.put_record(StreamName=source, PartitionKey="b", Data=aggregate(packed[70:]))
    rows(sink, 1600)
    assert {r["id"] for r in rows(sink, 1600)} == set(range(1600))
    for directory in (tmp_path, driver.place, again.place):
        no_secret_in(directory)

    kinesis.drop_entity(source)
    told = again.wait_state("failed")
    assert told["error"]["code"] == "source-gone"
    assert told["error"]["retryable"] is False
    assert SECRET not in again.said()


@pytest.mark.core
def test_kafka_to_kinesis_keeps_keys_and_their_order(
    pool: Pool,
    job: Any,
    topic: Callable[..., str],
    produce: Any,
    store: dict[str, Any],
    kinesis: KinesisConnector,
    stream: Callable[..., str],
) -> None:
    source, sink = topic(1), stream()
    spec = job([{"entity": source, "columns": COLUMNS}], sink, ALL, OUT)
    spec["sink"]["store"] = store
    produce(source, *({"id": i % 7, "name": f"{i}"} for i in range(1200)))
    driver = pool.take()
    driver.run(spec)
    told = driver.wait_progress(lambda p: p["output_rows_total"] == 1200)
    least = sum(len(f'{i % 7}{{"id":{i % 7},"name":"{i}"}}') for i in range(1200))
    assert told["output_bytes_total"] == least
    found = kinesis.read_records(sink, from_beginning=True, limit=1200, idle_timeout=30)
    by_key: dict[bytes, list[int]] = {}
    for record in found:
        if record is not None:
            by_key.setdefault(record.key or b"", []).append(int(json.loads(record.value or b"")["name"]))
    assert by_key == {str(k).encode(): list(range(k, 1200, 7)) for k in range(7)}
    pool.give_back(driver)


def test_records_of_a_megabyte_pass_and_larger_ones_are_told(
    pool: Pool, job: Any, store: dict[str, Any], kinesis: KinesisConnector, stream: Callable[..., str]
) -> None:
    """Just what Kinesis takes goes through; a row that has become too large for it ends the query, and is not lost."""
    source, sink = stream(1), stream(1)
    longer = "CASE WHEN id = 2 THEN concat(name, repeat('y', 2000)) ELSE name END"
    sql = ALL.replace("name", f"{longer} AS name", 1)
    spec = job([{"entity": source, "columns": COLUMNS, "store": store}], sink, sql, OUT)
    spec["sink"]["store"] = store

    def send(number: int) -> None:
        data = json.dumps({"id": number, "name": "x" * LARGE}).encode()
        kinesis.admin.client(30.0).put_record(StreamName=source, PartitionKey="k", Data=data)

    def written() -> list[tuple[int, int]]:
        found = kinesis.read_records(sink, from_beginning=True, limit=1, idle_timeout=30)
        values = [json.loads(record.value or b"") for record in found if record is not None]
        return [(value["id"], len(value["name"])) for value in values]

    driver = pool.take()
    send(1)
    driver.run(spec)
    assert written() == [(1, LARGE)]
    send(2)
    error = driver.wait_state("failed")["error"]
    assert (error["condition"], error["retryable"]) == ("store-rejected", False)
    assert f"Stream {sink} does not take a record as large as 1050" in error["detail"]
    assert "xxx" not in json.dumps(error)
    assert written() == [(1, LARGE)]
    # What was not written is still to be: nothing says that its batch is done.
    commits = Path(spec["checkpoint"].removeprefix("file://")) / "commits"
    offsets = commits.with_name("offsets")
    assert max(int(p.name) for p in offsets.iterdir() if p.name.isdigit()) > max(
        int(p.name) for p in commits.iterdir() if p.name.isdigit()
    )


@pytest.mark.long  # make demo runs it
def test_the_tutorials_join_of_kinesis_and_kafka_into_kinesis(
    pool: Pool,
    job: Any,
    topic: Callable[..., str],
    produce: Any,
    store: dict[str, Any],
    kinesis: KinesisConnector,
    stream: Callable[..., str],
) -> None:
    pageviews, users, sink = stream(), topic(1), stream()
    sql = (
        "SELECT p.id, p.name, u.name AS region, p.__leat_rowkey, p.__leat_rowtime "
        "FROM leat_src_0 p JOIN leat_src_1 u ON p.id = u.id AND u.__leat_rowtime BETWEEN "
        "p.__leat_rowtime - INTERVAL 5 MINUTES AND p.__leat_rowtime + INTERVAL 5 MINUTES"
    )
    scans = [
        {"entity": pageviews, "columns": COLUMNS, "store": store, "watermark_delay_ms": 1000},
        {"entity": users, "columns": COLUMNS, "watermark_delay_ms": 1000},
    ]
    spec = job(scans, sink, sql, "id BIGINT, name VARCHAR, region VARCHAR")
    spec["sink"]["store"] = store
    driver = pool.take()
    driver.run(spec)
    put(kinesis, pageviews, range(100))
    produce(users, *({"id": i, "name": f"r{i}"} for i in range(50, 150)))
    found = kinesis.read_records(sink, from_beginning=True, limit=50, idle_timeout=60)
    rows = [json.loads(r.value or b"") for r in found if r is not None]
    assert sorted(r["id"] for r in rows) == list(range(50, 100))
    assert {r["region"] for r in rows} == {f"r{i}" for i in range(50, 100)}
    pool.give_back(driver)

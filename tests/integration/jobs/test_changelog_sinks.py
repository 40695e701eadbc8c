"""Results over changelogs in Kinesis and S3: real Spark, moto's servers, batch by batch."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aws_server import REGION, aws_server, bucket, s3_of
from pyspark.sql import SparkSession
from test_changelogs import RELATIONS, Run

from leatstream.connectors.base import Connector
from leatstream.connectors.registry import open_connector
from leatstream.connectors.s3.sink import S3Sink
from leatstream.errors import StoreError
from leatstream.plan.job_spec import Delivery, StoreRef

pytestmark = pytest.mark.spark
SECRET = {"secret_access_key": "a-secret-of-aws"}


@pytest.fixture(scope="module")
def settings() -> Iterator[dict[str, Any]]:
    with aws_server() as address:
        bucket(address, "data")
        yield {"region": REGION, "endpoint_url": address, "access_key_id": "AKIAEXAMPLE"}


class SinkRun(Run):
    """A statement over files into another store."""

    def __init__(self, spark: SparkSession, folder: Path, sql: str, names: str, target: Connector) -> None:
        self.exact_keys = target.exact_keys
        super().__init__(spark, folder, sql, {name: RELATIONS[name] for name in names.split()})
        self.target = target
        store = StoreRef(name=target.name, kind=target.kind, config={})
        entity = f"e-{uuid.uuid4().hex[:8]}"
        self.spec = self.spec.model_copy(
            update={"sink": self.spec.sink.model_copy(update={"store": store, "entity": entity})}
        )

    def connect(self, store: StoreRef) -> Connector:
        return self.target if store.name == self.target.name else self.store


def test_kinesis_has_what_differs(spark: SparkSession, tmp_path: Path, settings: dict[str, Any]) -> None:
    """Under the key as partition key; an empty record takes a row back, as Kinesis has no tombstones."""
    kinesis = open_connector("kinesis", "streams", settings, SECRET)
    run = SinkRun(
        spark,
        tmp_path,
        "CREATE CHANGELOG o AS SELECT region, count(*) AS c FROM accounts GROUP BY region",
        "accounts",
        kinesis,
    )
    stream = run.spec.sink.entity
    kinesis.create_entity(stream, {"topic.shards": 1}, {})
    found = []
    for batch in (
        [["a", {"id": "a", "region": "x", "n": 1}, 1], ["b", {"id": "b", "region": "x", "n": 1}, 1]],
        [["a", {"id": "a", "region": "y", "n": 1}, 2]],
        [["b", None, 3], ["a", {"id": "a", "region": "y", "n": 2}, 3]],
    ):
        run.batch({"accounts": batch})
        told = kinesis.read_records(stream, from_beginning=True, limit=None, idle_timeout=2)
        new = [record for record in told if record is not None][sum(map(len, found)) :]
        found.append(sorted((record.key, record.value) for record in new))
    run.stop()
    assert found == [
        [(b'{"region":"x"}', b'{"region":"x","c":2}')],
        [(b'{"region":"x"}', b'{"region":"x","c":1}'), (b'{"region":"y"}', b'{"region":"y","c":1}')],
        [(b'{"region":"x"}', b"")],
    ]
    assert rows_of(run, tmp_path / "back", "region VARCHAR") == [["y", 1]]


def rows_of(run: SinkRun, folder: Path, key: str) -> list[list[Any]]:
    """What a view keeps that reads the changelog ``run`` has written, with a key and a count."""
    counts = {"columns": f"{key}, c BIGINT", "primary_key": [key.split()[0]]}
    back = Run(run.spark, folder, "CREATE MATERIALIZED VIEW v AS SELECT * FROM counts", {"counts": counts})
    sink = run.spec.sink
    read = {"store": sink.store, "entity": sink.entity, "key_format": sink.key_format}
    back.spec = back.spec.model_copy(update={"sources": [back.spec.sources[0].model_copy(update=read)]})
    back.connect = run.connect  # type: ignore[method-assign]
    back.work()
    back.stop()
    return back.kept()


@pytest.mark.parametrize(
    ("sql", "key", "values", "left"),
    [
        # Kinesis keeps a digest of bytes that are no text, and no empty key.
        ("SELECT n, count(*) AS c FROM accounts GROUP BY n", "n BIGINT", [5, 200, None], 200),
        (
            "SELECT region, count(*) AS c FROM accounts GROUP BY region",
            "region VARCHAR",
            ["", None, "é"],
            None,
        ),
    ],
)
def test_every_row_is_taken_back_from_kinesis(
    spark: SparkSession,
    tmp_path: Path,
    settings: dict[str, Any],
    sql: str,
    key: str,
    values: list[Any],
    left: Any,
) -> None:
    kinesis = open_connector("kinesis", "streams", settings, SECRET)
    run = SinkRun(spark, tmp_path, f"CREATE CHANGELOG o AS {sql}", "accounts", kinesis)
    kinesis.create_entity(run.spec.sink.entity, {"topic.shards": 1}, {})
    name = key.split()[0]
    run.batch({"accounts": [[str(i), {"id": str(i), name: value}, 1] for i, value in enumerate(values)]})
    run.batch({"accounts": [[str(i), None, 2] for i, value in enumerate(values) if value != left]})
    run.stop()
    assert rows_of(run, tmp_path / "back", key) == [[left, 1]]


def test_a_row_with_a_key_that_kinesis_does_not_keep_cannot_be_taken_back(
    spark: SparkSession, tmp_path: Path, settings: dict[str, Any]
) -> None:
    kinesis = open_connector("kinesis", "streams", settings, SECRET)
    sql = "CREATE CHANGELOG o AS SELECT region, count(*) AS c FROM accounts GROUP BY region"
    run = SinkRun(spark, tmp_path, sql, "accounts", kinesis)
    kinesis.create_entity(run.spec.sink.entity, {"topic.shards": 1}, {})
    run.batch({"accounts": [["a", {"id": "a", "region": "x" * 300}, 1]]})
    with pytest.raises(Exception, match=r"cannot be taken back.*longer than 256 characters"):
        run.batch({"accounts": [["a", None, 2]]})


def test_files_have_each_row_once(
    spark: SparkSession, tmp_path: Path, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when a driver dies between the files and Spark's word that the batch is done."""
    s3 = open_connector("s3", "files", {**settings, "bucket": "data", "prefix": "lake"}, SECRET)
    sql = "CREATE STREAM o AS SELECT v.n, a.region FROM views v JOIN accounts a ON v.id = a.id"
    run = SinkRun(spark, tmp_path, sql, "views accounts", s3)
    run.spec = run.spec.model_copy(update={"delivery": Delivery.EXACTLY_ONCE})
    run.batch(
        {"accounts": [["a", {"id": "a", "region": "x", "n": 1}, 1]], "views": [["k", {"id": "a", "n": 1}, 2]]}
    )
    run.give(
        {"accounts": [["a", None, 9]], "views": [["k", {"id": "a", "n": n}, 2 * n] for n in range(2, 7)]}
    )
    apply = S3Sink.apply

    def crash(sink: S3Sink, frame: Any, number: int) -> None:
        apply(sink, frame, number)
        raise StoreError("store-unreachable", "crash")

    monkeypatch.setattr(S3Sink, "apply", crash)
    with pytest.raises(Exception, match="crash"):
        run.work()
    monkeypatch.setattr(S3Sink, "apply", apply)
    run.work()
    client, prefix = s3_of(settings["endpoint_url"]), f"lake/{run.spec.sink.entity}/"
    names = [one["Key"] for one in client.list_objects_v2(Bucket="data", Prefix=prefix)["Contents"]]
    bodies = [client.get_object(Bucket="data", Key=name)["Body"].read() for name in names]
    rows = [json.loads(line) for body in bodies for line in body.splitlines()]
    assert sorted(row["n"] for row in rows) == [1, 2, 3, 4]
    assert {row["region"] for row in rows} == {"x"}

"""From a topic into Parquet files and back, by SQL; a killed driver neither loses a row nor writes one twice."""

from __future__ import annotations

import io
import os
import signal
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow.parquet as pq
import pytest
from aws_server import REGION, aws_server, bucket, s3_of

pytestmark = [pytest.mark.stack]


@pytest.fixture(scope="module")
def aws() -> Iterator[str]:
    with aws_server() as address:
        bucket(address, "data")
        yield address


@pytest.mark.core
def test_kafka_to_parquet_and_back(play: Any, aws: str, eventually: Any) -> None:
    lake = {
        "region": REGION,
        "endpoint_url": aws,
        "bucket": "data",
        "access_key_id": "AKIAEXAMPLE",
        "secret_access_key": "a-secret",
    }
    made = play.http.put(f"/v1/stores/{play.name}_lake", json={"s3": lake})
    assert made.json()["status"]["state"] == "ready", made.text
    topic, sink = play.stream("numbers", "n BIGINT, s VARCHAR"), f"{play.name}.back"
    name = f"{play.name}_there"
    query = play.run(
        "there",
        f"CREATE STREAM files WITH ('store'='{play.name}_lake', 'topic'='{play.name}', 'value.format'='parquet', "
        "'s3.interval.millis'=500) AS SELECT n, s FROM numbers",
    )
    assert query["plan"]["delivery"] == "exactly_once"
    play.run(
        "back",
        f"CREATE STREAM back WITH ('topic'='{sink}', 'value.format'='json', 'topic.partitions'=1, "
        "'topic.replicas'=1) AS SELECT n, s, rowmeta()->file AS file FROM files WITH ('starting.position'='earliest')",
        shared=True,
    )
    play.produce(topic, [{"n": i, "s": f"s{i}"} for i in range(500)])
    play.consume(sink, 500, distinct="n")
    job = play.query(name)["status"]["job"]
    os.kill(job["pid"], signal.SIGKILL)
    play.produce(topic, [{"n": i, "s": f"s{i}"} for i in range(500, 1000)])
    found = play.consume(sink, 1000, seconds=120, distinct="n")
    assert {r["n"] for r in found} == set(range(1000))
    assert all(r["s"] == f"s{r['n']}" and r["file"].endswith(".parquet") for r in found)
    assert play.query(name)["status"]["job"]["attempt"] > job["attempt"]

    s3 = s3_of(aws)
    listed = s3.list_objects_v2(Bucket="data", Prefix=f"{play.name}/")["Contents"]
    bodies = [s3.get_object(Bucket="data", Key=one["Key"])["Body"].read() for one in listed if one["Size"]]
    written = Counter(n for body in bodies for n in pq.read_table(io.BytesIO(body)).column("n").to_pylist())
    assert written == dict.fromkeys(range(1000), 1)

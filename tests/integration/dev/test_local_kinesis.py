"""The local Kinesis keeps every record, also of producers that write at the same time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import boto3

from leatstream.dev.local_kinesis import ACCESS_KEY_ID, REGION, SECRET_ACCESS_KEY, LocalKinesis

PRODUCERS, REQUESTS, RECORDS = 4, 6, 200


def client_of(address: str) -> Any:
    return boto3.client(
        "kinesis",
        region_name=REGION,
        endpoint_url=address,
        aws_access_key_id=ACCESS_KEY_ID,
        aws_secret_access_key=SECRET_ACCESS_KEY,
    )


def records_of(client: Any, stream: str) -> list[str]:
    place = {"ShardId": "shardId-000000000000", "ShardIteratorType": "TRIM_HORIZON"}
    at = client.get_shard_iterator(StreamName=stream, **place)["ShardIterator"]
    found: list[str] = []
    while (answer := client.get_records(ShardIterator=at, Limit=10_000))["Records"]:
        found += [record["PartitionKey"] for record in answer["Records"]]
        at = answer["NextShardIterator"]
    return found


def test_producers_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    kinesis = LocalKinesis(tmp_path / "kinesis.log")
    kinesis.start()
    try:
        clients = [client_of(kinesis.endpoint) for _ in range(PRODUCERS)]
        clients[0].create_stream(StreamName="numbers", ShardCount=1)

        def produce(producer: int) -> None:
            for request in range(REQUESTS):
                keys = [f"{producer}-{request}-{number}" for number in range(RECORDS)]
                entries = [{"PartitionKey": key, "Data": b"x"} for key in keys]
                clients[producer].put_records(StreamName="numbers", Records=entries)

        with ThreadPoolExecutor(PRODUCERS) as pool:
            list(pool.map(produce, range(PRODUCERS)))
        found = records_of(clients[0], "numbers")
        assert len(found) == len(set(found)) == PRODUCERS * REQUESTS * RECORDS
    finally:
        kinesis.stop()

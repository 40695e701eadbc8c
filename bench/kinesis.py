"""The reader of a Kinesis stream against a bare boto3 loop, on the same records and shards.

Both read a stream of a local Kinesis from its beginning to its end. The bare loop follows each shard's
iterator and makes Arrow columns of each answer. The reader does all that Spark's planner and task wait for:
it finds the shards, walks them, keeps the positions, leaves the records in files and reads them back; and it
asks a shard five times a second at most, as Kinesis allows, which the bare loop does not heed. The local
Kinesis answers from a process of its own; its time is in both.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.streaming.datasource import ReadMaxRows
from report import Spread, conditions, keep, table

from leatstream.connectors.kinesis.settings import KinesisConfig, kinesis_client
from leatstream.connectors.kinesis.source import KinesisReader, SourcePlan

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from aws_server import REGION, aws_server

STREAM = "bench"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=40_000, help="of about 100 bytes")
    parser.add_argument("--shards", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", help="write the raw numbers here")
    options = parser.parse_args()

    print(conditions())
    with kinesis() as address, tempfile.TemporaryDirectory() as directory:
        Path(directory, "records").mkdir()
        config = KinesisConfig(
            region=REGION, endpoint_url=address, access_key_id="AKIABENCH", secret_access_key="bench"
        )
        fill(config, options.shards, options.records)
        plan = SourcePlan("kinesis", config, STREAM, "earliest", None, 10_000_000, f"{directory}/records")
        contenders: dict[str, Callable[[], int]] = {
            "bare loop": lambda: bare(config),
            "reader": lambda: ours(plan, options.records),
        }
        found: dict[str, dict[str, list[float]]] = {name: {"cpu": [], "wall": []} for name in contenders}
        for number in range(options.rounds + 1):
            for name, run in contenders.items() if number % 2 else reversed(list(contenders.items())):
                cpu, wall = time.process_time(), time.perf_counter()
                records = run()
                assert records == options.records, (name, records)
                if number:  # the first round warms up
                    found[name]["cpu"].append(records / (time.process_time() - cpu))
                    found[name]["wall"].append(records / (time.perf_counter() - wall))
    loop = found["bare loop"]
    shown: list[list[Any]] = []
    for name, rates in found.items():
        wall, cpu = (Spread.of(rates[kind]).p50 for kind in ("wall", "cpu"))
        shown.append([name, wall, wall / Spread.of(loop["wall"]).p50, cpu, cpu / Spread.of(loop["cpu"]).p50])
    print(table(["reader", "records/s", "ratio", "records per CPU second", "ratio"], shown))
    print("Goal: ratio >= 0.7.")
    keep(options.json, found)


@contextlib.contextmanager
def kinesis() -> Iterator[str]:
    """A local Kinesis, in a process of its own so that its CPU time is not the readers'; its address."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,), daemon=True)
    process.start()
    try:
        yield ours.recv()
    finally:
        ours.send("enough")
        process.join(10)


def serve(pipe: Connection) -> None:
    """Serve until told to end."""
    with aws_server() as address:
        pipe.send(address)
        pipe.recv()


def fill(config: KinesisConfig, shards: int, records: int) -> None:
    """Make the stream with its records."""
    client = kinesis_client(config, 20.0)
    client.create_stream(StreamName=STREAM, ShardCount=shards)
    client.get_waiter("stream_exists").wait(StreamName=STREAM, WaiterConfig={"Delay": 1})
    for first in range(0, records, 500):
        client.put_records(
            StreamName=STREAM,
            Records=[
                {"Data": b'{"n": %d, "s": "%s"}' % (n, b"x" * 80), "PartitionKey": f"k{n}"}
                for n in range(first, min(first + 500, records))
            ],
        )


def bare(config: KinesisConfig) -> int:
    """Follow every shard to its end; how many records."""
    client, count = kinesis_client(config, 20.0), 0
    for shard in client.list_shards(StreamName=STREAM)["Shards"]:
        place = {"StreamName": STREAM, "ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
        at = client.get_shard_iterator(**place)["ShardIterator"]
        while True:
            answer = client.get_records(ShardIterator=at, Limit=10_000)
            records, at = answer["Records"], answer["NextShardIterator"]
            names = ("PartitionKey", "Data", "ApproximateArrivalTimestamp", "SequenceNumber")
            pa.record_batch([pa.array([r[name] for r in records]) for name in names], list(names))
            count += len(records)
            if answer["MillisBehindLatest"] == 0 or not records:
                break
    return count


def ours(plan: SourcePlan, records: int) -> int:
    """What Spark would be given, batch by batch; how many records."""
    reader, count = KinesisReader(plan), 0
    start = reader.initialOffset()
    while count < records:
        end = reader.latestOffset(start, ReadMaxRows(plan.most))
        parts = reader.partitions(start, end)
        count += sum(batch.num_rows for part in parts for batch in reader.read(part))
        reader.commit(end)
        start = end
    reader.stop()
    return count


if __name__ == "__main__":
    main()

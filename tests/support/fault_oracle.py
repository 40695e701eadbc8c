"""What must have come of the numbered records in the end, and what is there."""

from __future__ import annotations

import contextlib
import json
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from aws_server import kinesis_of, s3_of
from deadlines import patient
from fault_load import BEGIN_MS, BUCKET, KEYS, SPACE_MS, WINDOW_MS, Places
from fault_tables import Tables
from playground import Playground
from postgres_server import PostgresServer


def read_topic(kafka: str, topic: str) -> Iterator[tuple[bytes | None, Any]]:
    """Key and value of all that is on a topic now, of transactions only what was committed."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": kafka,
            "group.id": uuid.uuid4().hex,
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    with contextlib.closing(consumer):
        found = consumer.list_topics(topic, timeout=30).topics[topic].partitions
        consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in found])
        left, deadline = set(found), time.monotonic() + patient(60)
        while left:
            assert time.monotonic() < deadline, f"{topic} could not be read to its end"
            for message in consumer.consume(1000, 0.2):
                if message.error():
                    left.discard(message.partition())
                    continue
                left.add(message.partition())
                value = message.value()
                yield message.key(), json.loads(value) if value is not None else None


def read_files(aws: str, entity: str) -> Iterator[Any]:
    """The rows of all files of JSON lines that are there now; uploads that are not completed are not there."""
    client = s3_of(aws)
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=f"{entity}/"):
        for one in page.get("Contents", ()):
            body = client.get_object(Bucket=BUCKET, Key=one["Key"])["Body"].read()
            yield from map(json.loads, body.splitlines())


def read_shards(aws: str, stream: str) -> Iterator[Any]:
    """The values of all records that are in a stream of Kinesis now."""
    client = kinesis_of(aws)
    for shard in client.list_shards(StreamName=stream)["Shards"]:
        at = client.get_shard_iterator(
            StreamName=stream, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        while (answer := client.get_records(ShardIterator=at, Limit=10_000))["Records"]:
            yield from (json.loads(record["Data"]) for record in answer["Records"])
            at = answer["NextShardIterator"]


@dataclass
class Oracle:
    """What must be where, from the numbers alone."""

    count: int
    kafka: str
    places: Places
    play: Playground
    postgres: PostgresServer
    aws: str
    tables: Tables
    copied: bool
    keyed: bool

    def faults(self) -> list[str]:
        """What is not as it must be; empty in the end."""
        all_numbers = Counter(range(self.count))
        checks = {
            "input": lambda: differences(all_numbers, self._numbers(self.places.numbers), once=True),
            "filter": lambda: differences(
                Counter(n for n in all_numbers if n % 3), self._numbers(self.places.kept), once=False
            ),
            "once": lambda: differences(all_numbers, self._numbers(self.places.once), once=True),
            "rows": lambda: differences(all_numbers, self._rows(), once=True),
            "join": lambda: differences(
                Counter((n, f"v{n}") for n in range(0, self.count, 5)), self._joined(), once=False
            ),
            "iceberg": lambda: differences(all_numbers + self._strange(), self.tables.lake.rows(), once=True),
            "clickhouse": lambda: differences(all_numbers, self.tables.clickhouse_rows(), once=True),
            "snowflake": lambda: differences(
                Counter(range(0, self.count, 5)), self.tables.snowflake_rows(), once=True
            ),
            "files": lambda: differences(all_numbers, self._lines(), once=True),
            "shards": lambda: differences(Counter(range(0, self.count, 5)), self._shards(), once=False),
            "back": lambda: self._copied() if self.copied else "",
            "keyed": lambda: self._keyed() if self.keyed else "",
            "window": lambda: _state(self._windows(), self._upserted()),
            "view": lambda: _state(self._totals(), self._viewed()),
        }
        return [f"{name}: {said}" for name, check in checks.items() if (said := check())]

    def _numbers(self, topic: str) -> Counter[Any]:
        return Counter(value["n"] for _, value in read_topic(self.kafka, topic))

    def _joined(self) -> Counter[Any]:
        return Counter((v["n"], v["v"]) for _, v in read_topic(self.kafka, self.places.joined))

    def _lines(self) -> Counter[Any]:
        return Counter(row["n"] for row in read_files(self.aws, self.places.files))

    def _shards(self) -> Counter[Any]:
        return Counter(value["n"] for value in read_shards(self.aws, self.places.shards))

    def _strange(self) -> Counter[Any]:
        return Counter(range(-self.tables.lake.strange, 0))

    def _keyed(self) -> str:
        wanted = self._totals()
        found = {kind: _state(wanted, rows) for kind, rows in self.tables.totals().items()}
        return "; ".join(f"{kind}: {said}" for kind, said in found.items() if said)

    def _copied(self) -> str:
        """What stands in the stream twice is copied twice, no more and no less."""
        found = self._numbers(self.places.back)  # before the stream, which may still grow
        return differences(self._shards(), found, once=True)

    def _rows(self) -> Counter[Any]:
        with self.postgres.connect() as connection:
            found = connection.execute(f"SELECT n, count(*) FROM {self.play.name}.written GROUP BY n")
            return Counter(dict(found.fetchall()))

    def _windows(self) -> dict[Any, Any]:
        wanted: dict[Any, list[int]] = {}
        for n in range(self.count):
            one = wanted.setdefault(((n * SPACE_MS) // WINDOW_MS, f"k{n % KEYS}"), [0, 0])
            one[0] += 1
            one[1] += n
        return {key: tuple(value) for key, value in wanted.items()}

    def _upserted(self) -> dict[Any, Any]:
        from datetime import UTC, datetime

        found = {}
        for key, value in read_topic(self.kafka, self.places.windows):
            assert value is not None, f"window {key!r} was taken back"
            start = datetime.fromisoformat(value["window_start"].replace(" ", "T")).replace(tzinfo=UTC)
            number = (int(start.timestamp() * 1000) - BEGIN_MS) // WINDOW_MS
            found[(number, value["k"])] = (value["c"], value["s"])
        return found

    def _totals(self) -> dict[Any, Any]:
        parts = {f"k{i}": range(i, self.count, KEYS) for i in range(KEYS)}
        return {key: (len(part), sum(part)) for key, part in parts.items() if len(part)}

    def _viewed(self) -> dict[Any, Any]:
        rows = self.play.sql("SELECT k, c, s FROM totals")["results"][0]["rows"]
        return {k: (int(c), int(s)) for k, c, s in rows}


def differences(wanted: Counter[Any], found: Counter[Any], *, once: bool) -> str:
    missing, more = sorted(wanted - found), sorted(found - wanted)
    strange = sorted(set(found) - set(wanted))
    said = []
    if missing:
        said.append(f"{len(missing)} missing, such as {missing[:5]}")
    if strange:
        said.append(f"{len(strange)} that nobody wrote, such as {strange[:5]}")
    if once and more:
        said.append(f"{len(more)} more than once, such as {more[:5]}")
    return "; ".join(said)


def _state(wanted: dict[Any, Any], found: dict[Any, Any]) -> str:
    if wanted == found:
        return ""
    wrong = [(key, wanted.get(key), found.get(key)) for key in sorted({*wanted, *found}, key=str)]
    wrong = [one for one in wrong if one[1] != one[2]]
    return f"{len(wrong)} of {len(wanted)} groups are wrong (key, wanted, found), such as {wrong[:3]}"

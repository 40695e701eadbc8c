"""A Kinesis client of botocore, stubbed: what is asked of AWS, in which order, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import boto3
from botocore.stub import Stubber

from leatstream.connectors.kinesis.admin import KinesisAdmin
from leatstream.connectors.kinesis.settings import KinesisConfig
from leatstream.connectors.kinesis.shards import Walk

MADE = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
MADE_MS = "1767323045678"
SUMMARY = {
    "StreamDescriptionSummary": {
        "StreamName": "s",
        "StreamARN": "arn:aws:kinesis:eu-west-1:1:stream/s",
        "StreamStatus": "ACTIVE",
        "RetentionPeriodHours": 24,
        "StreamCreationTimestamp": MADE,
        "EnhancedMonitoring": [],
        "OpenShardCount": 1,
    }
}
RANGE = {"StartingHashKey": "0", "EndingHashKey": "1"}


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.at = 0.0

    def now(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.at += seconds


class Setting:
    """A stubbed client, a walk over it, and what it has kept."""

    def __init__(self) -> None:
        client = boto3.client(
            "kinesis",
            region_name="eu-west-1",
            aws_access_key_id="x",
            aws_secret_access_key="y",
            config=boto3.session.Config(retries={"total_max_attempts": 1}),
        )
        self.stub = Stubber(client)
        self.stub.activate()
        self.client = client
        self.clock = Clock()
        self.kept: dict[str, list[str]] = {}
        self.walk = Walk(client, "s", self._keep, self.clock.now, self.clock.sleep)

    def _keep(self, shard: str, before: str, after: str, got: Sequence[Sequence[Mapping[str, Any]]]) -> None:
        self.kept.setdefault(shard, []).extend(r["SequenceNumber"] for records in got for r in records)

    def made(self) -> None:
        self.stub.add_response("describe_stream_summary", SUMMARY, {"StreamName": "s"})

    def shards(self, *found: tuple[str, str | None, bool]) -> None:
        listed = []
        for name, parent, is_open in found:
            numbers = {"StartingSequenceNumber": "1"} | ({} if is_open else {"EndingSequenceNumber": "9"})
            item = {"ShardId": name, "HashKeyRange": RANGE, "SequenceNumberRange": numbers}
            listed.append(item | ({"ParentShardId": parent} if parent else {}))
        self.stub.add_response("list_shards", {"Shards": listed}, {"StreamName": "s"})

    def iterator(self, shard: str, name: str, **place: Any) -> None:
        place = place or {"ShardIteratorType": "TRIM_HORIZON"}
        expected = {"StreamName": "s", "ShardId": shard} | place
        self.stub.add_response("get_shard_iterator", {"ShardIterator": name}, expected)

    def get(
        self, iterator: str, numbers: range, following: str | None, limit: int = 10_000, behind: int = 0
    ) -> None:
        answer: dict[str, Any] = {
            "Records": [
                {
                    "SequenceNumber": str(n),
                    "Data": b"v",
                    "PartitionKey": "k",
                    "ApproximateArrivalTimestamp": MADE,
                }
                for n in numbers
            ],
            "MillisBehindLatest": behind,
        }
        answer |= {"NextShardIterator": following} if following else {}
        self.stub.add_response("get_records", answer, {"ShardIterator": iterator, "Limit": limit})

    def refuse(self, code: str, call: str = "get_records") -> None:
        self.stub.add_client_error(call, code)

    def admin(self) -> KinesisAdmin:
        """The admin half of a connector on this client."""

        class Stubbed(KinesisAdmin):
            def client(_self, timeout: float) -> Any:
                return self.client

        return Stubbed("store", KinesisConfig(region="eu-west-1"))

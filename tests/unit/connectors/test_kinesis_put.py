"""Writing to Kinesis: sizes of requests, partial failures, keys."""

from __future__ import annotations

import functools
from typing import Any

import boto3
import pyarrow as pa
import pytest
from botocore.stub import ANY, Stubber

from leatstream.connectors.kinesis import sink
from leatstream.connectors.kinesis.put import MOST_BYTES, partition_key, put, requests
from leatstream.connectors.kinesis.settings import KinesisConfig
from leatstream.errors import StoreError


class Waits:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.at = 0.0
        self.naps: list[float] = []

    def now(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self.at += seconds


class Stream:
    """A client that answers as told and notes what it was sent."""

    def __init__(self) -> None:
        self.client = boto3.client(
            "kinesis",
            region_name="eu-west-1",
            aws_access_key_id="x",
            aws_secret_access_key="y",
            config=boto3.session.Config(retries={"total_max_attempts": 1}),
        )
        self.stub = Stubber(self.client)
        self.stub.activate()
        self.sent: list[list[str]] = []
        self.waits = Waits()
        self.client.meta.events.register("provide-client-params.kinesis.PutRecords", self._note)

    def _note(self, params: dict[str, Any], **_more: Any) -> None:
        self.sent.append([r["Data"].decode() for r in params["Records"]])

    def answer(self, *codes: str | None) -> None:
        results = [
            {"ErrorCode": c, "ErrorMessage": "no"} if c else {"SequenceNumber": "1", "ShardId": "a"}
            for c in codes
        ]
        self.stub.add_response("put_records", {"Records": results}, {"StreamName": "s", "Records": ANY})

    def put(self, *records: tuple[str, str]) -> int:
        entries = [{"PartitionKey": key, "Data": value.encode()} for key, value in records]
        return put(self.client, "s", entries, self.waits.now, self.waits.sleep)


LATER = "ProvisionedThroughputExceededException"


def test_only_what_was_not_taken_is_sent_again() -> None:
    stream = Stream()
    stream.answer(None, LATER, None, "InternalFailure")
    stream.answer(None, LATER)
    stream.answer(None)
    assert stream.put(("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")) == 7
    assert stream.sent == [["1", "2", "3", "4"], ["2", "4"], ["4"]]
    assert len(stream.waits.naps) == 2


def test_a_keys_last_record_stays_its_last() -> None:
    stream = Stream()
    stream.answer(LATER, None, None, None)
    stream.answer(None, None)
    stream.put(("a", "1"), ("b", "2"), ("a", "3"), ("c", "4"))
    assert stream.sent == [["1", "2", "3", "4"], ["1", "3"]]


def test_a_throttled_request_is_sent_again_as_a_whole_with_growing_pauses() -> None:
    stream = Stream()
    for _ in range(4):
        stream.stub.add_client_error("put_records", LATER)
    stream.answer(None, None)
    stream.put(("a", "1"), ("b", "2"))
    assert stream.sent == [["1", "2"]] * 5
    assert stream.waits.naps[-1] > stream.waits.naps[0]


def test_it_does_not_wait_for_ever() -> None:
    stream = Stream()
    for _ in range(200):
        stream.answer(LATER)
    with pytest.raises(StoreError) as caught:
        stream.put(("a", "1"))
    assert caught.value.code == "store-unreachable"
    assert 120 <= stream.waits.at < 130


def test_what_waiting_does_not_cure_is_said_at_once() -> None:
    from botocore.exceptions import ClientError

    stream = Stream()
    stream.answer("KMSDisabledException", None)
    with pytest.raises(StoreError) as caught:
        stream.put(("a", "1"), ("b", "2"))
    assert caught.value.code == "store-rejected"
    stream.stub.add_client_error("put_records", "AccessDeniedException")
    with pytest.raises(ClientError):
        stream.put(("a", "1"))
    assert stream.waits.naps == []


def test_a_record_that_is_too_large_is_told_by_its_size() -> None:
    stream = Stream()
    said = "1 validation error detected: Value at 'records.2.member.data' failed to satisfy constraint: "
    said += "Member must have length less than or equal to 1048576"
    stream.stub.add_client_error("put_records", "ValidationException", said)
    with pytest.raises(StoreError, match="Stream s does not take a record as large as 2001 bytes") as caught:
        stream.put(("a", "1"), ("b", "x" * 2000))
    assert (caught.value.code, caught.value.retryable) == ("store-rejected", False)
    assert "xx" not in caught.value.detail


def test_a_partition_key_that_is_too_long_is_not_told_as_a_large_record() -> None:
    from botocore.exceptions import ClientError

    stream = Stream()
    said = (
        "1 validation error detected: Value at 'records.1.member.partitionKey' failed to satisfy constraint: "
    )
    said += "Member must have length less than or equal to 256"
    stream.stub.add_client_error("put_records", "ValidationException", said)
    with pytest.raises(ClientError, match=r"partitionKey"):
        stream.put(("a", "1"))


def test_a_task_sends_again_what_was_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends when all of its rows are there, and tells what Kinesis has taken, each record once."""
    stream = Stream()
    stream.answer(None, LATER, None)
    stream.answer(None)
    config = KinesisConfig(region="eu-west-1")
    monkeypatch.setattr(sink, "kinesis_client", lambda *_: stream.client)
    monkeypatch.setattr(sink, "put", functools.partial(put, now=stream.waits.now, sleep=stream.waits.sleep))
    columns = {"key": [b"a", b"b", b"c"], "value": [b"1", b"2", None]}
    rows = pa.record_batch({name: pa.array(values, pa.binary()) for name, values in columns.items()})
    (told,) = sink.write_records(sink.SinkPlan("store", config, "s"), iter([rows]))
    assert (told.to_pylist(), stream.sent) == ([{"rows": 3, "size": 5}], [["1", "2", ""], ["2"]])


@pytest.mark.parametrize("key", [None, b"", b"\xff", b"x" * 257])
def test_what_takes_a_row_back_needs_a_key_that_stays(
    monkeypatch: pytest.MonkeyPatch, key: bytes | None
) -> None:
    stream = Stream()
    monkeypatch.setattr(sink, "kinesis_client", lambda *_: stream.client)
    plan = sink.SinkPlan("store", KinesisConfig(region="eu-west-1"), "s")
    rows = pa.record_batch({"key": pa.array([key], pa.binary()), "value": pa.array([None], pa.binary())})
    with pytest.raises(RuntimeError, match="cannot be taken back"):
        list(sink.write_records(plan, iter([rows])))
    assert stream.sent == []


def test_requests_stay_within_both_limits() -> None:
    many = list(requests((b"k", b"v") for _ in range(1201)))
    assert [len(r) for r in many] == [500, 500, 201]
    large = list(requests((b"k", b"v" * 1_000_000) for _ in range(11)))
    assert [len(r) for r in large] == [5, 5, 1]
    assert all(sum(len(e["Data"]) + 1 for e in r) <= MOST_BYTES for r in large)
    assert [len(r) for r in requests([(b"k", b"v" * 6_000_000), (b"k", b"v")])] == [1, 1]
    assert list(requests([])) == []


def test_partition_keys() -> None:
    assert partition_key(b"user-1") == "user-1"
    assert partition_key("ключ".encode()) == "ключ"
    assert partition_key(None) != partition_key(None)
    assert partition_key(b"") != ""
    # Some count a character outside of Unicode's first plane as two.
    assert partition_key("😀".encode() * 128) == "😀" * 128
    for odd in (b"\xff\xfe", b"x" * 257, "😀".encode() * 129):
        assert len(partition_key(odd)) == 64
        assert partition_key(odd) == partition_key(odd)

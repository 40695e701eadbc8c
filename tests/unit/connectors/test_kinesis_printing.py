"""Records of a stream for people: where each shard begins, and when reading ends."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from kinesis_stub import MADE, MADE_MS, RANGE, Setting
from own_clock import set_clock

from leatstream.connectors.entities import RecordsFrom
from leatstream.connectors.kinesis import records as kinesis_records
from leatstream.connectors.kinesis import sampling
from leatstream.connectors.kinesis import shards as kinesis_shards
from leatstream.connectors.kinesis.records import records
from leatstream.connectors.kinesis.sampling import newest_of
from leatstream.errors import StoreError

BEGINNING = RecordsFrom(beginning=True)
NOW = int(MADE_MS) + 3_600_000  # an hour after the records of the stub
ONCE = 1000  # records that are asked for at once
TWO = (("a", None, False), ("b", "a", True))


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch) -> Iterator[Setting]:
    setting = Setting()
    clock = setting.clock
    times: dict[str, Any] = {
        "sleep": clock.sleep,
        "monotonic": clock.now,
        "time": lambda: NOW / 1000 + clock.now(),
    }
    for module in (kinesis_records, kinesis_shards, sampling):
        set_clock(monkeypatch, module, **times)
    yield setting
    setting.stub.assert_no_pending_responses()


def offsets(found: Iterator[Any]) -> list[str]:
    return [str(record.offset) for record in found if record]


def at(milliseconds: int) -> dict[str, Any]:
    return {"ShardIteratorType": "AT_TIMESTAMP", "Timestamp": milliseconds / 1000}


def after(number: str) -> dict[str, Any]:
    return {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "StartingSequenceNumber": number}


def test_it_moves_from_an_ended_shard_to_its_children(on: Setting) -> None:
    on.shards(("a", None, True))
    on.iterator("a", "i1")
    answer = {
        "Records": [{"SequenceNumber": "1", "Data": b"1", "PartitionKey": "k"}],
        "ChildShards": [
            {"ShardId": "b", "ParentShards": ["a"], "HashKeyRange": RANGE},
            {"ShardId": "c", "ParentShards": ["a"], "HashKeyRange": RANGE},
        ],
    }
    on.stub.add_response("get_records", answer, {"ShardIterator": "i1", "Limit": ONCE})
    on.iterator("b", "i2")
    on.iterator("c", "i3")
    on.get("i2", range(2, 3), "i4", limit=ONCE)
    on.get("i3", range(3, 4), "i5", limit=ONCE)
    assert offsets(records(on.admin(), "s", BEGINNING, 3, 5)) == ["1", "2", "3"]


def test_a_time_begins_in_every_shard_at_that_time(on: Setting) -> None:
    since = int(MADE_MS) - 500
    on.shards(*TWO)
    on.iterator("a", "i1", **at(since))
    on.iterator("b", "i2", **at(since))
    on.get("i1", range(1, 3), None, limit=ONCE)
    on.get("i2", range(3, 4), "i3", limit=ONCE)
    assert offsets(records(on.admin(), "s", RecordsFrom(since=since), 3, None)) == ["1", "2", "3"]


def test_a_time_to_come_is_not_asked_for_and_earlier_records_are_left_out(on: Setting) -> None:
    """AWS refuses times that its own clock has not reached."""
    on.shards(("a", None, True))
    on.iterator("a", "i1", **at(NOW - 2_000))
    on.get("i1", range(1, 3), "i2", limit=ONCE)
    on.get("i2", range(0), "i3", limit=ONCE)
    found = list(records(on.admin(), "s", RecordsFrom(since=NOW + 60_000), None, 0))
    assert found == [None, None]  # of another time: so that a reader that has left is noticed


def test_one_shard_is_read_alone(on: Setting) -> None:
    on.shards(*TWO)
    on.iterator("a", "i1")
    answer = {
        "Records": [{"SequenceNumber": "1", "Data": b"1", "PartitionKey": "k"}],
        "ChildShards": [{"ShardId": "b", "ParentShards": ["a"], "HashKeyRange": RANGE}],
    }
    on.stub.add_response("get_records", answer, {"ShardIterator": "i1", "Limit": ONCE})
    assert offsets(records(on.admin(), "s", RecordsFrom(True, partition="a"), None, None)) == ["1"]
    on.shards(*TWO)
    with pytest.raises(StoreError) as caught:
        next(records(on.admin(), "s", RecordsFrom(partition="c"), None, None))
    assert (caught.value.code, caught.value.detail) == ("entity-not-found", "Stream s has no shard c.")
    assert caught.value.faults[0].hint == "Its shards are a, b."


def test_a_reader_of_new_records_that_has_paused_goes_on_where_it_began(on: Setting) -> None:
    on.shards(*TWO)
    on.iterator("b", "i1", ShardIteratorType="LATEST")
    on.refuse("ExpiredIteratorException")
    on.iterator("b", "i2", **at(NOW))
    on.get("i2", range(5, 6), "i3", limit=ONCE)
    on.refuse("ExpiredIteratorException")
    on.iterator("b", "i4", **after("5"))
    on.get("i4", range(6, 7), "i5", limit=ONCE)
    assert offsets(records(on.admin(), "s", RecordsFrom(), 2, None)) == ["5", "6"]


def test_a_shard_that_does_not_answer_is_not_silent(on: Setting) -> None:
    on.shards(("a", None, True))
    on.iterator("a", "i1")
    for _ in range(4):
        on.refuse("ProvisionedThroughputExceededException")
    on.get("i1", range(1, 2), "i2", limit=ONCE)
    on.get("i2", range(0), "i3", limit=ONCE)
    assert offsets(records(on.admin(), "s", BEGINNING, None, 0.0)) == ["1"]


def test_the_newest_records_are_looked_for_from_the_end(on: Setting) -> None:
    """In stretches, each of which begins earlier; never from the beginning while there are enough."""
    arrived = int(MADE_MS)
    for reach in (2, 60, 1_800):
        on.shards(("a", None, True))
        on.iterator("a", "i1", **at(NOW - reach * 1000))
        on.get("i1", range(0), "i2", limit=ONCE)
    on.shards(("a", None, True))
    on.iterator("a", "i1", **at(NOW - 21_600_000))
    on.get("i1", range(1, 6), "i2", limit=ONCE, behind=900)
    on.get("i2", range(6, 9), "i3", limit=ONCE)
    found = newest_of(on.admin(), "s", 3, 5.0)
    assert ([record.offset for record in found.records], found.whole) == (["6", "7", "8"], True)
    assert {record.timestamp for record in found.records} == {arrived}
    assert MADE.timestamp() * 1000 == arrived


def test_of_a_stream_with_few_records_all_are_shown(on: Setting) -> None:
    for reach in (2, 60, 1_800, 21_600, None):
        on.shards(("a", None, True))
        on.iterator("a", "i1", **(at(NOW - reach * 1000) if reach else {}))
        on.get("i1", range(1, 3) if reach is None else range(0), "i2", limit=ONCE)
    found = newest_of(on.admin(), "s", 100, 5.0)
    assert ([record.offset for record in found.records], found.whole) == (["1", "2"], True)


def test_a_producer_at_work_does_not_keep_a_sample_from_ending(on: Setting) -> None:
    on.shards(("a", None, True))
    on.iterator("a", "i1", **at(NOW - 2_000))
    answer = {
        "Records": [
            {
                "SequenceNumber": str(n),
                "Data": b"v",
                "PartitionKey": "k",
                "ApproximateArrivalTimestamp": datetime.fromtimestamp(NOW / 1000 - n, UTC),
            }
            for n in (1, 0)
        ],
        "MillisBehindLatest": 0,
        "NextShardIterator": "i2",
    }
    on.stub.add_response("get_records", answer, {"ShardIterator": "i1", "Limit": ONCE})
    found = newest_of(on.admin(), "s", 2, 5.0)
    assert [record.offset for record in found.records] == ["1", "0"]


def test_a_sample_that_takes_too_long_says_so(on: Setting) -> None:
    on.shards(("a", None, True))
    on.iterator("a", "i1", **at(NOW - 2_000))
    for _ in itertools.repeat(None, 5):
        on.refuse("ProvisionedThroughputExceededException")
    found = newest_of(on.admin(), "s", 2, 0.9)
    assert (found.records, found.whole) == ([], False)

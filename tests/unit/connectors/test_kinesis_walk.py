"""Walking a stream: shard ends, reshards, throttling, limits, replay. The client is botocore's, stubbed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from kinesis_stub import MADE_MS, RANGE, Setting
from own_clock import set_clock

from leatstream.connectors.kinesis import shards as kinesis_shards
from leatstream.connectors.kinesis.shards import Gone, reread


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch) -> Iterator[Setting]:
    setting = Setting()
    set_clock(monkeypatch, kinesis_shards, sleep=setting.clock.sleep)
    yield setting
    setting.stub.assert_no_pending_responses()


def offset(start: str = "TRIM_HORIZON", **positions: str) -> dict[str, Any]:
    return {"start": start, "made": MADE_MS, "s": positions}


def test_a_new_query_starts_at_the_beginning_the_end_or_a_time(on: Setting) -> None:
    found = (("a", None, False), ("b", "a", True))
    for _ in range(3):
        on.shards(*found)
        on.made()
    assert on.walk.initial("earliest", None) == offset(a="")
    assert on.walk.initial("timestamp", 1700) == offset("@1700", a="")
    latest = on.walk.initial("latest", None)
    assert latest["s"] == {"a": "!", "b": ""}
    assert latest["start"].startswith("@1")


def test_children_come_in_only_after_their_parent_was_read_to_its_end(on: Setting) -> None:
    on.made()
    on.shards(("a", None, False), ("b", "a", True))
    on.iterator("a", "i1")
    on.get("i1", range(1, 4), "i2", behind=500)
    on.get("i2", range(4, 6), None)
    on.shards(("a", None, False), ("b", "a", True))
    first = on.walk.advance(offset(a=""), None)
    assert first == offset(a="5!", b="")
    assert on.kept == {"a": ["1", "2", "3", "4", "5"]}

    on.iterator("b", "i3")
    on.get("i3", range(6, 8), "i4")
    second = on.walk.advance(first, None)
    assert second == offset(a="5!", b="7")
    # Later the parent's records expire, and it leaves the list and the offset.
    again = Setting()
    again.made()
    again.shards(("b", "a", True))
    again.iterator("b", "i5", ShardIteratorType="AFTER_SEQUENCE_NUMBER", StartingSequenceNumber="7")
    again.get("i5", range(0), "i6")
    assert again.walk.advance(second, None) == offset(b="7")


def test_a_merged_shard_waits_for_both_parents(on: Setting) -> None:
    on.made()
    numbers = {"StartingSequenceNumber": "1", "EndingSequenceNumber": "9"}
    listed = [
        {"ShardId": "a", "HashKeyRange": RANGE, "SequenceNumberRange": numbers},
        {"ShardId": "b", "HashKeyRange": RANGE, "SequenceNumberRange": numbers},
        {
            "ShardId": "c",
            "ParentShardId": "a",
            "AdjacentParentShardId": "b",
            "HashKeyRange": RANGE,
            "SequenceNumberRange": {"StartingSequenceNumber": "9"},
        },
    ]
    on.stub.add_response("list_shards", {"Shards": listed}, {"StreamName": "s"})
    on.iterator("b", "i", ShardIteratorType="AFTER_SEQUENCE_NUMBER", StartingSequenceNumber="1")
    on.get("i", range(0), "j")
    assert on.walk.advance(offset(a="3!", b="1"), None) == offset(a="3!", b="1")


def test_an_empty_answer_is_not_the_end_of_a_shard(on: Setting) -> None:
    on.made()
    on.shards(("a", None, False))
    on.iterator("a", "i1")
    on.get("i1", range(0), "i2")
    still = on.walk.advance(offset(a=""), None)
    assert still == offset(a="")
    assert on.kept == {}
    on.get("i2", range(1, 3), "i3")
    assert on.walk.advance(still, None) == offset(a="2")


def test_a_limit_ends_the_batch_and_the_next_one_goes_on(on: Setting) -> None:
    on.made()
    on.shards(("a", None, True))
    on.iterator("a", "i1")
    on.get("i1", range(1, 3), "i2", limit=3, behind=9000)
    on.get("i2", range(3, 4), "i3", limit=1, behind=9000)
    half = on.walk.advance(offset(a=""), 3)
    assert half == offset(a="3")
    on.get("i3", range(4, 5), "i4", limit=3)
    assert on.walk.advance(half, 3) == offset(a="4")


def test_throttling_is_waited_out(on: Setting) -> None:
    on.made()
    on.shards(("a", None, True))
    on.iterator("a", "i1")
    on.refuse("ProvisionedThroughputExceededException")
    position = on.walk.advance(offset(a=""), None)
    assert position == offset(a="")
    on.get("i1", range(1, 2), "i2")
    before = on.clock.at
    for _ in range(20):
        position = on.walk.advance(position, None)
        if position != offset(a=""):
            break
    assert position == offset(a="1")
    assert on.clock.at > before


def test_an_old_iterator_is_fetched_anew_at_the_same_place(on: Setting) -> None:
    on.made()
    on.shards(("a", None, True))
    after = {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "StartingSequenceNumber": "5"}
    on.iterator("a", "old", **after)
    on.refuse("ExpiredIteratorException")
    on.iterator("a", "new", **after)
    on.get("new", range(6, 7), "n2")
    assert on.walk.advance(offset(a="5"), None) == offset(a="6")


def test_a_stream_made_anew_and_an_expired_shard_are_told(on: Setting) -> None:
    on.made()
    with pytest.raises(Gone, match="created again"):
        on.walk.advance(offset(a="5") | {"made": "1"}, None)
    on.made()
    on.shards(("b", None, True))
    with pytest.raises(Gone, match="shard a"):
        on.walk.advance(offset(a="5"), None)


def test_what_a_user_may_not_do_is_raised(on: Setting) -> None:
    from botocore.exceptions import ClientError

    on.made()
    on.shards(("a", None, True))
    on.iterator("a", "i1")
    on.refuse("AccessDeniedException")
    with pytest.raises(ClientError):
        on.walk.advance(offset(a=""), None)


def numbers_of(batches: Iterator[Sequence[Mapping[str, Any]]]) -> list[str]:
    return [r["SequenceNumber"] for batch in batches for r in batch]


def test_a_batch_read_again_has_the_same_records_and_not_one_more(on: Setting) -> None:
    on.iterator("a", "i1", ShardIteratorType="AFTER_SEQUENCE_NUMBER", StartingSequenceNumber="2")
    on.get("i1", range(3, 5), "i2")
    on.refuse("ProvisionedThroughputExceededException")
    on.get("i2", range(0), "i3")
    on.get("i3", range(5, 9), "i4")
    assert numbers_of(reread(on.client, "s", "a", "TRIM_HORIZON", "2", "6")) == ["3", "4", "5", "6"]
    assert numbers_of(reread(on.client, "s", "a", "TRIM_HORIZON", "6", "6!")) == []
    assert numbers_of(reread(on.client, "s", "a", "TRIM_HORIZON", "", "!")) == []


@pytest.mark.parametrize(("found", "following"), [(range(8, 9), "i2"), (range(3, 5), None)])
def test_records_that_have_expired_fail_a_repeated_batch(
    on: Setting, found: range, following: str | None
) -> None:
    on.iterator("a", "i1", ShardIteratorType="AFTER_SEQUENCE_NUMBER", StartingSequenceNumber="2")
    on.get("i1", found, following)
    with pytest.raises(Gone, match="not there any more"):
        numbers_of(reread(on.client, "s", "a", "TRIM_HORIZON", "2", "6"))

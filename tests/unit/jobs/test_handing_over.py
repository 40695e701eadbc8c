"""Where a version takes over from another: what is planned in Spark's log, and when it may."""

from __future__ import annotations

import json
from typing import Any

import pytest

from leatstream.errors import JobError
from leatstream.plan.hand_over import HandOver, Reached, covers, matched, positions_in
from leatstream_jobs.batches.handing_over import planned_entry, same_plan

TICKS = '{"logOffset":3}'
BEFORE = "\n".join(
    [
        "v1",
        '{"batchWatermarkMs":1000,"batchTimestampMs":5,"conf":{"spark.sql.shuffle.partitions":"2"}}',
        '{"b":{"0":4}}',
        TICKS,
        '{"a":{"0":7,"1":9}}',
        "-",
    ]
)
COMMIT = 'v1\n{"nextBatchWatermarkMs":2000}'
ENDS = [{"a": {"0": 8, "1": 9, "2": 1}}, {"b": {"0": 6}}]


def reached(*offsets: dict[str, dict[str, int]], given: int | None, coming: int | None) -> Reached:
    told: dict[str, Any] = {"watermark_us": given, "next_watermark_us": coming}
    return Reached(checkpoint="g1", batch=4, offsets=list(offsets), **told)


def test_the_planned_batch_ends_where_the_version_before_has_ended() -> None:
    hand_over = HandOver(checkpoint="g1", batch=5, offsets=ENDS, watermark_us=3_000_500)
    entry = planned_entry(BEFORE, COMMIT, hand_over, 99)
    version, head, *lines = entry.splitlines()
    assert (version, json.loads(head)) == (
        "v1",
        {"batchWatermarkMs": 3000, "batchTimestampMs": 99, "conf": {"spark.sql.shuffle.partitions": "2"}},
    )
    assert lines == ['{"b":{"0":6}}', TICKS, '{"a":{"0":8,"1":9,"2":1}}', "-"], "ticks stay where they were"
    assert same_plan(entry, planned_entry(BEFORE, COMMIT, hand_over, 100))
    assert not same_plan(
        entry, planned_entry(BEFORE, COMMIT, hand_over.model_copy(update={"watermark_us": 0}), 99)
    )
    assert (
        json.loads(
            planned_entry(BEFORE, COMMIT, HandOver(checkpoint="g1", batch=5, offsets=ENDS), 1).splitlines()[1]
        )["batchWatermarkMs"]
        == 2000
    ), "without a word it goes by its own event time"


def test_other_topics_are_refused() -> None:
    with pytest.raises(JobError, match="does not fit"):
        planned_entry(BEFORE, COMMIT, HandOver(checkpoint="g1", batch=5, offsets=ENDS[:1]), 1)
    with pytest.raises(JobError, match="does not fit"):
        planned_entry(BEFORE.replace("v1", "v2"), COMMIT, HandOver(checkpoint="g1", batch=5, offsets=ENDS), 1)


def test_a_topic_that_is_read_twice_is_matched_in_its_order() -> None:
    one, two = {"a": {"0": 1}}, {"a": {"0": 2}}
    assert matched([one, one], [two, one]) == [two, one]
    assert matched([one], [one, two]) is None
    assert matched([one], [{"b": {"0": 1}}]) is None


@pytest.mark.parametrize("line", ["-", TICKS, "{}", '{"a":{"0":"49"}}', '"a"', "[1]"])
def test_what_is_no_position_in_topics(line: str) -> None:
    assert positions_in(line) is None


@pytest.mark.parametrize(
    ("before", "after", "may"),
    [
        (reached({"a": {"0": 5}}, given=9, coming=9), reached({"a": {"0": 5}}, given=7, coming=9), True),
        (reached({"a": {"0": 5}}, given=8, coming=9), reached({"a": {"0": 5}}, given=7, coming=9), False),
        (reached({"a": {"0": 4}}, given=9, coming=9), reached({"a": {"0": 5}}, given=7, coming=9), False),
        (
            reached({"a": {"0": 5, "1": 1}}, given=9, coming=9),
            reached({"a": {"0": 5}}, given=9, coming=9),
            True,
        ),
        (reached({"a": {"0": 5}}, given=9, coming=9), reached({"a": {"1": 0}}, given=9, coming=9), False),
        (
            reached({"a": {"0": 5}}, given=None, coming=None),
            reached({"a": {"0": 5}}, given=7, coming=9),
            True,
        ),
        (
            reached({"a": {"0": 5}}, given=3, coming=3),
            reached({"a": {"0": 5}}, given=None, coming=None),
            True,
        ),
    ],
)
def test_it_may_take_over_once_the_version_before_has_read_and_given_as_much(
    before: Reached, after: Reached, may: bool
) -> None:
    assert covers(before, after) is may

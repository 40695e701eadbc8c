"""How many records the next batch takes, of what the last one took and how long that was."""

from __future__ import annotations

from typing import Any

import pytest

from leatstream_jobs.attempt.batch_size import FIRST, FIRST_OF_SEVERAL, LEAST, BatchSize


class Spec:
    """What a batch's size is made of."""

    def __init__(
        self, most: int = 500_000, target_ms: int | None = 5_000, kinds: tuple[str, ...] = ("kafka",)
    ) -> None:
        self.max_offsets_per_trigger, self.target_batch_ms = most, target_ms
        self.functions: list[str] = []
        self.sources = [type("S", (), {"store": type("R", (), {"kind": kind})()})() for kind in kinds]


def size(*arguments: Any) -> BatchSize:
    spec: Any = Spec(*arguments)
    return BatchSize(spec)


def report(rows: int, took: int, **more: Any) -> dict[str, Any]:
    return {"sources": [{"numInputRows": rows}], "durationMs": {"triggerExecution": took}} | more


def test_it_begins_small_and_grows_by_steps_up_to_the_bound() -> None:
    one = size()
    assert one.limit == FIRST
    assert [one.after(report(one.limit, 500)) for _ in range(4)] == [200_000, 400_000, 500_000, 500_000]


def test_of_several_sources_it_begins_with_few_as_a_join_makes_many_rows() -> None:
    one = size(500_000, 5_000, ("kafka", "kafka"))
    assert one.limit == FIRST_OF_SEVERAL
    assert one.after(report(one.limit, 100)) == 2 * FIRST_OF_SEVERAL
    assert size(500_000, 5_000, ("kafka", "kinesis")).limit == 500_000, "not of stores that are asked once"


def test_with_functions_of_users_it_begins_with_few_as_their_time_out_is_for_a_batch() -> None:
    spec: Any = Spec()
    spec.functions = ["slow"]
    one = BatchSize(spec)
    assert one.limit == LEAST
    assert one.after(report(one.limit, 5_000)) == LEAST
    assert one.after(report(one.limit, 100)) == 2 * LEAST


def test_a_slow_sink_makes_batches_smaller_until_they_last_as_wanted() -> None:
    one = size()
    for _ in range(10):
        one.after(report(one.limit, one.limit))  # a millisecond a record
    assert one.limit == pytest.approx(5_000, rel=0.1)


def test_a_batch_that_was_not_full_does_not_make_it_grow() -> None:
    one = size()
    assert one.after(report(10, 900)) == FIRST
    assert one.after(report(0, 0)) == FIRST
    assert one.after({"sources": []}) == FIRST
    assert one.after(report(50_000, 10_000)) == 50_000, "but too long a one makes it smaller"


def test_small_changes_are_left_alone_and_ticks_do_not_count() -> None:
    one = size()
    assert one.after(report(FIRST, 4_700)) == FIRST
    ticks = {"description": "FileStreamSource[x]", "numInputRows": 9_000_000}
    assert one.after(report(5, 10, sources=[ticks])) == FIRST


@pytest.mark.parametrize(
    ("arguments", "limit"),
    [((500_000, None), 500_000), ((300, 5_000), 300), ((500_000, 5_000, ("kafka", "kinesis")), 500_000)],
)
def test_where_it_begins(arguments: tuple[Any, ...], limit: int) -> None:
    assert size(*arguments).limit == limit


def test_it_stays_where_no_target_is_set_and_above_the_least() -> None:
    fixed = size(500_000, None)
    assert fixed.after(report(500_000, 60_000)) == 500_000
    few = size(300, 100)
    assert few.after(report(300, 60_000)) == 300, "a bound below the least one stays"
    least = size(500_000, 100)
    assert [least.after(report(least.limit, 60_000)) for _ in range(9)][-1] == 1_000

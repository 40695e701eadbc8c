"""How old a query's lag is, with clocks that the test moves."""

from __future__ import annotations

from typing import Any

import pytest

from leatstream_jobs.attempt.lag_age import LagAge

MIDNIGHT = 1_767_225_600.0  # 2026-01-01T00:00:00Z


class Clock:
    """Monotonic, and the time of day."""

    at = 0.0

    def now(self) -> float:
        return self.at

    def wall(self) -> float:
        return MIDNIGHT + self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


def begun(second: int) -> dict[str, Any]:
    return {"timestamp": f"2026-01-01T00:00:{second:02}.000Z"}


def test_a_batch_looks_as_it_begins_and_the_newest_counts(clock: Clock) -> None:
    age = LagAge(realtime=False, now=clock.now, wall=clock.wall)
    assert age.seconds() is None
    clock.at = 20.0
    age.take([begun(1), begun(8)])
    assert age.seconds() == 12
    clock.at = 30.0
    assert age.seconds() == 22
    age.take([])
    assert age.seconds() == 22


def test_a_real_time_batch_reports_the_ends_that_it_has_read_to(clock: Clock) -> None:
    age = LagAge(realtime=True, now=clock.now, wall=clock.wall)
    clock.at = 58.0
    age.take([begun(1)])
    assert age.seconds() == 0


def test_a_query_that_waits_goes_on_looking(clock: Clock) -> None:
    """Two statuses may be of one look; the third is of one that began after the first was seen."""
    age = LagAge(realtime=False, now=clock.now, wall=clock.wall)
    age.take([begun(0)])
    for second, status in ((10, "a"), (11, "a"), (12, "b"), (13, "b")):
        clock.at = second
        age.waits(status)
        assert age.seconds() == second
    clock.at = 14
    age.waits("c")
    assert age.seconds() == 14 - 11
    clock.at = 15
    age.waits("d")
    assert age.seconds() == 15 - 13


def test_a_batch_that_began_before_makes_no_lag_older(clock: Clock) -> None:
    age = LagAge(realtime=False, now=clock.now, wall=clock.wall)
    clock.at = 30.0
    age.take([begun(25)])
    age.take([begun(3)])
    assert age.seconds() == 5


def test_a_clock_that_was_set_back_makes_no_lag_of_the_future(clock: Clock) -> None:
    age = LagAge(realtime=False, now=clock.now, wall=lambda: MIDNIGHT - 90)
    age.take([begun(3)])
    assert age.seconds() == 0

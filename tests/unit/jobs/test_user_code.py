"""The time-out of users' functions."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from leatstream_jobs.functions.user_code import Code, UserCodeError

SWALLOWS = """
import time

def slow(x):
    end = time.monotonic() + 20
    try:
        while time.monotonic() < end:
            pass
    except:
        pass
    while time.monotonic() < end:
        pass
    return x
"""
QUICK = "def slow(x):\n    return x + 1\n"


@pytest.fixture(autouse=True)
def _handler() -> Iterator[None]:
    before = signal.getsignal(signal.SIGALRM)
    yield
    signal.signal(signal.SIGALRM, before)


def code(source: str, timeout: float) -> Code:
    made = Code("slow", "slow.py", source, "slow", ["BIGINT"], "BIGINT", timeout)
    # As of another task, so that this one begins.
    made._task = "before"
    return made


def test_a_function_that_catches_everything_is_stopped_all_the_same() -> None:
    one = code(SWALLOWS, 0.05)
    with pytest.raises(UserCodeError, match="time-out"):
        one.run(lambda slow: slow(1))
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_no_alarm_is_left_behind_a_call() -> None:
    assert code(QUICK, 30).run(lambda slow: slow(1)) == 2
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)

"""When a query that nothing comes for is asked for less often."""

from __future__ import annotations

from typing import Any

from leatstream_jobs.attempt.polling import QUIET, SHORT_MS, Polling

(SOON, MIDDLE_MS), (LATE, LONG_MS) = QUIET


def report(rows: int, **more: Any) -> dict[str, Any]:
    return {"sources": [{"numInputRows": rows} | more]}


def test_the_pause_grows_while_nothing_comes() -> None:
    clock = [100.0]
    polling = Polling(lambda: clock[0])
    assert polling.after([]) == SHORT_MS
    clock[0] += SOON
    assert polling.after([report(0)]) == MIDDLE_MS
    clock[0] += LATE - SOON
    assert polling.after([report(0)]) == LONG_MS
    assert polling.after([report(0), report(3)]) == SHORT_MS
    clock[0] += SOON - 1
    assert polling.after([]) == SHORT_MS
    clock[0] += 1
    assert polling.after([report(1, description="FileStreamSource[ticks]")]) == MIDDLE_MS


def test_a_fault_leaves_it_and_is_told_once(caplog: Any) -> None:
    clock = [0.0]
    polling = Polling(lambda: clock[0])
    broken: Any = object()
    for _ in range(3):
        clock[0] += LATE
        polling.look(broken, [])
    assert polling.pause_ms == SHORT_MS
    assert len(caplog.records) == 1

"""When a source counts as silent."""

from __future__ import annotations

from itertools import pairwise

from leatstream.plan.job_spec import SourceSpec
from leatstream_jobs.reading.idle import IdleSources, tick_folder

STORE = {"name": "k", "kind": "kafka", "config": {}}


def source(view: str, entity: str, timeout: int | None) -> SourceSpec:
    return SourceSpec.model_validate(
        {
            "view": view,
            "relation": entity,
            "store": STORE,
            "entity": entity,
            "columns": [],
            "value_format": "json",
        }
        | {"watermark_delay_ms": 0, "idle_timeout_ms": timeout}
    )


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def look(idle: IdleSources, ends: dict[str, object], **more: object) -> list[str]:
    said = {"fresh": True, "at_rest": True, "state_rows": 1} | more
    return idle.idle(ends, **said)  # type: ignore[arg-type]


def test_a_source_is_silent_after_its_time_out() -> None:
    clock = Clock()
    idle = IdleSources([source("a", "ta", 2000), source("b", "tb", None)], "file:/x", clock)
    assert look(idle, {"ta": {"0": 5}, "tb": {"0": 1}}) == []
    clock.now += 1.9
    assert look(idle, {"ta": {"0": 5}, "tb": {"0": 9}}) == []
    clock.now += 0.1
    assert look(idle, {"ta": {"0": 5}, "tb": {"0": 9}}) == ["a"]
    # The next one is due after another time-out; a record ends the silence.
    assert look(idle, {"ta": {"0": 5}, "tb": {"0": 9}}) == []
    clock.now += 2.0
    assert look(idle, {"ta": {"0": 6}}) == []
    clock.now += 2.0
    assert look(idle, {"ta": {"0": 6}}) == ["a"]


def test_ticks_become_rare_in_a_long_silence() -> None:
    """Each is noted in the checkpoint for good."""
    clock = Clock()
    idle = IdleSources([source("a", "ta", 1000)], "file:/x", clock)
    ticks: list[float] = []
    for second in range(2 * 86_400):
        clock.now = 100.0 + second
        if look(idle, {"ta": {"0": 5}}):
            ticks.append(second)
    assert ticks[:60] == [float(i + 1) for i in range(60)], "soon at first"
    pauses = [after - before for before, after in pairwise(ticks)]
    assert max(pauses) == 60, "and never later than a minute"
    assert all(pause <= 2 + at / 60 for at, pause in zip(ticks[1:], pauses, strict=True))
    assert len(ticks) < 3_300
    # The next silence begins as the first.
    clock.now += 1
    assert look(idle, {"ta": {"0": 6}}) == []
    clock.now += 1
    assert look(idle, {"ta": {"0": 6}}) == ["a"]


def test_what_is_not_known_is_no_silence() -> None:
    clock = Clock()
    idle = IdleSources([source("a", "ta", 500)], "file:/x", clock)
    look(idle, {"ta": {"0": 5}})
    clock.now += 60.0
    # A batch is at work, and what it reads is in no report yet.
    assert look(idle, {"ta": {"0": 5}}, fresh=False, at_rest=False) == []
    # Fell behind: left out.
    assert look(idle, {}) == []
    assert look(idle, {"ta": {"0": 5}}) == []
    clock.now += 60.0
    # Without state no window waits.
    assert look(idle, {"ta": {"0": 5}}, state_rows=0) == []
    assert look(idle, {"ta": {"0": 5}}, at_rest=False) == ["a"]


def test_a_store_that_hangs_is_not_silent() -> None:
    """Its backlog comes when it is back, and must not be late then."""
    clock = Clock()
    idle = IdleSources([source("a", "ta", 5000)], "file:/x", clock)
    look(idle, {"ta": {"0": 5}})
    for _ in range(90):
        clock.now += 1.0
        assert look(idle, {"ta": {"0": 5}}, fresh=False, asking=True) == []
    # It answers: only from now on may it be silent.
    clock.now += 1.0
    assert look(idle, {"ta": {"0": 5}}) == []
    clock.now += 4.0
    assert look(idle, {"ta": {"0": 5}}) == ["a"]


def test_short_questions_do_not_end_a_silence() -> None:
    clock = Clock()
    idle = IdleSources([source("a", "ta", 5000)], "file:/x", clock)
    look(idle, {"ta": {"0": 5}})
    for _ in range(6):
        clock.now += 1.0
        assert look(idle, {"ta": {"0": 5}}, asking=True) == []
    assert look(idle, {"ta": {"0": 5}}) == ["a"]


def test_ticks_lie_in_the_checkpoint() -> None:
    assert tick_folder("file:/c/g1/", "leat_src_0") == "file:/c/g1/ticks/leat_src_0"

"""The loop of passes outlives whatever a pass meets, and says of it what a person on call can read."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from leatstream.engine import loop as module
from leatstream.engine.loop import ReconcileLoop
from leatstream.errors import CatalogAway, CatalogBusy, CatalogFull
from leatstream.services.environment import Passes
from leatstream.storage.leases import CatalogLeases


def passes(monkeypatch: pytest.MonkeyPatch, *ends: Exception | None) -> Passes:
    """Run passes that end so, one after another, at no pause between them."""
    monkeypatch.setattr(module, "_PASS_SECONDS", 0.0)
    left = list(ends)
    made_passes = Passes(ended=-1000.0)
    env: Any = SimpleNamespace(
        changed=SimpleNamespace(value=0, wait=lambda seen, _: seen), passes=made_passes
    )

    def maintain() -> None:
        end = left.pop(0)
        if not left:
            made._stop.set()
        if end is not None:
            raise end

    made = ReconcileLoop(env, SimpleNamespace(maintain=maintain, note=lambda: None))  # type: ignore[arg-type]
    monkeypatch.setattr(made, "_reconcile", lambda: None)
    made._run()
    assert not left
    return made_passes


@pytest.mark.parametrize("end", [None, CatalogAway("connection refused"), KeyError("of our own")])
def test_a_pass_has_ended_however_it_went(monkeypatch: pytest.MonkeyPatch, end: Exception | None) -> None:
    """The loop lives: that the catalog is away is told by another part."""
    assert not passes(monkeypatch, end).stand_still()


def test_a_catalog_that_is_away_is_told_once_and_in_a_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    away, busy = CatalogAway("connection refused"), CatalogBusy("It is busy.")
    with caplog.at_level(logging.WARNING):
        passes(monkeypatch, away, busy, None, away)
    assert [record.exc_info for record in caplog.records] == [None, None]
    assert "the catalog does not answer" in caplog.messages[0]


def test_the_leases_tell_it_in_the_same_way() -> None:
    """They have an engine of their own, and are what each pass begins with."""
    leases = CatalogLeases("postgresql://x@127.0.0.1:1/none", "server", "checkpoints", 1, 1)
    for ask in (leases.renew, leases.others, lambda: leases.hand_over("q")):
        with pytest.raises(CatalogAway):
            ask()


START = datetime(2026, 1, 1, tzinfo=UTC)


def heard_since(monkeypatch: pytest.MonkeyPatch, *seen: tuple[float, float, Exception | None]) -> list[Any]:
    """Since when drivers are heard in passes at these times of the machine and of the clock, which end so."""
    machine, clock = iter([s[0] for s in seen]), iter([s[1] for s in seen])
    found: list[Any] = []
    ends = [s[2] for s in seen]
    env: Any = SimpleNamespace(
        changed=SimpleNamespace(value=0, wait=lambda seen, _: seen),
        clock=SimpleNamespace(now=lambda: START + timedelta(seconds=next(clock))),
        passes=SimpleNamespace(seconds=0.0, count=0),
        listening_since=None,
    )

    def reconcile_all(*_: Any) -> None:
        since = env.listening_since
        found.append(None if since is None else (since - START).total_seconds())
        if len(found) == len(seen):
            made._stop.set()
        if (end := ends[len(found) - 1]) is not None:
            raise end

    monkeypatch.setattr(module, "_PASS_SECONDS", 0.0)
    for name in ("sweep", "release_strays"):
        monkeypatch.setattr(module, name, lambda *_: None)
    monkeypatch.setattr(module, "reconcile_all", reconcile_all)
    made = ReconcileLoop(env, SimpleNamespace(maintain=lambda: None, note=lambda: None))  # type: ignore[arg-type]
    made._last = 0.0
    monkeypatch.setattr(made, "_machine_time", lambda: next(machine))
    made._run()
    return found


@pytest.mark.parametrize("end", [CatalogAway("refused"), CatalogBusy("It is busy."), CatalogFull("full")])
def test_after_the_catalog_was_away_drivers_are_heard_first(
    monkeypatch: pytest.MonkeyPatch, end: Exception
) -> None:
    """No heartbeat could be taken down in that time: their silence says nothing."""
    assert heard_since(monkeypatch, (0, 0, end), (1, 1, None)) == [None, 1]


@pytest.mark.parametrize(
    ("machine", "clock", "heard"),
    [
        (1, 1, None),
        (3, 3.5, None),
        (60, 60, 60),  # slow, or stopped
        (1, 60, 60),  # the machine slept, in which its own time stands still; or the clock was put forward
        (1, -60, -60),  # put back
    ],
)
def test_after_a_sleep_or_a_step_of_the_clock_drivers_are_heard_first(
    monkeypatch: pytest.MonkeyPatch, machine: float, clock: float, heard: float | None
) -> None:
    assert heard_since(monkeypatch, (0, 0, None), (machine, clock, None)) == [None, heard]


def test_a_fault_of_our_own_is_told_with_its_place(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        passes(monkeypatch, KeyError("of our own"), None)
    (record,) = caplog.records
    assert record.exc_info is not None


def test_old_checkpoints_are_looked_for_at_once_and_then_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([0.0, 1.0, 1.0, 300.0, 602.0, 602.0, 700.0])
    swept, passed, forgotten = [], [], []
    env: Any = SimpleNamespace(changed=SimpleNamespace(value=0, wait=lambda seen, _: seen))
    made = ReconcileLoop(env, SimpleNamespace())  # type: ignore[arg-type]
    made._mine = frozenset({"qry_1"})
    made._seen_mine.set()
    monkeypatch.setattr(made, "_machine_time", lambda: next(times))

    def copied(_env: Any, mine: Any) -> None:
        passed.append(mine)
        if len(passed) == 4:
            made._stop.set()

    monkeypatch.setattr(module, "copy_what_waits", copied)
    monkeypatch.setattr(module, "sweep_checkpoints", lambda _env, mine: swept.append((len(passed), mine)))
    monkeypatch.setattr(module, "forget_old_events", lambda _env: forgotten.append(len(passed)))
    monkeypatch.setattr(module, "forget_old_changes", lambda _env: None)
    monkeypatch.setattr(module, "forget_ended_sessions", lambda _env: None)
    monkeypatch.setattr(module, "note_waiting_sign_ins", lambda _env: None)
    made._copy()
    assert swept == [(1, {"qry_1"}), (3, {"qry_1"})]
    assert forgotten == [1, 3]

"""The loop of passes outlives whatever a pass meets, and says of it what a person on call can read."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from leatstream.engine import loop as module
from leatstream.engine.loop import ReconcileLoop
from leatstream.errors import CatalogAway, CatalogBusy
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

    made = ReconcileLoop(env, SimpleNamespace(maintain=maintain))  # type: ignore[arg-type]
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


@pytest.mark.parametrize("end", [CatalogAway("refused"), CatalogBusy("It is busy.")])
def test_after_the_catalog_was_away_drivers_are_heard_first(
    monkeypatch: pytest.MonkeyPatch, end: Exception
) -> None:
    """No heartbeat could be taken down in that time: their silence says nothing."""
    seen: list[Any] = []
    times = iter(range(10))
    env: Any = SimpleNamespace(
        changed=SimpleNamespace(value=0, wait=lambda seen, _: seen),
        clock=SimpleNamespace(now=lambda: next(times)),
        passes=SimpleNamespace(seconds=0.0, count=0),
        listening_since=None,
    )
    ends = [end, None]

    def reconcile_all(*_: Any) -> None:
        seen.append(env.listening_since)
        if (end := ends.pop(0)) is not None:
            raise end
        made._stop.set()

    monkeypatch.setattr(module, "_PASS_SECONDS", 0.0)
    for name in ("sweep", "release_strays"):
        monkeypatch.setattr(module, name, lambda *_: None)
    monkeypatch.setattr(module, "reconcile_all", reconcile_all)
    made = ReconcileLoop(env, SimpleNamespace(maintain=lambda: None))  # type: ignore[arg-type]
    made._run()
    assert seen == [None, 0]


def test_a_fault_of_our_own_is_told_with_its_place(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        passes(monkeypatch, KeyError("of our own"), None)
    (record,) = caplog.records
    assert record.exc_info is not None

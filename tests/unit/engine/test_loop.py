"""The loop of passes outlives whatever a pass meets, and says of it what a person on call can read."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from leatstream.engine import loop as module
from leatstream.engine.loop import ReconcileLoop
from leatstream.errors import CatalogAway


def passes(monkeypatch: pytest.MonkeyPatch, *ends: Exception | None) -> None:
    """Run passes that end so, one after another, at no pause between them."""
    monkeypatch.setattr(module, "_PASS_SECONDS", 0.0)
    left = list(ends)
    env: Any = SimpleNamespace(changed=SimpleNamespace(value=0, wait=lambda seen, _: seen))

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


def test_a_catalog_that_is_away_is_told_once_and_in_a_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    away = CatalogAway("connection refused")
    with caplog.at_level(logging.WARNING):
        passes(monkeypatch, away, away, None, away)
    assert [record.exc_info for record in caplog.records] == [None, None]
    assert "the catalog does not answer" in caplog.messages[0]


def test_a_fault_of_our_own_is_told_with_its_place(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        passes(monkeypatch, KeyError("of our own"), None)
    (record,) = caplog.records
    assert record.exc_info is not None

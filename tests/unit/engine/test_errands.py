"""What waits for one place is done in order, once, and beside what waits for another."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from leatstream.engine import errands as module
from leatstream.engine.errands import Errands
from leatstream.errors import CatalogAway, EngineError, LeatstreamError, StoreError

SECONDS = 20.0
FAR, NEAR = ("removal", "far"), ("removal", "near")
AWAY = StoreError("store-unreachable", "Store far does not answer.")


class Waits:
    """An errand that begins, and ends when it may."""

    def __init__(self, outcome: LeatstreamError | None = None) -> None:
        self.began, self.may_end = threading.Event(), threading.Event()
        self._outcome = outcome

    def __call__(self, _: LeatstreamError | None) -> LeatstreamError | None:
        self.began.set()
        assert self.may_end.wait(SECONDS)
        return self._outcome


@pytest.fixture
def env() -> Any:
    return SimpleNamespace(clock=SimpleNamespace(now=lambda: "now"), listening_since=None)


def join() -> None:
    for thread in threading.enumerate():
        if thread.name.split(" ")[0] in ("removal", "entities"):
            thread.join(SECONDS)
            assert not thread.is_alive()


def noting(seen: list[str], name: str) -> Callable[[LeatstreamError | None], LeatstreamError | None]:
    def errand(away: LeatstreamError | None) -> LeatstreamError | None:
        seen.append(f"{name}: {away.code}" if away else name)
        return away

    return errand


def test_one_place_waits_for_no_other(env: Any) -> None:
    errands, first, second = Errands(env), Waits(), Waits()
    errands(FAR, "a", first)
    errands(NEAR, "a", second)
    assert first.began.wait(SECONDS)
    assert second.began.wait(SECONDS)
    first.may_end.set()
    second.may_end.set()
    join()


def test_those_of_a_place_are_done_as_they_came_and_none_twice_at_a_time(env: Any) -> None:
    errands, first, seen = Errands(env), Waits(), []
    errands(FAR, "b", first)
    assert first.began.wait(SECONDS)
    for name in ("b", "c", "a", "c"):
        errands(FAR, name, noting(seen, name))
    first.may_end.set()
    join()
    assert seen == ["c", "a"]
    errands(FAR, "b", noting(seen, "b"))
    join()
    assert seen == ["c", "a", "b"]


def test_who_waits_where_the_place_proves_to_be_away_is_told_and_who_comes_later_asks(env: Any) -> None:
    errands, first, later, seen = Errands(env), Waits(AWAY), Waits(), []

    def noting_and_asking(away: LeatstreamError | None) -> LeatstreamError | None:
        errands(FAR, "d", noting(seen, "d"))
        return noting(seen, "c")(away)

    errands(FAR, "a", first)
    assert first.began.wait(SECONDS)
    errands(FAR, "b", noting(seen, "b"))
    errands(FAR, "c", noting_and_asking)
    errands(NEAR, "e", later)
    errands(NEAR, "f", noting(seen, "f"))
    first.may_end.set()
    for thread in threading.enumerate():
        if thread.name == "removal far":
            thread.join(SECONDS)
    assert seen == ["b: store-unreachable", "c: store-unreachable", "d"]
    later.may_end.set()
    join()
    assert seen[3:] == ["f"]


def test_no_more_places_of_a_kind_than_a_server_has_threads_for(
    env: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_PLACES", 1)
    errands, first, other, seen = Errands(env), Waits(), Waits(), []
    errands(FAR, "a", first)
    assert first.began.wait(SECONDS)
    errands(NEAR, "a", noting(seen, "a"))
    errands(("entities", "near"), "a", other)
    assert other.began.wait(SECONDS)
    first.may_end.set()
    other.may_end.set()
    join()
    assert seen == []
    errands(NEAR, "a", noting(seen, "a"))
    join()
    assert seen == ["a"]


@pytest.mark.parametrize("fault", [EngineError("engine-unavailable", "x"), KeyError("x"), CatalogAway("x")])
def test_a_fault_holds_up_nobody(env: Any, caplog: pytest.LogCaptureFixture, fault: Exception) -> None:
    errands, first, seen = Errands(env), Waits(), []

    def fails(_: LeatstreamError | None) -> None:
        first(None)
        raise fault

    with caplog.at_level(logging.WARNING):
        errands(FAR, "a", fails)
        errands(FAR, "b", noting(seen, "b"))
        first.may_end.set()
        join()
    assert seen == ["b"]
    told = [bool(record.exc_info) for record in caplog.records]
    assert told == {"EngineError": [False], "KeyError": [True], "CatalogAway": []}[type(fault).__name__]
    # Who finds the catalog away knows that no driver could be heard.
    assert env.listening_since == ("now" if isinstance(fault, CatalogAway) else None)


def test_the_end_waits_only_so_long_and_begins_nothing(env: Any) -> None:
    errands, first, seen = Errands(env), Waits(), []
    errands(FAR, "a", first)
    assert first.began.wait(SECONDS)
    errands(FAR, "b", noting(seen, "b"))
    errands.stop(0.0)
    errands(NEAR, "c", noting(seen, "c"))
    first.may_end.set()
    join()
    assert seen == []

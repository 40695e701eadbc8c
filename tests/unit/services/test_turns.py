"""Turns at planning: some at a time, each thread once, and the catalog's connections for the others too."""

from __future__ import annotations

import threading

import pytest

from leatstream.errors import EngineError
from leatstream.services.environment.turns import PLANNERS, UNITS_OF_A_PLAN, Turns
from leatstream.storage.engine import make_engine


def refused(turns: Turns) -> bool:
    """Whether another thread finds no turn."""
    found: list[Exception] = []

    def plan() -> None:
        try:
            with turns.taken():
                pass
        except EngineError as error:
            found.append(error)

    thread = threading.Thread(target=plan)
    thread.start()
    thread.join(30)
    assert not thread.is_alive()
    return bool(found)


def test_so_many_plan_and_one_more_is_told_to_try_again() -> None:
    turns = Turns(1, patience=0.0)
    assert not refused(turns)
    with turns.taken():
        assert refused(turns)
    assert not refused(turns)
    turns = Turns(0, patience=0.0)
    with pytest.raises(EngineError) as caught, turns.taken():
        raise AssertionError("a turn was found")
    assert (caught.value.code, caught.value.status, caught.value.retryable) == (
        "engine-unavailable",
        503,
        True,
    )


def test_a_plan_within_a_plan_takes_no_second_turn() -> None:
    turns = Turns(1, patience=0.0)
    with turns.taken():
        with turns.taken():
            pass
        assert refused(turns)  # the inner one has not given the turn back
    assert not refused(turns)


def test_a_plan_that_fails_gives_its_turn_back() -> None:
    turns = Turns(1, patience=0.0)
    with pytest.raises(KeyError), turns.taken(), turns.taken():
        raise KeyError
    assert not refused(turns)
    with turns.taken():
        assert refused(turns)


def test_one_that_waits_gets_the_turn_of_another() -> None:
    turns = Turns(1, patience=60.0)
    asked, got = threading.Event(), threading.Event()

    def plan() -> None:
        asked.set()
        with turns.taken():
            got.set()

    thread = threading.Thread(target=plan)
    with turns.taken():
        thread.start()
        assert asked.wait(30)
        assert not got.is_set()
    thread.join(30)
    assert got.is_set()


def test_plans_leave_connections_to_others() -> None:
    """Heartbeats, the reconciler and the one who writes must never wait for a plan."""
    pool = make_engine("postgresql://x@127.0.0.1:1/none").pool
    most = pool.size() + pool._max_overflow  # type: ignore[attr-defined]
    assert most - PLANNERS * UNITS_OF_A_PLAN >= 10

"""What fault runs rest on: when a fault is over, and that the parts that are killed start again."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import fault_parts
import pytest
from fault_parts import STARTS, Part, until
from fault_run import settle
from fault_watcher import Outcome, Watcher


def running(name: str, attempt: int = 1) -> dict[str, Any]:
    status = {"state": "running", "job": {"attempt": attempt}, "metrics": {"input_rows_total": 1}}
    return {"name": name, "status": status}


def test_a_list_without_a_query_tells_nothing_of_it() -> None:
    api: Any = SimpleNamespace(token="", url="")
    watcher = Watcher(api, "p_", Outcome(1))
    watcher.begun("api", None)
    for items in ([], [running("other")]):
        watcher._take(time.monotonic(), items)
        assert not watcher.settled()
    watcher._take(0.0, [running("p_a"), running("p_b")])
    watcher._take(time.monotonic(), [running("p_a")])
    assert not watcher.settled()
    watcher._take(time.monotonic(), [running("p_a"), running("p_b")])
    assert watcher.settled()


@pytest.mark.parametrize(("batch", "left"), [(None, 2), (0, 0)])
def test_only_a_batch_that_has_ended_makes_up_for_kills(batch: int | None, left: int) -> None:
    api: Any = SimpleNamespace(token="", url="")
    watcher = Watcher(api, "p_", Outcome(1))
    watcher.in_a_row["p_a"] = 2
    query = running("p_a")
    query["status"]["metrics"]["batch_id"] = batch
    watcher._take(time.monotonic(), [query])
    assert watcher.in_a_row["p_a"] == left


class Slow(Part):
    """A part whose starts take until they are let, or until it is killed."""

    name = "slow"

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.let = threading.Semaphore(0), threading.Event()
        self.lives = self.fails = False

    def start(self) -> None:
        if self.fails:
            raise RuntimeError("no")
        self.lives = True
        self.begun.release()
        until(lambda: self.let.is_set() or not self.lives, 20, "let")
        if not self.lives:
            raise RuntimeError("killed while it started")

    def alive(self) -> bool:
        return self.lives

    def kill(self) -> None:
        self.lives = False


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Slow]:
    monkeypatch.setattr(fault_parts, "AGAIN", 0.0)
    part = Slow()
    part.let.set()
    part.open()
    assert part.begun.acquire(timeout=20)
    part.let.clear()
    yield part
    part.let.set()
    part.release()


def test_a_part_that_is_killed_again_and_again_while_it_starts_is_not_given_up(slow: Slow) -> None:
    for _ in range(3 * STARTS):
        slow.strike(0.0)
        assert slow.begun.acquire(timeout=20)
    slow.let.set()
    assert slow.trouble is None


def test_a_part_that_cannot_start_is_given_up_and_told_also_after_the_last_fault(slow: Slow) -> None:
    api: Any = SimpleNamespace(token="", url="")
    outcome, watcher = Outcome(1), Watcher(api, "p_", Outcome(1))
    watcher.begun("slow", None)
    slow.fails = True
    slow.strike(0.0)
    settle(watcher, {"slow": slow}, outcome, lambda _: None)
    assert outcome.wrong == ["slow was not started again: RuntimeError('no')"]

"""What is waited for is said from the start, on a terminal, and nowhere else."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from leatstream.cli import wait_line
from leatstream.cli.output import Output
from leatstream.cli.selecting import follow
from leatstream.cli.wait_line import WaitLine


class Terminal:
    """Stands in for standard error; ``wrote`` is what a person saw."""

    def __init__(self, tty: bool) -> None:
        self.tty, self.wrote = tty, ""
        self.seen = threading.Event()

    def isatty(self) -> bool:
        return self.tty

    def write(self, text: str) -> None:
        self.wrote += text
        if "waiting" in text:
            self.seen.set()

    def flush(self) -> None:
        """Nothing is kept back."""


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], Terminal]:
    def make(tty: bool) -> Terminal:
        found = Terminal(tty)
        monkeypatch.setattr(sys, "stderr", found)
        monkeypatch.setattr(wait_line, "_FIRST", 0.01)
        monkeypatch.setattr(wait_line, "_TICK", 0.01)
        return found

    return make


def test_the_line_comes_and_goes(terminal: Callable[[bool], Terminal]) -> None:
    screen = terminal(True)
    with WaitLine("waiting for a driver") as line:
        assert screen.seen.wait(20)
        screen.seen.clear()
        line.text = "waiting for \x1b[2Jrows"
        assert screen.seen.wait(20)
    assert "waiting for a driver, 0 s" in screen.wrote
    assert screen.wrote.endswith("\r\x1b[2K")
    assert "\x1b[2J" not in screen.wrote


def test_what_is_answered_at_once_is_not_announced(
    terminal: Callable[[bool], Terminal], monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = terminal(True)
    monkeypatch.setattr(wait_line, "_FIRST", 60)
    with WaitLine("waiting"):
        pass
    assert screen.wrote == ""


def test_a_pipe_sees_nothing(terminal: Callable[[bool], Terminal]) -> None:
    screen = terminal(False)
    with WaitLine("waiting") as line:
        assert not line.shown
        time.sleep(0.05)
    assert screen.wrote == ""


class Rows:
    """A service whose SELECT waits for a driver, then gives a row."""

    def __init__(self, screen: Terminal) -> None:
        self.screen, self.asked = screen, False

    def rows(self, _: str, *, waits: bool) -> Any:
        self.asked = waits
        if waits:
            yield '{"waits": "waiting for a driver, which is starting Spark"}'
            self.screen.seen.clear()
            assert self.screen.seen.wait(20)
        yield '{"op": "+I", "row": {"n": 1}}'
        yield '{"end": {"reason": "limit", "rows": 1}}'


@pytest.mark.parametrize("tty", [True, False])
def test_a_select_says_what_it_waits_for(
    terminal: Callable[[bool], Terminal], capsys: pytest.CaptureFixture[str], tty: bool
) -> None:
    screen = terminal(tty)
    service: Any = Rows(screen)
    follow(service, {"rows": "/v1/x", "columns": [{"name": "n"}]}, Output.NDJSON)
    assert service.asked is tty
    assert ("which is starting Spark" in screen.wrote) is tty
    assert capsys.readouterr().out == '{"op": "+I", "row": {"n": 1}}\n'

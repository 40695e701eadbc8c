"""A reconciler that stands still is told of once, each time that it does."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from typing import Any

import pytest

from leatstream.engine import standstill
from leatstream.engine.standstill import StandstillWatch
from leatstream.services.environment import STILL_SECONDS, Passes


def long_ago() -> float:
    return time.monotonic() - STILL_SECONDS - 1


def test_it_is_said_once_with_what_to_do(caplog: pytest.LogCaptureFixture) -> None:
    passes = Passes()  # a loop that has not begun has its time
    watch = StandstillWatch(passes)
    with caplog.at_level(logging.WARNING):
        watch.look()
        assert not caplog.messages
        passes.ended = long_ago()
        watch.look()
        watch.look()
        assert len(caplog.messages) == 1
        assert f"kill -USR1 {os.getpid()}" in caplog.messages[0]
        passes.ended = time.monotonic()
        watch.look()
        assert len(caplog.messages) == 1
        passes.ended = long_ago()
        watch.look()
        assert len(caplog.messages) == 2


def test_nobody_has_to_ask(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, eventually: Callable[..., Any]
) -> None:
    monkeypatch.setattr(standstill, "_LOOK_SECONDS", 0.0)
    watch = StandstillWatch(Passes(ended=long_ago()))
    with caplog.at_level(logging.WARNING):
        watch.start()
        eventually(lambda: caplog.messages)
    watch.stop()
    watch.stop()  # as the server's end does
    assert len(caplog.messages) == 1

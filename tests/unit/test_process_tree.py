"""Memory of a process and its children, wherever it is told."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from leatstream.engine import memory
from leatstream_jobs.runtime.usage import Looks

MB = 1 << 20


class Process:
    """A driver, its JVM, a program that the JVM is about to start, and a worker that is gone at once."""

    def __init__(self, pid: int = 1) -> None:
        self.pid = pid

    def children(self, *, recursive: bool) -> list[Process]:
        assert recursive
        return [Process(2), Process(3), Process(4), Process(5)]

    def ppid(self) -> int:
        return {1: 0, 2: 1, 3: 2, 4: 2, 5: 1}[self.pid]

    def oneshot(self) -> Any:
        return contextlib.nullcontext()

    def memory_info(self) -> Any:
        if self.pid == 5:
            raise psutil.NoSuchProcess(5)
        sizes = {1: (50, 200), 2: (700, 4000), 3: (700, 4000), 4: (30, 60)}
        rss, vms = sizes[self.pid]
        return SimpleNamespace(rss=rss * MB, vms=vms * MB)

    def cpu_times(self) -> Any:
        return SimpleNamespace(user=1.0, system=0.5, children_user=0.25, children_system=0.25)


@pytest.fixture(autouse=True)
def processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "Process", Process)


def test_a_child_that_is_its_parent_still_counts_once_for_who_admits_drivers() -> None:
    assert memory.resident(1) == 780 * MB


def test_it_counts_once_for_the_query_that_the_driver_tells_of() -> None:
    assert Looks(lambda: 0.0).tree() == (780 * MB, 8.0)

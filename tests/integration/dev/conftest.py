"""Processes for the tests of the embedded stack: each ends with its test."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest
from deadlines import patient


def wait_for(condition: Callable[[], bool], seconds: float, what: str) -> None:
    """Wait until a condition holds, or fail naming it."""
    deadline = time.monotonic() + patient(seconds)
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"after {seconds:.0f} s still not: {what}")
        time.sleep(0.05)


@pytest.fixture(name="wait_for")
def wait_for_fixture() -> Callable[[Callable[[], bool], float, str], None]:
    return wait_for


@pytest.fixture
def run_python() -> Iterator[Callable[[str], subprocess.Popen[str]]]:
    """Start Python source in a process of its own, with readable output."""
    started: list[subprocess.Popen[str]] = []

    def run(source: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", source], stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()

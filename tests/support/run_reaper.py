"""Ends what a test run leaves alive, however the run ends: also after ``kill -9``.

Each pytest process marks its environment, which everything it starts inherits, and starts this file as a process
of its own that holds the other end of a pipe. The pipe closes when the pytest process is gone. Then every process
with the mark is asked to end, and is killed after a few seconds.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil

# The server passes LC_* on to its drivers, and no other program reads this one.
MARK = "LC_LEATSTREAM_TEST_RUN"
# Seconds after the end of the run, and what everything gets then. PostgreSQL waits for its clients at SIGTERM.
_STEPS = ((0.0, signal.SIGTERM), (2.0, signal.SIGINT), (6.0, signal.SIGKILL))
_QUIET = 2.0  # seconds without a marked process, after which nothing starts another one
_PR_SET_PDEATHSIG = 1


def start() -> None:
    """Mark this process's children, and have them end with it. May be called again."""
    if os.environ.get(MARK, "").startswith(f"{os.getpid()}-"):
        return
    os.environ.pop(MARK, None)
    mark = f"{os.getpid()}-{uuid.uuid4().hex}"
    # Kept open by this process alone: children get no copy of the pipe's end.
    subprocess.Popen(
        [sys.executable, str(Path(__file__)), mark],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.environ[MARK] = mark


def end_with_parent() -> None:
    """Be killed when the parent ends: a worker of pytest-xdist whose controller was killed works on otherwise."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def marked(mark: str) -> Iterator[psutil.Process]:
    """The running processes that have a mark."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                yield process


def end_all(mark: str) -> None:
    """End the processes that have a mark, and what they started."""
    began = seen = time.monotonic()
    steps = list(_STEPS)
    while time.monotonic() - seen < _QUIET:
        found = list(marked(mark))
        if found:
            seen = time.monotonic()
        if time.monotonic() - began >= steps[0][0]:
            # The last step is repeated.
            _send(found, (steps.pop(0) if len(steps) > 1 else steps[0])[1])
        time.sleep(0.1)


def _send(found: list[psutil.Process], number: signal.Signals) -> None:
    known = {process.pid for process in found}
    for process in found:
        with contextlib.suppress(psutil.Error):
            below = process.children(recursive=True) if number == signal.SIGKILL else []
            # Who started others ends them in its own order, until there is no more time for that.
            if number == signal.SIGKILL or process.ppid() not in known:
                process.send_signal(number)
            for child in below:
                with contextlib.suppress(psutil.Error):
                    child.kill()


if __name__ == "__main__":
    sys.stdin.buffer.read()
    end_all(sys.argv[1])

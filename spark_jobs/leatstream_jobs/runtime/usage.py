"""What a query's driver uses of its machine: this process, its JVM, and the workers of Python functions."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from leatstream.process_tree import tree_use

EVERY = 10.0  # seconds: a search for children reads all processes of the machine


class Looks:
    """Looks at the processes, for all queries of the driver together.

    Args:
        now: a monotonic clock, in seconds.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._next = float("-inf")
        self._found = 0, 0.0

    def tree(self) -> tuple[int, float]:
        """Bytes that are resident, and seconds of processor time, at most ten seconds old."""
        with self._lock:
            if self._now() >= self._next:
                self._next = self._now() + EVERY
                self._found = _tree()
            return self._found

    def expire(self) -> None:
        """Have the next one look again."""
        with self._lock:
            self._next = float("-inf")


LOOKS = Looks()


class Usage:
    """Memory, and processor time since this was made, of the driver: of all its queries where it is shared.

    Args:
        looks: at the processes.
    """

    def __init__(self, looks: Looks = LOOKS) -> None:
        self._looks = looks
        self._before = looks.tree()[1]
        self._used = 0.0

    def as_json(self) -> dict[str, Any]:
        """``memory_bytes`` and ``cpu_seconds_total``, looked at every ten seconds."""
        memory, cpu = self._looks.tree()
        # A worker that was not waited for takes its time along.
        self._used = max(cpu - self._before, self._used)
        return {"memory_bytes": memory, "cpu_seconds_total": round(self._used, 2)}


def _tree() -> tuple[int, float]:
    """Bytes that are resident, and seconds of processor time."""
    import psutil

    return tree_use(psutil.Process())

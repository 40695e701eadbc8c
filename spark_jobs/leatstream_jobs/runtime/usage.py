"""What a query's driver uses of its machine: this process, its JVM, and the workers of Python functions."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from leatstream.process_tree import tree_use

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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


class DriverUse:
    """What the process uses since its start, for people on call; of all its queries together.

    Args:
        looks: at the processes.
        now: a monotonic clock, in seconds.
    """

    def __init__(self, looks: Looks = LOOKS, now: Callable[[], float] = time.monotonic) -> None:
        self._looks = looks
        self._now = now
        self._next = float("-inf")
        self._heap: int | None = None

    def as_json(self, spark: SparkSession) -> dict[str, Any]:
        """``memory_bytes``, ``heap_bytes`` and ``cpu_seconds_total``, looked at every ten seconds."""
        memory, cpu = self._looks.tree()
        if self._now() >= self._next:
            self._next = self._now() + EVERY
            self._heap = _heap(spark)
        return {"memory_bytes": memory, "heap_bytes": self._heap, "cpu_seconds_total": round(cpu, 2)}


DRIVER_USE = DriverUse()


def _heap(spark: SparkSession) -> int | None:
    """Bytes of the heap in use, garbage included; None where the JVM does not say."""
    try:
        runtime = getattr(spark.sparkContext._jvm, "java.lang.Runtime").getRuntime()
        return int(runtime.totalMemory() - runtime.freeMemory())
    except Exception:  # a JVM that has died is reported by others
        return None


def _tree() -> tuple[int, float]:
    """Bytes that are resident, and seconds of processor time."""
    import psutil

    return tree_use(psutil.Process())

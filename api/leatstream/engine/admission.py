"""Whether one more driver may start: the limit of drivers, and the machine's cores and memory."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable

from leatstream.engine import memory

_FRESH = 1.0  # seconds


class Admission:
    """Says no, with the reason, before the machine does it by ending processes.

    Args:
        limit: most drivers for queries at a time.
        heap: bytes that the heap of a driver of a role may have; None where drivers run elsewhere.
        available: bytes that processes may still take.
        resident: bytes that a process, by its id, holds with its children.
        at_once: most drivers that start beside each other, where they run on this machine: a dozen JVMs take
            a dozen times as long each, and none of their queries runs until the last one does.
    """

    def __init__(
        self,
        limit: int,
        heap: Callable[[str], int] | None,
        available: Callable[[], int] = memory.available,
        resident: Callable[[int], int] = memory.resident,
        at_once: int = max(2, os.cpu_count() or 1),
    ) -> None:
        self._limit = limit
        self._heap = heap
        self._available = available
        self._resident = resident
        self._at_once = at_once
        self._looked: dict[int, tuple[float, int]] = {}

    def crowded(self, cold: int) -> str | None:
        """Why no driver may start beside so many that are starting; None if one may."""
        if self._heap is None or cold < self._at_once:
            return None
        return f"{cold} other drivers are starting"

    def refusal(self, drivers: Iterable[tuple[str, int]], role: str, spare: int | None = None) -> str | None:
        """Why no driver of this role may start beside these (role and process id); None if it may.

        ``spare`` is the process id of a driver that would be ended before.
        """
        drivers = list(drivers)
        if sum(one != "analyzer" for one, _ in drivers) >= self._limit:
            return f"the limit of drivers is reached (LEATSTREAM_MAX_DRIVERS is {self._limit})"
        if self._heap is None:
            return None
        # A young JVM has not taken yet what it may take.
        promised = sum(max(0, self.need(one) - self._held_by(pid)) for one, pid in drivers)
        freed = self._held_by(spare) if spare is not None else 0
        left, need = max(0, self._available() + freed - promised), self.need(role)
        if left >= need:
            return None
        what = f"it needs {memory.shown(need)}, {memory.shown(left)} is left"
        return f"there is memory for no other driver: {what}"

    def _held_by(self, pid: int) -> int:
        """Looked at once in a while: to find a process's children all processes are looked through."""
        now = time.monotonic()
        at, held = self._looked.get(pid, (-_FRESH, 0))
        if now - at >= _FRESH:
            self._looked = {one: seen for one, seen in self._looked.items() if now - seen[0] < _FRESH}
            held = self._resident(pid)
            self._looked[pid] = now, held
        return held

    def need(self, role: str) -> int:
        """Bytes that a driver may come to hold."""
        return (self._heap(role) if self._heap is not None else 0) + memory.BESIDE_HEAP

"""How much memory there is for drivers, so that a query waits rather than that the machine runs out of it."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

import psutil

from leatstream.process_tree import tree_use

# Beside the heap: the JVM's own, RocksDB, and the driver's Python.
BESIDE_HEAP = 384 << 20
_UNITS = {"k": 10, "m": 20, "g": 30, "t": 40}
_GROUP = Path("/sys/fs/cgroup")


def size(text: str) -> int:
    """Bytes of a size as the JVM writes it, such as ``512m``."""
    word = text.strip().lower()
    unit = _UNITS.get(word[-1:])
    return int(word[:-1]) << unit if unit is not None else int(word)


def heap_of(environment: Mapping[str, str]) -> int | None:
    """Bytes of the heap that a driver with this environment has; None where it says nothing."""
    text = environment.get("LEATSTREAM_DRIVER_MEMORY")
    return size(text) if text else None


def shown(amount: int) -> str:
    """Bytes for people."""
    return f"{amount / (1 << 30):.1f} GiB"


def available(group: Path = _GROUP) -> int:
    """Bytes that processes may still take: the machine's, and a bounded container's (cgroup v2)."""
    left = int(psutil.virtual_memory().available)
    with contextlib.suppress(OSError, ValueError):
        limit = int((group / "memory.max").read_text())  # "max" is no number: unbounded
        used = int((group / "memory.current").read_text())
        lines = (group / "memory.stat").read_text().splitlines()
        files = next((int(line.split()[1]) for line in lines if line.startswith("inactive_file ")), 0)
        left = min(left, limit - used + files)
    return max(0, left)


def resident(pid: int) -> int:
    """Bytes that a process and its children hold now; 0 when it has ended."""
    try:
        return tree_use(psutil.Process(pid))[0]
    except psutil.Error:
        return 0

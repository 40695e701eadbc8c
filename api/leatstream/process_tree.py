"""What a process and everything below it use: one rule for the service, its drivers and the benchmarks."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil


def tree_use(root: psutil.Process) -> tuple[int, float]:
    """Bytes that are resident, and seconds of processor time; children that were waited for included.

    A JVM that starts a program is there twice until the child has become that program, with the same memory:
    a child of exactly its parent's address space counts no memory.
    """
    import psutil

    memory, seconds = 0, 0.0
    sizes: dict[int, int] = {}
    for process in [root, *root.children(recursive=True)]:
        with contextlib.suppress(psutil.Error):
            with process.oneshot():
                times, held, parent = process.cpu_times(), process.memory_info(), process.ppid()
            seconds += times.user + times.system + times.children_user + times.children_system
            if held.vms != sizes.get(parent):
                memory += held.rss
            sizes[process.pid] = held.vms
    return memory, seconds

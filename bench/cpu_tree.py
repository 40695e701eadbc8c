"""CPU of a process and everything below it, as a function of the records it has worked off."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import psutil
from stack import BenchError

from leatstream.process_tree import tree_use


@dataclass
class Slope:
    """Samples of one run.

    Attributes:
        samples: (monotonic seconds, records on the sink, CPU seconds of the tree).
        peak_rss: largest resident size of the tree, bytes.
    """

    samples: list[tuple[float, int, float]] = field(default_factory=list)
    peak_rss: int = 0
    _used: dict[tuple[int, float], float] = field(default_factory=dict)

    def watch(self, root: psutil.Process, count: Callable[[], int], wanted: int, seconds: float) -> None:
        """Sample until the sink holds ``wanted`` records; BenchError when it does not in time."""
        deadline = time.monotonic() + seconds
        while True:
            done = count()
            memory, _ = tree_use(root)
            self.samples.append((time.monotonic(), done, self._cpu(root)))
            self.peak_rss = max(self.peak_rss, memory)
            if done >= wanted:
                return
            if time.monotonic() > deadline or not root.is_running():
                raise BenchError(f"{done} of {wanted} records on the sink after {seconds:g} s")
            time.sleep(0.25)

    def _cpu(self, root: psutil.Process) -> float:
        """Seconds of all processes seen so far: Spark ends Python workers that are idle."""
        for process in [root, *root.children(recursive=True)]:
            with contextlib.suppress(psutil.Error):
                times = process.cpu_times()
                self._used[(process.pid, process.create_time())] = times.user + times.system
        return sum(self._used.values())

    def cpu_at(self, records: float) -> float:
        """CPU seconds when so many records were on the sink, between the samples around it."""
        return self._at(records, 2)

    def time_at(self, records: float) -> float:
        """Monotonic seconds, likewise."""
        return self._at(records, 0)

    def _at(self, records: float, column: int) -> float:
        before = self.samples[0]
        for sample in self.samples:
            if sample[1] >= records:
                gained = sample[1] - before[1]
                share = (records - before[1]) / gained if gained else 1.0
                return before[column] + share * (sample[column] - before[column])
            before = sample
        raise BenchError(f"the sink never held {records:.0f} records")

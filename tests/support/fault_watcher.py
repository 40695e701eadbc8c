"""What a fault run sees: when each fault was over, and what was wrong."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import httpx2
from fault_parts import ServerPart


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
                for name in self.beside(victim):
                    self.in_a_row[name] += 1
                wanted[victim] = self.queries[victim]["job"]["attempt"] + 1
            self._open.append((time.monotonic(), kind, wanted))

    def beside(self, query: str) -> list[str]:
        """The query and those that share its driver."""
        pid = self.queries[query]["job"]["pid"]
        return [name for name, status in self.queries.items() if status["job"]["pid"] == pid]

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

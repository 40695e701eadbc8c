"""The watcher of fault runs counts a fault as over only when it has seen every query run."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

from fault_run import Outcome, Watcher


def running(name: str, attempt: int = 1) -> dict[str, Any]:
    status = {"state": "running", "job": {"attempt": attempt}, "metrics": {"input_rows_total": 1}}
    return {"name": name, "status": status}


def test_a_list_without_a_query_tells_nothing_of_it() -> None:
    api: Any = SimpleNamespace(token="", url="")
    watcher = Watcher(api, "p_", Outcome(1))
    watcher.begun("api", None)
    for items in ([], [running("other")]):
        watcher._take(time.monotonic(), items)
        assert not watcher.settled()
    watcher._take(0.0, [running("p_a"), running("p_b")])
    watcher._take(time.monotonic(), [running("p_a")])
    assert not watcher.settled()
    watcher._take(time.monotonic(), [running("p_a"), running("p_b")])
    assert watcher.settled()

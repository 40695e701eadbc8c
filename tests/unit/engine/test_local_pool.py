"""The pool over processes that only sleep."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from leatstream.engine.local_pool import LocalPool

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


class Sleepers:
    """Starts what only sleeps, in place of drivers."""

    def __init__(self, directory: Path) -> None:
        self.work_dir = self.log_dir = directory
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self, driver_id: str, role: str, token: str) -> subprocess.Popen[bytes]:
        self.started.append(subprocess.Popen(SLEEP, start_new_session=True))
        return self.started[-1]


class Catalog:
    """Units that take everything, until it is away."""

    away = False

    def __call__(self, *, write: bool = True) -> AbstractContextManager[Any]:
        return self._open()

    @contextmanager
    def _open(self) -> Iterator[Any]:
        if self.away:
            raise ConnectionError("the catalog is away")
        rows = SimpleNamespace(add=lambda _: None, delete=lambda _: None, list=list)
        yield SimpleNamespace(drivers=rows, commit=lambda: None)


def test_a_server_that_ends_without_its_catalog_leaves_no_driver(tmp_path: Path) -> None:
    catalog, command = Catalog(), Sleepers(tmp_path)
    made: Any = command
    clock: Any = SimpleNamespace(now=lambda: datetime(2026, 1, 1, tzinfo=UTC))
    pool = LocalPool(catalog, clock, made, warm=1, limit=2, server="srv_1", wake=lambda: None)
    try:
        pool.maintain()
        assert len(command.started) == 2, "an analyzer and a warm one"
        catalog.away = True
        pool.close()
        assert [process.poll() is None for process in command.started] == [False, False]
    finally:
        for process in command.started:
            process.kill()
            process.wait()

"""The ClickHouse of ``leat dev --clickhouse`` for tests, over a temporary directory."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leatstream.dev.local_clickhouse import LocalClickHouse

USER, PASSWORD = "leat", "correct horse"


@dataclass(frozen=True, slots=True)
class ClickHouseServer:
    """A running server; its only user is USER with PASSWORD."""

    port: int

    def config(self, **more: Any) -> dict[str, Any]:
        """Settings of a store over it; its secret is PASSWORD."""
        return {
            "host": "127.0.0.1",
            "port": self.port,
            "secure": False,
            "database": "shop",
            "username": USER,
        } | more

    def run(self, statement: str, form: str = "TabSeparated") -> str:
        """Run a statement; gives what it prints."""
        query = urllib.parse.urlencode({"user": USER, "password": PASSWORD, "default_format": form})
        url = f"http://127.0.0.1:{self.port}/?{query}"
        request = urllib.request.Request(url, data=statement.encode(), method="POST")
        with urllib.request.urlopen(request, timeout=60) as answer:
            return str(answer.read().decode())

    def rows(self, statement: str) -> list[list[str]]:
        """The rows of a SELECT, as ClickHouse's texts."""
        return [line.split("\t") for line in self.run(statement).splitlines()]


@contextlib.contextmanager
def clickhouse_server() -> Iterator[ClickHouseServer]:
    """Start a server on a free port."""
    directory = Path(tempfile.mkdtemp(prefix="leat-clickhouse-"))
    started = LocalClickHouse(directory / "log", directory / "data", user=USER, password=PASSWORD)
    try:
        started.start()
        server = ClickHouseServer(started.port)
        # The engine's own database has no UUIDs for its tables.
        server.run("CREATE DATABASE shop ENGINE = Atomic")
        yield server
    finally:
        started.stop()
        shutil.rmtree(directory, ignore_errors=True)

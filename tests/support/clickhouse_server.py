"""A ClickHouse server of the tests' own: chdb's engine behind the HTTP interface, in a process of its own."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

USER, PASSWORD = "leat", "correct horse"
_PROGRAM = Path(__file__).with_name("clickhouse_facade.py")


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
    """Start a server on a free port, over a temporary directory."""
    directory = tempfile.mkdtemp(prefix="leat-clickhouse-")
    command = [sys.executable, str(_PROGRAM), directory, USER, PASSWORD]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, "the ClickHouse facade did not start"
        server = ClickHouseServer(int(line))
        # The engine's own database has no UUIDs for its tables.
        server.run("CREATE DATABASE shop ENGINE = Atomic")
        yield server
    finally:
        process.kill()
        process.communicate()
        shutil.rmtree(directory, ignore_errors=True)

"""A service made of answers, and a way to run the command line against it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest

from leatstream.cli import app as cli_app
from leatstream.cli.client import Client
from leatstream.cli.connection import Connection

Answer = Callable[[httpx2.Request], httpx2.Response]


@dataclass
class Result:
    status: int
    out: str
    err: str


@dataclass
class Service:
    """Answers by method and path; what was asked is kept."""

    answers: dict[tuple[str, str], list[httpx2.Response]] = field(default_factory=dict)
    requests: list[httpx2.Request] = field(default_factory=list)

    def answer(self, method: str, path: str, body: Any = None, status: int = 200) -> None:
        response = httpx2.Response(status, json=body) if body is not None else httpx2.Response(status)
        self.answers.setdefault((method, path), []).append(response)

    def handle(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        path = request.url.raw_path.decode().split("?")[0]
        waiting = self.answers.get((request.method, path))
        if not waiting:
            problem = {"code": "not-found", "detail": f"no {request.method} {path}", "status": 404}
            return httpx2.Response(404, json=problem)
        return waiting.pop(0) if len(waiting) > 1 else waiting[0]

    def client(self) -> Client:
        connection = Connection("http://service.test", "leat_secret", "a test")
        return Client(connection, httpx2.MockTransport(self.handle))

    @property
    def last_body(self) -> Any:
        return json.loads(self.requests[-1].content)


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Service:
    made = Service()
    for module in (
        "access",
        "applications",
        "audit",
        "catching_up",
        "drivers",
        "events",
        "export",
        "function_sources",
        "graphql",
        "invitations",
        "lineage",
        "lists",
        "nouns",
        "queries",
        "records",
        "registries",
        "relations",
        "roles",
        "secrets",
        "server",
        "sql",
        "stores",
        "top",
        "words",
    ):
        monkeypatch.setattr(f"leatstream.cli.{module}.open_client", lambda _context: made.client())
    return made


@pytest.fixture
def leat(capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    def run(*argv: str) -> Result:
        status = cli_app.run(argv)
        captured = capsys.readouterr()
        return Result(int(status), captured.out, captured.err)

    return run

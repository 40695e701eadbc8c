"""The driver protocol's API side, as small as it can be: hands out work, collects what drivers say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from deadlines import patient
from driver_variables import driver_variables

POLL = 5.0


class SmallApi:
    """Serves any number of drivers. All attributes may be read by tests while it runs."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.work: dict[str, list[dict[str, Any]]] = {}
        self.polls: dict[str, list[dict[str, Any]]] = {}
        self.beats: dict[str, list[dict[str, Any]]] = {}
        self.directives: dict[str, str] = {}
        self.fenced: set[str] = set()
        self.kept: set[str] = set()
        self.analyses: dict[str, dict[str, Any]] = {}
        self.secrets: dict[str, str] = {}
        self.tokens: dict[str, str] = {}
        self.closed = False
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_for(self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        """Base address."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        """Stop serving, on the connections that are open too."""
        self.closed = True
        self._server.shutdown()
        self._server.server_close()

    def give(self, driver: str, work: dict[str, Any]) -> None:
        """Queue work for a driver."""
        with self.changed:
            self.work.setdefault(driver, []).append(work)
            self.changed.notify_all()

    def wait(self, condition: Callable[[], Any], timeout: float, what: str) -> Any:
        """Wait until something that drivers reported makes the condition true; returns its value."""
        timeout = patient(timeout)
        end = time.monotonic() + timeout
        with self.changed:
            while not (found := condition()):
                left = end - time.monotonic()
                assert left > 0, f"{what} did not happen in {timeout:g} s"
                self.changed.wait(min(left, 0.5))
            return found

    def answer(
        self, driver: str, call: str, body: dict[str, Any], authorization: str
    ) -> tuple[int, dict[str, Any]]:
        """What the API says to one call."""
        if authorization != f"Bearer {self.tokens.get(driver)}":
            return 401, {}
        with self.changed:
            self.changed.notify_all()
            if call == "poll":
                return self._poll(driver, body)
            if call == "heartbeat":
                self.beats.setdefault(driver, []).append(body)
                if driver in self.fenced:
                    return 409, {}
                if driver in self.kept and body.get("free"):
                    return 200, {"directive": "stay"}
                return 200, {"directive": self.directives.get(driver, "continue")}
            if call == "secrets":
                return 200, {"values": {r: self.secrets[r] for r in body["references"]}}
            self.analyses[call.removeprefix("analysis/")] = body
            return 200, {}

    def _poll(self, driver: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.polls.setdefault(driver, []).append(body)
        end = time.monotonic() + (POLL if body["state"] == "idle" else 0)
        while True:
            queue = self.work.get(driver, [])
            if queue and body["state"] == "idle":
                return 200, {"work": queue.pop(0)}
            left = end - time.monotonic()
            if left <= 0:
                return 200, {"work": None}
            self.changed.wait(left)


def _handler_for(api: SmallApi) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if api.closed:
                self.close_connection = True
                return
            driver, _, call = self.path.removeprefix("/v1/drivers/").partition("/")
            status, answer = api.answer(driver, call, body, self.headers["Authorization"])
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_arguments: Any) -> None:
            pass

    return Handler


class DriverProcess:
    """A real ``python -m leatstream_jobs`` process talking to a SmallApi."""

    def __init__(
        self,
        api: SmallApi,
        place: Path,
        bootstrap: str | None,
        role: str = "dedicated",
        orphan_seconds: float = 120,
    ) -> None:
        self.api = api
        self.id = f"d-{uuid.uuid4().hex[:8]}"
        self._before = 0
        self.place = place / self.id
        self.place.mkdir(parents=True)
        (self.place / "url").write_text(api.url)
        token_file = self.place / "token"
        api.tokens[self.id] = uuid.uuid4().hex
        token_file.write_text(api.tokens[self.id])
        command = [sys.executable, "-m", "leatstream_jobs", "--driver-id", self.id, "--role", role]
        command += ["--url-file", str(self.place / "url"), "--token-file", str(token_file), "--slots", "4"]
        command += ["--work-dir", str(self.place / "work"), "--orphan-seconds", str(orphan_seconds)]
        if bootstrap:
            command += ["--warm-up-kafka", bootstrap]
        environment = os.environ | driver_variables()
        self.log = (self.place / "log").open("wb")
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log, env=environment)

    @property
    def beats(self) -> list[dict[str, Any]]:
        """The heartbeats since it was given its newest query."""
        return self.api.beats.get(self.id, [])[self._before :]

    @property
    def states(self) -> list[str]:
        """Every state its heartbeats told, repetitions left out."""
        told: list[str] = []
        for beat in self.beats:
            if not told or told[-1] != beat["state"]:
                told.append(beat["state"])
        return told

    @property
    def last(self) -> dict[str, Any]:
        """The newest heartbeat."""
        return self.beats[-1] if self.beats else {}

    def wait_idle(self, timeout: float = 120) -> None:
        """Wait until it has warmed up."""
        self.api.wait(
            lambda: (
                self.process.poll() is not None
                or any(p["state"] == "idle" for p in self.api.polls.get(self.id, []))
            ),
            timeout,
            "warming up",
        )
        assert self.process.poll() is None, self.said()

    def run(self, spec: dict[str, Any], until: str = "running", timeout: float = 60) -> dict[str, Any]:
        """Hand it a query and wait for a state; returns the heartbeat that told it."""
        self._before = len(self.api.beats.get(self.id, []))
        self.api.give(self.id, {"kind": "run", "spec": spec})
        return self.wait_state(until, timeout)

    def wait_state(self, state: str, timeout: float = 60) -> dict[str, Any]:
        """Wait for a state, and fail early when another final one came."""

        def reached() -> bool:
            return bool(self.states) and self.states[-1] in {state, "stopped", "failed"}

        self.api.wait(reached, timeout, f"state {state} of {self.id}")
        assert self.states[-1] == state, (self.last, self.said())
        return self.last

    def wait_progress(
        self, condition: Callable[[dict[str, Any]], bool], timeout: float = 60
    ) -> dict[str, Any]:
        """Wait until the newest progress fulfils the condition."""
        found: dict[str, Any] = self.api.wait(
            lambda: (p := self.last.get("progress")) and condition(p) and p,
            timeout,
            "the progress waited for",
        )
        return found

    def stop(self, timeout: float = 40) -> int:
        """Tell it to stop and wait for its end."""
        self.api.directives[self.id] = "stop"
        return self.process.wait(timeout)

    def give_back(self) -> None:
        """Tell it to stop and to wait for another query."""
        self.api.kept.add(self.id)
        self.api.directives[self.id] = "stop"
        self.wait_state("stopped")
        asked = len(self.api.polls[self.id])
        self.api.wait(lambda: len(self.api.polls[self.id]) > asked, 20, "asking for work again")
        del self.api.directives[self.id]
        self.api.kept.discard(self.id)

    def said(self) -> str:
        """Its log, for a failing test's message."""
        return (self.place / "log").read_text(errors="replace")[-3000:]

    def end(self) -> None:
        """Leave nothing behind."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(20)
        self.log.close()


class Pool:
    """Drivers that have warmed up in memory."""

    def __init__(self, api: SmallApi, place: Path) -> None:
        self._api, self._place = api, place
        self._all: list[DriverProcess] = []
        self._next: DriverProcess | None = None
        self._free: list[DriverProcess] = []

    def start(self, role: str = "dedicated", **options: Any) -> DriverProcess:
        """A new driver, still cold."""
        driver = DriverProcess(options.pop("api", self._api), self._place, None, role, **options)
        self._all.append(driver)
        return driver

    def take(self) -> DriverProcess:
        """An idle driver: one that was given back, else one that was prepared, else a new one."""
        if self._free:
            return self._free.pop()
        driver, self._next = self._next or self.start(), None
        driver.wait_idle()
        return driver

    def give_back(self, driver: DriverProcess) -> None:
        """Stop its query and keep it for another one, as the product does."""
        driver.give_back()
        self._free.append(driver)

    def prepare(self) -> None:
        """Let one more warm up in the background, unless one is free."""
        if not self._free:
            self._next = self._next or self.start()

    def end(self) -> None:
        """End them all."""
        for driver in self._all:
            driver.end()

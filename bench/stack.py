"""The whole product for a benchmark: ``leat dev`` in a directory of its own, gone afterwards."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import psutil

START_SECONDS = 300.0
STORE = "embedded"


class BenchError(Exception):
    """The benchmark could not do its work; the text says what went wrong."""


@dataclass
class Stack:
    """A running ``leat dev``.

    Attributes:
        kafka: bootstrap servers of its broker.
        http: client with the administrator's token.
        directory: everything of this run lies below it.
    """

    url: str
    token: str
    kafka: str
    process: subprocess.Popen[bytes]
    directory: Path
    http: httpx2.Client

    def call(self, method: str, path: str, *, ok: tuple[int, ...] = (200, 201, 202, 204), **more: Any) -> Any:
        """One request; the answer's JSON, or None when it has no body."""
        answer = self.http.request(method, path, **more)
        if answer.status_code not in ok:
            raise BenchError(f"{method} {path} answered {answer.status_code}: {answer.text[:1500]}")
        return answer.json() if answer.content else None

    def sql(self, text: str, database: str) -> Any:
        """Run statements in a database."""
        body = {"sql": text, "database": database, "schema": "public", "store": STORE}
        return self.call("POST", "/v1/statements", json=body)

    def put_query(self, name: str, sql: str, database: str) -> Any:
        """Create a query."""
        body = {"sql": sql, "database": database, "schema": "public", "store": STORE}
        return self.call("PUT", f"/v1/queries/{name}", json=body, ok=(201,))

    def wait_running(self, name: str, seconds: float = 120.0) -> dict[str, Any]:
        """Wait until a query runs; BenchError with its state when it does not."""
        deadline = time.monotonic() + seconds
        while True:
            found = self.call(
                "GET", f"/v1/queries/{name}", params={"wait_for": "running,failed", "timeout": "15s"}
            )
            state = found["status"]["state"]
            if state == "running":
                return dict(found)
            if state == "failed" or time.monotonic() > deadline:
                raise BenchError(f"query {name} is {state}: {json.dumps(found['status'])[:1500]}")

    def drop_query(self, name: str, *, delete_entity: bool = True) -> None:
        """Delete a query and, unless told otherwise, its topic; wait until it is gone."""
        params = {"delete_entity": str(delete_entity).lower()}
        self.call("DELETE", f"/v1/queries/{name}", params=params)
        self.until(lambda: self.http.get(f"/v1/queries/{name}").status_code == 404, 60, f"{name} is gone")

    def wait_warm(self, seconds: float = 180.0) -> None:
        """Wait until the analyzer and a driver are warm."""
        self.until(self._is_warm, seconds, "a driver is warm")

    def _is_warm(self) -> bool:
        answer = self.http.get("/readyz").json()
        return bool(answer["ready"] and answer["warm"])

    def until(self, condition: Any, seconds: float, what: str) -> None:
        """Look again and again until it holds; BenchError when it does not in time."""
        deadline = time.monotonic() + seconds
        while not condition():
            if self.process.poll() is not None:
                raise BenchError(f"leat dev ended by itself with status {self.process.returncode}")
            if time.monotonic() > deadline:
                raise BenchError(f"not so within {seconds:g} s: {what}")
            time.sleep(0.1)

    def driver_of(self, query: Mapping[str, Any]) -> psutil.Process:
        """The driver process that runs a query; its JVM is a child of it."""
        driver = str(query["status"]["job"]["driver_id"])
        for process in psutil.Process(self.process.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                words = process.cmdline()
                if "leatstream_jobs" in words and driver in words:
                    return process
        raise BenchError(f"the process of driver {driver} was not found")


@contextlib.contextmanager
def running_stack(settings: Mapping[str, str] | None = None) -> Iterator[Stack]:
    """Start ``leat dev`` with nothing in it, wait until it is warm; end and remove everything afterwards.

    Args:
        settings: ``LEATSTREAM_…`` variables for this run.
    """
    with tempfile.TemporaryDirectory(prefix="leat-bench-", ignore_cleanup_errors=True) as name:
        directory = Path(name)
        ready, log = directory / "ready.json", directory / "dev.log"
        argv = [sys.executable, "-m", "leatstream.cli.main", "dev", "--ephemeral", "--no-sample"]
        argv += ["--port", "0", "--ready-file", str(ready)]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("LEATSTREAM_")}
        for key in os.environ:
            if key == "LEATSTREAM_CACHE_DIR":
                environment[key] = os.environ[key]
        with log.open("wb") as output:
            process = subprocess.Popen(
                argv,
                cwd=directory,
                env=environment | {"TMPDIR": name} | dict(settings or {}),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            body = _await(process, ready, log)
            headers = {"Authorization": f"Bearer {body['token']}"}
            with httpx2.Client(base_url=body["url"], headers=headers, timeout=90.0) as http:
                yield Stack(body["url"], body["token"], body["kafka_bootstrap"], process, directory, http)
        except BenchError as error:
            raise BenchError(f"{error}\n{_api_log(directory)}") from None
        finally:
            _stop(process)


def _await(process: subprocess.Popen[bytes], ready: Path, log: Path) -> dict[str, Any]:
    deadline = time.monotonic() + START_SECONDS
    while not ready.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            raise BenchError(f"leat dev did not become ready:\n{log.read_text(errors='replace')[-4000:]}")
        time.sleep(0.1)
    return dict(json.loads(ready.read_text()))


def _api_log(directory: Path) -> str:
    logs = [*directory.glob("leatstream-dev-*/logs/api.log")]
    return f"The API's log ends with:\n{logs[0].read_text(errors='replace')[-3000:]}" if logs else ""


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    process.wait(10)

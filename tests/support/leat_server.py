"""A ``leat dev`` that tests start on a directory of their own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import httpx2
from deadlines import patient

START_SECONDS = 240.0
# Of a `leat serve`, whose stores are on this machine.
LOCAL_STORES = {"LEATSTREAM_ALLOWED_NETWORKS": "loopback"}


@dataclass
class LeatstreamServer:
    """A running ``leat dev``: how to reach it, and its process."""

    url: str
    token: str
    kafka_bootstrap: str
    process: subprocess.Popen[bytes]
    data_dir: Path

    def client(self, timeout: float = 90.0) -> httpx2.Client:
        """An HTTP client with the administrator's token."""
        return httpx2.Client(
            base_url=self.url, headers={"Authorization": f"Bearer {self.token}"}, timeout=timeout
        )

    def warm(self) -> bool:
        """Whether it answers, has what it needs, and a driver waits for a query."""
        with contextlib.suppress(httpx2.TransportError):
            answer = httpx2.get(f"{self.url}/readyz", timeout=5).json()
            return bool(answer["ready"] and answer["warm"])
        return False


def start_server(
    directory: Path,
    *,
    kafka_bootstrap: str | None,
    port: int = 0,
    arguments: tuple[str, ...] = ("--no-sample",),
) -> LeatstreamServer:
    """Start ``leat dev`` on a directory and wait until it is ready."""
    ready = directory / "ready-for-tests.json"
    ready.unlink(missing_ok=True)
    data_dir = directory / "data"
    argv = [
        sys.executable,
        "-m",
        "leatstream.cli.main",
        "dev",
        "--data-dir",
        str(data_dir),
        "--port",
        str(port),
    ]
    argv += ["--ready-file", str(ready), *arguments]
    argv += ["--kafka-bootstrap", kafka_bootstrap] if kafka_bootstrap else []
    log = directory / "leat-dev.log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            argv, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True
        )
    deadline = time.monotonic() + patient(START_SECONDS)
    while not ready.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            stop_process(process)
            raise AssertionError(f"leat dev did not become ready:\n{log.read_text()[-4000:]}")
        time.sleep(0.1)
    body = json.loads(ready.read_text())
    return LeatstreamServer(body["url"], body["token"], body["kafka_bootstrap"], process, data_dir)


def stop_process(process: subprocess.Popen[bytes], timeout: float = 60.0) -> int:
    """Ask a process that a test started to end, force it after a while; its exit status."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return process.wait(10)

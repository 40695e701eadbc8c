"""What the slow tests share: one Kafka broker and one embedded stack for the whole run."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import hypothesis
import pytest

if TYPE_CHECKING:
    from postgres_server import PostgresServer

START_SECONDS = 240.0

# The same examples in every run: what passes here passes in CI. LEATSTREAM_FUZZ=1 looks for new ones.
hypothesis.settings.register_profile("repeatable", derandomize=True, database=None)
if not os.environ.get("LEATSTREAM_FUZZ"):
    hypothesis.settings.load_profile("repeatable")


sys.path.insert(0, str(Path(__file__).parent))


# A shell's background job ignores Ctrl-C, and so would everything that tests start and end that way.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """In CI a skip is a failure: every tool a test needs comes from the project's own files."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter else []
    if os.environ.get("CI") and skipped and exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


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
    deadline = time.monotonic() + START_SECONDS
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


@pytest.fixture(scope="session")
def kafka_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Bootstrap servers of a real Kafka broker, shared by the whole run."""
    from leatstream.dev.broker import Broker

    directory = tmp_path_factory.mktemp("kafka")
    broker = Broker(directory / "data", 0, directory / "kafka.log")
    broker.start()
    yield broker.bootstrap_servers
    broker.stop()


@pytest.fixture(scope="session")
def leatstream_server(
    kafka_broker: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LeatstreamServer]:
    """A running stack on the shared broker, its drivers warm."""
    server = start_server(tmp_path_factory.mktemp("stack"), kafka_bootstrap=kafka_broker)
    yield server
    assert stop_process(server.process) == 0


@pytest.fixture
def eventually() -> Callable[..., Any]:
    """Wait for a condition with a deadline."""

    def wait(condition: Callable[[], Any], seconds: float = 60.0, what: str = "the condition") -> Any:
        deadline = time.monotonic() + seconds
        while True:
            found = condition()
            if found:
                return found
            assert time.monotonic() < deadline, f"{what} did not come true within {seconds:g} s"
            time.sleep(0.05)

    return wait


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One PostgreSQL server for the whole run, with ``wal_level=logical``; see ``postgres_server``."""
    from postgres_server import postgres_server

    with postgres_server() as server:
        yield server


@pytest.fixture(scope="session")
def schema_registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a real schema registry, shared by the whole run."""
    from registry_server import RegistryServer

    server = RegistryServer(tmp_path_factory.mktemp("registry") / "registry.log")
    yield server.url
    server.stop()

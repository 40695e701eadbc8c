"""Two servers on one PostgreSQL catalog share the queries; either may die or leave, and no record is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from deadlines import patient
from leat_server import LOCAL_STORES, START_SECONDS, LeatstreamServer, stop_process
from numbered_records import Feed, distinct_numbers
from playground import Playground, playground

from leatstream.dev.ports import free_ports
from leatstream.launching import SMALL_JVM
from leatstream.services.environment.authorization import mint_token

pytestmark = [pytest.mark.stack, pytest.mark.timeout(600)]
RECORDS = 60_000
ORPHAN_SECONDS = 5


class Servers:
    """Starts ``leat serve`` processes that share a catalog, a key ring and a place of checkpoints."""

    def __init__(self, directory: Path, catalog: str, kafka: str) -> None:
        self._directory, self._kafka = directory, kafka
        self._token = mint_token()[0]
        self._shared = {
            **LOCAL_STORES,
            "LEATSTREAM_CATALOG_URL": catalog,
            "LEATSTREAM_CHECKPOINT_ROOT": str(directory / "checkpoints"),
            "LEATSTREAM_KEYS_FILE": str(directory / "keys.json"),
            "LEATSTREAM_BOOTSTRAP_TOKEN": self._token,
            "LEATSTREAM_DRIVER_ORPHAN_SECONDS": str(ORPHAN_SECONDS),
            "LEATSTREAM_LEASE_SECONDS": "4",
            "LEATSTREAM_WARM_DRIVERS": "0",
            "LEATSTREAM_DRIVER_JVM_OPTIONS": SMALL_JVM,
        }
        self._started: list[subprocess.Popen[bytes]] = []

    def start(self, name: str, **settings: str) -> LeatstreamServer:
        """Start the server of this name, again if it was there before; it does not wait."""
        (port,) = free_ports(1)
        own = {"LEATSTREAM_DATA_DIR": str(self._directory / name), "LEATSTREAM_PORT": str(port)}
        with (self._directory / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "leatstream.cli.main", "serve"],
                env={**os.environ, **self._shared, **own, **settings},
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._started.append(process)
        url = f"http://127.0.0.1:{port}"
        return LeatstreamServer(url, self._token, self._kafka, process, self._directory / name)

    def wait_ready(self, *servers: LeatstreamServer) -> None:
        """Wait until they answer and their drivers are warm."""
        deadline = time.monotonic() + patient(START_SECONDS)
        for server in servers:
            while not server.warm():
                logs = [path.read_text()[-2000:] for path in self._directory.glob("*.log")]
                assert server.process.poll() is None, logs
                assert time.monotonic() < deadline, logs
                time.sleep(0.1)

    def refused(self, name: str, **settings: str) -> str:
        """What a server says that must not start."""
        server = self.start(name, **settings)
        assert server.process.wait(60) != 0
        return (self._directory / f"{name}.log").read_text()

    def close(self) -> None:
        """End what still runs."""
        for process in self._started:
            stop_process(process)


@pytest.fixture
def servers(kafka_broker: str, postgres: Any, tmp_path: Path) -> Iterator[Servers]:
    with postgres.connect("postgres") as connection:
        connection.execute("CREATE DATABASE two_servers")
    opened = Servers(tmp_path, f"postgresql://leat@127.0.0.1:{postgres.port}/two_servers", kafka_broker)
    yield opened
    opened.close()
    with postgres.connect("postgres") as connection:
        connection.execute("DROP DATABASE two_servers WITH (FORCE)")


@pytest.mark.long
def test_either_may_die_or_leave(
    servers: Servers, kafka_broker: str, eventually: Callable[..., Any], tmp_path: Path
) -> None:
    first, second = servers.start("first"), servers.start("second")
    servers.wait_ready(first, second)
    elsewhere = servers.refused("third", LEATSTREAM_CHECKPOINT_ROOT=str(tmp_path / "elsewhere"))
    assert "keeps its checkpoints elsewhere" in elsewhere

    both = {"first": first, "second": second}
    with playground(first, "shared") as play:
        topic, sink, query = play.stream("numbers", "n BIGINT"), f"{play.name}.out", f"{play.name}_copy"
        play.run("copy", f"CREATE STREAM copied WITH ('topic'='{sink}') AS SELECT n FROM numbers")
        for server in both.values():
            with server.client() as http:
                job = Playground(http, play.kafka, play.name).wait(query, "running")["status"]["job"]
    busy = next(name for name, s in both.items() if psutil.Process(job["pid"]).ppid() == s.process.pid)
    idle = next(name for name in both if name != busy)
    feed = Feed(kafka_broker, topic, RECORDS)
    feed.wait_for(0.3)
    # The server goes at once, and its drivers after ORPHAN_SECONDS: then the other takes over.
    os.kill(both[busy].process.pid, signal.SIGKILL)
    both[busy].process.wait(10)
    taken = eventually(lambda: newer_job(both[idle], query, job["attempt"]), 120, "the idle server's attempt")

    both[busy] = servers.start(busy)
    servers.wait_ready(both[busy])
    assert stop_process(both[idle].process) == 0
    assert "Traceback" not in (tmp_path / f"{idle}.log").read_text()
    eventually(
        lambda: newer_job(both[busy], query, taken["attempt"]), 60, "the attempt of the one that is back"
    )
    feed.join()
    distinct, total = distinct_numbers(kafka_broker, sink, RECORDS)
    assert (distinct, total >= RECORDS) == (RECORDS, True)
    with both[busy].client() as http:
        assert http.delete(f"/v1/queries/{query}").status_code in (202, 204)


def newer_job(server: LeatstreamServer, query: str, attempt: int) -> Any:
    with server.client() as http:
        status = http.get(f"/v1/queries/{query}").json()["status"]
    job = status["job"] or {}
    return job if status["state"] == "running" and job.get("attempt", 0) > attempt else None

"""The stack as a process, with a real broker; the API is a small ASGI application of the test's own."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka import Consumer
from deadlines import patient

from leatstream.dev.broker import Broker

pytestmark = pytest.mark.stack

WaitFor = Callable[[Callable[[], bool], float, str], None]

PROGRAM = """
import os, signal, sys, time
from pathlib import Path
from leatstream.dev.display import Display
from leatstream.dev.stack import DevOptions, DevStack, ServedApp
from leatstream.errors import LeatstreamError

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            kind = (await receive())["type"]
            await send({{"type": kind + ".complete"}})
            if kind == "lifespan.shutdown":
                return
    await send({{"type": "http.response.start", "status": 200, "headers": []}})
    await send({{"type": "http.response.body", "body": b"hello"}})

def build(settings):
    assert len(settings.spark_jars) == 4 and settings.data_dir.is_dir()
    return ServedApp(app, "leat_secret", lambda timeout: time.sleep({warm}), lambda: print("drivers ended"))

class EndsAtOnce(Display):
    def box(self, *told):
        os.kill(os.getpid(), signal.SIGINT)

try:
    sys.exit(DevStack(DevOptions({options}), build, {display}()).run())
except LeatstreamError as error:
    sys.exit(f"{{error.code}}: {{error.detail}}")
"""


class Stack:
    """A started program: its ready file, its output."""

    def __init__(self, tmp_path: Path, name: str, warm: float, display: str, **options: object) -> None:
        self.ready_file = tmp_path / f"{name}.json"
        self.log = tmp_path / f"{name}.log"
        given = {"port": 0, "ready_file": self.ready_file, **options}
        arguments = ", ".join(
            f"{key}=Path({str(value)!r})" if isinstance(value, Path) else f"{key}={value!r}"
            for key, value in given.items()
        )
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM.format(warm=warm, options=arguments, display=display)],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )

    def ready(self) -> dict[str, Any]:
        deadline = time.monotonic() + patient(90)
        while not self.ready_file.exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"not ready:\n{self.log.read_text()}")
            time.sleep(0.05)
        found: dict[str, Any] = json.loads(self.ready_file.read_text())
        return found

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.process.wait(60)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Stack]]:
    stacks: list[Stack] = []

    def run(name: str = "one", warm: float = 0.0, display: str = "Display", **options: object) -> Stack:
        stacks.append(Stack(tmp_path, name, warm, display, **{"data_dir": tmp_path / "data", **options}))
        return stacks[-1]

    yield run
    for stack in stacks:
        if stack.process.poll() is None:
            stack.process.terminate()
            stack.process.wait(60)


def family(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    return psutil.Process(process.pid).children(recursive=True)


def all_ended(processes: list[psutil.Process]) -> bool:
    return not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in processes)


def topics_read(bootstrap_servers: str) -> set[str | None]:
    """The topics that sample records come from, read until both have shown or the time is over."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap_servers, "group.id": "t", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["users", "pageviews"])
    seen: set[str | None] = set()
    deadline = time.monotonic() + patient(30)
    while len(seen) < 2 and time.monotonic() < deadline:
        seen |= {record.topic() for record in consumer.consume(20, timeout=0.5) if record.error() is None}
    consumer.close()
    return seen


@pytest.mark.core
def test_it_serves_produces_and_ends_on_ctrl_c(start: Callable[..., Stack], tmp_path: Path) -> None:
    stack = start()
    ready = stack.ready()

    assert set(ready) == {"url", "token", "kafka_bootstrap", "pid"}
    assert ready["pid"] == stack.process.pid
    assert ready["token"] == "leat_secret"
    assert stat.S_IMODE(stack.ready_file.stat().st_mode) == 0o600
    assert json.loads((tmp_path / "data/ready.json").read_text()) == ready
    with urllib.request.urlopen(ready["url"], timeout=10) as answer:
        assert answer.read() == b"hello"
    assert topics_read(ready["kafka_bootstrap"]) == {"users", "pageviews"}

    started = family(stack.process)
    assert started
    assert stack.end(signal.SIGINT) == 0
    assert all_ended(started)
    assert not stack.ready_file.exists()
    assert not (tmp_path / "data/ready.json").exists()
    log = stack.log.read_text()
    assert "drivers ended" in log
    assert "leat_secret" not in log
    assert ready["url"] in log


def test_a_second_one_names_the_first_and_the_data_survive(start: Callable[..., Stack]) -> None:
    first = start(sample=False)
    ready = first.ready()
    second = start("two", sample=False)
    assert second.process.wait(60) == 1
    told = second.log.read_text()
    assert "already-running" in told
    assert str(ready["pid"]) in told
    assert ready["url"] in told
    assert first.end(signal.SIGTERM) == 0
    third = start("three", sample=False)
    assert third.ready()["kafka_bootstrap"] == ready["kafka_bootstrap"]


def test_kill_9_leaves_nothing_in_the_way(start: Callable[..., Stack], wait_for: WaitFor) -> None:
    first = start(sample=False)
    first.ready()
    started = family(first.process)
    first.end(signal.SIGKILL)
    second = start("two", sample=False)
    second.ready()
    wait_for(lambda: all_ended(started), 30, "the first one's processes ended")


def test_a_signal_during_the_start_ends_it_too(start: Callable[..., Stack], wait_for: WaitFor) -> None:
    stack = start(warm=60.0)
    wait_for(lambda: "Spark driver: starting" in stack.log.read_text(), 60, "all but the driver is up")
    started = family(stack.process)
    assert stack.end(signal.SIGTERM) == 128 + signal.SIGTERM
    assert all_ended(started)
    assert "drivers ended" in stack.log.read_text()
    assert not stack.ready_file.exists()


def test_an_ephemeral_one_keeps_nothing(
    start: Callable[..., Stack], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    stack = start(ephemeral=True)
    stack.ready()
    assert [entry.name for entry in scratch.glob("leatstream-dev-*")]
    assert stack.end(signal.SIGINT) == 0
    assert not list(scratch.glob("leatstream-dev-*"))
    assert not (tmp_path / "data").exists()


def test_a_taken_port_is_named_before_anything_starts(start: Callable[..., Stack]) -> None:
    with socket.socket() as squatter:
        squatter.bind(("127.0.0.1", 0))
        squatter.listen()
        port = squatter.getsockname()[1]
        stack = start(port=port)
        assert stack.process.wait(60) == 1
    told = stack.log.read_text()
    assert f"port-taken: Port {port} on 127.0.0.1 is taken" in told
    assert "Kafka: starting" not in told


def test_ones_own_broker_is_used_and_left_alone(start: Callable[..., Stack], tmp_path: Path) -> None:
    with Broker(tmp_path / "mine") as broker:
        stack = start(kafka_bootstrap=broker.bootstrap_servers)
        assert stack.ready()["kafka_bootstrap"] == broker.bootstrap_servers
        assert not family(stack.process)
        assert stack.end(signal.SIGINT) == 0
        assert broker.running


def test_an_end_while_the_start_is_told_is_no_failure(start: Callable[..., Stack], tmp_path: Path) -> None:
    with Broker(tmp_path / "mine") as broker:
        stack = start(kafka_bootstrap=broker.bootstrap_servers, display="EndsAtOnce")
        assert stack.process.wait(90) == 0
    assert "Stopping." in stack.log.read_text()


def test_a_broker_that_does_not_answer_is_named(start: Callable[..., Stack]) -> None:
    stack = start(kafka_bootstrap="127.0.0.1:9")
    assert stack.process.wait(60) == 1
    assert "part-failed: No Kafka answers at 127.0.0.1:9" in stack.log.read_text()


def test_a_part_that_dies_ends_the_whole_and_is_named(start: Callable[..., Stack]) -> None:
    stack = start(sample=False)
    stack.ready()
    broker = next(process for process in family(stack.process) if process.name() == "java")
    os.kill(broker.pid, signal.SIGKILL)
    assert stack.process.wait(60) == 1
    assert "Kafka ended by itself" in stack.log.read_text()
    assert not stack.ready_file.exists()

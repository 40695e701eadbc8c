"""The end of ``leat serve``, whenever it is asked for."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from leatstream.cli import serving
from leatstream.dev.java import Java
from leatstream.errors import StackError


class Runtime:
    """What is opened and must be closed."""

    def __init__(self) -> None:
        self.env: Any = None
        self.done: list[str] = []

    def warm(self) -> bool:
        return False

    def end_drivers(self) -> None:
        self.done.append("drivers")

    def close(self) -> None:
        self.done.append("closed")


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Runtime]:
    before = {number: signal.getsignal(number) for number in serving.ENDING}
    made = Runtime()
    monkeypatch.setenv("LEATSTREAM_PORT", "0")
    java = Java(tmp_path, tmp_path / "bin" / "java", 17, "PATH")
    monkeypatch.setenv("LEATSTREAM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(serving, "find_java", lambda: java)
    monkeypatch.setattr(serving, "driver_environment", lambda *_: {})
    monkeypatch.setattr(serving, "settle_memory", lambda: None)
    monkeypatch.setattr("leatstream.dev.jars.spark_jars", list)
    monkeypatch.setattr("leatstream.bootstrap.open_runtime", lambda *_, **__: made)
    monkeypatch.setattr("leatstream.rest.app.create_app", lambda _: application)
    yield made
    # Nothing goes on to wait for drivers that have ended.
    assert "classes" not in [thread.name for thread in threading.enumerate()]
    for number, handler in before.items():
        signal.signal(number, handler)


async def application(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.complete"})
        os.kill(os.getpid(), signal.SIGTERM)
        await receive()
        await send({"type": "lifespan.shutdown.complete"})


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_during_the_start_is_not_lost(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def opening(*_: Any, **__: Any) -> Runtime:
        os.kill(os.getpid(), number)
        return runtime

    monkeypatch.setattr("leatstream.bootstrap.open_runtime", opening)
    assert serving.run_server() == 0
    assert runtime.done == ["closed"]


def test_drivers_end_while_requests_are_answered(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    listeners: list[socket.socket] = []
    listen = serving_listen()
    monkeypatch.setattr(
        "leatstream.dev.api_server.listen", lambda *a: listeners.append(listen(*a)) or listeners[0]
    )

    def end_drivers() -> None:
        address = listeners[0].getsockname()
        socket.create_connection(address, timeout=5).close()
        runtime.done.append("drivers")

    monkeypatch.setattr(runtime, "end_drivers", end_drivers)
    assert serving.run_server() == 0
    assert runtime.done == ["drivers", "closed"]


def serving_listen() -> Any:
    from leatstream.dev.api_server import listen

    return listen


def test_an_api_that_cannot_begin_is_a_failure(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(app: Any, before_end: Any) -> Any:
        return SimpleNamespace(run=lambda sockets: None, started=False)

    monkeypatch.setattr(serving, "api_server", broken)
    with pytest.raises(StackError, match="could not begin to serve"):
        serving.run_server()
    assert runtime.done == ["closed"]


def test_an_application_that_does_not_start_is_no_success(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def failing(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "lifespan.startup.failed", "message": "no"})

    monkeypatch.setattr("leatstream.rest.app.create_app", lambda _: failing)
    with pytest.raises((SystemExit, StackError)) as ended:
        serving.run_server()
    assert getattr(ended.value, "code", 1) != 0
    assert runtime.done == ["closed"]


@pytest.mark.parametrize("host", ["::1", "::"])
def test_servers_listen_on_addresses_of_ipv6(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 on this machine")
    urls: list[str] = []

    def opening(_settings: Any, url: str, *_: Any, **__: Any) -> Runtime:
        urls.append(url)
        address, port = url.removeprefix("http://").rsplit(":", 1)
        for name in {address.strip("[]"), "::1"}:
            socket.create_connection((name, int(port)), timeout=5).close()
        return runtime

    monkeypatch.setenv("LEATSTREAM_HOST", host)
    monkeypatch.setattr("leatstream.bootstrap.open_runtime", opening)
    assert serving.run_server() == 0
    assert urls[0].startswith("http://[::1]:" if host == "::1" else "http://127.0.0.1:")

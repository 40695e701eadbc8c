"""Over a real connection: what an in-process client cannot show."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest
import uvicorn

from leatstream.rest import app as rest_app
from leatstream.rest.app import create_app


@pytest.fixture
def few_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """As few threads as can be blocked with a handful of calls; asked for before ``served``."""
    for name in ("THREADS", "DRIVER_THREADS", "PROBE_THREADS"):
        monkeypatch.setattr(rest_app, name, 2)


@pytest.fixture
def served(fresh: Any) -> Iterator[httpx2.Client]:
    """A client of a new world behind uvicorn on a free port."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(create_app(fresh.env), log_level="warning"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with httpx2.Client(base_url=url, headers=fresh.headers, timeout=20, trust_env=False) as client:
        yield client
    server.should_exit = True
    thread.join(10)
    listener.close()
    assert not thread.is_alive()


def _eventually(condition: Any, seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_client_that_leaves_ends_its_reader(served: httpx2.Client, fresh: Any) -> None:
    """Without limit and timeout the stream ends with its client."""
    fresh.cluster.endless = True
    assert served.put("/v1/stores/k", json={"kafka": {"bootstrap_servers": "h:1"}}).status_code == 201
    body = {"kafka": {"partitions": 1, "replicas": 1}}
    assert served.put("/v1/stores/k/entities/t", json=body).status_code == 201
    for accept in ("application/x-ndjson", "text/event-stream"):
        before = fresh.cluster.closed_readers
        path = "/v1/stores/k/entities/t/records"
        with served.stream("GET", path, headers={"Accept": accept}) as answer:
            assert answer.status_code == 200
            assert fresh.cluster.closed_readers == before
        _eventually(lambda before=before: fresh.cluster.closed_readers == before + 1)


@pytest.mark.parametrize("chunked", [False, True])
def test_two_megabytes_get_an_answer_not_a_broken_pipe(served: httpx2.Client, chunked: bool) -> None:
    """The client hears 413 although it was still sending."""
    content: Any = (b"x" * 65536 for _ in range(40)) if chunked else b"x" * 2_600_000
    answer = served.put("/v1/databases/d", content=content, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (413, "too-large")
    assert served.get("/healthz").status_code == 200


def test_waits_hold_no_thread(served: httpx2.Client, fresh: Any) -> None:
    """More idle drivers than there are threads, and the service still answers."""
    fresh.drivers.tokens |= {f"d{index}": "t" for index in range(120)}
    url, idle = str(served.base_url), {"pid": 1, "state": "idle"}

    def poll(index: int) -> None:
        with httpx2.Client(base_url=url, timeout=30, trust_env=False) as client:
            headers = {"Authorization": "Bearer t"}
            client.post(f"/v1/drivers/d{index}/poll", json=idle, headers=headers)

    threads = [threading.Thread(target=poll, args=(index,), daemon=True) for index in range(120)]
    for thread in threads:
        thread.start()
    _eventually(lambda: len(fresh.drivers.states) == 120)
    assert served.get("/v1/databases").status_code == 200
    # Forgotten drivers are told to go, which ends the polls.
    fresh.drivers.tokens.clear()
    fresh.env.changed.notify()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()


class Hanging:
    """In place of a function: who calls it waits until it is let go."""

    def __init__(self, answer: Any) -> None:
        self.entered = 0
        self.go = threading.Event()
        self._answer = answer

    def __call__(self, *_: Any, **__: Any) -> Any:
        self.entered += 1
        assert self.go.wait(60)
        return self._answer


@contextmanager
def _all_hang(hanging: Hanging, call: Callable[[], object]) -> Iterator[None]:
    """Meanwhile every thread there is for such calls waits, and one more call for a thread."""
    threads = [threading.Thread(target=call, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    _eventually(lambda: hanging.entered == 2)
    try:
        yield
    finally:
        hanging.go.set()
        for thread in threads:
            thread.join(20)
            assert not thread.is_alive()


def _poll(url: Any) -> httpx2.Response:
    path, headers = f"{url}/v1/drivers/d/poll", {"Authorization": "Bearer t"}
    return httpx2.post(
        path, json={"pid": 1, "state": "warming"}, headers=headers, timeout=20, trust_env=False
    )


@pytest.mark.usefixtures("few_threads")
def test_slow_requests_hold_up_neither_drivers_nor_probes(served: httpx2.Client, fresh: Any) -> None:
    """A driver that is not heard ends itself, and a server that does not answer probes gets no requests."""
    fresh.drivers.tokens["d"] = "t"
    assert served.put("/v1/stores/k", json={"kafka": {"bootstrap_servers": "h:1"}}).status_code == 201
    hanging, connect = Hanging([]), fresh.env.connect

    def slow(store: Any) -> Any:
        connector = connect(store)
        connector.list_entities = hanging
        return connector

    fresh.env.connect = slow
    with _all_hang(hanging, lambda: served.get("/v1/stores/k/entities")):
        assert _poll(served.base_url).json() == {"work": None}
        assert served.get("/readyz").json()["ready"] is True


@pytest.mark.usefixtures("few_threads")
def test_drivers_that_wait_hold_up_neither_requests_nor_probes(served: httpx2.Client, fresh: Any) -> None:
    """As they do while somebody else has the catalog's turn for writing."""
    fresh.drivers.authenticate = hanging = Hanging(answer=True)
    fresh.drivers.tokens["d"] = "t"
    with _all_hang(hanging, lambda: _poll(served.base_url)):
        assert served.get("/v1/databases").status_code == 200
        assert served.get("/readyz").json()["ready"] is True


@pytest.mark.usefixtures("few_threads")
def test_probes_that_wait_hold_up_nobody(served: httpx2.Client, fresh: Any) -> None:
    fresh.drivers.tokens["d"] = "t"
    fresh.drivers.ready = hanging = Hanging(answer=True)
    with _all_hang(hanging, lambda: served.get("/readyz")):
        assert _poll(served.base_url).json() == {"work": None}
        assert served.get("/v1/databases").status_code == 200

"""Over a real connection: what an in-process client cannot show."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import fakes
import httpx2
import pytest
from serving import eventually, serving
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from leatstream.rest import app as rest_app
from leatstream.rest import loads as rest_loads
from leatstream.rest.app import create_app
from leatstream.services.environment import Context
from leatstream.services.environment.authorization import mint_token
from leatstream.services.statements.execution import StatementOutcome


@pytest.fixture
def few_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """As few threads as can be blocked with a handful of calls; asked for before ``served``."""
    for name in ("THREADS", "SLOW_THREADS", "STREAM_THREADS", "DRIVER_THREADS", "PROBE_THREADS"):
        monkeypatch.setattr(rest_app, name, 2)


@pytest.fixture
def served(fresh: Any) -> Iterator[httpx2.Client]:
    """A client of a new world behind uvicorn on a free port."""
    with (
        serving(fresh) as url,
        httpx2.Client(base_url=url, headers=fresh.headers, timeout=20, trust_env=False) as client,
    ):
        yield client


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
        eventually(lambda before=before: fresh.cluster.closed_readers == before + 1)


def test_connections_without_a_request_are_closed(fresh: Any) -> None:
    """Before the first request and between two of them."""
    whole = b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n"
    with serving(fresh, header_seconds=2, timeout_keep_alive=60) as url, contextlib.ExitStack() as stack:
        host, port = url.removeprefix("http://").split(":")
        silent, half, second = (
            stack.enter_context(socket.create_connection((host, int(port)), 30)) for _ in range(3)
        )
        half.sendall(whole[:-5])
        second.sendall(whole)
        assert second.recv(65_536).startswith(b"HTTP/1.1 200")
        second.sendall(whole[:-5])
        for peer in (silent, half, second):
            got = b"".join(iter(lambda peer=peer: peer.recv(65_536), b""))  # type: ignore[misc]
            assert b"HTTP/1.1" not in got


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
        # Without TLS: each would read the system's authorities.
        with httpx2.Client(base_url=url, timeout=30, trust_env=False, verify=False) as client:
            headers = {"Authorization": "Bearer t"}
            client.post(f"/v1/drivers/d{index}/poll", json=idle, headers=headers)

    threads = [threading.Thread(target=poll, args=(index,), daemon=True) for index in range(120)]
    for thread in threads:
        thread.start()
    eventually(lambda: len(fresh.drivers.states) == 120)
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
    eventually(lambda: hanging.entered == 2)
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


def _threads(count: int, call: Callable[[], object]) -> list[threading.Thread]:
    made = [threading.Thread(target=call, daemon=True) for _ in range(count)]
    for thread in made:
        thread.start()
    return made


@pytest.fixture
def few_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds that a handful of calls reach; asked for before ``served``."""
    bounds = {"THREADS": 2, "SLOW_THREADS": 6, "SLOW_OF_A_PRINCIPAL": 2, "SLOW_PATIENCE": 0.2}
    bounds |= {"STREAM_THREADS": 6, "STREAMS_OF_A_PRINCIPAL": 2, "WAITS_OF_A_PRINCIPAL": 2}
    for name, value in bounds.items():
        monkeypatch.setattr(rest_app, name, value)


def _refused(answer: httpx2.Response) -> bool:
    told = (answer.status_code, answer.json().get("code"), answer.headers.get("retry-after"))
    return told == (429, "too-many-requests", "1")


def another_token(fresh: Any) -> str:
    """One more token of the account that ``served`` uses."""
    value, token_id, token_hash = mint_token()
    with fresh.units() as unit:
        unit.tokens.add(fakes.token_row(token_id, token_hash, "ann", "sysadmin", datetime.now(UTC)))
        unit.commit()
    return value


@pytest.mark.usefixtures("few_places")
def test_slow_statements_of_one_account_stop_neither_itself_nor_others(
    served: httpx2.Client, fresh: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many more than it has places: the rest is told to come again, and short requests are served at once."""
    hanging = Hanging(StatementOutcome([], Context()))
    monkeypatch.setattr("leatstream.services.statements.execution.execute", hanging)
    answers: list[httpx2.Response] = []

    def select() -> None:
        answers.append(served.post("/v1/statements", json={"sql": "SELECT 1 FROM v"}, timeout=60))

    threads = _threads(12, select)
    try:
        eventually(lambda: hanging.entered == 2 and len(answers) == 10)
        assert all(_refused(answer) for answer in answers)
        for _ in range(4):
            assert served.get("/v1/databases").status_code == 200
        assert served.put("/v1/databases/d", json={}).status_code == 201
        # Another token of the same account has no places of its own; another account has.
        second = {"Authorization": f"Bearer {another_token(fresh)}"}
        assert _refused(served.post("/v1/statements", json={"sql": "X"}, headers=second))
        other = {"Authorization": f"Bearer {fresh.reader_token}"}
        theirs = _threads(1, lambda: served.post("/v1/statements", json={"sql": "X"}, headers=other))
        eventually(lambda: hanging.entered == 3)
    finally:
        hanging.go.set()
    for thread in (*threads, *theirs):
        thread.join(20)
        assert not thread.is_alive()
    assert served.post("/v1/statements", json={"sql": "SELECT 1 FROM v"}).status_code == 200  # all given back


def test_quick_requests_of_one_account_leave_threads_to_others(
    fresh: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"THREADS": 3, "REQUESTS_OF_A_PRINCIPAL": 2, "REQUEST_PATIENCE": 0.2}.items():
        monkeypatch.setattr(rest_app, name, value)
    hanging = Hanging(answer=())
    monkeypatch.setattr("leatstream.services.nouns.accounts.roles_of", hanging)
    answers: list[httpx2.Response] = []
    ann, bob = ({"Authorization": f"Bearer {one}"} for one in (fresh.token, fresh.reader_token))
    with (
        serving(fresh) as url,
        httpx2.Client(base_url=url, headers=ann, timeout=60, trust_env=False) as client,
    ):
        threads = _threads(8, lambda: answers.append(client.get("/v1/me")))
        try:
            eventually(lambda: hanging.entered == 2 and len(answers) == 6)
            assert all(_refused(answer) for answer in answers)
            assert client.get("/v1/databases", headers=bob).status_code == 200
            assert _refused(client.get("/v1/databases"))
        finally:
            hanging.go.set()
        for thread in threads:
            thread.join(20)
            assert not thread.is_alive()
        assert [client.get("/v1/databases").status_code for _ in range(4)] == [200] * 4


@pytest.mark.usefixtures("few_places")
def test_a_place_that_becomes_free_in_time_is_waited_for(
    served: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a deployment that sends some more requests at once than a token has places."""
    hanging = Hanging(StatementOutcome([], Context()))
    monkeypatch.setattr("leatstream.services.statements.execution.execute", hanging)
    monkeypatch.setattr("leatstream.rest.loads.Load._take", _patient(hanging))
    answers: list[int] = []
    threads = _threads(
        8, lambda: answers.append(served.post("/v1/statements", json={"sql": "X"}, timeout=60).status_code)
    )
    for thread in threads:
        thread.join(30)
    assert answers == [200] * 8


def _patient(hanging: Hanging) -> Any:
    """In place of ``_take``: lets those go that hold a place as soon as somebody waits for one."""
    take = rest_loads.Load._take

    async def taken(load: Any, places: Any) -> None:
        load._patience = 20.0
        if places.wanted > 3:
            hanging.go.set()
        await take(load, places)

    return taken


@pytest.mark.usefixtures("few_places")
def test_streams_and_waits_are_bounded_for_each_account(served: httpx2.Client, fresh: Any) -> None:
    fresh.cluster.endless = True
    assert served.put("/v1/stores/k", json={"kafka": {"bootstrap_servers": "h:1"}}).status_code == 201
    body: dict[str, Any] = {"kafka": {"partitions": 1, "replicas": 1}}
    assert served.put("/v1/stores/k/entities/t", json=body).status_code == 201
    path = "/v1/stores/k/entities/t/records"
    with served.stream("GET", path) as one, served.stream("GET", path) as two:
        assert (one.status_code, two.status_code) == (200, 200)
        assert _refused(served.get(path))
        assert _refused(served.get(path, headers={"Authorization": f"Bearer {another_token(fresh)}"}))
        assert served.get("/v1/databases").status_code == 200
    eventually(lambda: fresh.cluster.closed_readers == 2)

    def again() -> bool:
        with served.stream("GET", path) as answer:
            return answer.status_code == 200

    eventually(again)
    assert served.put("/v1/databases/demo", json={}).status_code == 201
    columns = [{"name": "a", "type": "BIGINT"}]
    relation = {"columns": columns, "store": "k", "topic": "t", "value_format": "json"}
    assert served.put("/v1/relations/demo.public.t", json=relation).status_code == 201
    query = {"sql": "CREATE STREAM v AS SELECT * FROM t", "database": "demo", "store": "k"}
    assert served.put("/v1/queries/q", json=query).status_code == 201
    wait = {"wait_for": "failed", "timeout": "8s"}
    # The place of the last stream may be given back a moment after its client left.
    waiting = _threads(2, lambda: eventually(lambda: not _refused(served.get("/v1/queries/q", params=wait))))
    eventually(lambda: _refused(served.get("/v1/queries/q", params=wait | {"timeout": "0s"})))
    assert served.get("/v1/queries/q").status_code == 200
    for thread in waiting:
        thread.join(20)
    assert served.get("/v1/queries/q", params=wait | {"timeout": "0s"}).status_code == 200


def _raw(served: httpx2.Client, head: str) -> socket.socket:
    connection = socket.create_connection((served.base_url.host, served.base_url.port), timeout=20)
    connection.sendall(head.replace("\n", "\r\n").encode())
    return connection


@pytest.mark.parametrize("path", ["/v1/statements", "/v1/drivers/d/poll", "/v1/no/such"])
def test_a_body_is_not_read_without_a_valid_token(served: httpx2.Client, path: str) -> None:
    """However long it says that it is, the answer comes at once."""
    for token in ("", "Authorization: Bearer leat_wrong\n"):
        head = f"POST {path} HTTP/1.1\nHost: h\n{token}Content-Type: application/json\nContent-Length: 400000000\n\n"
        with _raw(served, head) as connection:
            assert connection.recv(4096).startswith(b"HTTP/1.1 401")


def test_a_body_that_does_not_come_is_not_waited_for(
    served: httpx2.Client, fresh: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leatstream.rest.gate._BODY_SECONDS", 0.3)
    monkeypatch.setattr("leatstream.rest.gate._DRAIN_SECONDS", 0.3)
    for length, status in ((100, b"422"), (400_000_000, b"413")):
        head = f"PUT /v1/databases/d HTTP/1.1\nHost: h\nAuthorization: Bearer {fresh.token}\n"
        with _raw(
            served, f"{head}Content-Type: application/json\nContent-Length: {length}\n\n{{"
        ) as connection:
            assert connection.recv(4096).split()[1] == status


def test_no_other_protocol_passes_the_gate(fresh: Any) -> None:
    with TestClient(create_app(fresh.env)) as client:
        for path in ("/v1/statements", "/healthz"):
            with pytest.raises(WebSocketDisconnect) as told, client.websocket_connect(path):
                pass
            assert told.value.code == 1008

"""Subscriptions over a real server: by WebSocket and as server-sent events, and what ends with them."""

from __future__ import annotations

import contextlib
import json
import random
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import fakes
import httpx2
import pytest
from serving import eventually, serving
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from leatstream.connectors.entities import Record
from leatstream.model.objects import QueryState
from leatstream.rest import accepted
from leatstream.rest import app as rest_app
from leatstream.services import driver_calls as drivers
from leatstream.services.selects import interactive

RECORDS = 'subscription { records(store: "k", entity: "t", from: BEGINNING) { key value partition offset } }'


@pytest.fixture
def world(fresh: Any) -> Any:
    """A world whose one topic has a record, and whose readers end only when they are closed."""
    fresh.cluster.endless = True
    return fresh


@pytest.fixture
def served(world: Any) -> Iterator[httpx2.Client]:
    """A client of that world behind uvicorn."""
    with (
        serving(world) as url,
        httpx2.Client(base_url=url, headers=world.headers, timeout=20, trust_env=False) as client,
    ):
        bodies = {
            "/v1/stores/k": {"kafka": {"bootstrap_servers": "h:1"}},
            "/v1/stores/k/entities/t": {"kafka": {"partitions": 1, "replicas": 1}},
            "/v1/databases/demo": {},
            "/v1/relations/demo.public.t": {
                "columns": [{"name": "a", "type": "BIGINT"}],
                "store": "k",
                "topic": "t",
                "value_format": "json",
            },
        }
        for path, body in bodies.items():
            assert client.put(path, json=body).status_code == 201
        world.cluster.records["t"] = [Record(b"k", b'{"a": 1.10}', 0, 0, 1, ())]
        yield client


class Socket:
    """A client of graphql-transport-ws."""

    def __init__(self, served: httpx2.Client, token: str | None, *, header: bool = False) -> None:
        headers = {"Authorization": f"Bearer {token}"} if header else {}
        url = f"ws://{served.base_url.host}:{served.base_url.port}/graphql"
        protocols: Any = ["graphql-transport-ws"]
        self.connection: ClientConnection = connect(
            url, subprotocols=protocols, additional_headers=headers, proxy=None, close_timeout=0.2
        )
        payload = {} if header or token is None else {"authorization": f"Bearer {token}"}
        self.send(type="connection_init", payload=payload)

    def send(self, **message: Any) -> None:
        self.connection.send(json.dumps(message))

    def receive(self) -> Any:
        return json.loads(self.connection.recv(timeout=20))

    def subscribe(self, document: str, name: str = "1") -> None:
        self.send(type="subscribe", id=name, payload={"query": document})


@contextlib.contextmanager
def signed_in(served: httpx2.Client, token: str, *, header: bool = False) -> Iterator[Socket]:
    """A connection that may subscribe."""
    socket = Socket(served, token, header=header)
    try:
        assert socket.receive()["type"] == "connection_ack"
        yield socket
    finally:
        socket.connection.close()


def events(answer: httpx2.Response) -> Iterator[tuple[str, Any]]:
    """Name and data of server-sent events."""
    name = ""
    for line in answer.iter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data:"):
            text = line.removeprefix("data:").strip()
            yield name, json.loads(text) if text else None


@contextlib.contextmanager
def followed(served: httpx2.Client, document: str) -> Iterator[Iterator[tuple[str, Any]]]:
    """The events of a subscription."""
    headers = {"Accept": "text/event-stream"}
    with served.stream("POST", "/graphql", json={"query": document}, headers=headers) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield events(answer)


FIRST = {"key": "k", "value": {"a": 1.1}, "partition": "0", "offset": "0"}


@pytest.mark.parametrize("header", [False, True])
def test_a_socket_that_leaves_ends_its_reader(served: httpx2.Client, world: Any, header: bool) -> None:
    """By `complete`, and by closing the connection; the token comes in either of two places."""
    with signed_in(served, world.token, header=header) as socket:
        for name in ("one", "two"):
            socket.subscribe(RECORDS, name)
            text = socket.connection.recv(timeout=20)
            assert '"value":{"a":1.10}' in str(text)  # as it was written
            assert json.loads(text) == {"id": name, "type": "next", "payload": {"data": {"records": FIRST}}}
        assert world.cluster.closed_readers == 0
        socket.send(type="complete", id="one")
        eventually(lambda: world.cluster.closed_readers == 1)
    eventually(lambda: world.cluster.closed_readers == 2)


def test_a_reader_of_events_that_leaves_ends_its_reader(served: httpx2.Client, world: Any) -> None:
    with followed(served, RECORDS) as found:
        assert next(found) == ("next", {"data": {"records": FIRST}})
        assert world.cluster.closed_readers == 0
    eventually(lambda: world.cluster.closed_readers == 1)
    world.cluster.endless = False
    limited = RECORDS.replace("BEGINNING", "BEGINNING, limit: 1")
    with followed(served, limited) as found:
        assert [name for name, _ in found] == ["next", "complete"]
    eventually(lambda: world.cluster.closed_readers == 2)


CHOSEN = {
    'since: "1970-01-01T00:00:03Z"': ["3", "4", "5"],
    'since: "1970-01-01T00:00:03", q: "BLUE"': ["4"],
    'from: BEGINNING, partition: "1"': ["1", "3", "5"],
    'partition: "0", offset: 2': ["2", "4"],
    'from: BEGINNING, q: "key3", rate: 1': ["3"],
}


@pytest.mark.parametrize("given", CHOSEN)
def test_records_are_chosen_as_by_rest(served: httpx2.Client, world: Any, given: str) -> None:
    world.cluster.endless = False
    world.cluster.records["t"] = [
        Record(b"key%d" % i, b'{"a": "%s"}' % (b"red", b"blue")[i % 4 == 0], i % 2, i, 1000 * i, ())
        for i in range(6)
    ]
    document = f'subscription {{ records(store: "k", entity: "t", {given}) {{ offset }} }}'
    with followed(served, document) as found:
        offsets = [body["data"]["records"]["offset"] for name, body in found if name == "next"]
    assert offsets == CHOSEN[given]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("limit: 0", "The limit must be between 1 and 1000000"),
        ("rate: 10001", "The rate must be between 1 and 10000"),
        ('partition: "0", offset: -1', "The offset must be between 0 and"),
        ("offset: 1.5", "not a whole number"),
        ('q: ""', "q has 1 to 1000 characters"),
        ('partition: ""', "partition has 1 to 200 characters"),
        ("offset: 3", "An offset is a place in one partition"),
        ('since: "yesterday"', "DateTime"),
    ],
)
def test_wrong_choices_are_refused(served: httpx2.Client, given: str, said: str) -> None:
    document = f'subscription {{ records(store: "k", entity: "t", {given}) {{ offset }} }}'
    with followed(served, document) as found:
        (_, body), *_ = found
    (error,) = body["errors"]
    assert error["extensions"]["code"] == "validation"
    assert said in error["message"]


def test_nothing_happens_without_a_token(served: httpx2.Client, world: Any) -> None:
    socket = Socket(served, None)
    with pytest.raises(ConnectionClosed) as closed:
        socket.receive()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 4403
    with pytest.raises(InvalidStatus) as refused:
        Socket(served, "leat_wrong", header=True)
    assert refused.value.response.status_code == 403
    url = f"ws://{served.base_url.host}:{served.base_url.port}/graphql"
    protocols: Any = ["graphql-transport-ws"]
    with connect(url, subprotocols=protocols, proxy=None) as early:
        early.send(json.dumps({"type": "subscribe", "id": "1", "payload": {"query": RECORDS}}))
        with pytest.raises(ConnectionClosed) as closed:
            early.recv(timeout=20)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 4401
    assert world.cluster.closed_readers == 0


def test_rows_of_a_select_end_it_with_their_reader(served: httpx2.Client, world: Any) -> None:
    """Numbers stay as the driver has written them."""
    driver = IdleDriver(world)
    document = 'subscription { rows(sql: "SELECT * FROM demo.public.t") { op row } }'
    with signed_in(served, world.token) as socket:
        socket.subscribe(document)
        eventually(lambda: driver.take() is not None)
        assert driver.send('{"a":12345678901234567.890}') == {"directive": "continue"}
        expected = '{"rows":{"op":"+I","row":{"a":12345678901234567.890}}}'
        assert expected in str(socket.connection.recv(timeout=20))
        socket.send(type="complete", id="1")
        eventually(lambda: driver.send('{"a":1}') == {"directive": "stop"})
        socket.subscribe('subscription { rows(sql: "CREATE DATABASE x;") { row } }', "2")
        refused = socket.receive()
    errors = refused["payload"]["errors"] if refused["type"] == "next" else refused["payload"]
    assert errors[0]["extensions"]["code"] == "unsupported"
    assert served.get("/v1/databases/x").status_code == 404


class IdleDriver:
    """A driver that is idle until it is given a SELECT."""

    def __init__(self, world: Any) -> None:
        self.world, self.sequence = world, 0
        world.drivers.tokens["d1"] = "token of d1"

    def take(self) -> str | None:
        work = drivers.poll(self.world.env, "d1", {"state": "idle", "pid": 1})
        self.id = None if work is None else work["spec"]["query_id"]
        return self.id

    def send(self, row: str) -> dict[str, Any] | None:
        self.sequence += 1
        body = {"select": self.id, "sequence": self.sequence, "rows": [("+I", row)]}
        return interactive.take_rows(self.world.env, "d1", body)


def test_a_message_has_a_bound(served: httpx2.Client, world: Any) -> None:
    with signed_in(served, world.token) as socket:
        with contextlib.suppress(ConnectionClosed):
            socket.subscribe("x" * 2_000_000)
        with pytest.raises(ConnectionClosed):
            socket.receive()
    assert served.get("/healthz").status_code == 200


def test_a_revoked_token_starts_nothing_more_on_its_connection(served: httpx2.Client, world: Any) -> None:
    served.headers["Authorization"] = f"Bearer {fakes.administrator(world)}"
    assert served.put("/v1/service-accounts/app", json={"roles": ["sysadmin"]}).status_code == 201
    token = served.post("/v1/tokens/app", json={"account": "app", "scope": "write"}).json()["value"]
    with signed_in(served, token) as socket:
        socket.subscribe(RECORDS)
        assert socket.receive()["type"] == "next"
        assert served.delete("/v1/tokens/app").status_code == 204
        socket.subscribe(RECORDS, "2")
        refused = socket.receive()
    (error,) = refused["payload"]["errors"] if refused["type"] == "next" else refused["payload"]
    assert (refused["id"], error["extensions"]["code"]) == ("2", "unauthenticated")


def test_a_subscription_ends_with_its_token_or_a_lost_privilege(
    served: httpx2.Client, world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By WebSocket and as server-sent events; one that is silent too."""
    monkeypatch.setattr(accepted, "LOOK_AGAIN", 0.0)
    served.headers["Authorization"] = f"Bearer {fakes.administrator(world)}"
    grants = [{"privilege": "read_entity", "on": "store", "name": "k"}]
    assert served.put("/v1/roles/prints", json={"grants": grants}).status_code == 201
    assert served.put("/v1/service-accounts/app", json={"roles": ["prints"]}).status_code == 201
    token = served.post("/v1/tokens/app", json={"account": "app", "scope": "write"}).json()["value"]
    with signed_in(served, token) as socket:
        socket.subscribe(RECORDS)
        assert socket.receive()["type"] == "next"
        assert served.put("/v1/roles/prints", json={"grants": []}).status_code == 200
        assert "permission-denied" in json.dumps(socket.receive())
    assert served.put("/v1/roles/prints", json={"grants": grants}).status_code == 200
    administrator = served.headers["Authorization"]
    served.headers["Authorization"] = f"Bearer {token}"
    with followed(served, RECORDS) as found:
        assert next(found)[0] == "next"
        headers = {"Authorization": administrator}
        assert served.delete("/v1/tokens/app", headers=headers).status_code == 204
        assert "unauthenticated" in json.dumps(next(found))
    eventually(lambda: world.cluster.closed_readers == 2)


def test_only_subscriptions_are_streamed(served: httpx2.Client, world: Any) -> None:
    """A query's resolvers would stop the event loop, and so every other request."""
    with signed_in(served, world.token) as socket:
        socket.subscribe("{ server { name } }")
        answer = socket.receive()
    assert (answer["type"], answer["payload"][0]["extensions"]["code"]) == ("error", "validation")
    with followed(served, "{ server { name } }") as found:
        (_, body), (last, _) = found
    assert (body["data"], last) == (None, "complete")
    posted = served.post("/graphql", json={"query": RECORDS}).json()
    assert "text/event-stream" in posted["errors"][0]["message"]


def test_status_and_logs_until_the_query_is_deleted(served: httpx2.Client, world: Any) -> None:
    query = {"sql": "CREATE STREAM v AS SELECT * FROM t", "database": "demo", "store": "k"}
    assert served.put("/v1/queries/q", json=query).status_code == 201
    status, logs = 'subscription { queryStatus(name: "q") { state } }', 'subscription { logs(query: "q") }'
    with followed(served, status) as states, followed(served, logs) as lines:
        assert next(states) == ("next", {"data": {"queryStatus": {"state": "PENDING"}}})
        _report(world, "q", log_tail=("one", "two"))
        assert [next(lines)[1]["data"]["logs"] for _ in range(2)] == ["one", "two"]
        _report(world, "q", state=QueryState.STARTING)
        assert next(states)[1] == {"data": {"queryStatus": {"state": "STARTING"}}}
        _delete(world, "q")
        assert [name for name, _ in lines] == ["complete"]
        assert [name for name, _ in states][-1] == "complete"
    with followed(served, status) as states:
        ((_, body), _) = states
    assert body["errors"][0]["extensions"]["code"] == "not-found"


def _report(world: Any, name: str, **status: Any) -> None:
    with world.units() as unit:
        query = unit.queries.find(name)
        unit.queries.update(replace(query, status=replace(query.status, **status)))
        unit.commit()
    world.env.changed.notify()


def _delete(world: Any, name: str) -> None:
    with world.units() as unit:
        unit.queries.delete(unit.queries.find(name).meta.id)
        unit.commit()
    world.env.changed.notify()


def test_a_slow_reader_holds_few_records(served: httpx2.Client, world: Any) -> None:
    """The store is read no further than the client reads."""
    many, taken = 2_000, [0]
    # Nothing that the connection's compression makes small.
    value = json.dumps(random.Random(7).randbytes(200_000).hex()).encode()

    class Counted(list[Record]):
        def __iter__(self) -> Iterator[Record]:
            for number in range(many):
                taken[0] = number
                yield Record(None, value, 0, number, 1, ())

    world.cluster.records["t"] = Counted()
    document = 'subscription { records(store: "k", entity: "t", from: BEGINNING) { value } }'
    with signed_in(served, world.token) as socket:
        socket.subscribe(document)
        socket.receive()
        seen = -1
        while seen != (seen := taken[0]):
            time.sleep(0.3)
        assert taken[0] < many / 4
    eventually(lambda: world.cluster.closed_readers == 1)


@pytest.mark.parametrize("transport", ["socket", "events"])
def test_an_account_has_so_many_streams(
    served: httpx2.Client, world: Any, monkeypatch: pytest.MonkeyPatch, transport: str
) -> None:
    del served
    monkeypatch.setattr(rest_app, "STREAMS_OF_A_PRINCIPAL", 1)
    with serving(world) as url, httpx2.Client(base_url=url, headers=world.headers, trust_env=False) as client:
        if transport == "socket":
            with signed_in(client, world.token) as socket:
                socket.subscribe(RECORDS, "1")
                assert socket.receive()["id"] == "1"
                socket.subscribe(RECORDS, "2")
                refused = socket.receive()
                errors = refused["payload"]["errors"] if refused["type"] == "next" else refused["payload"]
        else:
            with followed(client, RECORDS) as one:
                next(one)
                with followed(client, RECORDS) as two:
                    errors = next(two)[1]["errors"]
        assert errors[0]["extensions"]["code"] == "too-many-requests"
        eventually(lambda: world.cluster.closed_readers == 1)


def test_streams_leave_the_places_of_quick_requests(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"REQUESTS_OF_A_PRINCIPAL": 1, "REQUEST_PATIENCE": 0.5}.items():
        monkeypatch.setattr(rest_app, name, value)
    with serving(world) as url, httpx2.Client(base_url=url, headers=world.headers, trust_env=False) as client:
        assert client.put("/v1/stores/k", json={"kafka": {"bootstrap_servers": "h:1"}}).status_code == 201
        entity = {"kafka": {"partitions": 1, "replicas": 1}}
        assert client.put("/v1/stores/k/entities/t", json=entity).status_code == 201
        world.cluster.records["t"] = [Record(b"k", b"1", 0, 0, 1, ())]
        with followed(client, RECORDS) as found:
            assert next(found)[0] == "next"
            assert client.get("/v1/databases").status_code == 200

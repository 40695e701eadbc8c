"""A server in a network refuses stores and registries by which users would reach its own network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import ip_address
from typing import Any

import fakes
import pytest
from starlette.testclient import TestClient

from leatstream.bootstrap import StoreConnections, open_registry
from leatstream.connectors.destinations import Destinations
from leatstream.errors import StoreError
from leatstream.model.networks import Networks
from leatstream.services.nouns.places import require_store_allowed

OUT = {"out": "8.8.8.8", "moved": "8.8.4.4", "inside": "10.0.0.1", "lan": "10.0.0.9"}
SQL = "CREATE STORE k WITH ('type' = KAFKA, 'tls.disabled' = TRUE, 'uris' = 'out:9092,{}:9092')"
REGISTRY = "CREATE SCHEMA_REGISTRY r WITH ('type' = CONFLUENT, 'uris' = 'http://{}:8081')"


class Names:
    """What names resolve to, and which were asked for."""

    def __init__(self) -> None:
        self.known, self.asked = dict(OUT), list[str]()

    def resolve(self, hosts: Sequence[str]) -> dict[str, Any]:
        self.asked += hosts
        return {one: (ip_address(self.known.get(one, one)),) for one in hosts if self.known.get(one, one)}


@pytest.fixture
def names(fresh: Any) -> Names:
    """The server connects to public addresses, and to ``inside`` by its name."""
    made, connect = Names(), fresh.env.connect

    def guarded(store: Any) -> Any:
        require_store_allowed(fresh.env, store)
        return connect(store)

    fresh.env.destinations = Destinations(Networks.read("inside"), made.resolve)
    fresh.env.connect = guarded
    fresh.env.open_registry = lambda address, seconds: open_registry(fresh.env, address, seconds)
    return made


@pytest.fixture
def plain(fresh: Any, client: TestClient) -> Iterator[TestClient]:
    """The client of an account that may create nothing."""
    admin = {"Authorization": f"Bearer {fakes.administrator(fresh)}"}
    client.put("/v1/roles/none", json={}, headers=admin).raise_for_status()
    client.put("/v1/service-accounts/p", json={"roles": ["none"]}, headers=admin).raise_for_status()
    body = {"account": "p", "scope": "write"}
    made = client.post("/v1/tokens/p", json=body, headers=admin).json()
    headers = {"Authorization": f"Bearer {made['value']}"}
    with TestClient(client.app, headers=headers, raise_server_exceptions=False) as opened:
        yield opened


def kafka(host: str) -> dict[str, Any]:
    return {"kafka": {"bootstrap_servers": f"out:9092,{host}:9092"}}


@pytest.mark.parametrize(
    ("host", "text"),
    [
        ("lan", "bootstrap_servers: lan resolves to 10.0.0.9, a private address."),
        (
            "169.254.169.254",
            "bootstrap_servers: 169.254.169.254 is an address of a cloud's metadata service.",
        ),
        ("127.0.0.1", "bootstrap_servers: 127.0.0.1 is an address of the server itself."),
    ],
)
def test_a_store_in_the_servers_network_is_refused(
    client: TestClient, names: Names, host: str, text: str
) -> None:
    put = client.put("/v1/stores/k", json=kafka(host))
    assert put.status_code == 422
    assert put.json()["errors"][0]["pointer"] == "#/kafka/bootstrap_servers"
    sql = {"sql": SQL.format(host)}
    for answer in (
        put,
        client.post("/v1/statements", json=sql),
        client.post("/v1/statements:validate", json=sql),
    ):
        assert text in answer.text, answer.text
        assert "LEATSTREAM_ALLOWED_NETWORKS" in answer.text
    assert client.get("/v1/stores/k").status_code == 404


def test_a_change_to_such_an_address_is_refused(client: TestClient, names: Names) -> None:
    assert client.put("/v1/stores/k", json=kafka("inside")).json()["status"]["state"] == "ready"
    sql = {"sql": "UPDATE STORE k WITH ('uris' = 'lan:9092')"}
    for path in ("/v1/statements", "/v1/statements:validate"):
        assert "a private address" in client.post(path, json=sql).text
    assert client.get("/v1/stores/k").json()["kafka"]["bootstrap_servers"] == "out:9092,inside:9092"


def test_a_name_that_moves_into_the_network_is_noticed(client: TestClient, names: Names) -> None:
    client.put("/v1/stores/k", json=kafka("moved")).raise_for_status()
    client.put("/v1/stores/k/entities/t", json={"kafka": {"partitions": 1, "replicas": 1}}).raise_for_status()
    names.known["moved"] = "10.0.0.9"
    answer = client.get("/v1/stores/k/entities/t")
    assert (answer.status_code, answer.json()["code"]) == (403, "address-refused")
    assert (
        "No connection to store k: bootstrap_servers: moved resolves to 10.0.0.9" in answer.json()["detail"]
    )
    status = client.post("/v1/stores/k:test").json()["status"]
    assert (status["state"], status["error"]["code"]) == ("errored", "address-refused")


def test_a_name_service_that_is_silent_ends_nothing(client: TestClient, names: Names) -> None:
    client.put("/v1/stores/k", json=kafka("moved")).raise_for_status()
    names.known["moved"] = ""
    answer = client.get("/v1/stores/k/entities/t")
    assert (answer.status_code, answer.json()["code"]) == (503, "store-unreachable")
    assert "moved could not be resolved in time" in answer.json()["detail"]


def test_a_registry_in_the_servers_network_is_refused(client: TestClient, names: Names) -> None:
    body = {"type": "confluent", "uris": "http://out:8081,http://lan:8081"}
    answer = client.put("/v1/schema-registries/r", json=body)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "#/uris")
    for path in ("/v1/statements", "/v1/statements:validate"):
        assert "lan resolves to 10.0.0.9" in client.post(path, json={"sql": REGISTRY.format("lan")}).text
    client.put("/v1/schema-registries/r", json=body | {"uris": "http://moved:1"}).raise_for_status()
    names.known["moved"] = "10.0.0.9"
    tested = client.post("/v1/schema-registries/r:test").json()
    assert tested["error_code"] == "address-refused", tested


def test_names_are_resolved_only_for_who_may_connect(plain: TestClient, names: Names) -> None:
    """The answer would show the server's network to everyone."""
    sql = {"sql": SQL.format("lan")}
    answers = [
        plain.put("/v1/stores/k", json=kafka("lan")),
        plain.put("/v1/schema-registries/r", json={"type": "confluent", "uris": "http://lan:1"}),
        plain.post("/v1/statements", json=sql),
        plain.post("/v1/statements:validate", json=sql),
    ]
    assert [one.status_code for one in answers[:3]] == [403] * 3
    assert "10.0.0.9" not in "".join(one.text for one in answers)
    assert names.asked == []


def test_the_servers_connections_are_checked(fresh: Any, client: TestClient, names: Names) -> None:
    client.put("/v1/stores/k", json=kafka("moved")).raise_for_status()
    with fresh.env.open_unit(write=False) as unit:
        store = unit.stores.find("k")
    connections = StoreConnections(lambda: fresh.env, recheck=0.0)
    assert connections(store).config.bootstrap_servers == "out:9092,moved:9092"
    names.known["moved"] = "127.0.0.1"
    with pytest.raises(StoreError, match=r"moved resolves to 127\.0\.0\.1, an address of the server itself"):
        connections(store)


def test_an_open_connection_needs_no_name_service(fresh: Any, client: TestClient, names: Names) -> None:
    client.put("/v1/stores/k", json=kafka("moved")).raise_for_status()
    with fresh.env.open_unit(write=False) as unit:
        store = unit.stores.find("k")
    connections = StoreConnections(lambda: fresh.env)
    opened, asked = connections(store), len(names.asked)
    assert connections(store) is opened
    assert len(names.asked) == asked
    names.known["moved"] = ""
    later = StoreConnections(lambda: fresh.env, recheck=0.0)
    with pytest.raises(StoreError, match="could not be resolved in time"):
        later(store)
    names.known["moved"] = "8.8.4.4"
    opened = later(store)
    names.known["moved"] = ""
    assert later(store) is opened

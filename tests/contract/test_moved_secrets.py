"""A stored secret goes to no other place than the one it was given for."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

LOGIN = {"mechanism": "oauthbearer", "oauth": {"token_url": "https://id.example.com/t", "client_id": "c"}}
KAFKA = {"bootstrap_servers": "a:1,b:2", "security_protocol": "sasl_ssl", "sasl": LOGIN}


def _with(**changes: Any) -> dict[str, Any]:
    oauth = {**LOGIN["oauth"], **changes.pop("oauth", {})}  # type: ignore[dict-item]
    return {"kafka": {**KAFKA, "sasl": {**LOGIN, "oauth": oauth}, **changes}}


@pytest.fixture
def store(client: TestClient) -> TestClient:
    made = client.put("/v1/stores/k", json=_with(oauth={"client_secret": "first-one"}))
    assert made.status_code == 201, made.text
    return client


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        (_with(bootstrap_servers="evil:1"), "bootstrap_servers"),
        (_with(bootstrap_servers="a:1,evil:1"), "bootstrap_servers"),
        (_with(oauth={"token_url": "https://evil.example.com/t"}), "sasl.oauth.token_url"),
        (_with(security_protocol="sasl_plaintext"), "security_protocol"),
        (_with(tls={"verify_hostname": False}), "tls.verify_hostname"),
    ],
)
def test_another_place_asks_for_the_secret_again(
    store: TestClient, changed: dict[str, Any], named: str
) -> None:
    refused = store.put("/v1/stores/k", json=changed)
    assert refused.status_code == 422, refused.text
    (fault,) = refused.json()["errors"]
    assert fault["pointer"] == "#/kafka/sasl/oauth/client_secret"
    assert named in fault["detail"]
    assert "first-one" not in refused.text
    assert store.get("/v1/stores/k").json()["generation"] == 1
    changed["kafka"]["sasl"]["oauth"]["client_secret"] = "second-one"
    assert store.put("/v1/stores/k", json=changed).status_code == 200


def test_another_way_of_sending_it_asks_for_it_again(client: TestClient) -> None:
    """SCRAM only proves that one knows the password; PLAIN sends it."""
    sasl = {"mechanism": "scram_sha_512", "username": "u"}
    kafka = {"bootstrap_servers": "a:1", "security_protocol": "sasl_plaintext"}
    body = {"kafka": {**kafka, "sasl": {**sasl, "password": "first-one"}}}
    assert client.put("/v1/stores/k", json=body).status_code == 201
    plain = {"kafka": {**kafka, "sasl": {**sasl, "mechanism": "plain"}}}
    refused = client.put("/v1/stores/k", json=plain)
    assert refused.status_code == 422
    (fault,) = refused.json()["errors"]
    assert fault["pointer"] == "#/kafka/sasl/password"
    assert "sasl.mechanism" in fault["detail"]
    sql = "UPDATE STORE k WITH ('kafka.sasl.hash_function' = PLAIN)"
    assert "must be given again" in client.post("/v1/statements", json={"sql": sql}).text
    same = {"kafka": {**kafka, "sasl": sasl}}
    assert client.put("/v1/stores/k", json=same).status_code == 200
    plain["kafka"]["sasl"]["password"] = "first-one"
    assert client.put("/v1/stores/k", json=plain).status_code == 200


def test_the_same_place_keeps_it(store: TestClient) -> None:
    fewer = store.put("/v1/stores/k", json=_with(bootstrap_servers="b:2", oauth={"scope": "kafka"}))
    assert (fewer.status_code, fewer.json()["generation"]) == (200, 2), fewer.text


def test_statements_too(store: TestClient) -> None:
    sql = "UPDATE STORE k WITH ('uris' = 'evil:1')"
    checked = store.post("/v1/statements:validate", json={"sql": sql}).json()
    assert "must be given again" in checked["statements"][0]["problems"][0]["detail"]
    assert store.post("/v1/statements", json={"sql": sql}).status_code == 422
    assert store.get("/v1/stores/k").json()["generation"] == 1


def test_schema_registries_too(client: TestClient) -> None:
    body = {"type": "confluent", "uris": "http://a:1", "username": "u", "password": "first-one"}
    assert client.put("/v1/schema-registries/r", json=body).status_code == 201
    del body["password"]
    refused = client.put("/v1/schema-registries/r", json=body | {"uris": "http://evil:1"})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "#/password"), refused.text
    kept = client.put("/v1/schema-registries/r", json=body | {"comment": "here"})
    assert kept.status_code == 200, kept.text

"""Secrets, schema registries and descriptor sources, by SQL and by REST: what holds, and what is never shown."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from starlette.testclient import TestClient

PASSWORD = "hunter2-never-shown"
ROTATED = "hunter3-never-shown"
SASL = "'kafka.sasl.hash_function'=PLAIN, 'kafka.sasl.username'='u'"
# syntax = "proto3"; package shop; message Order { string id; message Line {} map<…> notes }
DESCRIPTORS = "Cj8KDHNob3AvYS5wcm90bxIEc2hvcCIpCgVPcmRlchIGCgJpZBgBGgYKBExpbmUaEAoKTm90ZXNFbnRyeToCOAE="


def _run(client: TestClient, sql: str, **more: Any) -> Any:
    return client.post("/v1/statements", json={"sql": sql, **more})


def _rows(client: TestClient, sql: str) -> list[list[Any]]:
    answer = _run(client, sql)
    assert answer.status_code == 200, answer.text
    found: list[list[Any]] = answer.json()["results"][-1]["rows"]
    return found


@pytest.fixture
def secured(client: TestClient) -> TestClient:
    """A secret, and a store whose password it holds."""
    made = _run(
        client,
        f"CREATE SECRET kafka_pw WITH ('type'=generic_string, 'description'='d', 'secret_string'='{PASSWORD}',"
        f" 'rotation'='monthly'); CREATE STORE k WITH ('type'=KAFKA, 'uris'='h:9092', {SASL},"
        " 'kafka.sasl.password'=\"kafka_pw\")",
    )
    assert made.status_code == 200, made.text
    return client


def test_a_store_connects_with_a_named_secret(secured: TestClient, fresh: Any) -> None:
    """The connector gets the value; no answer and no listing holds it."""
    with fresh.env.open_unit(write=False) as unit:
        store = unit.stores.find("k")
    assert fresh.env.connect(store).config.sasl.password.get_secret_value() == PASSWORD
    seen = [
        secured.get(p).text for p in ("/v1/secrets/kafka_pw", "/v1/secrets", "/v1/stores/k", "/v1/stores")
    ]
    seen += [
        json.dumps(_rows(secured, s))
        for s in ("LIST SECRETS", "DESCRIBE SECRET kafka_pw", "DESCRIBE STORE k", "LIST STORES")
    ]
    assert PASSWORD not in "".join(seen)
    assert secured.get("/v1/stores/k").json()["kafka"]["sasl"]["password_secret"] == "kafka_pw"
    assert ["rotation", "monthly"] in _rows(secured, "DESCRIBE SECRET kafka_pw")


def test_a_new_value_reaches_the_stores(secured: TestClient, fresh: Any) -> None:
    """The same value again is no change; another one makes the store connect again, its generation stays."""
    before = secured.get("/v1/stores/k").json()["generation"]
    for value, version in ((PASSWORD, 1), (ROTATED, 2), (ROTATED, 2)):
        assert _run(secured, f"UPDATE SECRET kafka_pw WITH ('secret_string'='{value}')").status_code == 200
        assert secured.get("/v1/secrets/kafka_pw").json()["version"] == version
    with fresh.env.open_unit(write=False) as unit:
        store = unit.stores.find("k")
    assert fresh.env.connect(store).config.sasl.password.get_secret_value() == ROTATED
    assert (store.meta.generation, store.secret_changes, store.state) == (before, 1, "ready")
    assert secured.get("/v1/secrets/kafka_pw").json()["comment"] == "d"


def test_a_secret_in_use_stays(secured: TestClient, fresh: Any) -> None:
    """Dropping the store leaves the secret, then the secret can go and takes its value with it."""
    held = _run(secured, "DROP SECRET kafka_pw")
    assert (held.status_code, held.json()["code"]) == (409, "has-dependents")
    assert "store k" in held.json()["detail"]
    assert _run(secured, "DROP STORE k").status_code == 200
    with fresh.env.open_unit(write=False) as unit:
        reference = unit.named_secrets.find("kafka_pw").reference
        assert unit.secrets.find(reference) is not None
    assert _run(secured, "DROP SECRET kafka_pw; DROP SECRET IF EXISTS kafka_pw").status_code == 200
    with fresh.env.open_unit(write=False) as unit:
        assert unit.secrets.find(reference) is None


def test_from_a_named_secret_to_a_password_of_its_own(secured: TestClient, fresh: Any) -> None:
    """And back: what is no longer used is forgotten, what is named is not."""
    body = {"kafka": {"bootstrap_servers": "h:9092", "security_protocol": "sasl_ssl"}}
    own = {"mechanism": "plain", "username": "u", "password": "own-password"}
    named = {"mechanism": "plain", "username": "u", "password_secret": "kafka_pw"}
    body["kafka"]["sasl"] = own  # type: ignore[assignment]
    assert secured.put("/v1/stores/k", json=body).status_code == 200
    assert _run(secured, "UPDATE STORE k WITH ('kafka.sasl.username'='v')").status_code == 200
    with fresh.env.open_unit(write=False) as unit:
        store = unit.stores.find("k")
    assert fresh.env.connect(store).config.sasl.password.get_secret_value() == "own-password"
    body["kafka"]["sasl"] = named  # type: ignore[assignment]
    assert secured.put("/v1/stores/k", json=body).status_code == 200
    with fresh.env.open_unit(write=False) as unit:
        assert unit.secrets.find(f"secret://catalog/{store.meta.id}/sasl.password") is None
    # Neither value nor name: the named one is no value of the store's own that could stay.
    body["kafka"]["sasl"] = {"mechanism": "plain", "username": "u"}  # type: ignore[assignment]
    assert secured.put("/v1/stores/k", json=body).status_code == 422
    body["kafka"]["sasl"] = own | named  # type: ignore[assignment]
    assert secured.put("/v1/stores/k", json=body).status_code == 422


def test_client_credentials_take_the_place_of_a_password(secured: TestClient, fresh: Any) -> None:
    """What belonged to the old login is forgotten; the new secret stays when it is not sent again."""
    own = {"mechanism": "plain", "username": "u", "password": "own-password"}
    oauth = {
        "token_url": "https://h/token",
        "client_id": "c",
        "client_secret": "hunter2",
        "extensions": {"pool": "p"},
    }
    body = {"kafka": {"bootstrap_servers": "h:9092", "security_protocol": "sasl_ssl", "sasl": own}}
    assert secured.put("/v1/stores/k", json=body).status_code == 200
    body["kafka"]["sasl"] = {"mechanism": "oauthbearer", "oauth": dict(oauth)}  # type: ignore[index]
    answer = secured.put("/v1/stores/k", json=body)
    assert answer.status_code == 200, answer.text
    shown = {k: v for k, v in oauth.items() if k != "client_secret"}
    sasl = answer.json()["kafka"]["sasl"]
    assert (sasl["mechanism"], sasl["username"]) == ("oauthbearer", None)
    assert {k: v for k, v in sasl["oauth"].items() if v is not None} == shown
    with fresh.env.open_unit(write=False) as unit:
        store = unit.stores.find("k")
    assert set(store.secrets) == {"sasl.oauth.client_secret"}
    del body["kafka"]["sasl"]["oauth"]["client_secret"]  # type: ignore[index]
    assert secured.put("/v1/stores/k", json=body).status_code == 200
    assert _run(secured, "UPDATE STORE k WITH ('kafka.sasl.oauth.scope'='s')").status_code == 200
    with fresh.env.open_unit(write=False) as unit:
        store = unit.stores.find("k")
    found = fresh.env.connect(store).config.sasl.oauth
    assert (found.client_secret.get_secret_value(), found.scope) == ("hunter2", "s")
    assert "hunter2" not in repr(store)


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("CREATE SECRET x WITH ('type'=generic_string)", "invalid-property"),
        ("CREATE SECRET x WITH ('type'=binary, 'secret_string'='v')", "invalid-property"),
        ("CREATE SECRET x WITH ('type'=generic_string, 'secret_strng'='hunter2')", "invalid-property"),
        (
            "CREATE SECRET x WITH ('type'=generic_string, 'secret_string'='v', 'db password'='hunter2')",
            "invalid-property",
        ),
        ("CREATE SECRET kafka_pw WITH ('type'=generic_string, 'secret_string'='hunter2')", "already-exists"),
        ("UPDATE SECRET nowhere WITH ('secret_string'='hunter2')", "not-found"),
        ("DESCRIBE SECRET nowhere", "not-found"),
        (
            f"CREATE STORE y WITH ('type'=KAFKA, 'uris'='h:1', {SASL}, 'kafka.sasl.password'=\"hunter2\")",
            "validation",
        ),
    ],
)
def test_what_is_refused_of_secrets(secured: TestClient, sql: str, code: str) -> None:
    """With the same verdict in the dry run, and without repeating what may be a secret."""
    answer = _run(secured, sql)
    assert answer.json()["code"] == code, answer.text
    assert "hunter2" not in answer.text
    verdict = secured.post("/v1/statements:validate", json={"sql": sql})
    if not sql.startswith("DESCRIBE"):
        assert verdict.json()["statements"][0]["problems"][0]["code"] == code
    assert "hunter2" not in json.dumps(verdict.json()["statements"])


def test_a_dry_run_sees_what_the_text_makes(client: TestClient) -> None:
    """A store may use a secret and a registry that the statements before it make."""
    text = (
        "CREATE SECRET s WITH ('type'=generic_string, 'secret_string'='v');"
        "CREATE SCHEMA_REGISTRY r WITH ('type'=CONFLUENT, 'uris'='http://r:8081');"
        f"CREATE STORE k WITH ('type'=KAFKA, 'uris'='h:9092', {SASL}, 'kafka.sasl.password'=\"s\","
        " 'schema_registry.name'=\"r\")"
    )
    verdict = client.post("/v1/statements:validate", json={"sql": text}).json()
    assert verdict["valid"], verdict
    assert client.get("/v1/secrets").json()["items"] == []
    assert _run(client, text).status_code == 200


def test_schema_registries(secured: TestClient, fresh: Any) -> None:
    """Made, changed, attached to a store, held by it, dropped; its password is never shown."""
    made = _run(
        secured,
        "CREATE SCHEMA_REGISTRY r COMMENT 'ours' WITH ('type'=CONFLUENT_CLOUD, 'uris'='https://r.example:443',"
        f" 'confluent_cloud.key'='k', 'confluent_cloud.secret'='{PASSWORD}');"
        "UPDATE STORE k WITH ('schema_registry.name'=\"r\"); UPDATE SCHEMA_REGISTRY r WITH ('uris'='https://s',"
        f" 'confluent_cloud.secret'='{PASSWORD}')",
    )
    assert made.status_code == 200, made.text
    shown = secured.get("/v1/schema-registries/r").json()
    assert (shown["type"], shown["uris"], shown["username"]) == ("confluent_cloud", "https://s", "k")
    assert (shown["comment"], shown["password_secret"]) == ("ours", None)
    assert secured.get("/v1/stores/k").json()["schema_registry"] == "r"
    with fresh.env.open_unit(write=False) as unit:
        reference = unit.schema_registries.find("r").secrets["password"]
        assert fresh.env.secrets.open(reference, unit.secrets.find(reference)) == PASSWORD
    assert _run(secured, "DROP SCHEMA_REGISTRY r").json()["code"] == "has-dependents"
    named = {"type": "confluent", "uris": "http://r:1", "username": "u", "password_secret": "kafka_pw"}
    assert secured.put("/v1/schema-registries/n", json=named).status_code == 201
    assert secured.put("/v1/schema-registries/n", json=named).json()["generation"] == 1
    assert _run(secured, "DROP STORE k; DROP SCHEMA_REGISTRY r").status_code == 200
    with fresh.env.open_unit(write=False) as unit:
        assert unit.secrets.find(reference) is None
    assert "schema registry n" in _run(secured, "DROP SECRET kafka_pw").json()["detail"]
    assert [row[0] for row in _rows(secured, "SHOW SCHEMA_REGISTRIES")] == ["n"]
    assert PASSWORD not in json.dumps(_rows(secured, "DESCRIBE SCHEMA_REGISTRY n"))


@pytest.mark.parametrize(
    "words",
    [
        "'type'=CONFLUENT, 'uris'='file:///etc/passwd'",
        "'type'=CONFLUENT, 'uris'='http://user:pw@h'",
        "'type'=CONFLUENT, 'uris'='http://h', 'confluent.username'='u'",
        "'type'=CONFLUENT, 'uris'='http://h', 'confluent_cloud.key'='u'",
        "'type'=CONFLUENT_CLOUD, 'uris'='http://h'",
        "'type'=GLUE, 'uris'='http://h'",
        "'type'=CONFLUENT",
    ],
)
def test_registries_that_are_refused(client: TestClient, words: str) -> None:
    """Addresses that are none, a user without password, keys of another type."""
    answer = _run(client, f"CREATE SCHEMA_REGISTRY r WITH ({words})")
    assert answer.status_code == 422, answer.text
    assert client.get("/v1/schema-registries").json()["items"] == []


def test_descriptor_sources(client: TestClient) -> None:
    """The file goes along with the statement; its messages are listed, nested ones too, maps not."""
    sql = "CREATE DESCRIPTOR_SOURCE d WITH ('file'='@a.desc', 'description'='orders')"
    missing = _run(client, sql)
    assert (missing.status_code, missing.json()["code"]) == (422, "invalid-property")
    made = _run(client, sql, files={"a.desc": DESCRIPTORS})
    assert made.status_code == 200, made.text
    rows = _rows(client, "LIST DESCRIPTORS IN DESCRIPTOR_SOURCE d")
    assert [row[1:] for row in rows] == [
        ["shop.Order", "shop/a.proto", "id"],
        ["shop.Order.Line", "shop/a.proto", ""],
    ]
    shown = client.get("/v1/descriptor-sources/d").json()
    assert (shown["descriptor_set"], shown["comment"]) == (DESCRIPTORS, "orders")
    assert client.get("/v1/descriptor-sources").json()["items"][0]["descriptor_set"] is None
    again = client.put("/v1/descriptor-sources/d", json={"descriptor_set": DESCRIPTORS, "comment": "orders"})
    assert (again.status_code, again.json()["generation"]) == (200, 1)
    assert _run(client, "DROP DESCRIPTOR_SOURCE d").status_code == 200
    assert _rows(client, "LIST DESCRIPTOR_SOURCES") == []


@pytest.mark.parametrize("data", [b"no descriptor", b"\x0a\x7f\x0a", b"\x0a\x02\x12\x00", b"\xff" * 30])
def test_files_that_are_no_descriptor_set(client: TestClient, data: bytes) -> None:
    """Refused with what to do, never half read."""
    body = {"descriptor_set": base64.b64encode(data).decode()}
    answer = client.put("/v1/descriptor-sources/d", json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, "validation")
    assert "protoc" in answer.json()["errors"][0]["hint"]

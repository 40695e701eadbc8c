"""Changelogs by a list of columns: their key, by statement and by REST."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

SETUP = """
CREATE STORE k WITH ('type'=KAFKA, 'uris'='localhost:9092', 'tls.disabled'=TRUE);
CREATE ENTITY users IN STORE k WITH ('topic.partitions'=2, 'topic.replicas'=1);
CREATE DATABASE demo; USE DATABASE demo; USE STORE k
"""
USERS = (
    "CREATE CHANGELOG users (userid VARCHAR, region VARCHAR, at BIGINT, PRIMARY KEY (userid))"
    " WITH ('value.format'='json', 'timestamp'='at', 'enable.upsert.mode'=TRUE)"
)
CONTEXT = {"database": "demo", "schema": "public", "store": "k"}


@pytest.fixture
def shop(client: TestClient) -> TestClient:
    """A store, a topic and a database."""
    assert run(client, SETUP).status_code == 200
    return client


def run(client: TestClient, text: str) -> Any:
    """The answer to a text of statements."""
    return client.post("/v1/statements", json={"sql": text, **CONTEXT})


def test_the_record_key_follows_from_the_primary_key(shop: TestClient, fresh: Any) -> None:
    """One plain column is the key as it is, several are an object; tombstones are read by it."""
    made = run(shop, USERS).json()["results"][0]
    assert (made["kind"], made["object"]["name"]) == ("create_changelog", "demo.public.users")
    told = shop.get("/v1/relations/demo.public.users").json()
    assert (told["kind"], told["primary_key"]) == ("changelog", ["userid"])
    assert (told["key_format"], told["key_type"]) == (None, None)
    effective = {k: told["effective"][k]["value"] for k in ("key.format", "key.type", "key.columns")}
    assert effective == {"key.format": "primitive", "key.type": "VARCHAR", "key.columns": "userid"}
    assert "PRIMARY KEY (userid)" in told["statement"]
    assert run(shop, f"DROP CHANGELOG users; {told['statement']}").status_code == 200, told["statement"]
    again = shop.get("/v1/relations/demo.public.users").json()["effective"]
    assert {k: v["value"] for k, v in again.items()} == {k: v["value"] for k, v in told["effective"].items()}
    pair = USERS.replace("CHANGELOG users", "CHANGELOG pairs").replace("(userid)", "(region, userid)")
    assert run(shop, pair.replace("WITH (", "WITH ('topic'='users', ")).status_code == 200
    told = shop.get("/v1/relations/demo.public.pairs").json()
    assert told["effective"]["key.format"]["value"] == "json"
    assert told["effective"]["key.type"]["value"] == "STRUCT<region VARCHAR, userid VARCHAR>"
    insert = "INSERT INTO {} VALUES ('u1', 'r1', 5)"
    for name in ("users", "pairs"):
        assert run(shop, insert.format(name)).status_code == 200
    keys = [record.key for record in fresh.cluster.records["users"]]
    assert keys == [b"u1", b'{"region":"r1","userid":"u1"}']
    listed = run(shop, "LIST CHANGELOGS").json()["results"][0]["rows"]
    assert [row[0] for row in listed] == ["demo.public.pairs", "demo.public.users"]


def test_the_same_by_rest(shop: TestClient) -> None:
    """PUT makes it, the same PUT changes nothing, another key is another changelog."""
    body = {
        "kind": "changelog",
        "columns": [{"name": "userid", "type": "VARCHAR"}, {"name": "n", "type": "BIGINT"}],
        "primary_key": ["userid"],
        "store": "k",
        "topic": "users",
        "value_format": "json",
    }
    path = "/v1/relations/demo.public.users"
    assert shop.put(path, json=body).status_code == 201
    again = shop.put(path, json=body)
    assert (again.status_code, again.json()["generation"]) == (200, 1)
    assert {k: v for k, v in again.json().items() if k in body} == {
        **body,
        "columns": [{**c, "not_null": False, "comment": None} for c in body["columns"]],  # type: ignore[attr-defined]
    }
    wrong = shop.put(path, json=body | {"kind": "stream", "primary_key": None})
    assert (wrong.status_code, wrong.json()["code"]) == (409, "requires-replacement")
    for keys, pointer in (([], "#/primary_key"), (["x"], "#/primary_key/0"), (["n", "n"], "#/primary_key/1")):
        answer = shop.put(path, json=body | {"primary_key": keys})
        assert answer.status_code == 422, answer.text
        assert [e["pointer"] for e in answer.json()["errors"]] == [pointer]
    listed = {"name": "userid", "type": "ARRAY<VARCHAR>"}
    for columns, detail in (
        ([listed], "cannot tell rows apart"),
        ([{"name": "userid", "type": "DATE"}], "a primitive key is one column"),
    ):
        changed = body | {"columns": columns, "key_format": "primitive"}
        assert detail in shop.put(path, json=changed).json()["detail"]
    assert shop.put(path, json=body | {"key_type": "VARCHAR"}).json()["code"] == "invalid-property"
    stream = shop.put(path.replace("users", "s"), json=body | {"kind": "stream"})
    assert "a stream has no primary key" in stream.json()["detail"]


def test_faults_have_places(shop: TestClient) -> None:
    """All at once, in the user's text."""
    text = "CREATE CHANGELOG c (a INT, PRIMARY KEY (b, a, a)) WITH ('value.format'='json', 'topic'='users')"
    errors = run(shop, text).json()["errors"]
    assert [(e["code"], e["position"]["offset"]) for e in errors] == [
        ("unknown-column", text.index("b, a")),
        ("validation", text.index("a))")),
    ]
    refused = run(shop, USERS.replace("TRUE", "FALSE")).json()
    assert (refused["code"], refused["sqlstate"]) == ("unsupported", "0A000")
    stream = (
        "CREATE STREAM s (a INT) WITH ('value.format'='json', 'topic'='users', 'enable.upsert.mode'=TRUE)"
    )
    assert run(shop, stream).json()["code"] == "unsupported"
    dry = shop.post("/v1/statements:validate", json={"sql": USERS, **CONTEXT}).json()
    assert dry["statements"][0]["kind"] == "create_changelog"
    assert dry["statements"][0]["plan"]["properties"]["key.format"]["value"] == "primitive"

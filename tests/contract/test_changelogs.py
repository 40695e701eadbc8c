"""Changelogs by a list of columns: their key, by statement and by REST."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from leatstream.plan.logical import AnalyzedColumn

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
        ([{"name": "userid", "type": "DATE"}], "A primitive key is one column"),
    ):
        changed = body | {"columns": columns, "key_format": "primitive"}
        assert detail in shop.put(path, json=changed).json()["detail"]
    assert shop.put(path, json=body | {"key_type": "VARCHAR"}).json()["code"] == "invalid-property"
    stream = shop.put(path.replace("users", "s"), json=body | {"kind": "stream"})
    assert "A stream has no primary key" in stream.json()["detail"]


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


TOTALS = (
    "CREATE CHANGELOG totals (region VARCHAR, n BIGINT, PRIMARY KEY (region))"
    " WITH ('value.format'='json', 'topic'='totals', 'topic.partitions'=1, 'topic.replicas'=1)"
)
VIEWS = "CREATE STREAM views (region VARCHAR, at BIGINT) WITH ('value.format'='json', 'topic'='users')"


def _answer(fresh: Any, *names: str) -> None:
    """Let the analyzer give these columns: a VARCHAR, then BIGINTs."""
    types = ["string", *["bigint"] * (len(names) - 1)]
    columns = [AnalyzedColumn(name, kind, True) for name, kind in zip(names, types, strict=True)]
    fresh.env.analyzer.analyze = lambda *_, **__: columns


@pytest.mark.parametrize(
    ("select", "names", "deletes", "mode"),
    [
        ("SELECT region, at FROM views", ("region", "at"), False, "append"),
        ("SELECT region, sum(at) FROM views GROUP BY region", ("region", "expr$0"), False, "update"),
        (
            "SELECT region, sum(at) FROM views GROUP BY region HAVING sum(at) > 1",
            ("region", "expr$0"),
            True,
            "update",
        ),
        ("SELECT region AS place, count(*) FROM users GROUP BY region", ("place", "expr$0"), False, None),
        ("SELECT region, n FROM others WHERE n > 1", ("region", "n"), True, None),
    ],
)
def test_insert_into_a_changelog(
    shop: TestClient, fresh: Any, select: str, names: tuple[str, ...], deletes: bool, mode: str | None
) -> None:
    """Rows of a stream are upserts; groups and rows of a changelog come with the same key and are taken back."""
    others = TOTALS.replace("CHANGELOG totals", "CHANGELOG others").replace("'totals'", "'others'")
    assert run(shop, f"{USERS}; {TOTALS}; {others}; {VIEWS}").status_code == 200
    _answer(fresh, *names)
    made = run(shop, f"INSERT INTO totals {select}")
    assert made.status_code == 200, made.text
    with fresh.env.open_unit(write=False) as unit:
        sink = unit.queries.find("insert_into_totals").job["sink"]
    assert (sink["key_columns"], sink["deletes"], sink["key_format"]) == (["region"], deletes, "primitive")
    plan = shop.get("/v1/queries/insert_into_totals").json()["plan"]
    assert plan["sink"]["primary_key"] == ["region"]
    assert mode is None or plan["output_mode"] == mode


@pytest.mark.parametrize(
    ("insert", "names", "detail"),
    [
        (
            "totals SELECT region, at AS n FROM views GROUP BY region, at",
            ("region", "n"),
            "replace each other by region, n",
        ),
        ("totals SELECT region AS r, at FROM users WHERE at > 1", ("r", "at"), "SELECT must give userid"),
        ("totals SELECT DISTINCT region, at FROM views", ("region", "at"), "DISTINCT leaves out"),
        ("newest SELECT region, at FROM views", ("region", "at"), "only the query that keeps it"),
    ],
)
def test_what_cannot_be_inserted(
    shop: TestClient, fresh: Any, insert: str, names: tuple[str, ...], detail: str
) -> None:
    """Rows that another key takes back would take back the wrong ones."""
    kept = "CREATE MATERIALIZED VIEW newest AS SELECT * FROM users"
    assert run(shop, f"{USERS}; {TOTALS}; {VIEWS}; {kept}").status_code == 200
    _answer(fresh, *names)
    refused = run(shop, f"INSERT INTO {insert}")
    assert (refused.status_code, detail in refused.text) == (422, True), refused.text

"""Bodies of relations, entities and functions are checked at plan time as the PUT would check them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from starlette.testclient import TestClient

COLUMNS = [{"name": "viewtime", "type": "BIGINT"}, {"name": "userid", "type": "VARCHAR"}]
STREAM = {"columns": COLUMNS, "store": "k", "value_format": "json"}
PAGEVIEWS = "/v1/relations/demo.public.pageviews"
CODE = "def score(points):\n    return points\n"
FUNCTION = {
    "arguments": [{"name": "points", "type": "BIGINT"}],
    "returns": "BIGINT",
    "source": "scores",
    "handler": "score",
}


def check(client: TestClient, path: str, body: Any, assume: Any = None) -> Any:
    told = {"path": path, "body": body} | ({"assume": assume} if assume else {})
    return client.post("/v1/objects:validate", json=told)


@pytest.mark.parametrize(
    ("changes", "pointer", "code"),
    [
        ({"columns": [{"name": "a", "type": "DOUBEL"}]}, "#/columns/0/type", "validation"),
        ({"columns": [{"name": "a", "typ": "BIGINT"}]}, "#/columns/0/type", "validation"),
        ({"timestamp": "at"}, "#/timestamp", "unknown-column"),
        ({"value_format": "jsn"}, "#/value_format", None),
        ({"key_format": "primitive", "key_type": "text"}, "#/key_type", None),
        ({"properties": {"topic.partition": "3"}}, "#/properties/topic.partition", None),
        ({"primary_key": ["userid"]}, "#/primary_key", "validation"),
    ],
)
def test_a_wrong_relation_is_told_as_the_put_tells_it(
    pageviews: TestClient, changes: dict[str, Any], pointer: str, code: str | None
) -> None:
    for name in ("pageviews", "other"):
        path = f"/v1/relations/demo.public.{name}"
        body = {**STREAM, "topic": "pageviews", **changes}
        told = check(pageviews, path, body)
        assert told.status_code in (400, 422), told.text
        found = [fault["pointer"] for fault in told.json()["errors"]]
        assert pointer in found
        assert code is None or told.json()["code"] == code
        put = pageviews.put(path, json=body)
        assert (put.status_code, put.json()["errors"]) == (told.status_code, told.json()["errors"])


def test_nothing_is_made(pageviews: TestClient, fresh: Any) -> None:
    body = {**STREAM, "properties": {"topic.partitions": "2", "topic.replicas": "1"}}
    told = check(pageviews, "/v1/relations/demo.public.new", body)
    assert (told.status_code, told.json()["valid"]) == (200, True)
    assert pageviews.get("/v1/relations/demo.public.new").status_code == 404
    assert pageviews.get("/v1/stores/k/entities/new").status_code == 404
    told = check(pageviews, "/v1/stores/k/entities/new", {"kafka": {"partitions": 2, "replicas": 1}})
    assert told.status_code == 200
    assert pageviews.get("/v1/stores/k/entities/new").status_code == 404
    assert (
        check(pageviews, "/v1/function-sources/scores", {"file": "s.py", "content": CODE}).status_code == 200
    )
    assert pageviews.get("/v1/function-sources/scores").status_code == 404


def test_what_is_planned_counts_as_there(pageviews: TestClient) -> None:
    assume = {
        "databases": [{"name": "other"}],
        "stores": [{"name": "j", "kafka": {"bootstrap_servers": "localhost:9092"}}],
        "entities": [{"store": "j", "name": "clicks", "kafka": {"partitions": 2, "replicas": 1}}],
        "function_sources": [{"name": "scores", "file": "s.py", "content": CODE}],
    }
    body = {**STREAM, "store": "j", "topic": "clicks"}
    path = "/v1/relations/other.public.clicks"
    assert check(pageviews, path, body).json()["code"] == "not-found"
    assert check(pageviews, path, body, assume).status_code == 200
    assert check(pageviews, path, {**body, "timestamp": "at"}, assume).json()["code"] == "unknown-column"
    assert check(pageviews, "/v1/functions/score", FUNCTION).json()["code"] == "not-found"
    assert check(pageviews, "/v1/functions/score", FUNCTION, assume).status_code == 200
    told = check(pageviews, "/v1/functions/score", {**FUNCTION, "handler": "scor"}, assume)
    assert told.json()["code"] == "validation"


def test_a_wrong_entity_is_told(pageviews: TestClient) -> None:
    path = "/v1/stores/k/entities/pageviews"
    fewer = check(pageviews, path, {"kafka": {"partitions": 2, "replicas": 1}})
    assert fewer.json()["errors"][0]["pointer"] == "#/kafka/partitions"
    assert "cannot remove them" in fewer.json()["detail"]
    assert check(pageviews, path, {"kafka": {"partitions": 4, "replicas": 1}}).status_code == 200
    assert check(pageviews, "/v1/stores/k/entities/new", {"kafka": {}}).json()["code"] == "property-required"


def test_a_wrong_function_is_told(pageviews: TestClient) -> None:
    path = "/v1/function-sources/scores"
    told = check(pageviews, path, {"file": "s.py", "content": "def score(points:\n"})
    assert (told.status_code, told.json()["code"]) == (422, "validation")
    assert pageviews.put(path, json={"file": "s.py", "content": CODE}).status_code == 201
    assert pageviews.put("/v1/functions/score", json=FUNCTION).status_code == 201
    told = check(pageviews, path, {"file": "s.py", "content": "def other(points):\n    return 1\n"})
    assert told.json()["code"] == "validation"
    told = check(pageviews, "/v1/functions/score", {**FUNCTION, "returns": "BIGNIT"})
    assert told.json()["errors"][0]["pointer"] == "#/returns"
    assert check(pageviews, "/v1/stores/k", {}).json()["errors"][0]["pointer"] == "#/path"


def test_new_code_reaches_the_queries_that_call_it(pageviews: TestClient) -> None:
    """It was kept, and every running query went on with the old one."""
    path = "/v1/function-sources/scores"
    assert pageviews.put(path, json={"file": "s.py", "content": CODE}).status_code == 201
    assert pageviews.put("/v1/functions/score", json=FUNCTION).status_code == 201
    sql = "CREATE STREAM scored AS SELECT * FROM demo.public.pageviews WHERE score(viewtime) > 1"
    for name in ("q", "r"):
        body = {"sql": sql.replace("scored", name), "database": "demo", "schema": "public", "store": "k"}
        made = pageviews.put(f"/v1/queries/{name}", json=body)
        assert made.status_code == 201, made.text
    new = {"file": "s.py", "content": CODE.replace("points\n", "points + 1\n")}
    assert check(pageviews, path, new).json()["restarts"] == ["q", "r"]
    kept = new | {"restart_queries": False}
    assert check(pageviews, path, kept).json()["restarts"] == []
    assert pageviews.put(path, json=kept).status_code == 200
    assert "restart" not in str(pageviews.get("/v1/queries/q").json()["status"]["message"])
    assert pageviews.put(path, json=new).status_code == 200
    assert "restart" in str(pageviews.get("/v1/queries/q").json()["status"]["message"])
    assert check(pageviews, path, new).json()["restarts"] == []


class OneColumn:
    """Answers every SELECT with the first column of its first view."""

    def __init__(self, found: Any) -> None:
        self._found = found

    def analyze(self, *asked: Any, **more: Any) -> Any:
        return self._found.analyze(*asked, **more)[:1]


def test_a_column_that_a_query_reads_stays(pageviews: TestClient, fresh: Any) -> None:
    """An added column could not be taken back: every column counted as read."""
    env = pageviews.app.state.env  # type: ignore[attr-defined]
    pageviews.app.state.env = replace(env, analyzer=OneColumn(env.analyzer))  # type: ignore[attr-defined]
    sql = "CREATE STREAM v AS SELECT viewtime FROM demo.public.pageviews WHERE viewtime > 5"
    body = {"sql": sql, "database": "demo", "schema": "public", "store": "k"}
    made = pageviews.put("/v1/queries/q", json=body)
    assert made.status_code == 201, made.text
    read = {**STREAM, "columns": COLUMNS[1:]}
    told = check(pageviews, PAGEVIEWS, read)
    assert (told.status_code, told.json()["dependents"]) == (409, ["query q"])
    unread = {**STREAM, "columns": COLUMNS[:1]}
    assert check(pageviews, PAGEVIEWS, unread).status_code == 200
    assert pageviews.put(PAGEVIEWS, json=unread).status_code == 200
    other = {**STREAM, "columns": [{"name": "viewtime", "type": "INTEGER"}]}
    assert check(pageviews, PAGEVIEWS, other).json()["code"] == "has-dependents"
    for changes in ({"value_format": "avro"}, {"timestamp": "viewtime"}):
        assert check(pageviews, PAGEVIEWS, unread | changes).status_code >= 400


def test_what_a_deletion_would_say(pageviews: TestClient) -> None:
    body = {"sql": "CREATE STREAM v AS SELECT * FROM demo.public.pageviews", "database": "demo", "store": "k"}
    reader = body | {"sql": "CREATE STREAM w AS SELECT * FROM demo.public.v"}
    assert pageviews.put("/v1/queries/q", json=body).status_code == 201
    assert pageviews.put("/v1/queries/r", json=reader).status_code == 201
    entity = "/v1/stores/k/entities/pageviews"
    for path, users in (
        (PAGEVIEWS, ["query q"]),
        ("/v1/queries/q", ["query r"]),
        (entity, ["stream demo.public.pageviews"]),
    ):
        told = pageviews.post("/v1/objects:validate", json={"path": path})
        assert (told.status_code, told.json().get("dependents")) == (409, users), path
        assert pageviews.get(path).status_code == 200
    assert pageviews.post("/v1/objects:validate", json={"path": "/v1/queries/r"}).status_code == 200
    assert pageviews.get("/v1/queries/r").json()["desired_state"] == "running"
    assert check(pageviews, "/v1/queries/r", {}).json()["errors"][0]["pointer"] == "#/body"

"""What HTTP promises, call by call: tokens, conditions, pages, waits, limits, names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote as percent

import fakes
import pytest
from starlette.testclient import TestClient

from leatstream.connectors.entities import Record
from leatstream.connectors.registry import PLANNED
from leatstream.services.environment import STILL_SECONDS

KAFKA = {"kafka": {"bootstrap_servers": "localhost:9092"}}
COLUMNS = [{"name": "viewtime", "type": "BIGINT"}, {"name": "userid", "type": "VARCHAR"}]
STREAM = {"columns": COLUMNS, "store": "k", "value_format": "json"}
SQL = "CREATE STREAM views AS SELECT * FROM pageviews"
QUERY = {"sql": SQL, "database": "demo", "schema": "public", "store": "k"}


def _put(client: TestClient, path: str, body: Any, status: int = 201, **headers: str) -> dict[str, Any]:
    answer = client.put(path, json=body, headers=headers)
    assert answer.status_code == status, answer.text
    found: dict[str, Any] = answer.json()
    return found


# -- who may enter ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/v1/databases", "/v1/no/such/path", "/metrics", "/v1/drivers/d/poll"])
@pytest.mark.parametrize("header", [None, "", "Bearer", "Basic x", "Bearer leat_x", "Bearer ünknown"])
def test_no_token_no_answer(client: TestClient, path: str, header: str | None) -> None:
    """401 comes before anything else: before 404, before the body is read."""
    client.headers.pop("Authorization")
    headers = {} if header is None else {"Authorization": header.encode()}
    answer = client.post(path, content=b"not json", headers=headers)
    if path.startswith("/v1/drivers") and header and header.startswith("Bearer "):
        assert answer.status_code in (401, 422)
        return
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
    assert answer.headers["www-authenticate"] == "Bearer"


def test_health_needs_no_token(client: TestClient, fresh: Any) -> None:
    """For probes; readiness tells which part is missing."""
    client.headers.pop("Authorization")
    assert client.get("/healthz").json() == {"status": "ok"}
    parts = {"catalog": True, "engine": True, "reconciler": True}
    assert client.get("/readyz").json() == {"ready": True, "parts": parts, "warm": True}
    fresh.drivers.is_warm = False  # as of a server whose drivers all have queries: it answers requests
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()) == (200, {"ready": True, "parts": parts, "warm": False})
    fresh.drivers.is_ready = False
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["parts"]) == (503, {**parts, "engine": False})
    fresh.drivers.is_ready = True
    fresh.env.passes.ended -= STILL_SECONDS + 1
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["parts"]) == (503, {**parts, "reconciler": False})


def test_what_strangers_send_makes_no_metrics_of_its_own(client: TestClient) -> None:
    """Each new label is memory for good, and methods and paths are free to choose without a token."""
    token = client.headers.pop("Authorization")
    for n in range(3):
        client.request(f"WORD{n}", "/healthz")
        client.request(f"WORD{n}", f"/v1/word{n}")
        client.get(f"/problems/word{chr(97 + n)}")
        client.get(f"/v1/word{n}")
        client.post(f"/readyz/word{n}")
    client.headers["Authorization"] = token
    client.get("/v1/databases/word1")
    told = [line for line in client.get("/metrics").text.splitlines() if "api_request_seconds_count" in line]
    assert not [line for line in told if "word" in line.lower()]
    labels = {line.partition("{")[2].rpartition("}")[0] for line in told}
    assert 'method="other",route="/healthz",status="405"' in labels
    assert 'method="other",route="other",status="401"' in labels
    assert 'method="GET",route="/problems/{code}",status="404"' in labels
    assert 'method="GET",route="/v1/databases/{database}",status="404"' in labels


def test_a_reader_may_not_write(client: TestClient, fresh: Any) -> None:
    """403 says what is missing."""
    client.headers["Authorization"] = f"Bearer {fresh.reader_token}"
    assert client.get("/v1/databases").status_code == 200
    answer = client.put("/v1/databases/demo", json={})
    assert (answer.status_code, answer.json()["code"]) == (403, "permission-denied")


# -- idempotence and conditions -----------------------------------------------------------------------------


def test_put_twice_is_once(client: TestClient) -> None:
    """An unchanged body makes no generation; a changed one does."""
    first = client.put("/v1/databases/demo", json={"comment": "a"})
    again = client.put("/v1/databases/demo", json={"comment": "a"})
    changed = client.put("/v1/databases/demo", json={"comment": "b"})
    assert [a.status_code for a in (first, again, changed)] == [201, 200, 200]
    assert [a.headers["etag"] for a in (first, again, changed)] == ['"1"', '"1"', '"2"']
    assert first.json() == again.json()
    assert first.headers["location"] == "/v1/databases/demo"
    assert changed.json()["id"] == first.json()["id"]


def test_two_writers_with_one_tag(client: TestClient) -> None:
    """The second one is told, and nothing of it is kept."""
    tag = client.put("/v1/databases/demo", json={}).headers["etag"]
    _put(client, "/v1/databases/demo", {"comment": "a"}, 200, **{"If-Match": tag})
    late = client.put("/v1/databases/demo", json={"comment": "b"}, headers={"If-Match": tag})
    assert (late.status_code, late.json()["code"]) == (412, "stale")
    assert client.get("/v1/databases/demo").json()["comment"] == "a"
    assert client.delete("/v1/databases/demo", headers={"If-Match": tag}).status_code == 412
    assert client.delete("/v1/databases/demo", headers={"If-Match": '"2"'}).status_code == 204


def test_what_is_gone_is_not_made_again_by_who_only_changes(pageviews: TestClient) -> None:
    """If-Match: * is RFC 9110's way to say that it has to be there."""
    bodies: dict[str, Any] = {
        "/v1/databases/{}": {"comment": "a"},
        "/v1/stores/{}": {"kafka": {"bootstrap_servers": "localhost:9092"}},
        "/v1/queries/{}": {
            "sql": "CREATE STREAM c AS SELECT * FROM pageviews",
            "database": "demo",
            "store": "k",
        },
    }
    for path, body in bodies.items():
        late = pageviews.put(path.format("gone"), json=body, headers={"If-Match": "*"})
        assert (late.status_code, late.json().get("code")) == (412, "stale"), path
        assert pageviews.get(path.format("gone")).status_code == 404
    assert pageviews.put("/v1/databases/demo", json={}, headers={"If-Match": "*"}).status_code == 200


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/databases/demo", {}),
        ("/v1/databases/demo/schemas/s", {}),
        ("/v1/stores/k", KAFKA),
        ("/v1/stores/k/entities/pageviews", {"kafka": {"partitions": 3, "replicas": 1}}),
        ("/v1/relations/demo.public.pageviews", STREAM),
        ("/v1/queries/q", QUERY),
    ],
)
def test_must_be_new(pageviews: TestClient, path: str, body: Any) -> None:
    """If-None-Match: * never touches what is there."""
    pageviews.put(path, json=body)
    answer = pageviews.put(path, json=body, headers={"If-None-Match": "*"})
    assert (answer.status_code, answer.json()["code"]) == (409, "already-exists")


def test_post_must_be_new(client: TestClient) -> None:
    """POST is for what is not there."""
    assert client.post("/v1/databases", json={"name": "demo"}).status_code == 201
    assert client.post("/v1/databases", json={"name": "demo"}).json()["code"] == "already-exists"


# -- names --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["Demo", 'a"b', "日本 語", "a/b", "a.b", "ÄÖ", "x:test", " ", "🚀", "a%2Fb"])
def test_names_with_quotes_capitals_and_any_letters(client: TestClient, name: str) -> None:
    """Quoted and percent-encoded, every name works in every place."""
    quoted = '"' + name.replace('"', '""') + '"'
    path = f"/v1/databases/{percent(quoted, safe='')}"
    assert _put(client, path, {})["name"] == name
    assert _put(client, f"{path}/schemas/{percent(quoted, safe='')}", {})["fqn"] == f"{quoted}.{quoted}"
    _put(client, "/v1/stores/k", KAFKA)
    _put(client, "/v1/stores/k/entities/t", {"kafka": {"partitions": 1, "replicas": 1}})
    fqn = ".".join([quoted] * 3)
    made = client.put(f"/v1/relations/{percent(fqn, safe='')}", json={**STREAM, "topic": "t"})
    assert made.json()["fqn"] == fqn
    assert client.get(made.headers["location"]).json()["name"] == name
    assert fqn in made.json()["statement"]
    listed = client.get("/v1/relations", params={"database": quoted}).json()["items"]
    assert [item["fqn"] for item in listed] == [fqn]


def test_plain_names_fold(client: TestClient) -> None:
    """Demo is demo, unless it is quoted."""
    _put(client, "/v1/databases/Demo", {})
    assert client.get("/v1/databases/DEMO").json()["name"] == "demo"
    assert client.get("/v1/databases/%22Demo%22").status_code == 404


# -- lists --------------------------------------------------------------------------------------------------


def test_pages(client: TestClient) -> None:
    """Every item once, in order of names; a token is bound to its list."""
    for index in range(7):
        _put(client, f"/v1/databases/d{index}", {})
    found, token, pages = [], None, 0
    while True:
        params = {"page_size": 3} | ({"page_token": token} if token else {})
        page = client.get("/v1/databases", params=params).json()
        found += [item["name"] for item in page["items"]]
        pages, token = pages + 1, page["next_page_token"]
        if token is None:
            break
        foreign = client.get("/v1/stores", params={"page_token": token})
        assert (foreign.status_code, foreign.json()["code"]) == (400, "invalid-page-token")
    assert (found, pages) == ([f"d{index}" for index in range(7)], 3)


@pytest.mark.parametrize("token", ["x", "ÿ", "W10", "bnVsbA", "a" * 2000, "e30="])
def test_made_up_tokens(client: TestClient, token: str) -> None:
    """Never an error of ours."""
    assert client.get("/v1/databases", params={"page_token": token}).json()["code"] == "invalid-page-token"


def test_misspelt_parameters_are_refused(client: TestClient) -> None:
    """The hint tells the known ones."""
    answer = client.get("/v1/databases", params={"page_sise": 3})
    assert answer.status_code == 422
    assert "page_size" in answer.json()["errors"][0]["hint"]


# -- limits and forms ---------------------------------------------------------------------------------------


def _chunks(size: int) -> Iterator[bytes]:
    for _ in range(size // 65536):
        yield b"x" * 65536


@pytest.mark.parametrize("content", [b"x" * 2_000_000, _chunks(2_000_000)], ids=["whole", "chunked"])
def test_two_megabytes(client: TestClient, content: Any) -> None:
    """413 in the usual form, with and without a Content-Length."""
    answer = client.put("/v1/databases/demo", content=content, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (413, "too-large")
    assert answer.headers["content-type"] == "application/problem+json"
    assert client.get("/v1/databases/demo").status_code == 404


@pytest.mark.parametrize(
    "content", [b"{", b"[" * 100_000, b"\xff\xfe", b'{"comment": "\\ud800"}', b"", b"null"]
)
def test_bodies_that_cannot_be_read(client: TestClient, content: bytes) -> None:
    """Told, never a 500."""
    answer = client.put("/v1/databases/demo", content=content, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (422, "validation")


def test_nested_parentheses(pageviews: TestClient) -> None:
    """10,000 deep: refused with a code, at once."""
    sql = f"CREATE STREAM v AS SELECT {'(' * 10_000}1{')' * 10_000} AS x FROM pageviews"
    answer = pageviews.put("/v1/queries/q", json={**QUERY, "sql": sql})
    assert (answer.status_code, answer.json()["code"]) == (422, "too-complex")


def test_methods_and_paths(client: TestClient) -> None:
    """405 lists every method of the path; an unknown path is no missing object."""
    answer = client.post("/v1/databases/demo", json={})
    assert (answer.status_code, answer.headers["allow"]) == (405, "DELETE, GET, PUT")
    assert client.get("/v1/stores/k:test").headers["allow"] == "POST"
    assert client.get("/v1/nothing").json()["code"] == "no-such-path"


def test_request_ids(client: TestClient) -> None:
    """A good one is kept, a bad one replaced; it stands in problems too."""
    answer = client.get("/v1/databases/x", headers={"X-Request-Id": "abc-1"})
    assert (answer.headers["x-request-id"], answer.json()["request_id"]) == ("abc-1", "abc-1")
    assert client.get("/healthz", headers={"X-Request-Id": "a b"}).headers["x-request-id"] != "a b"
    assert answer.headers["cache-control"] == "no-store"


def test_unexpected_errors_tell_nothing(client: TestClient, fresh: Any, caplog: Any) -> None:
    """The log has the traceback, the answer only the id to find it by."""

    def fail(*, write: bool = True) -> Any:
        raise RuntimeError("secret detail")

    open_unit, fresh.env.open_unit = fresh.env.open_unit, fail
    answer = client.get("/v1/databases")
    fresh.env.open_unit = open_unit
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert "secret detail" not in answer.text
    assert answer.headers["x-request-id"] in caplog.text
    assert "secret detail" in caplog.text


# -- stores and secrets -------------------------------------------------------------------------------------


def test_passwords_go_in_and_never_come_out(client: TestClient, fresh: Any) -> None:
    """Stored sealed, kept when left out, gone with the store."""
    sasl = {"mechanism": "plain", "username": "u", "password": "hunter2"}
    body = {"kafka": {**KAFKA["kafka"], "security_protocol": "sasl_plaintext", "sasl": sasl}}
    answer = client.put("/v1/stores/k", json=body)
    shown = {"mechanism": "plain", "username": "u", "password_secret": None}
    assert answer.json()["kafka"]["sasl"] == shown | {"oauth": None, "aws": None}
    sasl.pop("password")
    again = client.put("/v1/stores/k", json=body)
    assert (again.status_code, again.json()["generation"]) == (200, 1)
    assert "hunter2" not in answer.text + again.text + client.get("/v1/stores").text
    with fresh.units(write=False) as unit:
        store = unit.stores.find("k")
        assert store is not None
        envelope = unit.secrets.find(store.secrets["sasl.password"])
        assert envelope is not None
        assert b"hunter2" not in envelope
    assert client.delete("/v1/stores/k").status_code == 204
    with fresh.units(write=False) as unit:
        assert unit.secrets.find(store.secrets["sasl.password"]) is None


def test_a_store_that_does_not_answer_is_kept(client: TestClient, fresh: Any) -> None:
    """Its status says why, and a later test heals it."""
    fresh.cluster.up = False
    status = _put(client, "/v1/stores/k", KAFKA)["status"]
    assert (status["state"], status["error"]["code"]) == ("errored", "store-unreachable")
    assert client.get("/v1/stores/k/entities").json()["code"] == "store-unreachable"
    fresh.cluster.up = True
    assert client.post("/v1/stores/k:test").json()["status"]["state"] == "ready"


@pytest.mark.parametrize(("body", "code"), [({"planned": {}}, "unsupported"), ({}, "validation")])
def test_other_kinds(client: TestClient, monkeypatch: pytest.MonkeyPatch, body: Any, code: str) -> None:
    """Not built is told apart from not given."""
    monkeypatch.setitem(PLANNED, "planned", ("planned.",))
    assert client.put("/v1/stores/k", json=body).json()["code"] == code


def test_dependents_hold(pageviews: TestClient) -> None:
    """What is in use stays."""
    for path in ("/v1/databases/demo", "/v1/databases/demo/schemas/public", "/v1/stores/k"):
        answer = pageviews.delete(path)
        assert (answer.status_code, answer.json()["code"]) == (409, "has-dependents")


# -- records ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "offsets"),
    [
        ({"from": "beginning"}, [0, 1, 2, 3]),
        ({"since": "1970-01-01T00:00:01.002Z"}, [2, 3]),
        ({"since": "1969-01-01T00:00:00"}, [0, 1, 2, 3]),
        ({"partition": 0, "offset": 3}, [3]),
        ({"partition": 7, "from": "beginning"}, []),
        ({"after": "0:1"}, [2, 3]),
        ({"after": "0:3,7:0"}, []),
        ({"after": "7:0", "since": "1970-01-01T00:00:01.002Z"}, [2, 3]),
        ({"q": "USER_6", "from": "beginning"}, [1, 3]),
        ({"q": "user_6", "from": "beginning", "limit": 1}, [1]),
        ({}, []),
    ],
)
def test_records_are_chosen(
    pageviews: TestClient, fresh: Any, params: dict[str, Any], offsets: list[int]
) -> None:
    values = [b'{"u": "User_%d"}' % (5 + n % 2) for n in range(4)]
    fresh.cluster.records["pageviews"] = [Record(b"k", v, 0, i, 1000 + i) for i, v in enumerate(values)]
    answer = pageviews.get("/v1/stores/k/entities/pageviews/records", params={"timeout": "1ms", **params})
    assert answer.status_code == 200, answer.text
    assert [json.loads(line)["offset"] for line in answer.text.splitlines()] == offsets


@pytest.mark.parametrize(
    "params",
    [
        {"offset": 1},
        {"offset": 1, "partition": 0, "since": "2026-01-01T00:00:00Z"},
        {"offset": 1, "partition": 0, "after": "0:1"},
        {"after": "0"},
        {"after": "0:1,"},
        {"rate": 0},
    ],
)
def test_a_place_that_says_nothing_is_refused(pageviews: TestClient, params: dict[str, Any]) -> None:
    answer = pageviews.get("/v1/stores/k/entities/pageviews/records", params=params)
    assert (answer.status_code, answer.json()["code"]) == (422, "validation")


def test_records(pageviews: TestClient, fresh: Any) -> None:
    """NDJSON by default, events on request; limit and reader's end."""
    values = [b'{"a": 1}', b"text", b"\xff", None]
    fresh.cluster.records["pageviews"] = [Record(b"k", v, 0, i, 1000 + i) for i, v in enumerate(values)]
    path = "/v1/stores/k/entities/pageviews/records"
    answer = pageviews.get(path, params={"from": "beginning"})
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert [json.loads(line)["value"] for line in answer.text.splitlines()] == [
        {"a": 1},
        "text",
        "/w==",
        None,
    ]
    limited = pageviews.get(path, params={"from": "beginning", "limit": 2})
    assert len(limited.text.splitlines()) == 2
    events = pageviews.get(path, params={"from": "beginning"}, headers={"Accept": "text/event-stream"})
    assert events.text.count("event: record") == 4
    assert fresh.cluster.closed_readers == 3
    assert pageviews.get("/v1/stores/k/entities/none/records").json()["code"] == "entity-not-found"


def test_a_limit_reaches_the_store(
    pageviews: TestClient, fresh: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table of a warehouse is not read whole for five rows; what is left out counts in none of them."""
    asked = []
    read = fakes.MemoryConnector.read_records

    def noted(self: Any, entity: str, **how: Any) -> Any:
        asked.append(how["limit"])
        return read(self, entity, **how)

    monkeypatch.setattr(fakes.MemoryConnector, "read_records", noted)
    fresh.cluster.records["pageviews"] = [Record(b"k", b"%d" % i, i % 2, i, 1000 + i) for i in range(9)]
    path = "/v1/stores/k/entities/pageviews/records?from=beginning&limit=2"
    for more in ("", "&partition=1", "&q=8", "&since=1970-01-01T00:00:01Z"):
        assert len(pageviews.get(path + more).text.splitlines()) == (1 if more == "&q=8" else 2)
    assert asked == [2, None, None, None]


# -- statements ---------------------------------------------------------------------------------------------


def test_statements_and_context(client: TestClient) -> None:
    """Results in order; the context comes back; what ran before a failure is told."""
    answer = client.post("/v1/statements", json={"sql": "CREATE DATABASE z; USE DATABASE z;"}).json()
    assert [result["kind"] for result in answer["results"]] == ["create_database", "use_database"]
    assert answer["context"]["database"] == "z"
    failed = client.post("/v1/statements", json={"sql": "CREATE DATABASE y; DROP DATABASE nope;"})
    assert (failed.status_code, failed.json()["code"]) == (404, "not-found")
    assert [result["kind"] for result in failed.json()["results"]] == ["create_database"]
    assert failed.json()["errors"][0]["position"]["column"] == 20


def test_validation_changes_nothing(pageviews: TestClient) -> None:
    """A plan for what may run, problems for what may not, and planned objects count."""
    path, context = "/v1/statements:validate", {"database": "demo", "schema": "public", "store": "k"}
    good = pageviews.post(path, json={"sql": SQL, **context}).json()
    assert (good["valid"], good["statements"][0]["plan"]["sink"]["fqn"]) == (True, "demo.public.views")
    spelled = pageviews.post(path, json={"sql": f"/* x */ {SQL.lower()};", **context}).json()
    assert spelled["hash"] == good["hash"]
    bad = pageviews.post(path, json={"sql": SQL.replace("pageviews", "nope"), **context}).json()
    assert (bad["valid"], bad["statements"][0]["problems"][0]["code"]) == (False, "unknown-relation")
    assume = {"relations": [{"fqn": "demo.public.nope", **STREAM, "topic": "pageviews"}]}
    planned = pageviews.post(
        path, json={"sql": SQL.replace("pageviews", "nope"), "assume": assume, **context}
    )
    assert planned.json()["valid"], planned.text
    assert len(pageviews.get("/v1/relations").json()["items"]) == 1


def test_a_planned_changelog_is_one(pageviews: TestClient) -> None:
    """What a planned relation is decides what a join with it means."""
    sql = "CREATE STREAM out AS SELECT p.userid, u.userid AS v FROM pageviews p LEFT JOIN u ON p.userid = u.userid"
    planned = {"fqn": "demo.public.u", **STREAM, "topic": "pageviews"}
    ask = {"sql": sql, "database": "demo", "schema": "public", "store": "k"}

    def validate(**more: Any) -> Any:
        body = {**ask, "assume": {"relations": [planned | more]}}
        return pageviews.post("/v1/statements:validate", json=body).json()["statements"][0]

    assert [p["code"] for p in validate()["problems"]] == ["within-required"]
    good = validate(kind="changelog", primary_key=["userid"])
    assert good["problems"] == []
    assert [join["kind"] for join in good["plan"]["joins"]] == ["temporal-join-stream-changelog"]

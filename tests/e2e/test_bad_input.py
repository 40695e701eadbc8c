"""Wrong input of every kind: a stable code, a place, a hint; and nothing is half made."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = [pytest.mark.stack, pytest.mark.core]

TABLE = [
    ("SELEC 1", "sql-syntax", None),
    ("CREATE STREAM x AS SELECT nope FROM s", "unknown-column", "nope"),
    ("CREATE STREAM x AS SELECT n FROM nowhere", "unknown-relation", "nowhere"),
    ("CREATE STREAM x AS SELECT frobnicate(n) AS f FROM s", "unknown-function", "frobnicate"),
    (
        "CREATE STREAM x AS SELECT reflect('java.lang.Runtime', 'getRuntime') AS f FROM s",
        "unsupported",
        "reflect",
    ),
    ("CREATE STREAM x AS SELECT n + true AS f FROM s", "type-mismatch", None),
    ("CREATE STREAM x AS SELECT s.n FROM s JOIN r ON s.n = r.n", "within-required", None),
    ("CREATE STREAM x AS SELECT s.n FROM s RIGHT JOIN r WITHIN 1 MINUTE ON s.n = r.n", "unsupported", None),
    ("CREATE STREAM x AS SELECT count(*) AS c FROM s", "not-grouped", None),
    ("CREATE STREAM x AS SELECT n, count(*) AS c FROM s GROUP BY n", "unsupported", None),
    ("CREATE CHANGELOG x AS SELECT n FROM s", "unsupported", None),
    ("CREATE CHANGELOG x AS SELECT n, t, count(*) AS c FROM s GROUP BY n", "not-grouped", "t,"),
    (
        "CREATE CHANGELOG x (a BIGINT, PRIMARY KEY (a)) WITH ('topic'='t', 'value.format'='json')",
        "property-required",
        None,
    ),
    ("CREATE CHANGELOG x (a BIGINT) WITH ('topic'='t', 'value.format'='json')", "sql-syntax", None),
    ("CREATE STREAM x (a NONSENSE) WITH ('topic'='t', 'value.format'='json')", "type-mismatch", "NONSENSE"),
    ("CREATE STREAM x (a BIGINT) WITH ('value.format'='json')", "property-required", None),
    ("CREATE STREAM x (a BIGINT) WITH ('value.format'='json', 'no.such'='1')", "invalid-property", None),
    (
        "CREATE STREAM x WITH ('topic.partitions'=1, 'topic.replicas'=2) AS SELECT n FROM s",
        "invalid-property",
        None,
    ),
    ("CREATE STREAM x WITH ('topic.shards'=1) AS SELECT n FROM s", "invalid-property", None),
    ("CREATE STREAM s AS SELECT n FROM r", "already-exists", None),
    ("INSERT INTO s SELECT n FROM s", "invalid-property", None),
    ("SELECT nope FROM s", "unknown-column", "nope"),
    ("SELECT " + "(" * 10_000 + "1" + ")" * 10_000, "too-complex", None),
]


@pytest.fixture
def two(play: Any) -> Any:
    play.stream("s", "n BIGINT, t VARCHAR")
    play.stream("r", "n BIGINT, t VARCHAR")
    return play


@pytest.mark.parametrize(("sql", "code", "word"), TABLE, ids=[c for _, c, _ in TABLE])
def test_wrong_sql_is_refused_with_code_and_place(two: Any, sql: str, code: str, word: str | None) -> None:
    body = two.refused(sql)
    assert body["code"] == code, body
    assert body["sqlstate"]
    place = body["errors"][0]["position"]
    assert place, body
    assert place["line"] >= 1
    if word is not None:
        assert sql[place["offset"] :].startswith(word), (place, sql)
    assert "leat_src" not in str(body)
    assert "__leat" not in str(body)
    assert two.http.get(f"/v1/relations/{two.name}.public.x").status_code == 404


def test_all_faults_are_told_at_once(two: Any) -> None:
    body = two.refused("CREATE STREAM x AS SELECT nope1, nope2 FROM s")
    assert len(body["errors"]) == 2


def test_the_missing_within_says_which_join_it_is(two: Any) -> None:
    body = two.refused("CREATE STREAM x AS SELECT s.n FROM s JOIN r ON s.n = r.n")
    assert "interval join of two streams requires WITHIN" in body["detail"]


def test_values_unlike_the_existing_topic(two: Any) -> None:
    taken = two.topic("taken", partitions=3)
    body = two.refused(f"CREATE STREAM x WITH ('topic'='{taken}', 'topic.partitions'=2) AS SELECT n FROM s")
    assert body["code"] == "invalid-property"
    assert "which has 3" in body["detail"]


def test_an_unreachable_store_is_kept_and_says_why(play: Any) -> None:
    answer = play.http.put("/v1/stores/dead", json={"kafka": {"bootstrap_servers": "127.0.0.1:1"}})
    assert answer.status_code == 201, answer.text
    assert answer.json()["status"]["state"] == "errored"
    assert "127.0.0.1:1" in answer.json()["status"]["message"]
    refused = play.refused("CREATE STREAM x (a BIGINT) WITH ('store'='dead', 'value.format'='json')")
    assert refused["code"] == "store-unreachable"
    assert play.http.delete("/v1/stores/dead").status_code == 204


def test_duplicates_and_dependents(two: Any) -> None:
    assert two.refused(f"CREATE DATABASE {two.name}")["code"] == "already-exists"
    dependents = two.http.delete(f"/v1/databases/{two.name}")
    assert dependents.status_code == 409
    assert dependents.json()["code"] == "has-dependents"
    assert two.http.delete(f"/v1/stores/{two.name}").json()["code"] == "has-dependents"


def test_two_writers_with_one_etag(play: Any) -> None:
    url = f"/v1/databases/{play.name}"
    etag = play.http.get(url).headers["etag"]
    assert play.http.put(url, json={"comment": "one"}, headers={"If-Match": etag}).status_code == 200
    second = play.http.put(url, json={"comment": "two"}, headers={"If-Match": etag})
    assert second.status_code == 412
    assert second.json()["code"] == "stale"


def test_a_body_of_two_megabytes(play: Any) -> None:
    answer = play.http.post("/v1/statements", json={"sql": "-- " + "x" * 2_000_000})
    assert answer.status_code == 413
    assert answer.json()["code"] == "too-large"


def test_names_of_every_kind_go_round(play: Any) -> None:
    topic = play.topic("odd")
    for name in ("Grüße", "with space", "UPPER", 'quo"te', "日本"):
        quoted = '"' + name.replace('"', '""') + '"'
        play.sql(f"CREATE STREAM {quoted} (\"Größe\" BIGINT) WITH ('topic'='{topic}', 'value.format'='json')")
        found = [
            r["name"] for r in play.http.get("/v1/relations", params={"database": play.name}).json()["items"]
        ]
        assert name in found
        play.sql(f"DROP STREAM {quoted}")


def test_without_a_token_nothing_is_told(leatstream_server: Any) -> None:
    import httpx2

    for path in ("/v1/stores", "/v1/queries/x", "/v1/server"):
        answer = httpx2.get(leatstream_server.url + path)
        assert answer.status_code == 401
        assert answer.json()["code"] == "unauthenticated"
    assert httpx2.get(leatstream_server.url + "/healthz").status_code == 200


def test_validate_tells_the_plan_and_changes_nothing(two: Any) -> None:
    before = two.http.get("/v1/relations").json()
    body = {"sql": "CREATE STREAM x AS SELECT n FROM s", "database": two.name, "store": two.name}
    answer = two.http.post("/v1/statements:validate", json=body)
    assert answer.status_code == 200
    plan = answer.json()["statements"][0]["plan"]
    assert plan["sink"]["entity_action"] == "create"
    assert plan["sink"]["properties"]["topic.partitions"]["origin"] == "left_most_source"
    assert plan["mode"] == "realtime"
    assert two.http.get("/v1/relations").json() == before

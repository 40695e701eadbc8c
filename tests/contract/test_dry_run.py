"""What DESCRIBE and statements:validate say of statements about what is there already: what running them does."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

NAMES = {"database": "demo", "schema": "public", "store": "k"}
ALL = "AS SELECT * FROM pageviews"
SOME = f"{ALL} WHERE viewtime > 1"
GROUPS = "AS SELECT userid, count(*) AS n FROM pageviews"
KINDS = [
    ("STREAM", ALL, SOME),
    ("MATERIALIZED VIEW", ALL, SOME),
    ("CHANGELOG", f"{GROUPS} GROUP BY userid", f"{GROUPS} WHERE viewtime > 1 GROUP BY userid"),
]


def run(client: TestClient, text: str) -> dict[str, Any]:
    answer = client.post("/v1/statements", json={"sql": text, **NAMES})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()["results"][-1]
    return found


def problems(client: TestClient, text: str) -> list[str]:
    answer = client.post("/v1/statements:validate", json={"sql": text, **NAMES}).json()
    return [problem["code"] for statement in answer["statements"] for problem in statement["problems"]]


@pytest.mark.parametrize(("kind", "before", "after"), KINDS)
def test_what_replaces_is_told_as_a_change(pageviews: TestClient, kind: str, before: str, after: str) -> None:
    run(pageviews, f"CREATE {kind} x {before}")
    replacing = f"CREATE OR REPLACE {kind} x {after}"
    told = run(pageviews, f"DESCRIBE {replacing}")["rows"][0][1]["change"]
    assert told["class"] in ("restart-from-offsets", "new-state")
    assert problems(pageviews, replacing) == []
    assert run(pageviews, replacing)["query"] == "x"


@pytest.mark.parametrize(("kind", "before", "after"), KINDS)
def test_what_may_exist_is_left(pageviews: TestClient, kind: str, before: str, after: str) -> None:
    run(pageviews, f"CREATE {kind} x {before}")
    again = f"CREATE {kind} IF NOT EXISTS x {after}"
    assert run(pageviews, f"DESCRIBE {again}")["rows"][0][1] is None
    assert problems(pageviews, again) == []
    run(pageviews, again)
    assert problems(pageviews, f"CREATE {kind} x {after}") == ["already-exists"]


@pytest.mark.parametrize("name", ["x", "public.x", "demo.public.x"])
@pytest.mark.parametrize(
    "again",
    [
        f"CREATE STREAM x {SOME}",
        "CREATE STREAM x (a BIGINT) WITH ('topic'='pageviews', 'value.format'='json')",
    ],
)
def test_what_is_dropped_before_is_not_there(pageviews: TestClient, name: str, again: str) -> None:
    run(pageviews, "CREATE STREAM x (a BIGINT) WITH ('topic'='pageviews', 'value.format'='json')")
    assert problems(pageviews, again) == ["already-exists"]
    assert problems(pageviews, f"DROP STREAM {name}; {again}") == []


def test_a_list_is_of_the_database_that_is_named(pageviews: TestClient) -> None:
    run(pageviews, "CREATE DATABASE other")
    run(
        pageviews, "CREATE STREAM other.public.z (a BIGINT) WITH ('topic'='pageviews', 'value.format'='json')"
    )
    for within, names in {
        "DATABASE other": ["other.public.z"],
        "DATABASE demo": ["demo.public.pageviews"],
        "SCHEMA other.public": ["other.public.z"],
        "SCHEMA public": ["demo.public.pageviews"],
        "NAMESPACE public": ["demo.public.pageviews"],
    }.items():
        for noun in ("STREAMS", "RELATIONS"):
            assert [row[0] for row in run(pageviews, f"LIST {noun} IN {within}")["rows"]] == names, within


def test_a_schema_is_of_the_database_that_is_chosen(pageviews: TestClient) -> None:
    answer = pageviews.post("/v1/statements", json={"sql": "LIST STREAMS IN SCHEMA demo"})
    assert answer.json()["code"] == "unknown-relation"
    answer = pageviews.post("/v1/statements", json={"sql": "LIST STREAMS IN DATABASE demo"})
    assert [row[0] for row in answer.json()["results"][0]["rows"]] == ["demo.public.pageviews"]


def test_a_missing_entity_is_said_alike_with_where_to_look(pageviews: TestClient) -> None:
    sql = "PRINT ENTITY nope IN STORE k"
    faults = []
    for path in ("/v1/statements", "/v1/statements:validate"):
        answer = pageviews.post(path, json={"sql": sql}).json()
        (fault,) = answer.get("errors") or answer["statements"][0]["problems"]
        faults.append((fault["code"], fault["detail"], fault["hint"]))
    assert set(faults) == {
        ("entity-not-found", "Store k has no entity 'nope'.", "LIST ENTITIES IN STORE k names those it has.")
    }

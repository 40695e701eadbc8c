"""A stream over a topic that is not there is said to be one, where it is declared and where it is read."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

CONTEXT = {"database": "demo", "schema": "public", "store": "k"}
QUERY = "CREATE STREAM views AS SELECT p.userid FROM pageviewz AS p"


@pytest.fixture
def planned() -> dict[str, Any]:
    """What a Terraform plan knows: a stream whose topic has a typo."""
    columns = [{"name": "userid", "type": "VARCHAR"}]
    stream = {"database": "demo", "schema": "public", "name": "pageviewz", "kind": "stream", "store": "k"}
    return {"relations": [{**stream, "columns": columns, "topic": "pageviewz", "value_format": "json"}]}


def faults(answer: Any) -> list[dict[str, Any]]:
    return [p for s in answer.json()["statements"] for p in s["problems"]]


def test_a_declared_stream(pageviews: TestClient) -> None:
    text = "CREATE STREAM s (userid VARCHAR) WITH ('topic' = 'pageviewz', 'value.format' = 'json')"
    answer = pageviews.post("/v1/statements", json={"sql": text, **CONTEXT})
    fault = answer.json()["errors"][0]
    assert answer.status_code == 422
    assert fault["detail"] == "'pageviewz', which stream demo.public.s reads, does not exist in store 'k'."
    assert "Did you mean 'pageviews'?" in fault["hint"]
    assert "topic.partitions and topic.replicas of stream demo.public.s" in fault["hint"]
    (said,) = faults(pageviews.post("/v1/statements:validate", json={"sql": text, **CONTEXT}))
    assert (said["detail"], said["hint"]) == (fault["detail"], fault["hint"])


@pytest.mark.parametrize("with_", ["", " WITH ('topic.partitions' = 1, 'topic.replicas' = 1)"])
def test_a_planned_query_blames_its_source(
    pageviews: TestClient, planned: dict[str, Any], with_: str
) -> None:
    text = QUERY.replace(" AS SELECT", f"{with_} AS SELECT")
    body = {"sql": text, "assume": planned, **CONTEXT}
    (fault,) = faults(pageviews.post("/v1/statements:validate", json=body))
    assert (
        "'pageviewz', which stream demo.public.pageviewz reads, does not exist in store 'k'."
        in fault["detail"]
    )
    assert "Did you mean 'pageviews'?" in fault["hint"]
    assert text[fault["position"]["offset"] :].startswith("pageviewz")


def test_another_planned_query_is_not_blamed(pageviews: TestClient, planned: dict[str, Any]) -> None:
    body = {"sql": "CREATE STREAM v AS SELECT * FROM pageviews", "assume": planned, **CONTEXT}
    assert faults(pageviews.post("/v1/statements:validate", json=body)) == []


def test_the_topic_may_be_created(pageviews: TestClient, planned: dict[str, Any]) -> None:
    (stream,) = planned["relations"]
    stream["properties"] = {"topic.partitions": "1", "topic.replicas": "1"}
    body = {"sql": QUERY, "assume": planned, **CONTEXT}
    assert faults(pageviews.post("/v1/statements:validate", json=body)) == []


def test_an_entity_alone(pageviews: TestClient) -> None:
    answer = pageviews.post("/v1/statements", json={"sql": "CREATE ENTITY e", **CONTEXT}).json()
    assert answer["detail"] == (
        "topic.partitions and topic.replicas must be given to create entity 'e' in store 'k'."
    )


def test_a_misspelt_relation_is_said_before_what_its_columns_need(pageviews: TestClient) -> None:
    text = "SELECT p.contact->city AS c, p.scores['x'] FROM pageviewz AS p"
    for path in ("/v1/statements", "/v1/statements:validate"):
        answer = pageviews.post(path, json={"sql": text, **CONTEXT})
        (fault,) = faults(answer) if path.endswith("validate") else answer.json()["errors"]
        assert (fault["code"], fault["hint"]) == ("unknown-relation", "Did you mean pageviews?")
        assert text[fault["position"]["offset"] :].startswith("pageviewz")

"""The dry run of a query's body tells what PUT of that body does, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

SQL = "CREATE STREAM views AS SELECT * FROM pageviews"
BODY = {"sql": SQL, "database": "demo", "schema": "public"}


def _validated(client: TestClient, **body: Any) -> dict[str, Any]:
    answer = client.post("/v1/statements:validate", json=body)
    assert answer.status_code == 200, answer.text
    [found] = answer.json()["statements"]
    return dict(found)


def _put(client: TestClient, path: str, body: Any) -> dict[str, Any]:
    answer = client.put(path, json=body)
    assert answer.status_code in (200, 201), answer.text
    return dict(answer.json())


@pytest.fixture
def defaults(pageviews: TestClient) -> TestClient:
    """A caller who has set another default store than the server's."""
    for store in ("kafka_store", "other"):
        _put(pageviews, f"/v1/stores/{store}", {"kafka": {"bootstrap_servers": "localhost:9092"}})
    _put(pageviews, "/v1/queries/views", BODY)
    answer = pageviews.post("/v1/statements", json={"sql": "SET DEFAULT STORE other"})
    assert answer.status_code == 200, answer.text
    return pageviews


def test_defaults_of_the_caller_do_not_count_for_a_body(defaults: TestClient) -> None:
    """PUT knows no SET DEFAULT; a plan that did would tell Terraform to replace the query."""
    told = _validated(defaults, **BODY, name="views")["plan"]
    assert (told["sink"]["store"], told["change"]["class"]) == ("kafka_store", "none")
    changed = {**BODY, "sql": f"{SQL} WHERE viewtime > 1"}
    told = _validated(defaults, **changed, name="views")["plan"]
    assert told == _put(defaults, "/v1/queries/views", changed)["plan"]
    new = {**BODY, "sql": SQL.replace("views AS", "more AS")}
    told = _validated(defaults, **new, name="more")["plan"]
    assert told == _put(defaults, "/v1/queries/more", new)["plan"]


def test_defaults_of_the_caller_count_for_a_statement(defaults: TestClient) -> None:
    """A text without a name is one that is to be sent as a statement."""
    told = _validated(defaults, **{**BODY, "sql": SQL.replace("views AS", "more AS")})
    assert told["plan"]["sink"]["store"] == "other"


def test_defaults_of_the_caller_do_not_count_for_an_application(defaults: TestClient) -> None:
    sql = "BEGIN APPLICATION shop CREATE STREAM more AS SELECT * FROM pageviews; END APPLICATION"
    body = {"sql": sql, "database": "demo", "schema": "public"}
    told = _validated(defaults, **body, name="shop")["plan"]
    assert told["queries"][0]["plan"]["sink"]["store"] == "kafka_store"
    assert told == _put(defaults, "/v1/applications/shop", body)["plan"]

"""What an application has made changes and goes with it; stopped and started it is alone, too."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

NAMES = {"database": "demo", "schema": "public"}
SQL = "CREATE STREAM one AS SELECT * FROM pageviews WHERE viewtime > 1"
CHANGED = SQL.replace("> 1", "> 2")
COLUMNS = [{"name": "userid", "type": "VARCHAR"}]
DECLARED = {"columns": COLUMNS, "store": "k", "topic": "pageviews", "value_format": "json"}
TEXT = f"""BEGIN APPLICATION shop
  USE STORE k;
  CREATE STREAM users (userid VARCHAR) WITH ('topic'='pageviews', 'value.format'='json');
  {SQL};
END APPLICATION"""
ONE, USERS = "/v1/queries/one", "/v1/relations/demo.public.users"


@pytest.fixture
def shop(pageviews: TestClient) -> TestClient:
    """A client beside an application with a query and a declared stream."""
    _put(pageviews, TEXT, 201)
    return pageviews


def _put(client: TestClient, text: str, status: int = 200) -> Any:
    answer = client.put("/v1/applications/shop", json={"sql": text, **NAMES})
    assert answer.status_code == status, answer.text
    return answer.json()


def _sent(client: TestClient, sql: str) -> Any:
    return client.post("/v1/statements", json={"sql": sql, **NAMES, "store": "k"})


def test_a_statement_changes_with_its_application(shop: TestClient) -> None:
    """By whatever way: the application's text would not tell it, and putting it would not bring it back."""
    before = shop.get(ONE).json()
    for answer in (
        shop.put(ONE, json={"sql": CHANGED, **NAMES, "store": "k"}),
        shop.patch(ONE, json={"sql": CHANGED}),
        shop.patch(ONE, json={"database": None}),
        shop.patch(ONE, json={"properties": {"mode": "micro_batch"}}),
        _sent(shop, CHANGED.replace("CREATE", "CREATE OR REPLACE", 1)),
    ):
        assert (answer.status_code, answer.json()["code"]) == (409, "has-dependents"), answer.text
        assert "application shop" in answer.json()["detail"]
    assert shop.get(ONE).json() == before
    told = shop.post("/v1/statements:validate", json={"sql": CHANGED, **NAMES, "store": "k", "name": "one"})
    assert [p["code"] for p in told.json()["statements"][0]["problems"]] == ["has-dependents"]
    assert _put(shop, TEXT.replace("> 1", "> 2"))["plan"]["change"]["class"] == "restart-from-offsets"
    assert shop.get(ONE).json()["sql"] == CHANGED


def test_stopped_and_started_alone(shop: TestClient) -> None:
    """So is what the application's text does not give."""
    for change in ({"desired_state": "stopped"}, {"comment": "so"}, {"delete_sink_entity": True}):
        answer = shop.patch(ONE, json=change)
        assert answer.status_code == 200, answer.text
    assert _sent(shop, "RESTART QUERY one").status_code == 200
    same = {"sql": f"-- so\n{SQL}", **NAMES, "store": "k"}
    assert shop.put(ONE, json=same).status_code == 200


def test_a_declared_stream_goes_with_its_application(shop: TestClient) -> None:
    refused = [
        shop.put(USERS, json={**DECLARED, "columns": [*COLUMNS, {"name": "n", "type": "BIGINT"}]}),
        shop.delete(USERS),
        _sent(shop, "DROP STREAM users"),
    ]
    for answer in refused:
        assert (answer.status_code, answer.json()["code"]) == (409, "has-dependents"), answer.text
    assert shop.put(USERS, json=DECLARED).status_code == 200
    more = TEXT.replace("userid VARCHAR", "userid VARCHAR, n BIGINT")
    _put(shop, more)
    assert len(shop.get(USERS).json()["columns"]) == 2
    _put(shop, TEXT.replace(TEXT.splitlines()[2], ""))
    assert shop.get(USERS).status_code == 404
    _put(shop, TEXT)
    assert shop.delete("/v1/applications/shop").status_code in (202, 204)
    assert shop.get(USERS).status_code == 404

"""What reads a query to change a part of it takes nothing back that somebody else writes meanwhile."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from leatstream.services.queries import catalog

SQL = "CREATE STREAM views AS SELECT * FROM pageviews"
QUERY = {"sql": SQL, "database": "demo", "schema": "public", "store": "k"}
PATH = "/v1/queries/q"


@pytest.fixture
def others(pageviews: TestClient, monkeypatch: Any) -> list[str]:
    """Conditions, one for each statement that somebody puts behind the back of who has read the query."""
    assert pageviews.put(PATH, json=QUERY).status_code == 201
    real, left = catalog.get_query, list[str]()

    def read(env: Any, principal: Any, name: str) -> Any:
        found = real(env, principal, name)
        if left:
            body = {**QUERY, "sql": f"{SQL} WHERE {left[0]}", "comment": left.pop(0)}
            answer = pageviews.put(PATH, json=body)
            assert answer.status_code == 200, answer.text
        return found

    monkeypatch.setattr(catalog, "get_query", read)
    return left


def _stop_by_patch(client: TestClient) -> Any:
    return client.patch(PATH, json={"desired_state": "stopped"})


def _stop_by_statement(client: TestClient) -> Any:
    return client.post("/v1/statements", json={"sql": "TERMINATE QUERY q"})


@pytest.mark.parametrize("stop", [_stop_by_patch, _stop_by_statement])
def test_a_statement_put_meanwhile_stays(pageviews: TestClient, others: list[str], stop: Any) -> None:
    others += ["viewtime > 1", "viewtime > 2"]
    answer = stop(pageviews)
    assert answer.status_code == 200, answer.text
    now = pageviews.get(PATH).json()
    assert (now["sql"], now["desired_state"]) == (f"{SQL} WHERE viewtime > 2", "stopped")


def test_properties_put_meanwhile_stay(pageviews: TestClient, others: list[str]) -> None:
    """A patch of some properties is laid over those that there are when it is written."""
    assert pageviews.patch(PATH, json={"properties": {"mode": "micro_batch"}}).status_code == 200
    others += ["viewtime > 1"]  # a PUT without properties takes them away
    answer = pageviews.patch(PATH, json={"properties": {"query.driver": "shared"}})
    assert answer.json()["properties"] == {"query.driver": "shared"}
    assert answer.json()["sql"] == f"{SQL} WHERE viewtime > 1"


def test_who_names_a_version_means_it(pageviews: TestClient, others: list[str]) -> None:
    others += ["viewtime > 1"]
    answer = pageviews.patch(PATH, json={"desired_state": "stopped"}, headers={"If-Match": '"1"'})
    assert (answer.status_code, answer.json()["code"]) == (412, "stale")
    assert pageviews.get(PATH).json()["sql"] == f"{SQL} WHERE viewtime > 1"


def test_it_is_not_tried_for_ever(pageviews: TestClient, others: list[str]) -> None:
    others += [f"viewtime > {n}" for n in range(20)]
    assert _stop_by_patch(pageviews).json()["code"] == "stale"
    assert 0 < len(others) < 20


def test_a_replacement_keeps_what_is_said_meanwhile(pageviews: TestClient, others: list[str]) -> None:
    """``:replace`` reads the query, too, here for a change that is made in place."""
    others += ["viewtime > 1"]
    answer = pageviews.post(f"{PATH}:replace", json={"sql": f"{SQL} WHERE viewtime > 5"})
    assert answer.status_code == 202, answer.text
    assert (answer.json()["sql"], answer.json()["comment"]) == (f"{SQL} WHERE viewtime > 5", "viewtime > 1")

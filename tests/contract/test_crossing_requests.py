"""What users ask between two steps of a pass over the queries, which reads them before it acts."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import fakes
import pytest
from starlette.testclient import TestClient

from leatstream.errors import CheckpointError
from leatstream.model.objects import Query, QueryState
from leatstream.services.queries.reconcile.reconciler import reconcile_all


@pytest.fixture
def make(pageviews: TestClient, fresh: Any) -> Any:
    """Makes a query of a name, not yet started; there is one driver."""
    fresh.drivers.tokens["d1"] = "t1"

    def made(name: str) -> None:
        sql = f"CREATE STREAM {name}_out AS SELECT userid FROM pageviews"
        body = {"sql": sql, "database": "demo", "schema": "public", "store": "k"}
        answer = pageviews.put(f"/v1/queries/{name}", json=body)
        assert answer.status_code == 201, answer.text

    return made


def query(fresh: Any, name: str) -> Query | None:
    with fresh.env.open_unit(write=False) as unit:
        found: Query | None = unit.queries.find(name)
        return found


@pytest.mark.parametrize("wish", ["delete", "stop"])
def test_a_query_that_is_given_up_while_it_is_launched_gets_no_driver(
    make: Any, pageviews: TestClient, fresh: Any, monkeypatch: pytest.MonkeyPatch, wish: str
) -> None:
    """Its driver wrote while, and after, its topic and its checkpoint were taken away."""
    make("q")
    given = fresh.drivers.assign

    def held_up(*_: Any) -> None:
        raise CheckpointError("checkpoints-unreachable", "The checkpoints are away.", retryable=True)

    def crossed(*args: Any) -> Any:
        driver = given(*args)
        if wish == "delete":
            pageviews.delete("/v1/queries/q").raise_for_status()
        else:
            pageviews.patch("/v1/queries/q", json={"desired_state": "stopped"}).raise_for_status()
        return driver

    monkeypatch.setattr(fresh.env.checkpoints, "remove", held_up)
    monkeypatch.setattr(fresh.drivers, "assign", crossed)
    reconcile_all(fresh.env)
    found = query(fresh, "q")
    assert found is not None
    assert (found.status.driver_id, found.status.attempt) == (None, 0)
    assert found.status.state is QueryState.PENDING
    assert not fresh.drivers.runs("d1", found.meta.id)


@pytest.mark.parametrize("and_topic", [True, False])
def test_a_topic_that_is_made_while_its_query_is_deleted_does_not_stay(
    make: Any, pageviews: TestClient, fresh: Any, monkeypatch: pytest.MonkeyPatch, and_topic: bool
) -> None:
    make("q")
    create = fakes.MemoryConnector.create_entity

    def crossed(*args: Any, **more: Any) -> None:
        answer = pageviews.delete("/v1/queries/q", params={"delete_entity": and_topic})
        assert answer.status_code == 204, answer.text
        create(*args, **more)

    monkeypatch.setattr(fakes.MemoryConnector, "create_entity", crossed)
    reconcile_all(fresh.env)
    assert query(fresh, "q") is None
    assert sorted(fresh.cluster.entities) == ["pageviews"]


def test_who_waits_for_a_driver_the_longest_gets_it(make: Any, fresh: Any) -> None:
    """The first by name got every driver that became free."""
    make("a")
    make("b")
    with fresh.env.open_unit() as unit:
        found = unit.queries.find("b")
        since = (found.status.since or found.meta.created_at) - timedelta(minutes=1)
        unit.queries.update(replace(found, status=replace(found.status, since=since)))
        unit.commit()
    reconcile_all(fresh.env)
    assert [query(fresh, name).status.driver_id for name in ("a", "b")] == [None, "d1"]  # type: ignore[union-attr]

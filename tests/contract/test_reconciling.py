"""The life of queries on the real services, with drivers that exist in a table only."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from starlette.testclient import TestClient

from leatstream.connectors.base import Entity
from leatstream.services import drivers, queries
from leatstream.services.environment import Principal
from leatstream.services.reconciler import reconcile_all, release_strays

ANN = Principal("ann", "sysadmin")


@pytest.fixture
def ready(fresh: Any, client: TestClient) -> Any:
    """A store, a database and a stream of one column, and two free drivers."""
    fresh.cluster.entities["a"] = Entity("a", {"topic.partitions": 1, "topic.replicas": 1})
    body = {"kafka": {"bootstrap_servers": "b:1"}}
    assert client.put("/v1/stores/k", json=body).status_code == 201
    assert client.put("/v1/databases/d", json={}).status_code == 201
    stream = {"kind": "stream", "columns": [{"name": "n", "type": "BIGINT"}], "store": "k", "topic": "a"}
    answer = client.put("/v1/relations/d.public.a", json={**stream, "value_format": "json"})
    assert answer.status_code == 201, answer.text
    fresh.drivers.tokens.update({"d1": "t1", "d2": "t2"})
    return fresh


def make(client: TestClient, name: str, sql: str, **more: Any) -> None:
    body = {"sql": sql, "database": "d", "store": "k", **more}
    answer = client.put(f"/v1/queries/{name}", json=body)
    assert answer.status_code in (200, 201), answer.text


def beat(world: Any, name: str, state: str, **more: Any) -> str:
    query = queries.get_query(world.env, ANN, name)
    report = {"query_id": query.meta.id, "attempt": query.status.attempt, "state": state, **more}
    report["fencing_token"] = drivers.fencing_token(query)
    return drivers.heartbeat(world.env, query.status.driver_id or "", report)["directive"]


def state(world: Any, name: str) -> str:
    return str(queries.get_query(world.env, ANN, name).status.state)


COPY = "CREATE STREAM b AS SELECT * FROM a"
FAILURE = {"code": "undecodable-record", "detail": "x", "retryable": False}


def test_a_query_runs_fails_and_is_mended_while_the_old_job_still_ends(
    ready: Any, client: TestClient
) -> None:
    make(client, "q", COPY)
    reconcile_all(ready.env)
    assert state(ready, "q") == "starting"
    assert "b" in ready.cluster.entities
    assert beat(ready, "q", "running") == "continue"
    make(client, "q", "CREATE STREAM b AS SELECT * FROM a WHERE n > 1")
    # The old version's failure says nothing of the new one.
    beat(ready, "q", "failed", error=FAILURE)
    assert state(ready, "q") == "pending"
    ready.drivers.tokens.pop("d1")
    ready.drivers.queries.pop("d1")
    reconcile_all(ready.env)
    assert state(ready, "q") == "starting"


def test_stop_and_start_in_one_breath_starts_again(ready: Any, client: TestClient) -> None:
    make(client, "q", COPY)
    reconcile_all(ready.env)
    beat(ready, "q", "running")
    client.patch("/v1/queries/q", json={"desired_state": "stopped"})
    reconcile_all(ready.env)
    assert state(ready, "q") == "stopping"
    client.patch("/v1/queries/q", json={"desired_state": "running"})
    assert beat(ready, "q", "running") == "stop"
    beat(ready, "q", "stopped")
    assert state(ready, "q") == "pending"


def test_a_failed_query_that_shall_stop_is_stopped(ready: Any, client: TestClient) -> None:
    make(client, "q", COPY)
    reconcile_all(ready.env)
    beat(ready, "q", "failed", error=FAILURE)
    assert state(ready, "q") == "failed"
    client.patch("/v1/queries/q", json={"desired_state": "stopped"})
    reconcile_all(ready.env)
    assert state(ready, "q") == "stopped"


def test_a_store_that_is_away_delays_one_deletion_and_nothing_else(ready: Any, client: TestClient) -> None:
    make(client, "aaa", COPY, delete_sink_entity=True)
    reconcile_all(ready.env)
    make(client, "zzz", "CREATE STREAM c AS SELECT * FROM a", desired_state="stopped")
    ready.cluster.up = False
    connect = ready.env.connect

    def refusing(store: Any) -> Any:
        connector = connect(store)
        connector.drop_entity = lambda *a, **k: connector.test(1)
        return connector

    ready.env.connect = refusing
    assert client.delete("/v1/queries/aaa").status_code == 202
    beat(ready, "aaa", "stopped")
    ready.drivers.tokens.pop("d1")
    client.patch("/v1/queries/zzz", json={"desired_state": "running"})
    with ready.env.open_unit() as unit:  # its topic is there already
        query = unit.queries.find("zzz")
        unit.queries.update(replace(query, status=replace(query.status, entity_ready=True)))
        unit.commit()
    reconcile_all(ready.env)
    assert "cannot be dropped yet" in (queries.get_query(ready.env, ANN, "aaa").status.message or "")
    assert state(ready, "zzz") == "starting"
    ready.cluster.up = True
    with ready.env.open_unit() as unit:
        query = unit.queries.find("aaa")
        unit.queries.update(replace(query, status=replace(query.status, next_attempt_at=None)))
        unit.commit()
    reconcile_all(ready.env)
    assert client.get("/v1/queries/aaa").status_code == 404
    assert client.get("/v1/relations/d.public.b").status_code == 404


def test_a_query_that_is_being_deleted_takes_no_change(ready: Any, client: TestClient) -> None:
    make(client, "q", COPY)
    reconcile_all(ready.env)
    assert client.delete("/v1/queries/q").status_code == 202
    answer = client.put("/v1/queries/q", json={"sql": COPY, "database": "d", "store": "k"})
    assert answer.status_code == 409
    assert answer.json()["code"] == "invalid-transition"


def test_what_a_plan_rests_on_may_not_change_meanwhile(
    ready: Any, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = queries.plan_statement

    def slowly(*arguments: Any) -> Any:
        planned = plan(*arguments)
        assert client.delete("/v1/relations/d.public.a").status_code == 204
        return planned

    monkeypatch.setattr(queries, "plan_statement", slowly)
    answer = client.put("/v1/queries/q", json={"sql": COPY, "database": "d", "store": "k"})
    assert answer.status_code == 412, answer.text
    assert client.get("/v1/relations/d.public.b").status_code == 404


def test_a_topic_on_which_others_stand_is_not_deleted(ready: Any, client: TestClient) -> None:
    make(client, "q", COPY, delete_sink_entity=True)
    reconcile_all(ready.env)
    stream = {"kind": "stream", "columns": [{"name": "n", "type": "BIGINT"}], "store": "k", "topic": "b"}
    client.put("/v1/relations/d.public.other", json={**stream, "value_format": "json"})
    answer = client.delete("/v1/queries/q")
    assert answer.status_code == 409, answer.text
    assert "other" in answer.json()["detail"]


def test_a_driver_that_holds_a_query_run_by_none_is_ended(ready: Any) -> None:
    ready.drivers.queries["d1"] = "qry_of_nobody"
    release_strays(ready.env)
    assert not ready.drivers.is_alive("d1")
    assert ready.drivers.is_alive("d2")

"""The life of queries on the real services, with drivers that exist in a table only."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from starlette.testclient import TestClient

from leatstream.connectors.entities import Entity
from leatstream.errors import EngineError
from leatstream.services import driver_calls as drivers
from leatstream.services.environment import Principal
from leatstream.services.queries import catalog as queries
from leatstream.services.queries.reconcile.reconciler import reconcile_all, release_strays
from leatstream.services.queries.save import note_event

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


def has_run(client: TestClient, name: str) -> bool:
    found: bool = client.get(f"/v1/queries/{name}").json()["status"]["has_run"]
    return found


def test_a_new_query_has_nothing_to_lose_until_it_runs(ready: Any, client: TestClient) -> None:
    """Pipelines may replace a query whose creation failed, but none with positions or state."""
    make(client, "q", COPY)
    assert not has_run(client, "q")
    reconcile_all(ready.env)
    beat(ready, "q", "starting", first_batch=True)
    beat(ready, "q", "failed", error=FAILURE)
    status = client.get("/v1/queries/q").json()["status"]
    assert (status["state"], status["has_run"]) == ("failed", False)
    assert status["hint"] == status["error"]["hint"] != ""
    ready.drivers.tokens["d3"] = "t3"
    make(client, "q", "CREATE STREAM b AS SELECT * FROM a WHERE n > 1")
    assert not has_run(client, "q")
    reconcile_all(ready.env)
    beat(ready, "q", "running")
    assert has_run(client, "q")
    beat(ready, "q", "failed", error=FAILURE)
    assert has_run(client, "q")


def test_a_query_may_have_run_where_nobody_saw_it(ready: Any, client: TestClient) -> None:
    make(client, "q", COPY)
    reconcile_all(ready.env)
    beat(ready, "q", "failed", error=FAILURE, progress={"batch_id": 0, "input_rows_total": 5})
    assert has_run(client, "q"), "its first batch was done between two heartbeats"
    make(client, "r", COPY.replace(" b ", " c "))
    reconcile_all(ready.env)
    assert state(ready, "r") == "starting"
    ready.drivers.tokens.clear()
    reconcile_all(ready.env)
    assert has_run(client, "r"), "its driver vanished"


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


def test_attempts_go_on_above_what_the_sink_has_seen(ready: Any, client: TestClient) -> None:
    """As with a catalog from a backup. A job that was given up is not heard, so it cannot do this."""
    make(client, "q", COPY)
    reconcile_all(ready.env)
    behind = {"code": "job-failed", "detail": "x", "retryable": True, "newest_attempt": 17}
    beat(ready, "q", "failed", error=behind)
    query = queries.get_query(ready.env, ANN, "q")
    assert (str(query.status.state), query.status.attempt) == ("pending", 17)
    assert "newest_attempt" not in (query.status.error or {})
    ready.drivers.tokens.pop("d1")
    with ready.env.open_unit() as unit:
        unit.queries.update(replace(query, status=replace(query.status, next_attempt_at=None)))
        unit.commit()
    reconcile_all(ready.env)
    assert queries.get_query(ready.env, ANN, "q").status.attempt == 18


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


def test_what_exactly_once_left_behind_goes_also_after_a_change_of_mind(
    ready: Any, client: TestClient
) -> None:
    make(client, "q", "CREATE STREAM b WITH ('delivery.guarantee'='exactly_once') AS SELECT * FROM a")
    make(client, "q", COPY)
    query = queries.get_query(ready.env, ANN, "q").meta.id
    assert client.delete("/v1/queries/q").status_code in (202, 204)
    reconcile_all(ready.env)
    assert ready.cluster.forgotten_batches == [query]


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


def test_a_query_waits_while_drivers_cannot_be_started(
    ready: Any, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(_query_id: str, _sharing: Any = None) -> str | None:
        raise EngineError("engine-unavailable", "the Kubernetes API cannot be reached")

    make(client, "q", COPY)
    with monkeypatch.context() as patch:
        patch.setattr(ready.drivers, "assign", away)
        for _ in range(3):
            reconcile_all(ready.env)
        status = client.get("/v1/queries/q").json()["status"]
        assert (status["state"], status["restarts"]) == ("pending", 0)
        assert "the Kubernetes API cannot be reached" in status["message"]
    reconcile_all(ready.env)
    assert client.get("/v1/queries/q").json()["status"]["state"] == "starting"


def test_a_query_outlives_a_cluster_on_which_no_driver_starts(
    ready: Any, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often: a query that no driver has had is not to blame, and goes on when one starts."""
    now = ready.env.clock.now()
    monkeypatch.setattr(ready.env.clock, "now", lambda: now)
    make(client, "q", COPY)
    for number in range(3 * ready.env.settings.max_restarts):
        now += timedelta(minutes=2)
        ready.drivers.tokens = {f"d{number}": "t"}
        reconcile_all(ready.env)
        assert state(ready, "q") == "starting"
        ready.drivers.unserved.add(f"d{number}")
        ready.drivers.tokens.clear()
        reconcile_all(ready.env)
        status = client.get("/v1/queries/q").json()["status"]
        assert (status["state"], status["error"]["code"]) == ("pending", "driver-not-started")
        assert not status["has_run"]
        assert "while it started Spark. Try " in status["message"]
    now += timedelta(minutes=2)
    ready.drivers.tokens = {"d9999": "t"}
    reconcile_all(ready.env)
    beat(ready, "q", "running", progress={"batch_id": 1, "input_rows_total": 5})
    status = client.get("/v1/queries/q").json()["status"]
    assert (status["state"], status["error"]) == ("running", None)


def test_a_driver_that_holds_a_query_run_by_none_is_ended(ready: Any) -> None:
    ready.drivers.queries["d1"] = "qry_of_nobody"
    release_strays(ready.env)
    assert not ready.drivers.is_alive("d1")
    assert ready.drivers.is_alive("d2")


def rows(client: TestClient, sql: str) -> list[list[Any]]:
    answer = client.post("/v1/statements", json={"sql": sql, "database": "d"})
    assert answer.status_code == 200, answer.text
    found: list[list[Any]] = answer.json()["results"][-1]["rows"]
    return found


def test_events_and_versions_of_a_query_are_kept(ready: Any, client: TestClient) -> None:
    make(client, "q", COPY)
    reconcile_all(ready.env)
    beat(ready, "q", "running")
    for _ in range(3):  # figures alone are no event
        beat(ready, "q", "running", progress={"batch_id": 7})
    make(client, "q", "CREATE STREAM b AS SELECT * FROM a WHERE n > 1")
    beat(ready, "q", "failed", error=FAILURE)
    ready.drivers.tokens.pop("d1")
    ready.drivers.queries.pop("d1")
    reconcile_all(ready.env)
    beat(ready, "q", "failed", error=FAILURE)
    client.patch("/v1/queries/q", json={"desired_state": "stopped"})
    reconcile_all(ready.env)

    events = client.get("/v1/queries/q/events").json()["items"]
    assert [(e["state"], e["attempt"], e["generation"], e["error"]) for e in events] == [
        ("pending", 0, 1, None),
        ("starting", 1, 1, None),
        ("running", 1, 1, None),
        ("pending", 1, 2, None),
        ("starting", 2, 2, None),
        ("failed", 2, 2, "undecodable-record"),
        ("stopped", 2, 3, None),
    ]
    assert events[5]["reason"] == "x"
    assert events == sorted(events, key=lambda e: e["at"])
    versions = client.get("/v1/queries/q/history").json()["items"]
    assert [(v["generation"], v["by"], v["change"], v["desired_state"]) for v in versions] == [
        (1, "ann", None, "running"),
        (2, "ann", "restart-from-offsets", "running"),
        (3, "ann", "none", "stopped"),
    ]
    assert versions[0]["sql"] == COPY
    newest = client.get("/v1/queries/q/events", params={"limit": 1}).json()["items"]
    assert [e["state"] for e in newest] == ["stopped"]
    assert [r[1] for r in rows(client, "DESCRIBE QUERY EVENTS q")][-2:] == ["failed", "stopped"]
    assert [r[3] for r in rows(client, "DESCRIBE QUERY HISTORY q")] == [None, "restart-from-offsets", "none"]

    assert client.delete("/v1/queries/q").status_code == 204
    assert client.get("/v1/queries/q/events").status_code == 404
    make(client, "q", COPY)  # one of the same name does not inherit them
    assert len(client.get("/v1/queries/q/history").json()["items"]) == 1


def test_the_log_of_a_query_has_a_bound(ready: Any, client: TestClient) -> None:
    make(client, "q", COPY)
    make(client, "other", "CREATE STREAM c AS SELECT * FROM a")
    query = queries.get_query(ready.env, ANN, "q")
    with ready.env.open_unit() as unit:
        for attempt in range(1, 251):
            status = replace(query.status, attempt=attempt)
            note_event(unit, None, replace(query, status=status), ready.env.clock.now())
        unit.commit()
    events = client.get("/v1/queries/q/events", params={"limit": 200}).json()["items"]
    assert [e["attempt"] for e in events] == list(range(51, 251))
    with ready.units(write=False) as unit:
        assert len(unit.query_log.events(query.meta.id, 1000)) == 200
    assert len(client.get("/v1/queries/other/events").json()["items"]) == 1


def test_a_driver_takes_another_query_after_one_that_ended_in_order(ready: Any, client: TestClient) -> None:
    ready.drivers.keeps = True
    del ready.drivers.tokens["d2"]
    make(client, "q", COPY)
    reconcile_all(ready.env)
    beat(ready, "q", "running")
    client.patch("/v1/queries/q", json={"desired_state": "stopped"})
    reconcile_all(ready.env)
    assert beat(ready, "q", "stopped", free=True) == "stay"
    reconcile_all(ready.env)
    assert state(ready, "q") == "stopped", "although its driver lives on"
    make(client, "p", "CREATE STREAM c AS SELECT * FROM a")
    reconcile_all(ready.env)
    assert queries.get_query(ready.env, ANN, "p").status.driver_id == "d1"
    # What is left to be done for the first does not touch the second.
    client.delete("/v1/queries/q")
    reconcile_all(ready.env)
    assert beat(ready, "p", "running") == "continue"


def test_a_query_that_is_changed_goes_on_in_the_same_driver(ready: Any, client: TestClient) -> None:
    ready.drivers.keeps = True
    del ready.drivers.tokens["d2"]
    make(client, "q", COPY)
    reconcile_all(ready.env)
    beat(ready, "q", "running")
    make(client, "q", "CREATE STREAM b AS SELECT * FROM a WHERE n > 1")
    assert beat(ready, "q", "stopped", free=True) == "stay"
    reconcile_all(ready.env)
    query = queries.get_query(ready.env, ANN, "q")
    assert (str(query.status.state), query.status.attempt, query.status.driver_id) == ("starting", 2, "d1")


def test_a_driver_whose_query_failed_is_not_kept(ready: Any, client: TestClient) -> None:
    ready.drivers.keeps = True
    make(client, "q", COPY)
    reconcile_all(ready.env)
    assert beat(ready, "q", "failed", error=FAILURE, free=True) != "stay"


def test_a_driver_that_is_not_free_is_not_kept(ready: Any, client: TestClient) -> None:
    ready.drivers.keeps = True
    make(client, "q", COPY)
    reconcile_all(ready.env)
    client.patch("/v1/queries/q", json={"desired_state": "stopped"})
    assert beat(ready, "q", "stopped") != "stay"

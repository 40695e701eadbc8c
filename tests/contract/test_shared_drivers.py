"""Queries that share a driver, on the real services, with drivers that exist in a table only."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from starlette.testclient import TestClient

from leatstream.connectors.entities import Entity
from leatstream.errors import EngineError
from leatstream.model.objects import Query
from leatstream.services import driver_calls as drivers
from leatstream.services.environment import Principal
from leatstream.services.queries import catalog as queries
from leatstream.services.queries.reconcile.reconciler import reconcile_all

ANN = Principal("ann", "sysadmin")
SHARED = " QUERY WITH ('query.driver'='shared')"


@pytest.fixture
def ready(fresh: Any, client: TestClient) -> Any:
    """A store, a database, a stream, one shared driver and one that is free."""
    fresh.cluster.entities["a"] = Entity("a", {"topic.partitions": 1, "topic.replicas": 1})
    sasl = {"mechanism": "plain", "username": "u", "password": "p"}
    kafka = {"bootstrap_servers": "b:1", "security_protocol": "sasl_plaintext", "sasl": sasl}
    body = {"kafka": kafka}
    assert client.put("/v1/stores/k", json=body).status_code == 201
    assert client.put("/v1/databases/d", json={}).status_code == 201
    stream = {"kind": "stream", "columns": [{"name": "n", "type": "BIGINT"}], "store": "k", "topic": "a"}
    answer = client.put("/v1/relations/d.public.a", json={**stream, "value_format": "json"})
    assert answer.status_code == 201, answer.text
    fresh.drivers.tokens.update({"s1": "t1", "d1": "t2"})
    fresh.drivers.shared["s1"] = []
    return fresh


def make(client: TestClient, name: str, suffix: str = SHARED) -> dict[str, Any]:
    body = {"sql": f"CREATE STREAM s_{name} AS SELECT * FROM a{suffix}", "database": "d", "store": "k"}
    answer = client.put(f"/v1/queries/{name}", json=body)
    assert answer.status_code in (200, 201), answer.text
    made: dict[str, Any] = answer.json()
    return made


def find(world: Any, name: str) -> Query:
    return queries.get_query(world.env, ANN, name)


def beat(world: Any, name: str, state: str, **more: Any) -> str:
    query = find(world, name)
    report = {"query_id": query.meta.id, "attempt": query.status.attempt, "state": state, **more}
    report["fencing_token"] = drivers.fencing_token(query)
    return drivers.heartbeat(world.env, query.status.driver_id or "", report)["directive"]


def running(world: Any, client: TestClient, *names: str) -> None:
    for name in names:
        make(client, name)
    reconcile_all(world.env)
    for name in names:
        beat(world, name, "running")


def test_the_plan_says_so_and_real_time_mode_is_refused(ready: Any, client: TestClient) -> None:
    plan = make(client, "q")["plan"]
    assert (plan["driver"], plan["mode"]) == ("shared", "micro_batch")
    assert "shares its driver" in plan["mode_reason"]
    assert make(client, "other", "")["plan"]["driver"] == "dedicated"
    for properties, code in (
        ("'query.driver'='shared', 'mode'='realtime'", "unsupported"),
        ("'query.driver'='mine'", "invalid-property"),
    ):
        sql = f"CREATE STREAM x AS SELECT * FROM a QUERY WITH ({properties})"
        answer = client.put("/v1/queries/x", json={"sql": sql, "database": "d", "store": "k"})
        assert answer.status_code == 422, answer.text
        assert code in answer.text
        assert answer.json()["errors"][0]["position"]["line"] == 1


def test_a_shared_driver_gets_its_queries_one_by_one_and_again_what_was_lost(
    ready: Any, client: TestClient
) -> None:
    make(client, "q1")
    make(client, "q2")
    reconcile_all(ready.env)
    ids = [find(ready, name).meta.id for name in ("q1", "q2")]
    has: dict[str, int] = {}

    def next_one() -> str | None:
        work = drivers.poll(ready.env, "s1", {"state": "idle", "pid": 1, "running": has})
        return work["spec"]["query_id"] if work else None

    assert next_one() == ids[0]
    assert next_one() == ids[0], "as long as it does not say that it has it"
    has[ids[0]] = 1
    assert next_one() == ids[1]
    has[ids[1]] = 1
    assert next_one() is None
    # One starts again, and the driver has said before that it has the old attempt.
    for name in ("q1", "q2"):
        beat(ready, name, "running")
    client.patch("/v1/queries/q1", json={"desired_state": "stopped"})
    beat(ready, "q1", "stopped")
    reconcile_all(ready.env)
    client.patch("/v1/queries/q1", json={"desired_state": "running"})
    reconcile_all(ready.env)
    reconcile_all(ready.env)
    assert next_one() == ids[0]


def test_an_end_frees_the_place_and_leaves_the_others(ready: Any, client: TestClient) -> None:
    running(ready, client, "q1", "q2", "q3")
    assert len(ready.drivers.shared["s1"]) == 3
    beat(ready, "q1", "failed", error={"code": "undecodable-record", "detail": "x", "retryable": False})
    client.patch("/v1/queries/q2", json={"desired_state": "stopped"})
    assert beat(ready, "q2", "running") == "stop"
    beat(ready, "q2", "stopped")
    reconcile_all(ready.env)
    assert [find(ready, n).status.state for n in ("q1", "q2", "q3")] == ["failed", "stopped", "running"]
    assert ready.drivers.shared["s1"] == [find(ready, "q3").meta.id]
    assert "s1" in ready.drivers.tokens, "the driver goes on"
    client.patch("/v1/queries/q2", json={"desired_state": "running"})
    reconcile_all(ready.env)
    reconcile_all(ready.env)
    assert find(ready, "q2").status.driver_id == "s1"


def test_secrets_are_those_of_the_driver_s_own_queries(ready: Any, client: TestClient) -> None:
    make(client, "alone", "")
    running(ready, client, "q1", "q2")
    (reference,) = find(ready, "q1").job["sources"][0]["store"]["secrets"].values()
    for name in ("q1", "q2"):
        known = drivers.resolve_secrets(ready.env, "s1", [reference], find(ready, name).meta.id)
        assert known == {reference: "p"}
    for stranger in (None, find(ready, "alone").meta.id):
        with pytest.raises(EngineError, match="runs no query"):
            drivers.resolve_secrets(ready.env, "s1", [reference], stranger)


def crash(world: Any) -> None:
    world.drivers.crashed.add("s1")
    world.drivers.end("s1")
    world.drivers.tokens["s2"] = "t"
    world.drivers.shared["s2"] = []


def test_when_it_dies_all_start_again_and_the_one_that_was_starting_apart(
    ready: Any, client: TestClient
) -> None:
    running(ready, client, "q1", "q2")
    since(ready, 100, "q1", "q2")
    make(client, "q3")
    reconcile_all(ready.env)
    crash(ready)
    reconcile_all(ready.env)
    assert [find(ready, n).status.state for n in ("q1", "q2", "q3")] == ["lost"] * 3
    assert [find(ready, n).status.apart_from for n in ("q1", "q2", "q3")] == [None, None, "s1"]
    events = client.get("/v1/queries/q3/events").json()["items"]
    assert any("a driver of its own" in (e["reason"] or "") for e in events), events
    wake(ready)
    assert {find(ready, n).status.driver_id for n in ("q1", "q2")} == {"s2"}
    assert find(ready, "q3").status.driver_id == "d1"
    # A person may trust it again.
    beat(ready, "q3", "running")
    client.post("/v1/queries/q3:restart")
    assert find(ready, "q3").status.apart_from is None


def test_who_tells_that_the_memory_is_full_is_set_apart(ready: Any, client: TestClient) -> None:
    running(ready, client, "q1", "q2")
    error = {"code": "job-failed", "detail": "it ended: Java heap space", "retryable": True}
    beat(ready, "q1", "failed", error=error)
    events = client.get("/v1/queries/q1/events").json()["items"]
    assert "a driver of its own" in events[-1]["reason"]
    wake(ready)
    assert (find(ready, "q1").status.driver_id, find(ready, "q2").status.driver_id) == ("d1", "s1")


def test_a_death_that_was_told_before_is_put_down_to_no_other(ready: Any, client: TestClient) -> None:
    """The JVM ends a moment after the job has told why; one that was starting beside it has no part in it."""
    running(ready, client, "q1")
    since(ready, 100, "q1")
    make(client, "q2")
    reconcile_all(ready.env)
    error = {"code": "job-failed", "detail": "it ended: Java heap space", "retryable": True}
    beat(ready, "q1", "failed", error=error)
    assert client.patch("/v1/queries/q1", json={"desired_state": "stopped"}).status_code < 300
    crash(ready)
    reconcile_all(ready.env)
    assert find(ready, "q1").status.apart_from == "s1"
    innocent = find(ready, "q2").status
    assert (innocent.state, innocent.crashes, innocent.apart_from) == ("lost", 0, None)


def test_who_is_set_apart_after_a_death_that_told_nothing_is_told_so(ready: Any, client: TestClient) -> None:
    """The first cause of a row of faults is kept; not where a later one says what it was."""
    running(ready, client, "q1", "q2")
    crash(ready)
    reconcile_all(ready.env)
    wake(ready)
    error = {"code": "job-failed", "detail": "it ended: Java heap space", "retryable": True}
    beat(ready, "q1", "failed", error=error)
    events = client.get("/v1/queries/q1/events").json()["items"]
    assert "a driver of its own" in events[-1]["reason"], events[-1]
    assert "Java heap space" in client.get("/v1/queries/q1").json()["status"]["error"]["detail"]


def test_where_there_is_no_room_one_that_has_run_alone_in_peace_comes_back(
    ready: Any, client: TestClient
) -> None:
    """Faults of a machine set innocent ones apart; what they hold must not keep the others from running."""
    running(ready, client, "q1")
    since(ready, 100, "q1")
    make(client, "q2")
    reconcile_all(ready.env)
    crash(ready)
    reconcile_all(ready.env)
    wake(ready)
    beat(ready, "q2", "running")
    assert (find(ready, "q2").status.apart_from, find(ready, "q2").status.driver_id) == ("s1", "d1")
    since(ready, 3600, "q2")
    reconcile_all(ready.env)
    assert find(ready, "q2").status.apart_from == "s1", "nobody waits"
    # The limit of drivers is reached when their driver dies once more.
    ready.drivers.end("s2")
    reconcile_all(ready.env)
    since(ready, -3555, "q2")
    wake(ready)
    assert "waiting for a driver" in (find(ready, "q1").status.message or "")
    assert find(ready, "q2").status.apart_from == "s1", "it has not run for a minute yet"
    since(ready, 30, "q2")
    for _ in range(2):
        reconcile_all(ready.env)
    assert find(ready, "q2").status.apart_from is None
    events = [e["reason"] or "" for e in client.get("/v1/queries/q2/events").json()["items"]]
    assert sum("it shares a driver again" in reason for reason in events) == 1
    assert beat(ready, "q2", "running") == "stop"
    beat(ready, "q2", "stopped")
    ready.drivers.tokens["s3"] = "t"
    ready.drivers.shared["s3"] = []
    wake(ready)
    assert {find(ready, name).status.driver_id for name in ("q1", "q2")} == {"s3"}


def test_one_that_was_convicted_does_not_come_back(ready: Any, client: TestClient) -> None:
    running(ready, client, "q1", "q2")
    beat(ready, "q1", "failed", error={"code": "job-failed", "detail": "Java heap space", "retryable": True})
    wake(ready)
    beat(ready, "q1", "running")
    since(ready, 100_000, "q1")
    ready.drivers.end("s1")
    reconcile_all(ready.env)
    wake(ready)
    assert "waiting for a driver" in (find(ready, "q2").status.message or "")
    reconcile_all(ready.env)
    assert find(ready, "q1").status.apart_from == "s1"


def since(world: Any, seconds: float, *names: str) -> None:
    """They have been in their states for so long."""
    from dataclasses import replace

    with world.units() as unit:
        for name in names:
            query = unit.queries.find(name)
            at = query.status.since - timedelta(seconds=seconds)
            unit.queries.update(replace(query, status=replace(query.status, since=at)))
        unit.commit()


def wake(world: Any) -> None:
    """The pause before a restart is over."""
    from dataclasses import replace

    with world.units() as unit:
        for query in unit.queries.page():
            unit.queries.update(replace(query, status=replace(query.status, next_attempt_at=None)))
        unit.commit()
    reconcile_all(world.env)


def test_a_server_s_own_end_of_a_driver_is_no_crash(ready: Any, client: TestClient) -> None:
    running(ready, client, "q1")
    ready.drivers.end("s1")
    reconcile_all(ready.env)
    assert (find(ready, "q1").status.state, find(ready, "q1").status.crashes) == ("lost", 0)


def test_without_a_driver_a_query_waits_and_says_why(ready: Any, client: TestClient) -> None:
    ready.drivers.end("s1")
    ready.drivers.full = "there is memory for no other driver: it needs 1.9 GiB, 0.3 GiB is left"
    make(client, "q1")
    reconcile_all(ready.env)
    status = client.get("/v1/queries/q1").json()["status"]
    assert status["state"] == "pending"
    assert status["message"] == f"waiting for a driver: {ready.drivers.full}"
    ready.drivers.tokens["s2"] = "t"
    ready.drivers.shared["s2"] = []
    reconcile_all(ready.env)
    assert find(ready, "q1").status.state == "starting"

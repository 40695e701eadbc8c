"""Blue-green replacement of queries that write into topics: who writes when, and what a death at each step does."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from starlette.testclient import TestClient

from leatstream.connectors.entities import Entity
from leatstream.plan.hand_over import HandOver
from leatstream.plan.job_spec import JobSpec
from leatstream.services import driver_calls as drivers
from leatstream.services.driver_calls import build_spec
from leatstream.services.environment import Principal
from leatstream.services.queries import catalog as queries
from leatstream.services.queries.reconcile.reconciler import reconcile_all

ANN = Principal("ann", "sysadmin")
MICRO = "QUERY WITH ('mode'='micro_batch')"
BESIDE = "QUERY WITH ('replace.mode'='blue_green')"
SET_UP = f"""CREATE STORE k WITH ('type'=KAFKA, 'uris'='b:1', 'tls.disabled'=TRUE); CREATE DATABASE d; USE DATABASE d;
CREATE STREAM a (n BIGINT, m BIGINT) WITH ('topic'='a', 'store'='k', 'value.format'='json');
CREATE STREAM b (n BIGINT, m BIGINT) WITH ('topic'='b', 'store'='k', 'value.format'='json');
CREATE STREAM plain AS SELECT n FROM a {MICRO}; CREATE STREAM live AS SELECT n FROM a;
CREATE CHANGELOG c AS SELECT n, count(*) AS m FROM a GROUP BY n;
CREATE STREAM v AS SELECT DISTINCT n FROM a"""
FROM_START = "WITH ('starting.position'='earliest')"
GREEN = f"CREATE OR REPLACE STREAM v AS SELECT DISTINCT n, m FROM a {FROM_START} {BESIDE}"


class NamedColumns:
    """Answers a SELECT of columns with those, in its order."""

    def __init__(self, analyzer: Any) -> None:
        self._analyzer = analyzer

    def analyze(self, views: Any, sql: str, timeout: float, functions: Any = ()) -> Any:
        found, head = self._analyzer.analyze(views, sql, timeout, functions), sql.split("FROM")[0]
        named = [column for column in found if f"`{column.name}`" in head]
        return sorted(named, key=lambda column: head.index(f"`{column.name}`"))


@pytest.fixture
def world(fresh: Any, client: TestClient) -> Any:
    """Queries on drivers of their own; ``v`` keeps state, and has read up to 7."""
    for topic in ("a", "b"):
        fresh.cluster.entities[topic] = Entity(topic, {"topic.partitions": 1, "topic.replicas": 1})
    fresh.drivers.tokens.update({f"d{n}": "t" for n in range(1, 20)})
    fresh.env.analyzer = NamedColumns(fresh.env.analyzer)
    made = client.post("/v1/statements", json={"sql": SET_UP, "store": "k"})
    assert made.status_code == 200, made.text
    reconcile_all(fresh.env)
    for name in ("plain", "live", "c", "v"):
        beat(fresh, name, 7)
    return fresh


def sql(client: TestClient, text: str) -> Any:
    return client.post("/v1/statements", json={"sql": text, "database": "d", "store": "k"})


def query(world: Any, name: str) -> Any:
    return queries.get_query(world.env, ANN, name)


def spec(world: Any, name: str) -> JobSpec:
    with world.env.open_unit(write=False) as unit:
        return build_spec(world.env, unit, unit.queries.find(name))


def beat(world: Any, name: str, read: int | None = None, **more: Any) -> str:
    """A word of its job; the directive."""
    found = query(world, name)
    report: dict[str, Any] = {"query_id": found.meta.id, "attempt": found.status.attempt, "state": "running"}
    report |= {"fencing_token": drivers.fencing_token(found), **more}
    if read is not None:
        row = {"relation": "d.public.a", "entity": "a", "end_offsets": {"0": read}, "lag": 0}
        report["progress"] = {"sources": [row]}
    return drivers.heartbeat(world.env, found.status.driver_id, report)["directive"]


def end(world: Any, name: str, batch: int, read: int, *, in_order: bool = True, whole: bool = True) -> None:
    """Its job obeys, and ends between two batches unless it is killed before."""
    reconcile_all(world.env)
    driver = query(world, name).status.driver_id
    assert beat(world, name, read) == "stop"
    if in_order:
        told = {"checkpoint": "g1", "batch": batch, "offsets": [{"a": {"0": read}}], "whole": whole}
        beat(world, name, state="stopped", reached=told)
    world.drivers.tokens.pop(driver)
    reconcile_all(world.env)


def caught_up(world: Any, client: TestClient) -> None:
    """The new version has read as much as the old one, and is told to stop."""
    assert sql(client, GREEN).status_code == 200
    reconcile_all(world.env)
    assert spec(world, "v__green").silent
    beat(world, "v__green", 8)
    reconcile_all(world.env)
    assert query(world, "v__green").on_hold


def replaced(world: Any, client: TestClient) -> None:
    """The new version has taken over, and its driver begins with it."""
    caught_up(world, client)
    end(world, "v__green", 4, 9)
    beat(world, "v", 9)
    reconcile_all(world.env)
    end(world, "v", 20, 12)
    for _ in range(2):
        reconcile_all(world.env)


def names(client: TestClient) -> list[str]:
    return [q["name"] for q in client.get("/v1/queries").json()["items"] if q["name"].startswith("v")]


def test_the_new_version_writes_from_where_the_old_one_has_ended(world: Any, client: TestClient) -> None:
    first = query(world, "v")
    caught_up(world, client)
    assert beat(world, "v", 7) == "continue", "the old one goes on"
    end(world, "v__green", 4, 9)
    reconcile_all(world.env)
    assert not query(world, "v").on_hold, "it has not read as much"
    conditions = {c["type"] for c in client.get("/v1/queries/v__green").json()["status"]["conditions"]}
    assert {"TakingOver", "OnHold"} <= conditions
    beat(world, "v", 10)
    reconcile_all(world.env)
    assert (query(world, "v").on_hold, query(world, "v").desired_state) == (True, "running")
    end(world, "v", 20, 12)
    reconcile_all(world.env)
    assert names(client) == ["v", "v__blue"]
    lead, kept = query(world, "v"), query(world, "v__blue")
    assert (kept.meta.id, kept.status.state, kept.on_hold) == (first.meta.id, "stopped", False)
    assert (lead.desired_state, lead.on_hold) == ("running", False)
    loud = spec(world, "v")
    assert (loud.silent, loud.hand_over) == (
        False,
        HandOver(checkpoint="g1", batch=5, offsets=[{"a": {"0": 12}}]),
    )
    assert [c["name"] for c in client.get("/v1/relations/d.public.v").json()["columns"]] == ["n", "m"]
    reconcile_all(world.env)
    assert (query(world, "v").status.state, query(world, "v").status.attempt) == ("starting", 2)
    # A checkpoint of another beginning counts its batches anew.
    assert sql(client, "RESTART QUERY v FROM EARLIEST").status_code == 200
    assert spec(world, "v").hand_over is None


def test_the_version_before_takes_over_again(world: Any, client: TestClient) -> None:
    first = query(world, "v").meta.id
    replaced(world, client)
    beat(world, "v", 14)
    assert sql(client, "ROLLBACK QUERY v").status_code == 200
    for _ in range(2):
        reconcile_all(world.env)
    assert spec(world, "v__green").silent
    beat(world, "v__green", 15)
    reconcile_all(world.env)
    end(world, "v__green", 23, 15)
    beat(world, "v", 15)
    reconcile_all(world.env)
    end(world, "v", 9, 16)
    reconcile_all(world.env)
    assert (query(world, "v").meta.id, spec(world, "v").hand_over) == (
        first,
        HandOver(checkpoint="g1", batch=24, offsets=[{"a": {"0": 16}}]),
    )
    assert [c["name"] for c in client.get("/v1/relations/d.public.v").json()["columns"]] == ["n"]


@pytest.mark.parametrize(
    ("read", "hand_over"),
    [
        pytest.param(
            None, HandOver(checkpoint="g1", batch=21, offsets=[{"a": {"0": 12}}]), id="before its first"
        ),
        pytest.param(15, HandOver(checkpoint="g1", batch=21, offsets=[{"a": {"0": 15}}]), id="later"),
    ],
)
def test_a_version_that_has_failed_is_rolled_back_at_once(
    world: Any, client: TestClient, read: int | None, hand_over: HandOver
) -> None:
    first = query(world, "v").meta.id
    replaced(world, client)
    batch, end = (4, 9) if read is None else (8, read)
    told = {"checkpoint": "g1", "batch": batch, "offsets": [{"a": {"0": end}}], "whole": False}
    error = {"code": "job-rejected", "detail": "no", "retryable": False}
    driver = query(world, "v").status.driver_id
    assert client.post("/v1/queries/v:rollback").json()["code"] == "invalid-transition", "it is starting"
    beat(world, "v", state="failed", error=error, reached=told)
    world.drivers.tokens.pop(driver)
    assert sql(client, GREEN.replace("n, m", "m")).json()["code"] == "invalid-transition"
    assert client.post("/v1/queries/v:rollback").json()["name"] == "v"
    assert (query(world, "v").meta.id, spec(world, "v").hand_over) == (first, hand_over)
    assert (spec(world, "v").silent, spec(world, "v__blue").silent) == (False, True)
    assert query(world, "v").status.state == "pending"


def test_exactly_once_is_not_rolled_back_where_nobody_knows(world: Any, client: TestClient) -> None:
    replaced(world, client)
    lead = query(world, "v")
    with world.env.open_unit() as unit:
        unit.queries.update(replace(lead, job={**lead.job, "delivery": "exactly_once"}))
        unit.commit()
    told = {"checkpoint": "g1", "batch": 8, "offsets": [{"a": {"0": 15}}], "whole": False}
    beat(world, "v", state="failed", error={"code": "x", "detail": "no", "retryable": False}, reached=told)
    assert "not known where it has ended" in client.post("/v1/queries/v:rollback").json()["detail"]
    assert names(client) == ["v", "v__blue"]


def test_a_query_that_inserts_is_replaced_as_well(world: Any, client: TestClient) -> None:
    body = {"sql": "INSERT INTO b SELECT DISTINCT n, m FROM a", "database": "d", "store": "k"}
    made = client.put("/v1/queries/vi", json=body)
    assert made.status_code == 201, made.text
    body = {"sql": f"INSERT INTO b SELECT DISTINCT n, m FROM a {FROM_START} WHERE n > 1"}
    assert client.post("/v1/queries/vi:replace", json=body).json()["name"] == "vi__green"
    assert spec(world, "vi__green").silent


@pytest.mark.parametrize("dies", ["green", "blue", "behind", "half"])
def test_what_does_not_end_in_order_goes_on_as_before(world: Any, client: TestClient, dies: str) -> None:
    caught_up(world, client)
    end(world, "v__green", 4, 9, in_order=dies != "green")
    if dies != "green":
        beat(world, "v", 9)
        reconcile_all(world.env)
        # Where it ended it had to repeat a batch, or its word came from before it fell back.
        end(world, "v", 20, 8 if dies == "behind" else 12, in_order=dies != "blue", whole=dies != "half")
    reconcile_all(world.env)
    green, blue = query(world, "v__green"), query(world, "v")
    assert (green.on_hold, blue.on_hold) == (False, False)
    assert "tries to take over again" in green.status.message
    assert spec(world, "v__green").silent
    assert (spec(world, "v").silent, spec(world, "v").hand_over) == (False, None)
    if dies != "green":
        for _ in range(2):
            reconcile_all(world.env)
        assert query(world, "v").status.state == "starting", "it writes on"
    with world.env.open_unit() as unit:
        unit.queries.update(replace(green, status=replace(green.status, next_attempt_at=None)))
        unit.commit()
    reconcile_all(world.env)
    assert query(world, "v__green").status.state == "starting"


def test_it_does_not_stand_still_for_long(world: Any, client: TestClient) -> None:
    caught_up(world, client)
    end(world, "v__green", 4, 9)
    green = query(world, "v__green")
    with world.env.open_unit() as unit:
        since = green.status.since - timedelta(seconds=40)
        unit.queries.update(replace(green, status=replace(green.status, since=since)))
        unit.commit()
    reconcile_all(world.env)
    assert not query(world, "v__green").on_hold
    assert "v did not come as far within 30 s" in query(world, "v__green").status.message
    assert beat(world, "v", 8) == "continue"


def test_a_cancelled_replacement_leaves_the_old_version_running(world: Any, client: TestClient) -> None:
    caught_up(world, client)
    end(world, "v__green", 4, 9)
    beat(world, "v", 9)
    reconcile_all(world.env)
    assert query(world, "v").on_hold
    assert client.delete("/v1/queries/v__green").status_code in (202, 204)
    end(world, "v", 20, 12)
    for _ in range(3):
        reconcile_all(world.env)
    assert names(client) == ["v"]
    assert (query(world, "v").on_hold, query(world, "v").status.state) == (False, "starting")


@pytest.mark.parametrize(
    ("metrics", "why"),
    [
        ({"sources": [{"lag": 5000, "end_offsets": {"0": 7}}]}, "v has much to read before"),
        (
            {"batch_duration_ms": 9000, "sources": [{"lag": 0, "end_offsets": {"0": 7}}]},
            "a batch of v takes 9 s",
        ),
    ],
)
def test_it_waits_while_the_old_version_could_not_end_soon(
    world: Any, client: TestClient, metrics: dict[str, Any], why: str
) -> None:
    for row in metrics["sources"]:
        row |= {"relation": "d.public.a", "entity": "a"}
    assert sql(client, GREEN).status_code == 200
    reconcile_all(world.env)
    beat(world, "v", progress=metrics)
    beat(world, "v__green", 9)
    reconcile_all(world.env)
    assert not query(world, "v__green").on_hold
    assert why in query(world, "v__green").status.message


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (
            f"CREATE OR REPLACE CHANGELOG c AS SELECT m AS n, count(*) AS m FROM a GROUP BY m {BESIDE}",
            "keys that do not change any more",
        ),
        (f"CREATE OR REPLACE STREAM live AS SELECT DISTINCT n FROM a {BESIDE}", "'mode' = 'micro_batch'"),
        (GREEN.replace(" FROM a", " FROM b"), "the same topics"),
        (GREEN.replace("'earliest'", "'earliest', 'timestamp'='n'"), "the same event time"),
        (GREEN.replace("'earliest'", "'latest'"), "where the query began to read"),
    ],
)
def test_what_cannot_be_handed_over_is_refused(world: Any, client: TestClient, text: str, part: str) -> None:
    problem = sql(client, text).json()
    assert (problem["code"], part in problem["detail"]) == ("unsupported", True), problem
    assert names(client) == ["v"]


def test_a_change_that_goes_on_anyway_is_made_in_place(world: Any, client: TestClient) -> None:
    told = sql(
        client, f"CREATE OR REPLACE STREAM plain AS SELECT n, m FROM a {BESIDE[:-1]}, 'mode'='micro_batch')"
    )
    assert told.json()["results"][0]["rows"][0][:2] == ["plain", "restart-from-offsets"], told.text
    body = {"sql": GREEN, "database": "d", "store": "k"}
    assert client.put("/v1/queries/v", json=body).json()["code"] == "unsupported"
    assert client.post("/v1/queries/v:replace", json={"sql": GREEN}).json()["name"] == "v__green"


def test_a_query_that_is_stopped_has_nothing_to_hand_over(world: Any, client: TestClient) -> None:
    assert client.patch("/v1/queries/v", json={"desired_state": "stopped"}).status_code == 200
    problem = sql(client, GREEN).json()
    assert (problem["code"], "does not run" in problem["detail"]) == ("invalid-transition", True), problem


def test_a_silent_job_takes_rows_as_late_as_both_versions(world: Any, client: TestClient) -> None:
    assert sql(client, GREEN).status_code == 200
    green, blue = query(world, "v__green"), query(world, "v")

    def with_delay(found: Any, delay: int) -> Any:
        sources = [{**source, "watermark_delay_ms": delay} for source in found.job["sources"]]
        return replace(found, job={**found.job, "sources": sources})

    with world.env.open_unit() as unit:
        unit.queries.update(with_delay(green, 5_000))
        unit.queries.update(with_delay(blue, 60_000))
        unit.commit()
    assert [s.watermark_delay_ms for s in spec(world, "v__green").sources] == [60_000]
    assert [s.watermark_delay_ms for s in spec(world, "v").sources] == [60_000]

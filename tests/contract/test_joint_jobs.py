"""Applications whose queries are one job, on the real services, with drivers that exist in a table only."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from leatstream.model.objects import Query, QueryState
from leatstream.services.environment import Principal
from leatstream.services.queries import catalog as queries
from leatstream.services.queries import drivers
from leatstream.services.queries.reconciler import reconcile_all

ANN = Principal("ann", "sysadmin")
PATH = "/v1/applications/shop"
LATE = (
    "CREATE VIRTUAL STREAM virtual.public.late AS SELECT viewtime, userid FROM pageviews WHERE viewtime > 5"
)
FIRST = "CREATE STREAM one AS SELECT * FROM virtual.public.late"
SECOND = "CREATE STREAM two AS SELECT l.userid FROM virtual.public.late l WHERE l.userid = 'a'"
COUNTED = "CREATE CHANGELOG n AS SELECT userid, count(*) AS views FROM pageviews GROUP BY userid"
WITH_JOB = " WITH ('application.job' = 'one')"


def text(*statements: str, properties: str = WITH_JOB) -> str:
    return (
        "BEGIN APPLICATION shop\n  USE STORE k;\n"
        + "".join(f"  {s};\n" for s in statements)
        + f"END APPLICATION{properties}"
    )


def put(client: TestClient, *statements: str, **more: Any) -> Any:
    return client.put(PATH, json={"sql": text(*statements, **more), "database": "demo"})


def made(client: TestClient, *statements: str, **more: Any) -> dict[str, Any]:
    answer = put(client, *statements, **more)
    assert answer.status_code in (200, 201), answer.text
    found: dict[str, Any] = answer.json()
    return found


def say(client: TestClient, sql: str) -> Any:
    return client.post("/v1/statements", json={"sql": sql, "database": "demo"})


def find(world: Any, name: str) -> Query:
    return queries.get_query(world.env, ANN, name)


def beat(world: Any, name: str, state: str, **more: Any) -> str:
    query = find(world, name)
    report = {"query_id": query.meta.id, "attempt": query.status.attempt, "state": state, **more}
    report["fencing_token"] = drivers.fencing_token(query)
    return drivers.heartbeat(world.env, query.status.driver_id or "", report)["directive"]


def states(world: Any, *names: str) -> list[str]:
    return [find(world, name).status.state.value for name in names]


@pytest.fixture
def world(fresh: Any, pageviews: TestClient) -> Any:
    """Free drivers, and a stream to read."""
    fresh.drivers.tokens.update({f"d{i}": "t" for i in range(8)})
    return fresh


def test_queries_that_read_the_same_are_handed_out_as_one_job(world: Any, pageviews: TestClient) -> None:
    """The one that keeps state has a job of its own; all three are queries with states and figures."""
    body = {"sql": text(LATE, FIRST, SECOND, COUNTED), "database": "demo", "name": "shop"}
    [told] = pageviews.post("/v1/statements:validate", json=body).json()["statements"]
    shown = made(pageviews, LATE, FIRST, SECOND, COUNTED)
    assert told["plan"] == shown["plan"]
    assert [q["job"] for q in shown["plan"]["queries"]] == ["one", "one", "n"]
    reconcile_all(world.env)
    assert set(world.drivers.queries.values()) == {find(world, n).meta.id for n in ("one", "n")}
    assert states(world, "one", "two", "n") == ["starting"] * 3
    assert sorted(world.cluster.entities) == ["n", "one", "pageviews", "two"]
    driver = find(world, "one").status.driver_id
    work = drivers.poll(world.env, driver, {"state": "idle"})
    assert work is not None
    spec = work["spec"]
    assert (spec["query_name"], spec["mode"]) == ("one", "micro_batch")
    assert [m["query_name"] for m in spec["members"]] == ["two"]
    assert spec["members"][0]["sink"]["entity"] == "two"
    assert beat(world, "one", "running", progress={"input_rows_total": 7}, log=["here"]) == "continue"
    two = find(world, "two").status
    assert (two.state, two.metrics, two.log_tail) == (QueryState.RUNNING, {"input_rows_total": 7}, ("here",))
    assert two.observed_generation == 1
    rows = say(pageviews, "DESCRIBE APPLICATION shop").json()["results"][0]
    job = [c["name"] for c in rows["columns"]].index("job")
    assert {row[1]: row[job] for row in rows["rows"][1:]} == {"one": "one", "two": "one", "n": "n"}


def test_it_fails_and_comes_back_whole(world: Any, pageviews: TestClient) -> None:
    """A fault is told at each; a text that mends the one that failed starts the job again."""
    made(pageviews, LATE, FIRST, SECOND)
    reconcile_all(world.env)
    beat(world, "one", "running")
    error = {"code": "bad-value", "detail": "Query two: 1/0", "retryable": False}
    beat(world, "one", "failed", error=error)
    assert states(world, "one", "two") == ["failed"] * 2
    assert find(world, "two").status.error == error
    reconcile_all(world.env)
    assert states(world, "one", "two") == ["failed"] * 2
    after = made(pageviews, LATE, FIRST, SECOND.replace("'a'", "'b'"))
    assert [q["action"] for q in after["plan"]["queries"]] == ["keep", "change"]
    assert after["plan"]["queries"][1]["plan"]["change"]["class"] == "restart-from-offsets"
    for _ in range(2):
        reconcile_all(world.env)
    assert states(world, "one", "two") == ["starting"] * 2
    assert find(world, "one").status.attempt == 2
    # One that is lost is lost for both, and both come back.
    beat(world, "one", "running")
    world.drivers.end(find(world, "one").status.driver_id)
    reconcile_all(world.env)
    assert states(world, "one", "two") == ["lost"] * 2


def test_a_change_of_one_restarts_the_job(world: Any, pageviews: TestClient) -> None:
    """And the one that goes is gone when the job runs without it."""
    made(pageviews, LATE, FIRST, SECOND)
    reconcile_all(world.env)
    beat(world, "one", "running")
    assert beat(world, "one", "running") == "continue"
    made(pageviews, LATE, FIRST, SECOND.replace("'a'", "'b'"))
    reconcile_all(world.env)
    assert beat(world, "one", "running") == "stop"
    beat(world, "one", "stopped")
    reconcile_all(world.env)
    assert states(world, "one", "two") == ["starting"] * 2
    beat(world, "one", "running")
    reconcile_all(world.env)
    assert beat(world, "one", "running") == "continue"
    third = "CREATE STREAM three AS SELECT userid FROM pageviews WHERE viewtime > 5"
    made(pageviews, LATE, FIRST, third)
    reconcile_all(world.env)
    assert beat(world, "one", "running") == "stop", "two is still being written"
    assert find(world, "two").deleting
    assert find(world, "three").job["led_by"] is None, "it begins where its statement says"
    beat(world, "one", "stopped")
    for _ in range(2):
        reconcile_all(world.env)
    assert pageviews.get("/v1/queries/two").status_code == 404
    assert states(world, "one") == ["starting"]
    driver = find(world, "one").status.driver_id
    work = drivers.poll(world.env, driver, {"state": "idle"})
    assert work is not None
    assert work["spec"]["members"] == []


def test_it_stops_and_starts_as_a_whole(world: Any, pageviews: TestClient) -> None:
    """Nobody stops, changes, or drops one of them alone; the application stops, starts and goes."""
    made(pageviews, LATE, FIRST, SECOND)
    reconcile_all(world.env)
    beat(world, "one", "running")
    for name in ("one", "two"):
        for sql in (
            f"TERMINATE QUERY {name}",
            f"RESTART QUERY {name}",
            f"RESTART QUERY {name} FROM EARLIEST",
        ):
            refused = say(pageviews, sql).json()
            assert refused["code"] == "invalid-transition", (sql, refused)
            assert "one job with others of application shop" in refused["detail"]
        saved = say(pageviews, f"TERMINATE QUERY {name} WITH SAVEPOINT s").json()
        assert saved["code"] == "unsupported", saved
    assert say(pageviews, "TERMINATE APPLICATION shop").status_code == 200
    reconcile_all(world.env)
    assert states(world, "one", "two") == ["stopping"] * 2
    beat(world, "one", "stopped")
    world.drivers.end(find(world, "one").status.driver_id)
    reconcile_all(world.env)
    assert states(world, "one", "two") == ["stopped"] * 2
    assert say(pageviews, "RESTART APPLICATION shop").status_code == 200
    reconcile_all(world.env)
    assert states(world, "one", "two") == ["starting"] * 2
    assert pageviews.delete(PATH).status_code == 202
    reconcile_all(world.env)
    beat(world, "one", "stopped")
    world.drivers.end(find(world, "one").status.driver_id)
    for _ in range(3):
        reconcile_all(world.env)
    assert pageviews.get("/v1/queries").json()["items"] == []
    assert pageviews.get(PATH).status_code == 404


def test_what_does_not_fit_is_told_before(world: Any, pageviews: TestClient) -> None:
    """A change that would part the job, or leave it without the one that leads it."""
    made(pageviews, LATE, FIRST, SECOND)
    windowed = "CREATE STREAM two AS SELECT DISTINCT userid FROM pageviews"
    elsewhere = "CREATE STREAM two AS SELECT userid FROM pageviews WITH ('starting.position'='earliest')"
    for statements, words in (
        ((LATE, FIRST, windowed), "it keeps state now"),
        ((LATE, FIRST, elsewhere), "which read otherwise now"),
        ((LATE, SECOND), "query one leads the job that query two is part of"),
    ):
        answer = put(pageviews, *statements)
        assert answer.json()["code"] == "requires-replacement", answer.text
        assert words in answer.json()["detail"]
    answer = put(pageviews, LATE, FIRST, SECOND, properties="")
    assert answer.json()["code"] == "requires-replacement"
    assert "'application.job' of application shop cannot change" in answer.json()["detail"]
    # What all of them read may change for all of them.
    changed = LATE.replace("FROM pageviews", "FROM pageviews WITH ('value.format.error.handling'='x')")
    assert put(pageviews, changed, FIRST, SECOND).status_code == 422
    for wrong in ("'application.job' = 'two'", "'x' = 'y'"):
        refused = put(pageviews, LATE, FIRST, properties=f" WITH ({wrong})").json()
        assert refused["code"] == "invalid-property", refused
        assert refused["errors"][0]["position"]["line"] == 5


def test_without_the_property_each_has_a_job(world: Any, pageviews: TestClient) -> None:
    made(pageviews, LATE, FIRST, SECOND, properties="")
    reconcile_all(world.env)
    assert len(world.drivers.queries) == 2
    assert find(world, "two").job["mode"] == "realtime"

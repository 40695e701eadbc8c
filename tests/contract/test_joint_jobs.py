"""Applications whose queries are one job, on the real services, with drivers that exist in a table only."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from starlette.testclient import TestClient

from leatstream.engine.driver_pool import DriverPool
from leatstream.errors import EngineError
from leatstream.model.objects import Query, QueryState
from leatstream.ports import DriverRow
from leatstream.services import driver_calls as drivers
from leatstream.services.environment import Principal
from leatstream.services.queries import catalog as queries
from leatstream.services.queries.reconcile.reconciler import reconcile_all

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
        ((LATE, SECOND), "Query one leads the job that query two is part of"),
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


class NamedColumns:
    """An analyzer that gives the columns a statement names, and no others."""

    def __init__(self, analyzer: Any) -> None:
        self._analyzer = analyzer

    def analyze(self, views: Any, sql: str, timeout: float, functions: Any = ()) -> Any:
        found, head = self._analyzer.analyze(views, sql, timeout, functions), sql.split("FROM")[0]
        named = [c for c in found if f"`{c.name}`" in head]
        return sorted(named, key=lambda c: head.index(f"`{c.name}`"))


def view(name: str, columns: str) -> str:
    return f"CREATE MATERIALIZED VIEW {name} AS SELECT {columns} FROM pageviews WHERE viewtime > 5"


def stream(name: str, columns: str, more: str = "") -> str:
    return f"CREATE STREAM {name} AS SELECT {columns} FROM pageviews WHERE viewtime > 5{more}"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            (view("one", "userid"), stream("two", "userid")),
            (view("one", "userid, viewtime"), stream("two", "userid")),
        ),
        (
            (stream("one", "userid"), view("two", "userid")),
            (stream("one", "userid"), view("two", "userid, viewtime")),
        ),
    ],
    ids=["of the one that leads", "of one that is led"],
)
def test_a_view_of_another_shape_would_begin_anew_alone(
    world: Any, pageviews: TestClient, before: tuple[str, str], after: tuple[str, str]
) -> None:
    """The others' rows are read by the same checkpoint, which would go."""
    world.env.analyzer = NamedColumns(world.env.analyzer)
    made(pageviews, *before)
    reconcile_all(world.env)
    beat(world, "one", "running")
    answer = put(pageviews, *after).json()
    assert answer["code"] == "requires-replacement", answer
    assert "only some of them would start over" in answer["detail"]
    assert [find(world, name).checkpoint_generation for name in ("one", "two")] == [1, 1]
    assert beat(world, "one", "running") == "continue"


def test_what_all_read_may_change_under_them(world: Any, pageviews: TestClient) -> None:
    """With a new address of the store, or a new column, all of them are planned anew."""
    made(pageviews, LATE, FIRST, SECOND)
    reconcile_all(world.env)
    beat(world, "one", "running")
    columns = [
        {"name": n, "type": t}
        for n, t in (("viewtime", "BIGINT"), ("userid", "VARCHAR"), ("more", "VARCHAR"))
    ]
    body = {"kind": "stream", "columns": columns, "store": "k", "topic": "pageviews", "value_format": "json"}
    assert pageviews.put("/v1/relations/demo.public.pageviews", json=body).status_code == 200
    made(pageviews, LATE, FIRST, SECOND.replace("'a'", "'b'"))
    assert (
        pageviews.put("/v1/stores/k", json={"kafka": {"bootstrap_servers": "other:9092"}}).status_code == 200
    )
    made(pageviews, LATE, FIRST, SECOND.replace("'a'", "'c'"))
    sources = [find(world, name).job["sources"] for name in ("one", "two")]
    assert sources[0] == sources[1]
    assert sources[0][0]["store"]["config"]["bootstrap_servers"] == "other:9092"


def test_a_change_while_the_job_is_lost_lets_the_application_be_stopped(
    world: Any, pageviews: TestClient
) -> None:
    made(pageviews, LATE, FIRST, SECOND)
    reconcile_all(world.env)
    beat(world, "one", "running")
    world.drivers.end(find(world, "one").status.driver_id)
    reconcile_all(world.env)
    made(pageviews, LATE, FIRST, SECOND.replace("'a'", "'b'"))
    assert len(set(states(world, "one", "two"))) == 1
    assert say(pageviews, "TERMINATE APPLICATION shop").status_code == 200
    for _ in range(3):
        reconcile_all(world.env)
    assert states(world, "one", "two") == ["stopped"] * 2


def test_one_that_leads_no_other_any_more_stands_alone(world: Any, pageviews: TestClient) -> None:
    made(pageviews, LATE, FIRST, SECOND)
    reconcile_all(world.env)
    beat(world, "one", "running")
    made(pageviews, LATE, FIRST)
    reconcile_all(world.env)
    beat(world, "one", "stopped")
    for _ in range(3):
        reconcile_all(world.env)
    assert find(world, "one").job["leads"] == []
    assert say(pageviews, "TERMINATE QUERY one").status_code == 200


def test_only_who_leads_is_known_to_a_driver(world: Any, pageviews: TestClient) -> None:
    """A shared one, after a restart of the server too: else a query that is led would be run twice."""
    world.drivers.tokens["s1"] = "t"
    world.drivers.shared["s1"] = []
    shared = " QUERY WITH ('query.driver'='shared')"
    made(pageviews, stream("one", "*", shared), stream("two", "*", shared))
    reconcile_all(world.env)
    beat(world, "one", "running")
    one, two = find(world, "one"), find(world, "two")
    assert (one.status.driver_id, two.status.driver_id) == ("s1", "s1")
    with world.env.open_unit() as unit:
        row = DriverRow(
            id="s1", role="shared", token_hash="x", pid=1, started_at=0.0, created_at=world.env.clock.now()
        )
        unit.drivers.add(row)
        unit.commit()
    launcher: Any = SimpleNamespace(is_alive=lambda *_: True, end_strangers=lambda _: None)
    pool = DriverPool(
        world.env.open_unit, world.env.clock, launcher, warm=0, limit=5, server="srv", wake=lambda: None
    )
    pool.adopt()
    assert pool.shares("s1") == [one.meta.id]
    world.drivers.shared["s1"] = [one.meta.id, two.meta.id]
    running = {one.meta.id: one.status.attempt}
    assert drivers.poll(world.env, "s1", {"state": "idle", "running": running}) is None
    with pytest.raises(EngineError, match="taken over"):
        beat(world, "two", "failed", error={"code": "job-failed", "detail": "x", "retryable": False})
    assert beat(world, "one", "running") == "continue"

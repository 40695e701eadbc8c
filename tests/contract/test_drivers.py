"""``GET /v1/drivers``: what runs where, the same on every server of a catalog."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, get_args

import fakes
import pytest
from account_clients import account_client
from starlette.testclient import TestClient

from leatstream.engine.driver_notes import DriverNotes, stage_of
from leatstream.engine.pooled_driver import PooledDriver
from leatstream.model.objects import QueryState
from leatstream.ports import DriverRow
from leatstream.rest.graphql.drivers import DriverRole, DriverState
from leatstream.rest.schemas import drivers as rest_drivers

SQL = "CREATE STREAM {name}_out AS SELECT * FROM pageviews"
FIGURES = {"memory_bytes": 700 << 20, "heap_bytes": 200 << 20, "cpu_seconds_total": 12.5}


class Pool:
    """Drivers of one server, and the notes that it writes of them."""

    def __init__(self, fresh: Any) -> None:
        self.units, self.clock = fresh.units, fresh.env.clock
        place = {"launcher": "local", "host": "node1", "heap_limit_bytes": 512 << 20}
        launcher: Any = SimpleNamespace(place=lambda driver, role: place)
        self.notes = DriverNotes(fresh.units, self.clock, launcher)
        self.drivers: list[PooledDriver] = []

    def start(self, name: str, role: str = "dedicated", **more: Any) -> PooledDriver:
        row = DriverRow(
            id=name,
            role=role,
            token_hash="hash",
            pid=4711,
            started_at=0.0,
            created_at=self.clock.now(),
            server="srv_1",
            **more,
        )
        with self.units() as unit:
            unit.drivers.add(row)
            unit.commit()
        self.drivers.append(PooledDriver(row, "starting"))
        return self.drivers[-1]

    def serve(self, driver: PooledDriver) -> PooledDriver:
        driver.state, driver.warmed, driver.called = "idle", time.monotonic(), time.monotonic()
        driver.use = FIGURES
        return driver

    def note(self) -> None:
        self.notes.write(self.drivers)


@pytest.fixture
def pool(fresh: Any) -> Pool:
    return Pool(fresh)


def run_query(fresh: Any, client: TestClient, name: str, driver: str) -> None:
    body = {"sql": SQL.format(name=name), "database": "demo", "store": "k"}
    assert client.put(f"/v1/queries/{name}", json=body).status_code == 201
    with fresh.units() as unit:
        query = unit.queries.find(name)
        status = replace(query.status, state=QueryState.RUNNING, driver_id=driver, attempt=3)
        unit.queries.update(replace(query, status=status))
        unit.commit()


def listed(client: TestClient, **params: Any) -> dict[str, Any]:
    answer = client.get("/v1/drivers", params=params)
    assert answer.status_code == 200, answer.text
    return {one["id"]: one for one in answer.json()["items"]}


def test_a_driver_is_shown_from_its_start_to_its_query(fresh: Any, pageviews: TestClient, pool: Pool) -> None:
    driver = pool.start("drv_1")
    assert listed(pageviews)["drv_1"]["state"] == "starting"  # before its server has noted anything
    pool.note()
    first = listed(pageviews)["drv_1"]
    assert (first["launcher"], first["host"], first["pid"], first["pod"]) == ("local", "node1", 4711, None)
    assert (first["server"], first["role"], first["heap_limit_bytes"]) == ("srv_1", "dedicated", 512 << 20)
    assert (first["heard_at"], first["memory_bytes"], first["queries"]) == (None, None, [])

    pool.serve(driver)
    pool.note()
    idle = listed(pageviews)["drv_1"]
    assert idle["state"] == "idle"
    assert idle["since"] >= first["since"]
    assert idle["heard_at"] is not None
    assert {name: idle[name] for name in FIGURES} == FIGURES

    run_query(fresh, pageviews, "q", "drv_1")
    driver.state, driver.row = "assigned", replace(driver.row, query_id="qry_1")
    pool.note()
    busy = listed(pageviews)["drv_1"]
    assert (busy["state"], busy["selects"]) == ("running", False)
    assert busy["queries"] == [{"name": "q", "state": "running", "restarts": 2}]
    assert listed(pageviews, state="idle") == {}
    assert list(listed(pageviews, role="dedicated", state="running")) == ["drv_1"]


@pytest.mark.parametrize(
    ("driver", "stage"),
    [
        ({"state": "starting"}, "starting"),
        ({"state": "warming"}, "warming"),
        ({"state": "assigned"}, "starting"),  # it was given a query before it could take one
        ({"state": "idle", "warmed": 1.0}, "idle"),
        ({"state": "warming", "warmed": 1.0}, "warming"),  # after a query, until it asks for work
        ({"state": "assigned", "warmed": 1.0}, "running"),
        ({"state": "leaving", "warmed": 1.0}, "leaving"),
        (
            {"state": "idle", "warmed": 1.0, "queries": {"qry_1": 1.0}},
            "running",
        ),  # a shared one asks for more
    ],
)
def test_what_a_driver_does_in_a_word(driver: dict[str, Any], stage: str) -> None:
    row: Any = None
    assert stage_of(PooledDriver(row, **driver)) == stage


def test_a_server_that_starts_again_goes_on_with_what_was_noted(
    fresh: Any, pageviews: TestClient, pool: Pool
) -> None:
    pool.serve(pool.start("drv_1"))
    pool.note()
    before = listed(pageviews)["drv_1"]
    with fresh.units(write=False) as unit:
        (row,) = unit.drivers.list()
    again = Pool(fresh)
    again.drivers = [PooledDriver(row, "idle", warmed=time.monotonic())]  # not heard yet
    again.note()
    assert listed(pageviews)["drv_1"] == before


def test_figures_are_written_now_and_then_and_states_at_once(pool: Pool, pageviews: TestClient) -> None:
    driver = pool.serve(pool.start("drv_1", query_id="stm_1"))
    pool.note()
    driver.use = {**FIGURES, "memory_bytes": 1}
    pool.note()
    assert listed(pageviews)["drv_1"]["memory_bytes"] == FIGURES["memory_bytes"], (
        "a write a second is too many"
    )
    driver.state = "assigned"
    pool.note()
    now = listed(pageviews)["drv_1"]
    assert (now["state"], now["memory_bytes"], now["selects"]) == ("running", 1, True)


@pytest.mark.parametrize(("state", "limit"), [("idle", 60), ("running", 60), ("starting", 240)])
def test_a_driver_that_is_not_heard_is_silent(
    fresh: Any, pageviews: TestClient, state: str, limit: int
) -> None:
    now = fresh.env.clock.now()
    made = {"pid": 0, "started_at": 0.0, "created_at": now - timedelta(hours=1), "server": "srv_gone"}
    row = DriverRow(id="", role="shared", token_hash="hash", **made)
    with fresh.units() as unit:
        for name, heard in (("drv_heard", limit - 10), ("drv_unheard", limit + 1)):
            report = {"state": state, "heard_at": (now - timedelta(seconds=heard)).isoformat()}
            unit.drivers.add(replace(row, id=name, report=report))
        unit.commit()
    found = listed(pageviews)
    assert [one["state"] for one in found.values()] == [state, "silent"]
    assert [one["pid"] for one in found.values()] == [None, None]


def test_pages_and_the_rights_of_the_caller(fresh: Any, pageviews: TestClient, pool: Pool) -> None:
    admin = TestClient(pageviews.app, headers={"Authorization": f"Bearer {fakes.administrator(fresh)}"})
    for name in ("drv_a", "drv_b", "drv_c"):
        pool.start(name)
    run_query(fresh, pageviews, "q", "drv_b")
    page = pageviews.get("/v1/drivers", params={"page_size": 2}).json()
    assert [one["id"] for one in page["items"]] == ["drv_a", "drv_b"]
    rest = pageviews.get("/v1/drivers", params={"page_token": page["next_page_token"], "page_size": 2}).json()
    assert ([one["id"] for one in rest["items"]], rest["next_page_token"]) == (["drv_c"], None)
    monitor = {"privilege": "monitor", "on": "organization"}
    assert listed(account_client(admin, "watching", monitor, scope="read"))["drv_b"]["queries"] == [], (
        "not those that it may not see"
    )
    seeing = account_client(admin, "seeing", monitor, {"privilege": "monitor", "on": "query", "name": "q"})
    assert [q["name"] for q in listed(seeing)["drv_b"]["queries"]] == ["q"]
    assert account_client(admin, "blind").get("/v1/drivers").status_code == 403


GRAPHQL = """query($state: DriverState, $role: DriverRole, $size: Int! = 100, $token: String) {
  drivers(state: $state, role: $role, pageSize: $size, pageToken: $token) {
    items { id role state since createdAt heardAt server launcher host pid pod selects served heapLimitBytes
            heapBytes memoryBytes cpuSecondsTotal queries { name status { state restarts } } }
    nextPageToken } }"""


def asked(client: TestClient, **variables: Any) -> Any:
    """The answer of GraphQL."""
    return client.post("/graphql", json={"query": GRAPHQL, "variables": variables}).json()


def test_graphql_shows_what_rest_shows(fresh: Any, pageviews: TestClient, pool: Pool) -> None:
    for name in ("drv_a", "drv_b", "drv_c"):
        pool.serve(pool.start(name))
    run_query(fresh, pageviews, "q", "drv_b")
    pool.drivers[1].state = "assigned"
    pool.note()
    first = asked(pageviews, size=2)["data"]["drivers"]
    rest = asked(pageviews, size=2, token=first["nextPageToken"])["data"]["drivers"]
    assert rest["nextPageToken"] is None
    found = {one["id"]: one for one in first["items"] + rest["items"]}
    for name, one in listed(pageviews).items():
        snake = {key: value for key, value in one.items() if key != "queries"}
        shown = {"".join([w if not n else w.title() for n, w in enumerate(key.split("_"))]): value for key, value in snake.items()}  # fmt: skip
        times = ("since", "createdAt", "heardAt")
        for side in (shown, found[name]):
            side.update({key: side[key].replace("Z", "+00:00") for key in times})
        assert {key: found[name][key] for key in shown} == shown | {
            "role": one["role"].upper(),
            "state": one["state"].upper(),
        }
    assert found["drv_b"]["queries"] == [{"name": "q", "status": {"state": "RUNNING", "restarts": 2}}]
    running = asked(pageviews, state="RUNNING", role="DEDICATED")["data"]["drivers"]["items"]
    assert [one["id"] for one in running] == ["drv_b"]
    for shape, words in ((DriverState, rest_drivers.DriverState), (DriverRole, rest_drivers.DriverRole)):
        assert [one.value for one in shape] == list(get_args(words))


def test_graphql_asks_for_the_same_rights(fresh: Any, pageviews: TestClient, pool: Pool) -> None:
    admin = TestClient(pageviews.app, headers={"Authorization": f"Bearer {fakes.administrator(fresh)}"})
    pool.start("drv_b")
    run_query(fresh, pageviews, "q", "drv_b")
    monitor = {"privilege": "monitor", "on": "organization"}
    (seen,) = asked(account_client(admin, "watching", monitor, scope="read"))["data"]["drivers"]["items"]
    assert seen["queries"] == []
    (error,) = asked(account_client(admin, "blind"))["errors"]
    assert error["extensions"]["code"] == "permission-denied"

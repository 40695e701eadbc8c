"""A SELECT of its own, on the real services: drivers exist in a table only, and the test speaks for them."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest
from starlette.testclient import TestClient

from leatstream.errors import EngineError
from leatstream.rest import streams
from leatstream.services import driver_calls as drivers
from leatstream.services.environment import Principal
from leatstream.services.environment.selections import LET_GO_SECONDS, QUEUED_ROWS, UNREAD_SECONDS
from leatstream.services.queries.reconcile.reconciler import release_strays
from leatstream.services.selects import interactive
from leatstream.services.selects.interactive import sweep

SELECT = "SELECT * FROM demo.public.pageviews"


class Driver:
    """A driver that is idle until it is given a SELECT."""

    def __init__(self, world: Any, name: str = "d1") -> None:
        self.world, self.name, self.sequence = world, name, 0
        world.drivers.tokens[name] = f"token of {name}"

    def poll(self) -> dict[str, Any] | None:
        return drivers.poll(self.world.env, self.name, {"state": "idle", "pid": 1})

    def take(self) -> dict[str, Any]:
        work = self.poll()
        assert work is not None
        assert work["kind"] == "select"
        self.id = work["spec"]["query_id"]
        spec: dict[str, Any] = work["spec"]
        return spec

    def send(self, *rows: tuple[str, str], **more: Any) -> dict[str, Any] | None:
        self.sequence += 1
        body = {"select": self.id, "sequence": self.sequence, "rows": rows, **more}
        return interactive.take_rows(self.world.env, self.name, body)


@pytest.fixture
def driver(fresh: Any, pageviews: TestClient) -> Driver:
    return Driver(fresh)


def start(client: TestClient, sql: str = SELECT) -> dict[str, Any]:
    answer = client.post("/v1/statements", json={"sql": sql})
    assert answer.status_code == 200, answer.text
    (result,) = answer.json()["results"]
    found: dict[str, Any] = result
    return found


def lines(client: TestClient, path: str, **params: Any) -> list[dict[str, Any]]:
    answer = client.get(path, params=params)
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines() if line]


def test_rows_go_from_the_driver_to_the_one_who_asked(driver: Driver, pageviews: TestClient) -> None:
    made = start(pageviews, f"{SELECT} LIMIT 3")
    assert (made["kind"], made["status"], made["query"]) == ("select", "running", None)
    assert made["columns"] == [{"name": "viewtime", "type": "BIGINT"}, {"name": "userid", "type": "VARCHAR"}]
    spec = driver.take()
    assert made["rows"] == f"/v1/statements/{spec['query_id']}/rows"
    assert spec["sink"]["store"]["kind"] == "reader"
    assert spec["mode"] == "micro_batch"
    # Nothing of it is in the catalog.
    assert pageviews.get("/v1/queries").json()["items"] == []
    exact = '{"viewtime":12345678901234567.890,"userid":"\u00e4"}'
    assert driver.send(("+I", exact), ("+I", "{}")) == {"directive": "continue"}
    driver.sequence -= 1  # its answer was lost: what comes twice is taken once
    assert driver.send(("+I", exact), ("+I", "{}")) == {"directive": "continue"}
    driver.send(("+I", '{"n":3}'), ("+I", '{"n":4}'))
    answer = pageviews.get(made["rows"])
    assert answer.headers["content-type"] == "application/x-ndjson"
    told = [line for line in answer.text.splitlines() if line]
    assert told[0] == f'{{"op":"+I","row":{exact}}}'
    assert [json.loads(line) for line in told[1:]] == [
        {"op": "+I", "row": {}},
        {"op": "+I", "row": {"n": 3}},
        {"end": {"reason": "limit", "rows": 3}},
    ]
    # It is over: the driver hears so, is free again, and nobody can read any more.
    assert driver.send() == {"directive": "stop"}
    assert driver.poll() is None
    assert driver.world.drivers.queries == {}
    assert pageviews.get(made["rows"]).status_code == 404


def test_limits_of_a_reader(driver: Driver, pageviews: TestClient) -> None:
    rows = [("+I", '{"n":1}')] * 5

    def told(**params: Any) -> dict[str, Any]:
        made = start(pageviews)
        driver.sequence = 0
        driver.take()
        driver.send(*rows)
        found = lines(pageviews, made["rows"], **params)
        driver.poll()
        end: dict[str, Any] = found[-1]["end"]
        assert len(found) == end["rows"] + 1
        return end

    assert told(limit=2) == {"reason": "limit", "rows": 2}
    assert told(max_bytes=20) == {"reason": "bytes", "rows": 2}
    assert told(timeout="10ms") == {"reason": "idle", "rows": 5}
    assert told(max_time="10ms")["reason"] == "time"


def test_a_select_belongs_to_who_made_it_and_has_one_reader(driver: Driver, pageviews: TestClient) -> None:
    made = start(pageviews)
    driver.take()
    other = {"Authorization": f"Bearer {driver.world.reader_token}"}
    answer = pageviews.get(made["rows"], headers=other)
    assert answer.status_code == 404
    assert answer.json()["code"] == "not-found"
    env = driver.world.env
    selection = env.selections.find(driver.id)
    selection.reading = True
    assert pageviews.get(made["rows"]).json()["code"] == "invalid-transition"
    # Another driver has no say in it.
    stranger = Driver(driver.world, "d2")
    stranger.id = driver.id
    with pytest.raises(EngineError, match="Nobody waits"):
        stranger.send(("+I", "{}"))


def test_what_nobody_reads_ends(driver: Driver, pageviews: TestClient) -> None:
    env = driver.world.env
    made = start(pageviews)
    driver.take()
    sweep(env)
    assert driver.send(("+I", "{}")) == {"directive": "continue"}
    selection = env.selections.find(driver.id)
    selection.deadline = time.monotonic() - 1
    sweep(env)
    assert driver.send(("+I", "{}")) == {"directive": "stop"}
    assert pageviews.get(made["rows"]).status_code == 404
    # A driver that does not let go of it is ended after a while.
    selection.ended -= LET_GO_SECONDS + 1
    sweep(env)
    assert not driver.world.drivers.is_alive("d1")
    assert env.selections.find(driver.id) is None
    with pytest.raises(EngineError, match="Nobody waits"):
        driver.send()


def test_a_reader_that_goes_before_the_first_row_keeps_no_driver(
    driver: Driver, pageviews: TestClient
) -> None:
    env = driver.world.env
    start(pageviews)
    driver.take()
    selection = env.selections.find(driver.id)
    who = Principal(selection.owner, "sysadmin")

    async def leave() -> None:
        rows = interactive.read_rows(env, who, driver.id, interactive.Limits())
        chunks: Any = streams.respond_rows(rows, streams.NDJSON).body_iterator
        await anext(chunks)
        await chunks.aclose()

    asyncio.run(leave())
    selection.deadline -= UNREAD_SECONDS
    sweep(env)
    assert driver.send(("+I", "{}")) == {"directive": "stop"}


def test_a_slow_reader_holds_the_driver_back(driver: Driver, pageviews: TestClient) -> None:
    start(pageviews)
    driver.take()
    assert driver.send(*[("+I", "{}")] * QUEUED_ROWS) is not None
    assert driver.send(("+I", "{}")) is None
    selection = driver.world.env.selections.find(driver.id)
    assert len(selection.rows) == QUEUED_ROWS
    assert len(selection.take(1)) == QUEUED_ROWS
    driver.sequence -= 1
    assert driver.send(("+I", "{}")) == {"directive": "continue"}


def test_a_failure_comes_last(driver: Driver, pageviews: TestClient) -> None:
    made = start(pageviews)
    driver.take()
    driver.send(("+I", "{}"))
    driver.send(error={"code": "undecodable-record", "detail": "offset 7 of s", "retryable": False})
    told = lines(pageviews, made["rows"])
    assert told[0] == {"op": "+I", "row": {}}
    assert told[1]["error"]["code"] == "undecodable-record"
    assert told[1]["error"]["detail"] == "offset 7 of s"
    assert len(told) == 2

    driver.poll()
    driver.sequence = 0
    made = start(pageviews)
    driver.take()
    driver.send(("+I", '{"n":1}'))
    driver.world.drivers.tokens.pop("d1")
    sweep(driver.world.env)
    events = pageviews.get(made["rows"], headers={"Accept": "text/event-stream"}).text
    assert 'event: row\ndata: {"op":"+I","row":{"n":1}}\n\n' in events
    assert events.split("event: error\ndata: ")[1].startswith('{"error":{"code":"driver-lost"')


def test_without_a_driver_nothing_begins(fresh: Any, pageviews: TestClient) -> None:
    answer = pageviews.post("/v1/statements", json={"sql": SELECT})
    assert answer.status_code == 503
    assert answer.json()["code"] == "engine-unavailable"
    assert fresh.env.selections.lasting() == []


def test_after_a_restart_of_the_service_nothing_goes_on(driver: Driver, pageviews: TestClient) -> None:
    start(pageviews)
    driver.take()
    driver.world.env.selections = type(driver.world.env.selections)()
    with pytest.raises(EngineError, match="Nobody waits"):
        driver.send(("+I", "{}"))
    assert driver.poll() is None
    assert driver.world.drivers.queries == {}


def test_the_dry_run_of_a_select(driver: Driver, pageviews: TestClient) -> None:
    told = pageviews.post("/v1/statements:validate", json={"sql": f"{SELECT} LIMIT 1"}).json()
    assert told["valid"], told
    plan = told["statements"][0]["plan"]
    assert told["statements"][0]["kind"] == "select"
    assert [s["fqn"] for s in plan["sources"]] == ["demo.public.pageviews"]
    assert [(c["name"], c["type"]) for c in plan["columns"]] == [
        ("viewtime", "BIGINT"),
        ("userid", "VARCHAR"),
    ]
    assert plan["changelog"] is False
    (row,) = start_described(pageviews)
    assert row[0] == "select"
    assert driver.world.drivers.queries == {}
    wrong = pageviews.post(
        "/v1/statements:validate", json={"sql": "SELECT nme FROM demo.public.pageviews"}
    ).json()
    assert wrong["statements"][0]["problems"][0]["code"] == "unknown-column"


def start_described(client: TestClient) -> list[list[Any]]:
    answer = client.post("/v1/statements", json={"sql": f"DESCRIBE {SELECT}"})
    assert answer.status_code == 200, answer.text
    found: list[list[Any]] = answer.json()["results"][0]["rows"]
    return found


def test_a_driver_that_cannot_be_ended_holds_nobody_up(
    driver: Driver, fresh: Any, pageviews: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as a pod on a node that is lost."""
    start(pageviews)
    driver.take()
    tried: list[str] = []

    def end(driver_id: str, *, grace: float = 0.0) -> None:
        tried.append(driver_id)
        raise EngineError("engine-unavailable", "the pod has not ended")

    monkeypatch.setattr(fresh.drivers, "end", end)
    monkeypatch.setattr(fresh.drivers, "is_alive", lambda _: False)
    sweep(fresh.env)
    selection = fresh.env.selections.find(driver.id)
    selection.ended -= LET_GO_SECONDS + 1
    sweep(fresh.env)
    assert fresh.env.selections.find(driver.id) is None
    release_strays(fresh.env)
    assert tried == ["d1", "d1"], "it is tried again as a stray"


def test_a_select_whose_driver_could_not_be_started_is_not_kept(
    driver: Driver, fresh: Any, pageviews: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def assign(query_id: str, sharing: Any = None) -> str:
        raise EngineError("engine-unavailable", "no driver could be started: no room")

    monkeypatch.setattr(fresh.drivers, "assign", assign)
    answer = pageviews.post("/v1/statements", json={"sql": SELECT})
    assert (answer.status_code, "no room" in answer.text) == (503, True)
    assert fresh.env.selections.lasting() == []

"""What HTTP promises of queries and of the drivers that run them."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from anyio import to_thread
from starlette.testclient import TestClient

from leatstream.model.objects import QueryProgress, QueryState
from leatstream.rest import log_lines
from leatstream.services.driver_calls import fencing_token
from leatstream.services.environment import Principal
from leatstream.services.queries import removal as remove
from leatstream.storage.query_log import KEPT_PROGRESS

SQL = "CREATE STREAM views AS SELECT * FROM pageviews"
QUERY = {"sql": SQL, "database": "demo", "schema": "public", "store": "k"}


def _put_query(client: TestClient, body: Mapping[str, Any] = QUERY, status: int = 201) -> dict[str, Any]:
    answer = client.put("/v1/queries/q", json=body)
    assert answer.status_code == status, answer.text
    found: dict[str, Any] = answer.json()
    return found


# -- queries ------------------------------------------------------------------------------------------------


def _set_state(world: Any, state: QueryState, **more: Any) -> None:
    with world.units() as unit:
        query = unit.queries.find("q")
        status = replace(query.status, state=state, observed_generation=query.meta.generation, **more)
        unit.queries.update(replace(query, status=status))
        unit.commit()
    world.env.changed.notify()


def test_query_life(pageviews: TestClient, fresh: Any) -> None:
    """Created, read, patched, restarted, deleted with the stream that it made."""
    made = _put_query(pageviews)
    assert made["sql"] == SQL
    assert (made["sink"], made["sources"]) == ("demo.public.views", ["demo.public.pageviews"])
    assert made["effective"]["topic.partitions"] == {
        "value": 3,
        "origin": "left_most_source",
        "from": "demo.public.pageviews",
    }
    assert _put_query(pageviews, QUERY, 200)["generation"] == 1
    spaced = {**QUERY, "sql": f"-- why\n{SQL}  ;"}
    assert _put_query(pageviews, spaced, 200)["sql"] == spaced["sql"]
    patched = pageviews.patch(
        "/v1/queries/q",
        content=b'{"desired_state": "stopped"}',
        headers={"Content-Type": "application/merge-patch+json"},
    )
    assert patched.json()["desired_state"] == "stopped"
    assert patched.json()["sql"] == spaced["sql"]
    assert pageviews.post("/v1/queries/q:restart").status_code == 202
    assert pageviews.get("/v1/queries/q/logs").json() == {"lines": []}
    assert pageviews.delete("/v1/relations/demo.public.views").json()["code"] == "has-dependents"
    assert pageviews.delete("/v1/queries/q").status_code == 204
    assert pageviews.get("/v1/relations/demo.public.views").status_code == 404


def test_a_patch_cannot_take_the_sql_away(pageviews: TestClient) -> None:
    """null resets what has a default; sql has none."""
    _put_query(pageviews)
    answer = pageviews.patch("/v1/queries/q", json={"sql": None})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "#/sql")


def test_sql_faults_have_a_position_and_a_pointer(pageviews: TestClient) -> None:
    """Editors underline it, Terraform shows it at the attribute."""
    answer = pageviews.put(
        "/v1/queries/q", json={**QUERY, "sql": "CREATE STREAM v AS\nSELECT * FROM pageview"}
    )
    fault = answer.json()["errors"][0]
    assert answer.json()["code"] == "unknown-relation"
    assert (fault["pointer"], fault["position"]["line"]) == ("#/sql", 2)


def test_waiting_for_a_state(pageviews: TestClient, fresh: Any) -> None:
    """The answer comes with the change, or with the end of the time."""
    _put_query(pageviews)
    late = pageviews.get("/v1/queries/q", params={"wait_for": "running,failed", "timeout": "50ms"})
    assert late.json()["status"]["state"] == "pending"
    timer = threading.Timer(0.3, _set_state, (fresh, QueryState.RUNNING))
    timer.start()
    found = pageviews.get("/v1/queries/q", params={"wait_for": "running,failed", "timeout": "30s"})
    timer.join()
    assert found.json()["status"]["state"] == "running"
    refused = pageviews.get("/v1/queries/q", params={"wait_for": "walking"})
    assert refused.status_code == 422


def test_the_job_of_the_version_before_does_not_count(pageviews: TestClient, fresh: Any) -> None:
    """Running an older generation is not running."""
    _put_query(pageviews)
    _set_state(fresh, QueryState.RUNNING, driver_id="d")
    changed = {**QUERY, "sql": f"{SQL} WHERE viewtime > 1"}
    _put_query(pageviews, changed, 200)
    answer = pageviews.get("/v1/queries/q", params={"wait_for": "running", "timeout": "50ms"}).json()
    assert answer["status"]["observed_generation"] < answer["generation"]


def test_metrics_come_and_go_with_queries(pageviews: TestClient, fresh: Any) -> None:
    """State, rows and lag by query; requests by route, never by name."""
    _put_query(pageviews)
    source = {"relation": "demo.public.pageviews", "lag": 2, "partition_lags": {"0": 2, "1": 0}}
    # Read twice, as by a join with itself: one figure, for Prometheus takes one only.
    ahead = source | {"partition_lags": {"0": 1, "1": 0}}
    progress = {
        "input_rows_total": 5,
        "sources": [source, ahead],
        "batch_duration_ms": 1500,
        "memory_bytes": 7,
    }
    progress |= {"cpu_seconds_total": 1.25, "watermark": "2020-01-01T00:00:00.000Z"}
    progress |= {"input_bytes_total": 640, "output_bytes_total": None}
    _set_state(fresh, QueryState.RUNNING, metrics=progress)
    text = pageviews.get("/metrics").text
    assert 'leatstream_query_state{query="q",state="running"} 1.0' in text
    assert 'leatstream_query_input_rows_total{query="q"} 5.0' in text
    assert 'leatstream_query_input_bytes_total{query="q"} 640.0' in text
    assert "leatstream_query_output_bytes_total{" not in text, "nobody has counted them"
    lag = 'leatstream_query_source_lag_records{partition="%s",query="q",source="demo.public.pageviews"} %s'
    assert lag % (0, 2.0) in text
    assert lag % (1, 0.0) in text
    assert text.count("leatstream_query_source_lag_records{") == 2
    for name, value in [("batch_duration_seconds", 1.5), ("memory_bytes", 7.0), ("cpu_seconds_total", 1.25)]:
        assert f'leatstream_query_{name}{{query="q"}} {value}' in text
    assert 'leatstream_query_event_time_lag_seconds{query="q"}' in text
    assert "leatstream_reconcile_seconds_count" in text
    # Of a job that has ended the state is left, and no figures.
    _set_state(fresh, QueryState.STOPPED, metrics=progress)
    stopped = pageviews.get("/metrics").text
    assert 'leatstream_query_state{query="q",state="stopped"} 1.0' in stopped
    assert "leatstream_query_input_rows_total{" not in stopped
    assert 'route="/v1/queries/{query}"' in text
    pageviews.delete("/v1/queries/q")
    assert 'query="q"' not in pageviews.get("/metrics").text


def test_progress_is_kept_every_fifteen_seconds(pageviews: TestClient, fresh: Any) -> None:
    """A moment that is too near the last one is left out, and so is a job that has told nothing."""
    query_id = _put_query(pageviews)["id"]
    fresh.drivers.tokens["d1"], fresh.drivers.queries["d1"] = "t1", query_id
    clock = SimpleNamespace(at=fresh.env.clock.now())
    clock.now = lambda: clock.at
    fresh.env.clock = clock
    _set_state(fresh, QueryState.RUNNING, driver_id="d1", attempt=1)
    with fresh.units(write=False) as unit:
        token = fencing_token(unit.queries.find("q"))
    beat = {"query_id": query_id, "attempt": 1, "fencing_token": token, "state": "running"}
    start = clock.at
    for seconds, rows in ((0, None), (1, 10), (2, 20), (15, 30), (16, 40), (31, 50)):
        clock.at = start + timedelta(seconds=seconds)
        told = {} if rows is None else {"progress": {"input_rows_total": rows}}
        headers = {"Authorization": "Bearer t1"}
        answer = pageviews.post("/v1/drivers/d1/heartbeat", json=beat | told, headers=headers)
        assert answer.status_code == 200, answer.text
    items = pageviews.get("/v1/queries/q/progress").json()["items"]
    assert [item["metrics"]["input_rows_total"] for item in items] == [10, 40, 50], "oldest first"
    assert {item["attempt"] for item in items} == {1}
    newest = pageviews.get("/v1/queries/q/progress", params={"limit": 1}).json()["items"]
    assert newest == items[-1:]
    assert pageviews.get("/v1/queries/other/progress").status_code == 404
    assert pageviews.get("/v1/queries/q/progress", params={"limit": 0}).status_code == 422


def test_progress_is_kept_for_an_hour_and_in_steps_for_a_day(pageviews: TestClient, fresh: Any) -> None:
    query_id, start = _put_query(pageviews)["id"], fresh.env.clock.now()
    with fresh.units() as unit:
        for n in range(KEPT_PROGRESS + 3):
            at = start + timedelta(seconds=15 * n)
            unit.query_log.add_progress(query_id, QueryProgress(at=at, attempt=1, metrics={"n": n}))
        unit.commit()

    def asked(**params: Any) -> list[int]:
        items = pageviews.get("/v1/queries/q/progress", params=params).json()["items"]
        return [item["metrics"]["n"] for item in items]

    assert asked(limit=600) == [0, *range(3, KEPT_PROGRESS + 3)], "the first of five minutes, then each"
    since = (start + timedelta(seconds=15 * KEPT_PROGRESS)).isoformat()
    assert asked(limit=600, since=since) == [KEPT_PROGRESS + 1, KEPT_PROGRESS + 2]
    assert asked(limit=1, since=since.removesuffix("+00:00")) == [KEPT_PROGRESS + 2], "it is UTC"
    for wrong in ("lately", "1767225600", "0.5"):
        assert pageviews.get("/v1/queries/q/progress", params={"since": wrong}).status_code == 422
    assert len(pageviews.get("/v1/queries/q/events").json()["items"]) == 1, "events have a ring of their own"


def test_log_lines_are_followed_until_the_query_is_gone(
    pageviews: TestClient, fresh: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is there comes first; then each line once; the stream ends with the query."""
    _put_query(pageviews)
    _set_state(fresh, QueryState.RUNNING, log_tail=("one",))
    admin = Principal("admin", "sysadmin")
    steps = [
        lambda: None,
        lambda: _set_state(fresh, QueryState.RUNNING, log_tail=("one", "two\ndata: x")),
        lambda: remove.delete_query(fresh.env, admin, "q"),
    ]

    async def next_step(_seconds: float) -> None:
        await to_thread.run_sync(steps.pop(0))

    monkeypatch.setattr(log_lines, "anyio", SimpleNamespace(sleep=next_step))
    answer = pageviews.get("/v1/queries/q/logs:follow")
    assert (answer.status_code, answer.headers["content-type"].split(";")[0]) == (200, "text/event-stream")
    events = [e.split("\n") for e in answer.text.strip().split("\n\n") if not e.startswith(":")]
    assert [e[0] for e in events] == ["event: log", "event: live", "event: log", "event: end"]
    lines = [json.loads(e[1].removeprefix("data: ")) for e in events]
    assert lines == [{"line": "one"}, {}, {"line": "two\ndata: x"}, {}]
    gone = pageviews.get("/v1/queries/q/logs:follow")
    assert (gone.status_code, gone.json()["code"]) == (404, "not-found")


# -- drivers ------------------------------------------------------------------------------------------------


def test_drivers_have_tokens_of_their_own(client: TestClient, fresh: Any) -> None:
    """Neither an unknown driver nor the administrator's token passes."""
    fresh.drivers.tokens["d1"] = "t1"
    for driver, token in [("d1", "wrong"), ("d2", "t1"), ("d1", fresh.token)]:
        answer = client.post(
            f"/v1/drivers/{driver}/poll", json={}, headers={"Authorization": f"Bearer {token}"}
        )
        assert answer.status_code == 401


def test_a_driver_is_given_work_when_there_is_some(pageviews: TestClient, fresh: Any) -> None:
    """The long poll ends with the assignment; a warming driver does not wait."""
    headers = {"Authorization": "Bearer t1"}
    fresh.drivers.tokens["d1"] = "t1"
    warming = {"pid": 1, "role": "dedicated", "state": "warming"}
    assert pageviews.post("/v1/drivers/d1/poll", json=warming, headers=headers).json() == {"work": None}
    _put_query(pageviews)
    with fresh.units(write=False) as unit:
        query = unit.queries.find("q")

    def assign() -> None:
        fresh.drivers.queries["d1"] = query.meta.id
        _set_state(fresh, QueryState.STARTING, driver_id="d1", attempt=1)

    timer = threading.Timer(0.3, assign)
    timer.start()
    idle = {**warming, "state": "idle"}
    work = pageviews.post("/v1/drivers/d1/poll", json=idle, headers=headers).json()["work"]
    timer.join()
    assert (work["kind"], work["spec"]["query_name"], work["spec"]["attempt"]) == ("run", "q", 1)
    beat = {
        "query_id": query.meta.id,
        "attempt": 1,
        "fencing_token": work["spec"]["fencing_token"],
        "state": "running",
        "log": ["started"],
    }
    answer = pageviews.post("/v1/drivers/d1/heartbeat", json=beat, headers=headers)
    assert answer.json() == {"directive": "continue", "query_name": "q", "orphan_seconds": 120.0}
    assert pageviews.get("/v1/queries/q").json()["status"]["state"] == "running"
    assert pageviews.get("/v1/queries/q/logs").json() == {"lines": ["started"]}
    fenced = pageviews.post("/v1/drivers/d1/heartbeat", json={**beat, "attempt": 2}, headers=headers)
    assert (fenced.status_code, fenced.json()["code"]) == (409, "fenced")
    refused = pageviews.post("/v1/drivers/d1/secrets", json={"references": ["x"]}, headers=headers)
    assert refused.status_code == 403
    assert pageviews.delete("/v1/queries/q").status_code == 202

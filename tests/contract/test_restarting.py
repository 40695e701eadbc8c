"""RESTART QUERY … FROM by SQL and REST: a new checkpoint, what is lost and repeated, and the way out of a failure."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from starlette.testclient import TestClient

from leatstream.connectors.entities import Entity
from leatstream.services import driver_calls as drivers
from leatstream.services.environment import Principal
from leatstream.services.queries import catalog as queries
from leatstream.services.queries.reconcile.reconciler import reconcile_all

ANN = Principal("ann", "sysadmin")
SET_UP = """CREATE STORE k WITH ('type'=KAFKA, 'uris'='b:1', 'tls.disabled'=TRUE); CREATE DATABASE d; USE DATABASE d;
CREATE STREAM a (n BIGINT) WITH ('topic'='a', 'store'='k', 'value.format'='json');
CREATE STREAM b AS SELECT * FROM a QUERY WITH ('query.name'='q')"""


@pytest.fixture
def running(fresh: Any, client: TestClient) -> Any:
    """A query that runs on the first of four drivers."""
    fresh.cluster.entities["a"] = Entity("a", {"topic.partitions": 2, "topic.replicas": 1})
    fresh.drivers.tokens.update({f"d{n}": "t" for n in range(1, 5)})
    answer = client.post("/v1/statements", json={"sql": SET_UP, "store": "k"})
    assert answer.status_code == 200, answer.text
    reconcile_all(fresh.env)
    beat(fresh, "running")
    return fresh


def query(world: Any) -> Any:
    return queries.get_query(world.env, ANN, "q")


def beat(world: Any, state: str, **more: Any) -> str:
    found = query(world)
    report = {"query_id": found.meta.id, "attempt": found.status.attempt, "state": state, **more}
    report["fencing_token"] = drivers.fencing_token(found)
    return drivers.heartbeat(world.env, found.status.driver_id, report)["directive"]


def spec(world: Any) -> Any:
    with world.env.open_unit(write=False) as unit:
        return drivers.build_spec(world.env, unit, query(world))


def started_again(world: Any) -> Any:
    """The old job obeys and ends; the JobSpec of the next attempt."""
    reconcile_all(world.env)
    assert beat(world, "running") == "stop"
    gone = query(world).status.driver_id
    beat(world, "stopped")
    world.drivers.tokens.pop(gone)
    reconcile_all(world.env)
    assert query(world).status.state == "starting"
    return spec(world)


def sql(client: TestClient, text: str) -> Any:
    return client.post("/v1/statements", json={"sql": text, "database": "d", "store": "k"})


def test_a_restart_from_a_place_begins_a_new_checkpoint(running: Any, client: TestClient) -> None:
    before = spec(running)
    answer = sql(client, "RESTART QUERY q FROM EARLIEST").json()["results"][0]
    assert [c["name"] for c in answer["columns"]] == ["query", "start", "lost", "repeated", "state"]
    assert answer["rows"][0][:3] == ["q", "from earliest", "no record that the sources still have is lost"]
    assert "written to d.public.b once more" in answer["rows"][0][3]
    after = started_again(running)
    assert (before.checkpoint[-2:], after.checkpoint[-2:]) == ("g1", "g2")
    assert (before.sources[0].starting_position, after.sources[0].starting_position) == ("latest", "earliest")
    reasons = [e["reason"] for e in client.get("/v1/queries/q/events").json()["items"]]
    assert any("from earliest: no record" in (r or "") for r in reasons)
    # A fault, and a restart from the checkpoint, go on with the new one.
    beat(running, "failed", error={"code": "job-failed", "detail": "x", "retryable": True})
    assert client.post("/v1/queries/q:restart").status_code == 202
    assert spec(running).checkpoint == after.checkpoint
    assert query(running).meta.generation == 1


def test_other_places_by_rest(running: Any, client: TestClient) -> None:
    body: dict[str, Any] = {"from": "timestamp", "timestamp": "2026-01-31T12:00:00+01:00"}
    answer = client.post("/v1/queries/q:restart", json=body)
    assert answer.status_code == 202, answer.text
    assert (
        "from timestamp 2026-01-31T11:00:00.000Z: records from before it"
        in answer.json()["status"]["message"]
    )
    source = started_again(running).sources[0]
    assert (source.starting_position, source.starting_timestamp_ms) == ("timestamp", 1_769_857_200_000)
    beat(running, "running")
    body = {"from": "offsets", "offsets": {"public.a": {"0": 7, "1": 0}}}
    assert client.post("/v1/queries/q:restart", json=body).status_code == 202
    again = started_again(running)
    assert (again.sources[0].starting_offsets, again.checkpoint[-2:]) == ({"0": 7, "1": 0}, "g3")


def test_what_cannot_be_is_told_with_its_place(running: Any, client: TestClient) -> None:
    for text, part in [
        ("FROM OFFSETS '{\"a\": 3}'", "OFFSETS are JSON"),
        ('FROM OFFSETS \'{"x": {"0": 3}}\'', "sources d.public.a"),
        ('FROM OFFSETS \'{"a": {"0": -3}}\'', "offset from 0"),
        ("FROM OFFSETS '{}'", "missing for d.public.a"),
        ("FROM TIMESTAMP 'yesterday'", "a time such as"),
    ]:
        for verb in ("RESTART", "DESCRIBE RESTART"):
            problem = sql(client, f"{verb} QUERY q {text}")
            assert problem.status_code == 422, problem.text
            assert part in problem.json()["detail"]
            assert problem.json()["errors"][0]["position"]["column"] == len(f"{verb} QUERY q FROM ") + 1
    assert client.post("/v1/queries/q:restart", json={"from": "latest", "timestamp": "1"}).status_code == 422
    assert client.post("/v1/queries/q:restart", json={"from": "start"}).status_code == 422
    assert sql(client, "RESTART QUERY nobody FROM LATEST").status_code == 404
    assert query(running).checkpoint_generation == 1


def test_describe_tells_it_beforehand(running: Any, client: TestClient) -> None:
    plan = sql(client, "DESCRIBE RESTART QUERY q FROM LATEST").json()["results"][0]["rows"][0][1]
    assert "records that were not read until now are lost" in str(plan)
    assert "no record is read twice" in str(plan)
    assert (query(running).checkpoint_generation, query(running).status.message) == (1, None)


def test_a_failure_that_needs_it_names_it(running: Any, client: TestClient) -> None:
    error = {"code": "source-gone", "detail": "Topic a was made anew.", "retryable": False}
    beat(running, "failed", error=error)
    status = client.get("/v1/queries/q").json()["status"]
    assert (status["state"], status["restarts"]) == ("failed", 0)
    assert "RESTART QUERY q FROM EARLIEST" in status["error"]["hint"]
    told = dict(sql(client, "DESCRIBE QUERY STATE q").json()["results"][0]["rows"])
    assert "RESTART QUERY q FROM EARLIEST" in told["hint"]
    assert client.post("/v1/queries/q:restart", json={"from": "latest"}).json()["status"]["error"] is None


def test_state_that_cannot_be_loaded_names_a_way_out_only_when_restarts_are_used_up(
    running: Any, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running.env, "settings", replace(running.env.settings, max_restarts=0))
    error = {"code": "job-failed", "condition": "state-unreadable", "detail": "x", "retryable": True}
    beat(running, "failed", error=error)
    status = client.get("/v1/queries/q").json()["status"]
    assert (status["state"], status["error"]["code"]) == ("failed", "checkpoint-damaged")
    assert "RESTART QUERY q FROM EARLIEST" in status["error"]["hint"]


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        (
            {"condition": "SINK_ENTITY_GONE"},
            "Create the topic again (CREATE ENTITY b IN STORE k WITH ('topic.partitions' = 2, 'topic.replicas' = 1)), "
            "then RESTART QUERY q (leat query start q): the query continues",
        ),
        ({"condition": "store-auth-failed"}, "leat query restart --failed-by store-auth-failed"),
        ({"condition": "DIVIDE_BY_ZERO", "expression": "1 / n"}, "(TRY_CAST, CASE): CREATE OR REPLACE"),
        ({"condition": "RECORD_TOO_LARGE"}, "then RESTART QUERY q (leat query start q)"),
    ],
)
def test_a_job_that_no_restart_cures_says_what_to_do(
    running: Any, client: TestClient, error: dict[str, str], hint: str
) -> None:
    beat(running, "failed", error={"code": "job-failed", "detail": "x", "retryable": False, **error})
    status = client.get("/v1/queries/q").json()["status"]
    assert status["state"] == "failed"
    assert hint in status["error"]["hint"]


def test_a_full_disk_says_what_to_do_and_is_waited_for(running: Any, client: TestClient) -> None:
    error = {"code": "disk-full", "detail": "There is no room left.", "retryable": True}
    beat(running, "failed", error=error)
    status = client.get("/v1/queries/q").json()["status"]
    assert (status["state"], status["error"]["code"]) == ("pending", "disk-full")
    assert status["message"].startswith("There is no room left. Try 2 in ")
    assert status["error"]["hint"].endswith("it starts again by itself.")


def test_every_start_of_a_job_counts_for_good(running: Any, client: TestClient) -> None:
    worked = {"batch_id": 7, "input_rows_total": 10}
    for _ in range(2):
        beat(running, "running", progress=worked)
        beat(running, "failed", error={"code": "job-failed", "detail": "x", "retryable": True})
        with running.env.open_unit() as unit:
            found = unit.queries.find("q")
            unit.queries.update(replace(found, status=replace(found.status, next_attempt_at=None)))
            unit.commit()
        reconcile_all(running.env)
    beat(running, "running", progress=worked)
    assert (query(running).status.restarts, query(running).status.error) == (0, None)
    assert client.get("/v1/queries/q").json()["status"]["restarts"] == 2
    assert dict(sql(client, "DESCRIBE QUERY STATE q").json()["results"][0]["rows"])["restarts"] == "2"
    assert 'leatstream_query_restarts_total{query="q"} 2.0' in client.get("/metrics").text


def test_a_changed_statement_begins_where_it_says(running: Any, client: TestClient) -> None:
    assert sql(client, "RESTART QUERY q FROM EARLIEST").status_code == 200
    started_again(running)
    running.cluster.entities["a2"] = Entity("a2", {"topic.partitions": 2, "topic.replicas": 1})
    made = sql(client, "CREATE STREAM a2 (n BIGINT) WITH ('topic'='a2', 'store'='k', 'value.format'='json')")
    assert made.status_code == 200, made.text
    answer = sql(client, "CREATE OR REPLACE STREAM b AS SELECT * FROM a2")
    assert answer.json()["results"][0]["rows"][0][1] == "new-state", answer.text
    assert (spec(running).sources[0].starting_position, spec(running).checkpoint[-2:]) == ("latest", "g3")


def test_a_query_that_completes_runs_again_over_what_is_new(running: Any, client: TestClient) -> None:
    text = "CREATE STREAM once AS SELECT * FROM a QUERY WITH ('query.name'='once', 'query.trigger'='available_now'{})"
    assert sql(client, text.format("")).status_code == 200
    reconcile_all(running.env)
    made = client.get("/v1/queries/once").json()
    assert (made["plan"]["mode"], made["status"]["state"]) == ("micro_batch", "starting")
    assert "completes" in made["plan"]["mode_reason"]
    found = queries.get_query(running.env, ANN, "once")
    assert found.job["available_now"]
    assert found.job["sources"][0]["starting_position"] == "earliest"
    driver = found.status.driver_id
    report = {"query_id": found.meta.id, "attempt": 1, "fencing_token": drivers.fencing_token(found)}
    drivers.heartbeat(running.env, driver, {**report, "state": "completed"})
    running.drivers.tokens.pop(driver)
    reconcile_all(running.env)
    status = client.get("/v1/queries/once", params={"wait_for": "running,completed"}).json()["status"]
    assert (status["state"], status["error"], status["job"]["driver_id"]) == ("completed", None, None)
    before = running.env.clock.now()
    assert sql(client, "RESTART QUERY once").status_code == 200
    reconcile_all(running.env)
    again = queries.get_query(running.env, ANN, "once")
    assert (again.status.state, again.status.attempt, again.checkpoint_generation) == ("starting", 2, 1)
    assert again.status.since >= before


@pytest.mark.parametrize(
    ("more", "part"),
    [
        ("'query.trigger'='hourly'", "one of continuous, available_now"),
        ("'query.trigger'='available_now', 'mode'='realtime'", "cannot run in real-time mode"),
    ],
)
def test_triggers_that_cannot_be(running: Any, client: TestClient, more: str, part: str) -> None:
    problem = sql(client, f"CREATE STREAM x AS SELECT * FROM a QUERY WITH ({more})").json()
    assert part in problem["detail"]
    assert problem["errors"][0]["position"] is not None


def test_a_restart_makes_a_deleted_topic_again(running: Any, client: TestClient) -> None:
    """As planned, not as the broker would with its own defaults, or never."""
    made = running.cluster.entities.pop("b")
    assert client.post("/v1/queries/q:restart").status_code == 202
    started_again(running)
    assert running.cluster.entities["b"] == made


def test_a_stopped_query_that_starts_makes_a_deleted_topic_again(running: Any, client: TestClient) -> None:
    client.patch("/v1/queries/q", json={"desired_state": "stopped"}).raise_for_status()
    reconcile_all(running.env)
    assert beat(running, "running") == "stop"
    beat(running, "stopped")
    running.drivers.tokens.pop("d1", None)
    reconcile_all(running.env)
    assert query(running).status.state == "stopped"
    made = running.cluster.entities.pop("b")
    client.patch("/v1/queries/q", json={"desired_state": "running"}).raise_for_status()
    reconcile_all(running.env)
    assert running.cluster.entities["b"] == made


def test_a_changed_query_makes_what_its_plan_says_is_made(running: Any, client: TestClient) -> None:
    del running.cluster.entities["b"]
    text = "CREATE OR REPLACE STREAM b AS SELECT * FROM a WHERE n > 1 QUERY WITH ('query.name'='q')"
    assert sql(client, text).status_code == 200
    started_again(running)
    assert running.cluster.entities["b"].properties["topic.partitions"] == 2


def test_a_deleted_topic_of_a_query_is_no_source_nor_target(running: Any, client: TestClient) -> None:
    """What the query had made it with is no longer so: nothing may be inferred from it."""
    assert sql(client, "CREATE STREAM c AS SELECT * FROM b").status_code == 200
    del running.cluster.entities["b"]
    for text in ("CREATE STREAM e AS SELECT * FROM b", "INSERT INTO b SELECT * FROM a"):
        answer = sql(client, text)
        assert answer.status_code == 404, answer.text
        assert answer.json()["code"] == "entity-not-found"


def fail_at(world: Any, record: str | None = "a:1:42", name: str = "q", **error: Any) -> None:
    found = queries.get_query(world.env, ANN, name)
    report = {"query_id": found.meta.id, "attempt": found.status.attempt, "state": "failed"}
    report["fencing_token"] = drivers.fencing_token(found)
    body = {
        "code": "undecodable-record",
        "detail": "column n is BIGINT",
        "retryable": False,
        "columns": ["n"],
    }
    if record is not None:
        topic, partition, offset = record.split(":")
        body["record"] = {"entity": topic, "partition": partition, "offset": offset}
    drivers.heartbeat(world.env, found.status.driver_id, report | {"error": body | error})


def test_the_failure_names_the_record_and_the_commands_that_cure_it(running: Any, client: TestClient) -> None:
    fail_at(running, shown='column n is BIGINT, the record has the string "x"')
    status = client.get("/v1/queries/q").json()["status"]
    error = status["error"]
    # The excerpt is for who looks at the error; the message goes into events, lists and states of tools.
    assert error["detail"].endswith('the string "x"')
    assert status["message"] == "column n is BIGINT"
    assert '"x"' not in client.get("/v1/queries/q/events").text
    assert error["record"] == {"entity": "a", "partition": "1", "offset": "42"}
    assert error["columns"] == ["n"]
    for command in (
        "RESTART QUERY q SKIP RECORD 'a:1:42'",
        "RESTART QUERIES FAILED BY 'a:1:42' SKIP RECORD",
        "leat query restart q --skip-record a:1:42",
        "leat query restart --skip-record a:1:42",
        "IGNORE_AND_LOG",
    ):
        assert command in error["hint"]


def test_a_record_is_skipped_for_good(running: Any, client: TestClient) -> None:
    """The place is in every later JobSpec: after a fault, a restart from anywhere, and a new version."""
    fail_at(running)
    assert sql(client, "RESTART QUERY q SKIP RECORD 'a:1:42'").status_code == 200
    reconcile_all(running.env)
    assert spec(running).sources[0].skip == {"1": ["42"]}
    status = client.get("/v1/queries/q").json()["status"]
    assert [one["record"] for one in status["skipped_records"]] == ["a:1:42"]
    assert spec(running).checkpoint.endswith("g1")
    fail_at(running, "a:0:7")
    answer = client.post("/v1/queries/q:restart", json={"skip_record": "a:0:7"})
    assert answer.status_code == 202, answer.text
    reconcile_all(running.env)
    assert spec(running).sources[0].skip == {"1": ["42"], "0": ["7"]}
    # Once more is no fault, and from another place the same records are left out.
    assert client.post("/v1/queries/q:restart", json={"skip_record": "a:0:7"}).status_code == 202
    assert client.post("/v1/queries/q:restart", json={"from": "earliest"}).status_code == 202
    assert spec(running).sources[0].skip == {"1": ["42"], "0": ["7"]}
    body = {"sql": "CREATE STREAM b AS SELECT n + 1 AS n FROM d.public.a", "database": "d", "store": "k"}
    assert client.put("/v1/queries/q", json=body).status_code == 200
    assert spec(running).sources[0].skip == {"1": ["42"], "0": ["7"]}


@pytest.mark.parametrize(
    ("record", "says"),
    [
        ("a:1:43", "has failed at the record a:1:42, not at a:1:43"),
        ("b:1:42", "has failed at the record a:1:42, not at b:1:42"),
        ("a:1", "A record is written topic:partition:offset"),
        ("a:1:-1", "A record is written topic:partition:offset"),
        ("", "A record is written topic:partition:offset"),
        ("a:x:42", "A record is written topic:partition:offset"),
    ],
)
def test_only_the_record_that_failed_is_skipped(
    running: Any, client: TestClient, record: str, says: str
) -> None:
    fail_at(running)
    answer = client.post("/v1/queries/q:restart", json={"skip_record": record})
    assert answer.status_code == 422, answer.text
    assert says in answer.json()["detail"]
    refused = sql(client, f"RESTART QUERY q SKIP RECORD '{record}'")
    assert says in refused.json()["detail"]
    assert refused.json()["errors"][0]["position"]["column"] == 29
    dry = client.post("/v1/statements:validate", json={"sql": f"RESTART QUERY q SKIP RECORD '{record}'"})
    assert says in dry.json()["statements"][0]["problems"][0]["detail"]
    assert query(running).skipped == ()
    assert query(running).status.state == "failed"


def test_a_query_that_has_not_failed_at_a_record_skips_none(running: Any, client: TestClient) -> None:
    answer = client.post("/v1/queries/q:restart", json={"skip_record": "a:1:42"})
    assert "has not failed at a record" in answer.json()["detail"]
    both = client.post("/v1/queries/q:restart", json={"skip_record": "a:1:42", "from": "earliest"})
    assert both.status_code == 422
    nowhere = client.post("/v1/queries/q:restart", json={"timestamp": "2026-01-31T12:00:00Z"})
    assert nowhere.status_code == 422


def test_all_queries_of_one_cause_start_again(running: Any, client: TestClient) -> None:
    for name in ("c", "e"):
        text = f"CREATE STREAM {name} AS SELECT * FROM a QUERY WITH ('query.name'='q{name}')"
        assert sql(client, text).status_code == 200
    reconcile_all(running.env)
    for name in ("q", "qc"):
        fail_at(running, name=name)
    fail_at(running, None, name="qe", code="source-gone")
    unknown = client.post("/v1/queries:restart", json={"failed_by": "a:1:1"})
    assert unknown.json() == {"queries": [], "other_causes": ["a:1:42", "source-gone"]}
    nonsense = client.post("/v1/queries:restart", json={"failed_by": "source-gone", "skip_record": True})
    assert nonsense.status_code == 422
    answer = client.post("/v1/queries:restart", json={"failed_by": "a:1:42", "skip_record": True})
    assert (answer.status_code, answer.json()["queries"]) == (202, ["q", "qc"])
    for name in ("q", "qc"):
        found = queries.get_query(running.env, ANN, name)
        assert (found.status.state, [s.place for s in found.skipped]) == ("pending", ["a:1:42"])
    result = sql(client, "RESTART QUERIES FAILED BY 'source-gone'").json()["results"][0]
    assert result["rows"] == [["qe"]]
    assert queries.get_query(running.env, ANN, "qe").skipped == ()


def test_a_topic_that_is_gone_is_to_be_made_again_before_the_restart(
    running: Any, client: TestClient
) -> None:
    fail_at(running)
    client.post("/v1/queries/q:restart", json={"skip_record": "a:1:42"})
    reconcile_all(running.env)
    fail_at(running, None, code="source-gone", condition="SOURCE_ENTITY_GONE", detail="gone")
    hint = client.get("/v1/queries/q").json()["status"]["error"]["hint"]
    assert hint.startswith("Create the topic again (CREATE ENTITY a IN STORE k WITH (")
    assert "then RESTART QUERY q FROM EARLIEST" in hint
    assert "leat query delete q" in hint
    # The offsets of the new topic are other records.
    assert client.post("/v1/queries/q:restart", json={"from": "earliest"}).status_code == 202
    assert query(running).skipped == ()


def test_a_query_that_stands_still_says_so(running: Any, client: TestClient) -> None:
    """Its figures have an age, its rates are no rates, and a condition, a message and a metric tell."""
    told = {"input_rows_total": 5, "input_rows_per_second": 10.1, "batch_id": 1}
    beat(
        running,
        "running",
        progress=told,
        pulse={"age_seconds": 1.0, "rhythm_seconds": 20.0, "waits_for": None},
    )
    status = client.get("/v1/queries/q").json()["status"]
    assert status["metrics"]["input_rows_per_second"] == 10.1
    assert status["metrics"]["age_seconds"] < 20
    condition = {c["type"]: c for c in status["conditions"]}["Progressing"]
    assert (condition["status"], status["message"]) == (True, None)

    why = "store k does not answer: no Kafka broker answered at b:1 within 3 s"
    beat(
        running,
        "running",
        progress=told,
        pulse={"age_seconds": 58.0, "rhythm_seconds": 20.0, "waits_for": why},
    )
    status = client.get("/v1/queries/q").json()["status"]
    assert status["state"] == "running"
    assert status["metrics"]["input_rows_per_second"] is None
    assert status["metrics"]["input_rows_total"] == 5
    assert status["metrics"]["age_seconds"] >= 58
    condition = {c["type"]: c for c in status["conditions"]}["Progressing"]
    assert (condition["status"], condition["message"]) == (False, why)
    # The age grows between two requests.
    still = rf"no progress for \d+ s: {re.escape(why)}"
    assert re.fullmatch(still, status["message"])
    assert re.fullmatch(still, client.get("/v1/queries").json()["items"][0]["status"]["message"])
    state = dict(sql(client, "DESCRIBE QUERY STATE q").json()["results"][0]["rows"])
    assert why in state["message"]
    scraped = client.get("/metrics").text
    line = next(
        x for x in scraped.splitlines() if x.startswith('leatstream_query_progress_age_seconds{query="q"}')
    )
    assert float(line.split()[-1]) >= 58
    assert 'leatstream_query_input_rows_per_second{query="q"}' not in scraped
    # A restart, or the next sign of life, ends it.
    beat(
        running,
        "running",
        progress=told,
        pulse={"age_seconds": 0.0, "rhythm_seconds": 20.0, "waits_for": None},
    )
    assert client.get("/v1/queries/q").json()["status"]["message"] is None


def test_a_value_that_cannot_be_computed_names_expression_and_position(
    running: Any, client: TestClient
) -> None:
    text = (
        "CREATE STREAM g AS\n SELECT n + 1 AS m,\n   100 / (n - 3) AS r FROM a QUERY WITH ('query.name'='qg')"
    )
    assert sql(client, text).status_code == 200
    reconcile_all(running.env)
    found = queries.get_query(running.env, ANN, "qg")
    run = found.job["sql"]
    start = run.index("100 / ")
    with running.env.open_unit(write=False) as unit:
        assert drivers.build_spec(running.env, unit, found).places == []
    fail_at(
        running,
        None,
        name="qg",
        code="job-failed",
        condition="DIVIDE_BY_ZERO",
        detail="a number is divided by zero (DIVIDE_BY_ZERO).",
        span=[start, run.index(" AS `r`") - 1],
    )
    error = client.get("/v1/queries/qg").json()["status"]["error"]
    assert error["expression"] == "100 / (n - 3)"
    assert (error["position"]["line"], error["position"]["column"]) == (3, 4)
    assert error["detail"].startswith("100 / (n - 3) (line 3, column 4): a number is divided by zero")
    assert "span" not in error


def test_a_query_says_what_it_waits_for_from_the_start(fresh: Any, client: TestClient) -> None:
    fresh.cluster.entities["a"] = Entity("a", {"topic.partitions": 2, "topic.replicas": 1})
    fresh.drivers.tokens.update({"d1": "t"})
    fresh.drivers.serving = lambda _: 0.0
    assert client.post("/v1/statements", json={"sql": SET_UP, "store": "k"}).status_code == 200
    reconcile_all(fresh.env)
    status = client.get("/v1/queries/q").json()["status"]
    assert (status["state"], status["message"]) == ("starting", "its driver is starting Spark")
    beat(fresh, "starting")
    assert client.get("/v1/queries/q").json()["status"]["message"] == "its driver opens the sources"
    beat(fresh, "starting", first_batch=True)
    message = client.get("/v1/queries/q").json()["status"]["message"]
    assert message == "its driver is processing the first batch of existing records"
    beat(fresh, "running")
    assert client.get("/v1/queries/q").json()["status"]["message"] is None

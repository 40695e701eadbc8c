"""Savepoints: taken of a query that stops for it, listed, deleted, and what new queries begin with."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from savepoint_world import COUNTS, beginning, checkpoint, end, folders, query, run, sql, stop_for
from savepoint_world import world as world
from starlette.testclient import TestClient

from leatstream.connectors.entities import Entity
from leatstream.services.queries.checkpoints.copies import copy_what_waits
from leatstream.services.queries.reconcile.reconciler import reconcile_all


def test_a_savepoint_is_taken_when_the_job_has_ended(world: Any, client: TestClient) -> None:
    assert sql(client, "TERMINATE QUERY q WITH SAVEPOINT before").status_code == 200
    assert client.get("/v1/savepoints/before").json()["state"] == "pending"
    refused = sql(client, "CREATE STREAM x AS SELECT * FROM a QUERY WITH ('from.savepoint'='before')")
    assert "is pending" in refused.json()["detail"]
    end(world, "q")
    found = client.get("/v1/savepoints/before").json()
    assert (found["state"], found["query"], found["batch"]) == ("ready", "q", 3)
    assert found["offsets"] == {"d.public.a": {"a": {"0": 7}}}
    assert found["sql"].startswith("CREATE STREAM b")
    assert client.post("/v1/queries/q:savepoint", json={"name": "before"}).status_code == 409
    rows = sql(client, "LIST SAVEPOINTS").json()["results"][0]["rows"]
    assert [row[:3] for row in rows] == [["before", "q", "ready"]]
    # It outlives its query, and goes with its files.
    assert client.delete("/v1/queries/q").status_code in (202, 204)
    reconcile_all(world.env)
    files = Path(world.env.settings.checkpoint_root) / "savepoints" / found["id"]
    assert (files / "state" / "s").read_text() == "rows"
    assert sql(client, "DROP SAVEPOINT before").status_code == 200
    assert not files.exists()
    assert client.get("/v1/savepoints").json()["items"] == []


def test_a_query_that_goes_on_or_away_leaves_no_half_savepoint(world: Any, client: TestClient) -> None:
    assert client.post("/v1/queries/q:savepoint", json={"name": "s1"}).status_code == 202
    client.patch("/v1/queries/q", json={"desired_state": "running"})
    copy_what_waits(world.env)
    found = client.get("/v1/savepoints/s1").json()
    assert (found["state"], found["message"]) == (
        "failed",
        "the query was started again before it was copied",
    )
    assert client.post("/v1/queries/q:savepoint", json={"name": "s2"}).status_code == 202
    assert client.delete("/v1/queries/q").status_code == 202
    copy_what_waits(world.env)
    assert client.get("/v1/savepoints/s2").json()["message"].startswith("the query was deleted")
    assert not (Path(world.env.settings.checkpoint_root) / "savepoints").exists()


def test_one_server_alone_copies(world: Any, client: TestClient) -> None:
    stop_for(world, client, "s")
    copy_what_waits(world.env, frozenset({"another"}))
    assert client.get("/v1/savepoints/s").json()["state"] == "pending"
    assert folders(world) == []
    copy_what_waits(world.env, frozenset({query(world).meta.id}))
    assert client.get("/v1/savepoints/s").json()["state"] == "ready"


@pytest.mark.parametrize(
    ("meanwhile", "told"),
    [
        (
            lambda client: client.post("/v1/queries/q:restart"),
            "the query was started again before it was copied",
        ),
        (lambda client: client.delete("/v1/queries/q"), "the query was deleted before it was copied"),
        (lambda client: client.delete("/v1/savepoints/s"), None),
    ],
)
def test_a_copy_that_was_overtaken_is_thrown_away(
    world: Any, client: TestClient, monkeypatch: pytest.MonkeyPatch, meanwhile: Any, told: str | None
) -> None:
    stop_for(world, client, "s")
    copy = world.env.checkpoints.copy

    def overtaken(*told: Any) -> None:
        copy(*told)
        assert meanwhile(client).status_code < 300

    monkeypatch.setattr(world.env.checkpoints, "copy", overtaken)
    copy_what_waits(world.env)
    found = client.get("/v1/savepoints/s")
    assert (found.json().get("message"), found.status_code) == (told, 404 if told is None else 200)
    assert found.json().get("state") != "ready"
    assert folders(world) == []


def test_a_changed_statement_takes_no_savepoint_away(world: Any, client: TestClient) -> None:
    """Its new checkpoint is empty yet, and the old one is what was asked for."""
    world.cluster.entities["a2"] = Entity("a2", {"topic.partitions": 1, "topic.replicas": 1})
    sql(client, "CREATE STREAM a2 (n BIGINT) WITH ('topic'='a2', 'store'='k', 'value.format'='json')")
    assert client.post("/v1/queries/q:savepoint", json={"name": "s"}).status_code == 202
    changed = {"sql": "CREATE STREAM b AS SELECT * FROM a2", "desired_state": "stopped"}
    assert client.patch("/v1/queries/q", json=changed).status_code == 200
    assert query(world).checkpoint_generation == 2
    world.drivers.tokens.pop(query(world).status.driver_id)
    reconcile_all(world.env)
    copy_what_waits(world.env)
    found = client.get("/v1/savepoints/s").json()
    assert (found["state"], found["batch"], "FROM a2" in found["sql"]) == ("ready", 3, False)


def test_a_full_disk_is_waited_for(world: Any, client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of half a copy stays on it meanwhile."""
    stop_for(world, client, "s")
    plain, is_full = shutil.copy2, [True]

    def copy(source: str, target: str) -> Any:
        if is_full[0]:
            raise OSError(28, "No space left on device", target)
        return plain(source, target)

    monkeypatch.setattr("leatstream.storage.checkpoint_directory.shutil.copy2", copy)
    copy_what_waits(world.env)
    found = client.get("/v1/savepoints/s").json()
    assert (found["state"], "No space left on device" in found["message"]) == ("pending", True)
    assert folders(world) == []
    is_full[0] = False
    copy_what_waits(world.env)
    assert client.get("/v1/savepoints/s").json()["state"] == "ready"


def test_a_new_query_begins_with_it_where_it_fits(world: Any, client: TestClient) -> None:
    made = sql(client, f"{COUNTS} QUERY WITH ('query.name'='counts')")
    assert made.status_code == 200, made.text
    run(world, "counts")
    assert sql(client, "TERMINATE QUERY counts WITH SAVEPOINT s").status_code == 200
    end(world, "counts")
    more = "CREATE CHANGELOG {} AS SELECT n, {} AS c FROM a GROUP BY n QUERY WITH ('query.name'='{}', 'from.savepoint'='s')"
    refused = sql(client, more.format("x", "sum(n)", "x")).json()
    assert (refused["code"], "the aggregates differ" in refused["detail"]) == ("invalid-property", True)
    assert refused["errors"][0]["position"] is not None
    assert client.get("/v1/queries/x").status_code == 404
    made = sql(client, more.format("c2", "count(*) + 0", "c2"))
    assert made.status_code == 200, made.text
    assert sql(client, "DROP SAVEPOINT s").status_code == 409
    reconcile_all(world.env)
    assert query(world, "c2").status.message == "the checkpoint of s is being copied"
    assert not checkpoint(world, "c2").exists()
    beginning(world)
    assert query(world, "c2").status.state == "starting"
    assert (checkpoint(world, "c2") / "state" / "s").read_text() == "rows"
    assert (checkpoint(world, "c2") / "offsets" / "4").exists()
    assert sql(client, "DROP SAVEPOINT s").status_code == 200
    reconcile_all(world.env)


def test_a_new_query_begins_where_another_is(world: Any, client: TestClient) -> None:
    made = sql(
        client,
        "CREATE STREAM b2 AS SELECT n + 1 AS m FROM a QUERY WITH ('query.name'='q2', 'from.query'='q')",
    )
    assert made.status_code == 200, made.text
    reconcile_all(world.env)
    beginning(world)
    place = checkpoint(world, "q2")
    # The offsets alone, of the last batch that is committed: the other goes on meanwhile.
    assert sorted(p.name for p in place.rglob("*") if p.is_file()) == ["3", "3", "metadata"]
    assert json.loads((place / "offsets" / "3").read_text().splitlines()[2]) == {"a": {"0": 7}}
    assert query(world).status.state == "running"
    sql(client, f"{COUNTS} QUERY WITH ('query.name'='counts')")
    run(world, "counts")
    stateful = COUNTS.replace("CHANGELOG c ", "CHANGELOG c2 ") + " QUERY WITH ('from.query'='counts')"
    refused = sql(client, stateful).json()
    assert (refused["code"], "WITH SAVEPOINT" in refused["errors"][0]["hint"]) == ("unsupported", True)
    end_first = client.patch("/v1/queries/counts", json={"desired_state": "stopped"})
    assert end_first.status_code == 200
    end(world, "counts")
    assert sql(client, stateful).status_code == 200


@pytest.mark.parametrize("during", [False, True])
def test_state_in_use_is_not_copied(
    world: Any, client: TestClient, monkeypatch: pytest.MonkeyPatch, during: bool
) -> None:
    sql(client, f"{COUNTS} QUERY WITH ('query.name'='counts')")
    run(world, "counts")
    client.patch("/v1/queries/counts", json={"desired_state": "stopped"})
    end(world, "counts")
    second = COUNTS.replace("CHANGELOG c ", "CHANGELOG c2 ")
    assert sql(client, f"{second} QUERY WITH ('query.name'='c2', 'from.query'='counts')").status_code == 200

    def go_on() -> None:
        assert client.post("/v1/queries/counts:restart").status_code < 300

    copy = world.env.checkpoints.copy

    def overtaken(*told: Any) -> None:
        copy(*told)
        go_on()

    if during:
        monkeypatch.setattr(world.env.checkpoints, "copy", overtaken)
    else:
        go_on()
    reconcile_all(world.env)
    copy_what_waits(world.env)
    found = query(world, "c2").status
    assert (found.state, found.error["code"]) == ("failed", "invalid-transition")
    assert "counts keeps state" in found.error["detail"]
    assert found.error["hint"].startswith("Stop counts")
    assert not checkpoint(world, "c2").exists()


def test_a_query_that_goes_while_its_checkpoint_is_copied_leaves_nothing(
    world: Any, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql(client, "CREATE STREAM b2 AS SELECT n FROM a QUERY WITH ('query.name'='q2', 'from.query'='q')")
    reconcile_all(world.env)
    place, copy = checkpoint(world, "q2"), world.env.checkpoints.copy

    def overtaken(*told: Any) -> None:
        assert client.delete("/v1/queries/q2").status_code in (202, 204)
        reconcile_all(world.env)
        copy(*told)

    monkeypatch.setattr(world.env.checkpoints, "copy", overtaken)
    copy_what_waits(world.env)
    assert client.get("/v1/queries/q2").status_code == 404
    assert not place.parent.exists()


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("SELECT * FROM a QUERY WITH ('from.savepoint'='nobody')", "Savepoint nobody does not exist."),
        ("SELECT * FROM a QUERY WITH ('from.query'='nobody')", "Query nobody does not exist."),
        ("SELECT * FROM a QUERY WITH ('from.query'='q', 'from.savepoint'='s')", "Either"),
        ("SELECT n, n AS m FROM b QUERY WITH ('from.query'='q')", "the sources differ"),
    ],
)
def test_what_does_not_fit_is_refused(world: Any, client: TestClient, text: str, part: str) -> None:
    created = f"CREATE STREAM x AS {text}"
    body = {"sql": created, "database": "d", "schema": "public", "store": "k"}
    planned = client.post("/v1/statements:validate", json=body).json()
    (told,) = planned["statements"][0]["problems"]
    assert part in told["detail"]
    assert created[told["position"]["offset"] :].startswith(("'", '"nobody')), told
    problem = sql(client, created).json()
    assert part in problem["detail"], problem
    assert sql(client, "LIST STREAMS").json()["results"][0]["rows"][-1][0] == "d.public.b"


def test_a_plan_counts_what_statements_before_leave(world: Any, client: TestClient) -> None:
    text = """TERMINATE QUERY q WITH SAVEPOINT later;
        CREATE STREAM x AS SELECT * FROM a QUERY WITH ('query.name' = 'x', 'from.savepoint' = 'later');
        CREATE STREAM y AS SELECT * FROM a QUERY WITH ('from.query' = 'x')"""
    body = {"sql": text, "database": "d", "schema": "public", "store": "k"}
    planned = client.post("/v1/statements:validate", json=body).json()
    assert [s["problems"] for s in planned["statements"]] == [[], [], []]

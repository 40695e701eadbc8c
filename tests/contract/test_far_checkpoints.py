"""Checkpoints on a file system that is away for a while: what waits for it says so, and is done when it is back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from savepoint_world import COUNTS, checkpoint, end, folders, query, run, sql, stop_for
from savepoint_world import world as world
from starlette.testclient import TestClient

from leatstream.errors import CheckpointError
from leatstream.services.queries.checkpoints.copies import copy_what_waits
from leatstream.services.queries.checkpoints.sweep import sweep_checkpoints
from leatstream.services.queries.reconcile.reconciler import reconcile_all

WHY = "The checkpoints cannot be reached: ConnectException: Call From here to there failed"


class FarFiles:
    """A directory that may be away, or say no."""

    def __init__(self, files: Any) -> None:
        self._files = files
        self.fault: str | None = None
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Any:
        self.asked.append(name)
        if self.fault is not None:
            raise CheckpointError(self.fault, WHY)
        return getattr(self._files, name)


@pytest.fixture
def far(world: Any) -> FarFiles:
    world.env.checkpoints = FarFiles(world.env.checkpoints)
    return world.env.checkpoints


def test_a_query_goes_when_its_checkpoint_can(world: Any, far: FarFiles, client: TestClient) -> None:
    client.patch("/v1/queries/q", json={"desired_state": "stopped"})
    end(world, "q")
    place = checkpoint(world)
    far.fault = "checkpoints-unreachable"
    assert client.delete("/v1/queries/q").status_code == 202
    reconcile_all(world.env)
    assert query(world).status.message == f"what it leaves cannot be dropped yet: {WHY}"
    assert place.exists()
    far.fault = None
    world.env.settings = replace(world.env.settings, backoff_maximum=0.0)
    reconcile_all(world.env)
    assert client.get("/v1/queries/q").status_code == 404
    assert not place.parent.exists()


def test_a_savepoint_waits_to_be_copied(world: Any, far: FarFiles, client: TestClient) -> None:
    stop_for(world, client, "s")
    far.fault = "checkpoints-unreachable"
    copy_what_waits(world.env)
    found = client.get("/v1/savepoints/s").json()
    assert (found["state"], found["message"]) == ("pending", f"it waits: {WHY}")
    told = world.env.changed.value
    copy_what_waits(world.env)
    assert world.env.changed.value == told, "who waits is not woken, nor is the catalog written, for no news"
    far.fault = None
    copy_what_waits(world.env)
    assert client.get("/v1/savepoints/s").json()["state"] == "ready"


def test_a_savepoint_that_is_refused_has_failed(world: Any, far: FarFiles, client: TestClient) -> None:
    stop_for(world, client, "s")
    far.fault = "checkpoints-refused"
    copy_what_waits(world.env)
    found = client.get("/v1/savepoints/s").json()
    assert (found["state"], found["message"]) == ("failed", f"the checkpoint could not be copied: {WHY}")


def test_a_savepoint_goes_when_its_files_can(world: Any, far: FarFiles, client: TestClient) -> None:
    stop_for(world, client, "s")
    copy_what_waits(world.env)
    far.fault = "checkpoints-unreachable"
    problem = client.delete("/v1/savepoints/s")
    assert (problem.status_code, problem.json()["code"]) == (503, "checkpoints-unreachable")
    assert client.get("/v1/savepoints/s").json()["state"] == "deleting"
    refused = sql(client, "CREATE STREAM x AS SELECT * FROM a QUERY WITH ('from.savepoint'='s')").json()
    assert refused["detail"] == "savepoint s is deleting: its files are being removed"
    copy_what_waits(world.env)
    assert len(folders(world)) == 1
    far.fault = None
    copy_what_waits(world.env)
    assert client.get("/v1/savepoints/s").status_code == 404
    assert folders(world) == []


def test_a_savepoint_that_is_deleted_while_it_is_copied_stays_so(
    world: Any, far: FarFiles, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files cannot be removed just then: the copier must not call it ready."""
    stop_for(world, client, "s")
    copy = far.copy

    def overtaken(*told: Any) -> None:
        copy(*told)
        far.fault = "checkpoints-unreachable"
        assert client.delete("/v1/savepoints/s").status_code == 503
        far.fault = None

    monkeypatch.setattr(far, "copy", overtaken, raising=False)
    copy_what_waits(world.env)
    assert client.get("/v1/savepoints/s").json()["state"] == "deleting"
    copy_what_waits(world.env)
    assert (client.get("/v1/savepoints/s").status_code, folders(world)) == (404, [])


def test_a_new_query_waits_for_what_it_begins_with(world: Any, far: FarFiles, client: TestClient) -> None:
    begins = "CREATE STREAM b2 AS SELECT n FROM a QUERY WITH ('query.name'='q2', 'from.query'='q')"
    far.fault = "checkpoints-unreachable"
    problem = sql(client, begins).json()
    assert (problem["code"], problem["detail"]) == ("checkpoints-unreachable", WHY)
    far.fault = None
    assert sql(client, begins).status_code == 200
    far.fault = "checkpoints-unreachable"
    reconcile_all(world.env)
    copy_what_waits(world.env)
    status = query(world, "q2").status
    assert (status.state, status.error["code"], status.message.startswith(f"{WHY}; try 2 in")) == (
        "pending",
        "checkpoints-unreachable",
        True,
    )
    far.fault = None
    world.env.settings = replace(world.env.settings, backoff_maximum=0.0)
    reconcile_all(world.env)
    copy_what_waits(world.env)
    reconcile_all(world.env)
    assert query(world, "q2").status.state == "starting"
    assert (checkpoint(world, "q2") / "offsets" / "3").exists()


def test_a_copy_is_laid_once(world: Any, far: FarFiles, client: TestClient) -> None:
    """A crash may come between the copy and the note of it; a checkpoint that goes later is no new beginning."""
    sql(client, "CREATE STREAM b2 AS SELECT n FROM a QUERY WITH ('query.name'='q2', 'from.query'='q')")
    place = checkpoint(world, "q2")
    place.mkdir(parents=True)
    (place / "mine").touch()
    run(world, "q2")
    assert (place / "mine").exists()
    assert query(world, "q2").origin.laid


def test_a_pass_asks_for_no_file(world: Any, far: FarFiles, client: TestClient) -> None:
    """It may be far away, and all queries would wait for it."""
    sql(client, "CREATE STREAM b2 AS SELECT n FROM a QUERY WITH ('query.name'='q2', 'from.query'='q')")
    sql(client, f"{COUNTS} QUERY WITH ('query.name'='counts')")
    far.asked.clear()
    reconcile_all(world.env)
    assert far.asked == []


def test_old_checkpoints_stay_until_somebody_answers(
    world: Any, far: FarFiles, client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    old = checkpoint(world)
    assert sql(client, "RESTART QUERY q FROM EARLIEST").status_code == 200
    world.drivers.tokens.pop(query(world).status.driver_id)
    reconcile_all(world.env)
    run(world, "q")
    world.env.settings = replace(world.env.settings, keep_checkpoints=0.0)
    far.fault = "checkpoints-unreachable"
    sweep_checkpoints(world.env)
    assert f"old checkpoints are looked for again later: {WHY}" in caplog.text
    far.fault = None
    sweep_checkpoints(world.env)
    assert not old.exists()
    assert checkpoint(world).exists()

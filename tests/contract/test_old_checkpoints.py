"""Checkpoints that a query has left behind go, once nothing can need them any more."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.testclient import TestClient

from leatstream.model.objects import CheckpointOrigin
from leatstream.model.registered import Savepoint
from leatstream.services.queries.checkpoints.sweep import sweep_checkpoints

SQL = "CREATE STREAM a AS SELECT viewtime FROM pageviews"
QUERY = {"sql": SQL, "database": "demo", "schema": "public", "store": "k"}
KEPT = 86_400.0


@pytest.fixture
def old(fresh: Any, pageviews: TestClient) -> Any:
    """The query has left two checkpoints behind; the job of the third has committed a batch."""
    assert pageviews.put("/v1/queries/q", json=QUERY).status_code == 201
    for _ in range(2):
        again = pageviews.post("/v1/statements", json={"sql": "RESTART QUERY q FROM EARLIEST"})
        assert again.status_code == 200, again.text
    with fresh.env.open_unit(write=False) as unit:
        found = unit.queries.find("q")
    assert found.checkpoint_generation == 3
    folder = Path(fresh.env.settings.checkpoint_root) / "queries" / found.meta.id
    for number in (1, 2, 3):
        for part in ("commits", "state/0"):
            (folder / f"g{number}" / part).mkdir(parents=True, exist_ok=True)
        (folder / f"g{number}" / "metadata").write_text("{}")
        (folder / f"g{number}" / "commits" / "0").write_text("v1\n{}")
    (folder / "kept by hand").mkdir()
    return SimpleNamespace(folder=folder, env=fresh.env, query=found)


def there(old: Any) -> list[str]:
    return sorted(path.name for path in old.folder.iterdir())


def begun(old: Any, seconds_ago: float) -> None:
    """The job of the present checkpoint began so long ago."""
    at = old.env.clock.now().timestamp() - seconds_ago
    os.utime(old.folder / "g3" / "metadata", (at, at))


def test_those_before_the_present_one_go_a_day_after_it_began(old: Any) -> None:
    begun(old, KEPT - 60)
    sweep_checkpoints(old.env)
    assert there(old) == ["g1", "g2", "g3", "kept by hand"]
    begun(old, KEPT + 60)
    sweep_checkpoints(old.env, mine=())
    assert there(old) == ["g1", "g2", "g3", "kept by hand"], "another server looks after it"
    sweep_checkpoints(old.env)
    sweep_checkpoints(old.env)
    assert there(old) == ["g3", "kept by hand"]


@pytest.mark.parametrize("missing", ["metadata", "commits/0"])
def test_they_stay_until_the_present_one_has_a_batch(old: Any, missing: str) -> None:
    begun(old, KEPT + 60)
    (old.folder / "g3" / missing).unlink()
    sweep_checkpoints(old.env)
    assert there(old) == ["g1", "g2", "g3", "kept by hand"]


def test_one_that_is_still_to_be_copied_stays(old: Any) -> None:
    begun(old, KEPT + 60)
    found = old.query
    with old.env.open_unit() as unit:
        made = replace(
            found,
            meta=replace(found.meta, id="qry_new"),
            name="new",
            checkpoint_generation=1,
            origin=CheckpointOrigin(name="q", path=f"queries/{found.meta.id}/g2", whole=False),
        )
        unit.queries.add(made)
        unit.commit()
    sweep_checkpoints(old.env)
    assert there(old) == ["g2", "g3", "kept by hand"]
    with old.env.open_unit() as unit:
        unit.queries.update(replace(made, origin=replace(made.origin, laid=True)))
        unit.commit()
    sweep_checkpoints(old.env)
    assert there(old) == ["g3", "kept by hand"]


def test_one_that_a_savepoint_was_asked_of_stays(old: Any) -> None:
    begun(old, KEPT + 60)
    found = old.query
    asked = Savepoint(
        meta=replace(found.meta, id="sp_1"),
        name="before",
        query="q",
        query_id=found.meta.id,
        query_generation=1,
        sql=found.sql,
        job=found.job,
        checkpoint_generation=2,
    )
    with old.env.open_unit() as unit:
        unit.savepoints.add(asked)
        unit.commit()
    sweep_checkpoints(old.env)
    assert there(old) == ["g2", "g3", "kept by hand"]


def test_how_long_they_are_kept_is_a_setting(old: Any) -> None:
    begun(old, 120)
    settings = replace(old.env.settings, keep_checkpoints=60.0)
    sweep_checkpoints(replace(old.env, settings=settings))
    assert there(old) == ["g3", "kept by hand"]


def test_one_that_cannot_be_removed_is_tried_again(old: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    begun(old, KEPT + 60)
    real = shutil.rmtree

    def rmtree(path: Any, ignore_errors: bool = False) -> None:
        if Path(path).name != "g1":
            real(path, ignore_errors=ignore_errors)
        elif not ignore_errors:
            raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as refusing:
        refusing.setattr(shutil, "rmtree", rmtree)
        sweep_checkpoints(old.env)
    assert there(old) == ["g1", "g3", "kept by hand"]
    sweep_checkpoints(old.env)
    assert there(old) == ["g3", "kept by hand"]

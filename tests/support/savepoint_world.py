"""A query whose checkpoint holds three batches, for tests of savepoints and of copies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from leatstream.connectors.entities import Entity
from leatstream.services import driver_calls as drivers
from leatstream.services.environment import Principal
from leatstream.services.queries import catalog as queries
from leatstream.services.queries.checkpoints.copies import copy_what_waits
from leatstream.services.queries.reconcile.reconciler import reconcile_all

ANN = Principal("ann", "sysadmin")
SET_UP = """CREATE STORE k WITH ('type'=KAFKA, 'uris'='b:1', 'tls.disabled'=TRUE); CREATE DATABASE d; USE DATABASE d;
CREATE STREAM a (n BIGINT) WITH ('topic'='a', 'store'='k', 'value.format'='json');
CREATE STREAM b AS SELECT * FROM a QUERY WITH ('query.name'='q')"""
COUNTS = "CREATE CHANGELOG c AS SELECT n, count(*) AS c FROM a GROUP BY n"


@pytest.fixture
def world(fresh: Any, client: TestClient) -> Any:
    """A query that runs on the first of five drivers."""
    fresh.cluster.entities["a"] = Entity("a", {"topic.partitions": 1, "topic.replicas": 1})
    fresh.drivers.tokens.update({f"d{n}": "t" for n in range(1, 6)})
    assert client.post("/v1/statements", json={"sql": SET_UP, "store": "k"}).status_code == 200
    run(fresh, "q")
    return fresh


def sql(client: TestClient, text: str) -> Any:
    return client.post("/v1/statements", json={"sql": text, "database": "d", "store": "k"})


def query(world: Any, name: str = "q") -> Any:
    return queries.get_query(world.env, ANN, name)


def beat(world: Any, name: str, state: str) -> None:
    found = query(world, name)
    report = {"query_id": found.meta.id, "attempt": found.status.attempt, "state": state}
    report["fencing_token"] = drivers.fencing_token(found)
    drivers.heartbeat(world.env, found.status.driver_id, report)


def checkpoint(world: Any, name: str = "q") -> Path:
    found = query(world, name)
    root = Path(world.env.settings.checkpoint_root)
    return root / "queries" / found.meta.id / f"g{found.checkpoint_generation}"


def beginning(world: Any) -> None:
    """What new queries begin with is copied beside the reconciler, which goes on then."""
    copy_what_waits(world.env)
    reconcile_all(world.env)


def run(world: Any, name: str) -> None:
    """It starts, and its job commits batch 3."""
    reconcile_all(world.env)
    beginning(world)
    beat(world, name, "running")
    place = checkpoint(world, name)
    for folder, text in (("offsets", 'v1\n{"batchWatermarkMs":0}\n{"a":{"0":7}}'), ("commits", "v1\n{}")):
        (place / folder).mkdir(parents=True, exist_ok=True)
        for number in (2, 3):
            (place / folder / str(number)).write_text(text)
    (place / "offsets" / "4").write_text("not committed")
    (place / "metadata").write_text('{"id":"x"}')
    (place / "state").mkdir(exist_ok=True)
    (place / "state" / "s").write_text("rows")


def end(world: Any, name: str) -> None:
    """Its job obeys and ends; what was asked for is copied."""
    reconcile_all(world.env)
    copy_what_waits(world.env)
    gone = query(world, name).status.driver_id
    beat(world, name, "stopped")
    world.drivers.tokens.pop(gone)
    reconcile_all(world.env)
    assert query(world, name).status.state == "stopped"
    copy_what_waits(world.env)


def folders(world: Any) -> list[str]:
    """What lies where savepoints are kept."""
    place = Path(world.env.settings.checkpoint_root) / "savepoints"
    return sorted(p.name for p in place.iterdir()) if place.is_dir() else []


def stop_for(world: Any, client: TestClient, name: str) -> None:
    """A savepoint is asked for, and the job has ended."""
    assert client.post("/v1/queries/q:savepoint", json={"name": name}).status_code == 202
    reconcile_all(world.env)
    world.drivers.tokens.pop(query(world).status.driver_id)
    reconcile_all(world.env)
    assert query(world).status.state == "stopped"

"""Stores and nodes that do not answer hold up what needs them, and nothing else."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.testclient import TestClient

from leatstream.bootstrap import StoreConnections
from leatstream.connectors.entities import Entity
from leatstream.engine import loop as loops
from leatstream.engine.loop import ReconcileLoop
from leatstream.errors import CatalogBusy, StoreError
from leatstream.services import driver_calls as drivers
from leatstream.services.environment import Principal
from leatstream.services.queries import catalog as queries
from leatstream.services.queries.reconcile.reconciler import reconcile_all
from leatstream.services.queries.removal import remove_query

ANN = Principal("ann", "sysadmin")
SECONDS = 20.0


def test_clients_of_dropped_stores_are_let_go(fresh: Any, client: TestClient) -> None:
    """Each has threads and connections, and what makes and drops stores, such as a pipeline's tests, goes on."""
    open_store = StoreConnections(lambda: fresh.env)
    for name in ("one", "two", "three"):
        body = {"kafka": {"bootstrap_servers": "b:1"}}
        client.put(f"/v1/stores/{name}", json=body).raise_for_status()
        with fresh.env.open_unit(write=False) as unit:
            store = unit.stores.find(name)
        assert open_store(store) is open_store(store)
        if name != "one":
            client.delete(f"/v1/stores/{name}").raise_for_status()
    assert len(open_store._open) == 2, "that of the first, and the newest"


class Far:
    """A call that waits until it is let go on, and fails then, as it does where nobody answers."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answers = threading.Event()
        self.up = self.over = False

    def __call__(self, *what: Any, **_: Any) -> None:
        self.asked.append(str(what[0]) if what else "")
        self.over = not self.answers.wait(SECONDS)
        if not self.up:
            raise StoreError("store-unreachable", "Store far does not answer.")


@pytest.fixture
def far() -> Iterator[Far]:
    made = Far()
    yield made
    made.answers.set()


@pytest.fixture
def ready(fresh: Any, client: TestClient) -> Any:
    """Two stores, a stream of one column in the first, and some free drivers."""
    fresh.cluster.entities["a"] = Entity("a", {"topic.partitions": 1, "topic.replicas": 1})
    for store in ("k", "far"):
        assert (
            client.put(f"/v1/stores/{store}", json={"kafka": {"bootstrap_servers": "b:1"}}).status_code == 201
        )
    assert client.put("/v1/databases/d", json={}).status_code == 201
    stream = {"kind": "stream", "columns": [{"name": "n", "type": "BIGINT"}], "store": "k", "topic": "a"}
    assert client.put("/v1/relations/d.public.a", json={**stream, "value_format": "json"}).status_code == 201
    fresh.drivers.tokens.update({f"d{n}": f"t{n}" for n in range(9)})
    return fresh


@pytest.fixture
def loop(ready: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The passes; ``maintained`` counts how often the pool was looked after."""
    monkeypatch.setattr(loops, "_HALF_DONE_SECONDS", 0.1, raising=False)
    maintained: list[int] = []
    made = ReconcileLoop(ready.env, SimpleNamespace(maintain=lambda: maintained.append(1), note=lambda: None))  # type: ignore[arg-type]
    yield SimpleNamespace(start=made.start, stop=made.stop, maintained=maintained)
    made.stop()


def until(seen: Callable[[], object]) -> None:
    deadline = time.monotonic() + SECONDS / 2
    while not seen():
        assert time.monotonic() < deadline, "it was held up"
        time.sleep(0.01)


def make(client: TestClient, name: str, store: str = "k", **more: Any) -> None:
    sql = f"CREATE STREAM s_{name} WITH ('store' = '{store}') AS SELECT * FROM a"
    answer = client.put(f"/v1/queries/{name}", json={"sql": sql, "database": "d", "store": "k", **more})
    assert answer.status_code == 201, answer.text


def status(world: Any, name: str) -> Any:
    return queries.get_query(world.env, ANN, name).status


def beat(world: Any, name: str, state: str = "running") -> None:
    query = queries.get_query(world.env, ANN, name)
    report = {"query_id": query.meta.id, "attempt": query.status.attempt, "state": state}
    report["fencing_token"] = drivers.fencing_token(query)
    drivers.heartbeat(world.env, query.status.driver_id or "", report)


def call_far(world: Any, call: str, far: Far) -> None:
    connect = world.env.connect

    def connected(store: Any) -> Any:
        connector = connect(store)
        if store.name == "far":
            setattr(connector, call, far)
        return connector

    world.env.connect = connected


def let_end(world: Any, client: TestClient, *names: str) -> None:
    """Queries that write to the far store, whose jobs have ended; they are still to be removed."""
    for name in names:
        make(client, name, "far", delete_sink_entity=True)
    reconcile_all(world.env)
    for name in names:
        beat(world, name)
        assert client.delete(f"/v1/queries/{name}").status_code == 202
        driver = status(world, name).driver_id
        beat(world, name, "stopped")
        world.drivers.end(driver)


def silent_since(world: Any, name: str, seconds: float) -> None:
    with world.env.open_unit() as unit:
        query = unit.queries.find(name)
        at = world.env.clock.now() - timedelta(seconds=seconds)
        unit.queries.update(replace(query, status=replace(query.status, heartbeat_at=at)))
        unit.commit()


def others_go_on(world: Any, client: TestClient, loop: Any, far: Far) -> None:
    """While the call waits a query is started, and the pool is looked after."""
    until(lambda: far.asked)
    before = len(loop.maintained)
    make(client, "zzz")
    until(lambda: str(status(world, "zzz").state) == "starting")
    until(lambda: len(loop.maintained) > before + 1)
    assert not far.answers.is_set()


def test_what_a_query_leaves_in_a_store_that_is_away_holds_up_no_other(
    ready: Any, client: TestClient, loop: Any, far: Far
) -> None:
    let_end(ready, client, "aaa")
    call_far(ready, "drop_entity", far)
    loop.start()
    others_go_on(ready, client, loop, far)


def test_a_topic_to_be_made_in_a_store_that_is_away_holds_up_no_other(
    ready: Any, client: TestClient, loop: Any, far: Far
) -> None:
    make(client, "aaa", "far")
    call_far(ready, "find_entity", far)
    loop.start()
    others_go_on(ready, client, loop, far)
    far.up = True
    far.answers.set()
    until(lambda: str(status(ready, "aaa").state) == "starting")
    assert far.asked == ["s_aaa"], "it was asked once, however many passes there were"


def test_a_silent_driver_on_a_lost_node_holds_up_no_other(
    ready: Any, client: TestClient, loop: Any, far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(client, "aaa")
    reconcile_all(ready.env)
    silent_since(ready, "aaa", 1000)
    monkeypatch.setattr(ready.drivers, "end", far)
    loop.start()
    others_go_on(ready, client, loop, far)


def test_a_stray_driver_on_a_lost_node_holds_up_no_other(
    ready: Any, client: TestClient, loop: Any, far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready.drivers.queries["d0"] = "qry_of_nobody"
    monkeypatch.setattr(ready.drivers, "end", far)
    loop.start()
    others_go_on(ready, client, loop, far)


def test_a_store_that_proves_to_be_away_is_not_asked_for_each_query(
    ready: Any, client: TestClient, loop: Any, far: Far
) -> None:
    names = [f"a{n}" for n in range(5)]
    let_end(ready, client, *names)
    call_far(ready, "drop_entity", far)
    ready.env.settings = replace(ready.env.settings, backoff_initial=3600.0, backoff_maximum=3600.0)
    loop.start()
    others_go_on(ready, client, loop, far)  # so that all of them are waiting by now
    far.answers.set()
    until(lambda: all(status(ready, name).next_attempt_at for name in names))
    assert len(far.asked) == 1
    told = {status(ready, name).message for name in names}
    assert told == {"what it leaves cannot be dropped yet: Store far does not answer."}


def test_what_could_not_be_removed_goes_when_the_store_is_back(
    ready: Any, client: TestClient, loop: Any, far: Far
) -> None:
    let_end(ready, client, "aaa", "aab")
    call_far(ready, "drop_entity", far)
    ready.env.settings = replace(ready.env.settings, backoff_initial=0.01, backoff_maximum=0.01)
    loop.start()
    until(lambda: far.asked)
    far.answers.set()
    until(lambda: status(ready, "aab").restarts)
    far.up = True
    until(lambda: client.get("/v1/queries/aaa").status_code == 404)
    until(lambda: client.get("/v1/queries/aab").status_code == 404)


def test_who_deletes_a_query_does_not_wait_for_others(
    ready: Any, client: TestClient, loop: Any, far: Far
) -> None:
    let_end(ready, client, "aaa")
    make(client, "bbb", desired_state="stopped", delete_sink_entity=True)
    call_far(ready, "drop_entity", far)
    loop.start()
    until(lambda: far.asked)
    assert client.delete("/v1/queries/bbb").status_code == 204
    assert not far.over


def test_a_query_is_not_removed_twice_beside_itself(ready: Any, client: TestClient, far: Far) -> None:
    """The slower one might take a topic that the next query of this name has made for the old one."""
    let_end(ready, client, "aaa")
    call_far(ready, "drop_entity", far)
    far.up = True
    query = queries.get_query(ready.env, ANN, "aaa")
    both = [threading.Thread(target=remove_query, args=(ready.env, query)) for _ in range(2)]
    for thread in both:
        thread.start()
    until(lambda: far.asked)
    far.answers.set()
    for thread in both:
        thread.join(SECONDS)
    assert far.asked == ["s_aaa"]
    assert client.get("/v1/queries/aaa").status_code == 404


def test_the_end_of_the_server_does_not_wait_for_a_store(
    ready: Any, client: TestClient, loop: Any, far: Far
) -> None:
    let_end(ready, client, "aaa", "aab")
    call_far(ready, "drop_entity", far)
    loop.start()
    until(lambda: far.asked)
    loop.stop()
    assert not far.over
    far.answers.set()
    until(lambda: not [t for t in threading.enumerate() if t.name.startswith("removal")])
    assert len(far.asked) == 1, "nothing is begun any more"


def silent_driver(ready: Any, client: TestClient) -> str:
    """That of query aaa, not heard for longer than a driver may be silent."""
    make(client, "aaa")
    reconcile_all(ready.env)
    beat(ready, "aaa")
    silent_since(ready, "aaa", 31)
    return str(status(ready, "aaa").driver_id)


def test_a_driver_that_was_heard_while_the_pass_waited_to_write_is_not_ended(
    ready: Any, client: TestClient
) -> None:
    driver = silent_driver(ready, client)
    units, heard = ready.env.open_unit, []

    def after_a_heartbeat(*, write: bool = True) -> Any:
        if write and not heard:
            heard.append(True)
            beat(ready, "aaa")
        return units(write=write)

    ready.env.open_unit = after_a_heartbeat
    reconcile_all(ready.env)
    assert heard
    assert ready.drivers.is_alive(driver)


def test_who_waits_long_to_write_hears_the_drivers_before_one_is_ended(
    ready: Any, client: TestClient
) -> None:
    """A writer that stood still kept their heartbeats waiting as well."""
    driver = silent_driver(ready, client)
    units, clock = ready.env.open_unit, SimpleNamespace(ahead=timedelta())
    clock.now = lambda now=ready.env.clock.now: now() + clock.ahead

    def after_ten_seconds(*, write: bool = True) -> Any:
        clock.ahead += timedelta(seconds=10 if write else 0)
        return units(write=write)

    ready.env.clock, ready.env.open_unit = clock, after_ten_seconds
    began: datetime = clock.now()
    reconcile_all(ready.env)
    assert ready.drivers.is_alive(driver)
    assert ready.env.listening_since > began
    clock.ahead += timedelta(seconds=60)
    ready.env.open_unit = units
    reconcile_all(ready.env)
    assert not ready.drivers.is_alive(driver)


def test_a_pass_ends_where_the_catalog_takes_nothing_down(ready: Any, client: TestClient) -> None:
    """Every query would wait for its turn again, and it has to be known that nobody was heard."""
    units = ready.env.open_unit

    def busy(*, write: bool = True) -> Any:
        if write:
            raise CatalogBusy("The catalog is busy.")
        return units(write=write)

    make(client, "aaa")
    ready.env.open_unit = busy
    with pytest.raises(CatalogBusy):
        reconcile_all(ready.env)

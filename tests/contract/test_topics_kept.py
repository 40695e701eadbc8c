"""A topic goes with what made it only while nobody else has declared anything on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.testclient import TestClient

from leatstream.connectors.entities import Entity
from leatstream.errors import CatalogAway, CatalogBusy, CatalogFull, StoreError
from leatstream.services.environment import Principal
from leatstream.services.queries.catalog import get_query
from leatstream.services.queries.removal import remove_query
from leatstream.services.relations.entities import delete_entity

STREAM = {
    "kind": "stream",
    "columns": [{"name": "n", "type": "BIGINT"}],
    "store": "k",
    "value_format": "json",
}
MADE = {"topic": "shared", "properties": {"topic.partitions": "1", "topic.replicas": "1"}}


@pytest.fixture
def world(fresh: Any, client: TestClient) -> Any:
    fresh.cluster.entities["a"] = Entity("a", {"topic.partitions": 1, "topic.replicas": 1})
    assert client.put("/v1/stores/k", json={"kafka": {"bootstrap_servers": "b:1"}}).status_code == 201
    assert client.put("/v1/databases/d", json={}).status_code == 201
    assert declare(client, "a", topic="a") == 201
    return fresh


def declare(client: TestClient, name: str, **more: Any) -> int:
    return client.put(f"/v1/relations/d.public.{name}", json={**STREAM, **more}).status_code


def there(client: TestClient, name: str) -> bool:
    return client.get(f"/v1/relations/d.public.{name}").status_code == 200


def with_connector(world: Any, change: Callable[[Any], None]) -> None:
    connect = world.env.connect

    def connected(store: Any) -> Any:
        connector = connect(store)
        change(connector)
        return connector

    world.env.connect = connected


def test_a_query_leaves_a_topic_that_was_declared_while_its_store_was_away(
    world: Any, client: TestClient
) -> None:
    body = {
        "sql": "CREATE STREAM out WITH ('store' = 'k') AS SELECT * FROM a",
        "database": "d",
        "store": "k",
        "desired_state": "stopped",
        "delete_sink_entity": True,
    }
    assert client.put("/v1/queries/q", json=body).status_code == 201
    world.cluster.entities["out"] = Entity("out", {"topic.partitions": 1, "topic.replicas": 1})
    away = [True]

    def lose(connector: Any) -> None:
        def drop(entity: str, timeout: float = 10.0) -> None:
            if away:
                raise StoreError("store-unreachable", "Store k does not answer.")
            type(connector).drop_entity(connector, entity, timeout)

        connector.drop_entity = drop

    with_connector(world, lose)
    assert client.delete("/v1/queries/q").status_code == 202
    assert declare(client, "mine", topic="out") == 201
    away.clear()
    remove_query(world.env, get_query(world.env, Principal("ann", "sysadmin"), "q"))
    assert client.get("/v1/queries/q").status_code == 404
    assert there(client, "mine")
    assert "out" in world.cluster.entities


def test_a_topic_stays_where_the_answer_to_commit_is_lost(world: Any, client: TestClient) -> None:
    opened = world.env.open_unit

    @contextmanager
    def lost(*, write: bool = True) -> Iterator[Any]:
        with opened(write=write) as unit:
            yield unit
            if write:
                unit.commit()
                raise CatalogAway("server closed the connection unexpectedly")

    world.env.open_unit = lost
    with TestClient(client.app, headers=dict(client.headers), raise_server_exceptions=False) as bare:
        assert declare(bare, "s", **MADE) == 503
    world.env.open_unit = opened
    assert there(client, "s")
    assert "shared" in world.cluster.entities


@pytest.mark.parametrize("fault", [CatalogBusy, CatalogFull])
@pytest.mark.parametrize("meanwhile", [True, False])
def test_a_topic_made_for_nothing_goes_unless_somebody_declared_on_it(
    world: Any, client: TestClient, meanwhile: bool, fault: type[CatalogAway]
) -> None:
    opened = world.env.open_unit

    @contextmanager
    def busy(*, write: bool = True) -> Iterator[Any]:
        if write and "shared" in world.cluster.entities:
            world.env.open_unit = opened
            assert not meanwhile or declare(client, "other", topic="shared") == 201
            raise fault("It takes nothing down now.")
        with opened(write=write) as unit:
            yield unit

    world.env.open_unit = busy
    with TestClient(client.app, headers=dict(client.headers), raise_server_exceptions=False) as bare:
        assert declare(bare, "s", **MADE) == 503
    assert not there(client, "s")
    assert there(client, "other") == meanwhile
    assert ("shared" in world.cluster.entities) == meanwhile


def while_dropping(world: Any, declared: Callable[[], None], *, after: bool = False) -> None:
    """Somebody declares a stream on the topic that is dropped: just before it goes, or just after."""

    def meanwhile(connector: Any) -> None:
        def drop(entity: str, timeout: float = 10.0) -> None:
            if not after:
                declared()
            type(connector).drop_entity(connector, entity, timeout)
            if after:
                declared()

        connector.drop_entity = drop

    with_connector(world, meanwhile)


@pytest.mark.parametrize("by", ["query", "entity", "nothing"])
def test_nobody_declares_on_a_topic_while_it_is_dropped(world: Any, client: TestClient, by: str) -> None:
    """The caller that drops it has seen that nobody uses it; a request in between must be sent again."""
    world.cluster.entities["out"] = Entity("out", {"topic.partitions": 1, "topic.replicas": 1})
    if by == "query":
        sql = "CREATE STREAM out WITH ('store' = 'k') AS SELECT * FROM a"
        body = {"sql": sql, "database": "d", "store": "k", "desired_state": "stopped"}
        assert client.put("/v1/queries/q", json=body).status_code == 201
    told: list[Any] = []
    while_dropping(world, lambda: told.append(declare(client, "mine", topic="out")))
    if by == "query":
        assert client.delete("/v1/queries/q", params={"delete_entity": "true"}).status_code == 204
    elif by == "entity":
        assert client.delete("/v1/stores/k/entities/out").status_code == 204
    else:
        del world.cluster.entities["out"]
        refused = {**STREAM, **MADE, "topic": "out"}
        opened = world.env.open_unit

        @contextmanager
        def busy(*, write: bool = True) -> Iterator[Any]:
            if write and "out" in world.cluster.entities:
                world.env.open_unit = opened
                raise CatalogBusy("It takes nothing down now.")
            with opened(write=write) as unit:
                yield unit

        world.env.open_unit = busy
        with TestClient(client.app, headers=dict(client.headers), raise_server_exceptions=False) as bare:
            assert bare.put("/v1/relations/d.public.s", json=refused).status_code == 503
    assert told == [412]
    assert not there(client, "mine")
    assert "out" not in world.cluster.entities
    # Once it is gone the name is free, for who looks again.
    assert declare(client, "mine", **{**MADE, "topic": "out"}) == 201


@pytest.mark.parametrize("what", ["stream", "query"])
def test_what_was_planned_with_a_topic_is_not_kept_when_that_is_gone(
    world: Any, client: TestClient, what: str
) -> None:
    """It was dropped between the look at the store and the catalog's transaction."""
    world.cluster.entities["out"] = Entity("out", {"topic.partitions": 1, "topic.replicas": 1})
    opened, looked = world.env.open_unit, []

    @contextmanager
    def dropped(*, write: bool = True) -> Iterator[Any]:
        if write and not looked:
            looked.append(True)
            assert client.delete("/v1/stores/k/entities/out").status_code == 204
        with opened(write=write) as unit:
            yield unit

    world.env.open_unit = dropped
    with TestClient(client.app, headers=dict(client.headers), raise_server_exceptions=False) as bare:
        if what == "stream":
            assert declare(bare, "mine", topic="out") == 412
        else:
            sql = "CREATE STREAM mine WITH ('store' = 'k', 'topic' = 'out') AS SELECT * FROM a"
            body = {"sql": sql, "database": "d", "store": "k", "desired_state": "stopped"}
            answer = bare.put("/v1/queries/q", json=body)
            assert (answer.status_code, answer.json()["code"]) == (412, "stale")
            assert "Send it again." in answer.json()["errors"][0]["hint"]
    assert not there(client, "mine")


def test_who_dies_while_dropping_is_in_nobodys_way_for_long(world: Any, client: TestClient) -> None:
    world.cluster.entities["out"] = Entity("out", {"topic.partitions": 1, "topic.replicas": 1})

    def die() -> None:
        world.env.open_unit = None  # what follows in this process does not happen
        raise KeyboardInterrupt

    opened = world.env.open_unit
    while_dropping(world, die)
    connect = world.env.connect
    with pytest.raises(BaseException):  # noqa: B017, PT011
        delete_entity(world.env, Principal("ann", "sysadmin"), "k", "out")
    world.env.open_unit, world.env.connect = opened, connect
    assert declare(client, "mine", topic="out") == 412
    now = world.env.clock.now()
    world.env.clock = SimpleNamespace(now=lambda: now + timedelta(minutes=3))
    assert declare(client, "mine", topic="out") == 201

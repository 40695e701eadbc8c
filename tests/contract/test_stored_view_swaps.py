"""Blue-green replacement of a view that ClickHouse holds: what the catalog decides, and how the store follows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from clickhouse_server import PASSWORD, ClickHouseServer
from fakes import NamedColumns
from starlette.testclient import TestClient

from leatstream.connectors.clickhouse.connector import ClickHouseConnector
from leatstream.connectors.entities import Entity, StoredView
from leatstream.errors import StoreError
from leatstream.model.objects import Query
from leatstream.rest.app import create_app
from leatstream.services import driver_calls as drivers
from leatstream.services.driver_calls import build_spec
from leatstream.services.queries.reconcile.reconciler import reconcile_all
from leatstream.services.queries.stored_views import catch_up_view

SESSION = {"database": "d", "schema": "public", "store": "k"}
VIEW = "CREATE OR REPLACE MATERIALIZED VIEW v WITH ('store' = 'ch') AS SELECT {0} FROM a GROUP BY {0}"
GREEN = " QUERY WITH ('replace.mode' = 'blue_green')"
SET_UP = (
    "CREATE STORE k WITH ('type'=KAFKA, 'uris'='b:1', 'tls.disabled'=TRUE); CREATE DATABASE d; USE DATABASE d;"
    " CREATE STREAM a (n BIGINT, m BIGINT) WITH ('topic'='a', 'store'='k', 'value.format'='json')"
)


class World:
    """A view in ClickHouse, whose query runs on the first of five drivers, which the test plays."""

    def __init__(self, fresh: Any, client: TestClient, server: ClickHouseServer) -> None:
        self.env, self.tokens, self.client, self.server = fresh.env, fresh.drivers.tokens, client, server
        self.tokens.update({f"d{n}": "t" for n in range(1, 6)})

    def sql(self, text: str, status: int = 200) -> Any:
        answer = self.client.post("/v1/statements", json={"sql": text, **SESSION})
        assert answer.status_code == status, answer.text
        return answer.json()

    def query(self, name: str) -> Query:
        with self.env.open_unit(write=False) as unit:
            found = unit.queries.find(name)
        assert isinstance(found, Query)
        return found

    def names(self) -> list[str]:
        return [query["name"] for query in self.client.get("/v1/queries").json()["items"]]

    def beat(self, name: str, read: int, state: str = "running") -> None:
        found = self.query(name)
        row = {"relation": "d.public.a", "entity": "a", "end_offsets": {"0": read}, "lag": 0}
        report = {"query_id": found.meta.id, "attempt": found.status.attempt, "state": state}
        report |= {"fencing_token": drivers.fencing_token(found), "progress": {"sources": [row]}}
        drivers.heartbeat(self.env, found.status.driver_id, report)

    def runs(self, name: str, read: int) -> None:
        """Its job starts, and has read as far."""
        reconcile_all(self.env)
        self.beat(name, read)

    def ends(self, name: str) -> None:
        reconcile_all(self.env)
        driver = self.query(name).status.driver_id
        self.beat(name, 9, "stopped")
        self.tokens.pop(driver)
        reconcile_all(self.env)

    def put(self, name: str, columns: str, *values: int) -> str:
        """A row that the job of a version writes; gives the table."""
        table = ClickHouseConnector.view_rows("v", self.version(name))
        self.server.run(f"INSERT INTO swaps.{table} ({columns}) VALUES {values}".replace(",)", ")"))
        return table

    def version(self, name: str) -> str:
        with self.env.open_unit(write=False) as unit:
            return str(build_spec(self.env, unit, unit.queries.find(name)).sink.version)

    def shown(self) -> list[dict[str, str]]:
        """The rows that the view shows in ClickHouse, by its own columns."""
        head, *rows = self.server.run("SELECT * FROM swaps.v", "TabSeparatedWithNames").splitlines()
        return [dict(zip(head.split("\t"), row.split("\t"), strict=True)) for row in rows]

    def tables(self) -> set[str]:
        found = self.server.rows("SELECT name FROM system.tables WHERE database = 'swaps'")
        return {name for (name,) in found} - {"leatstream_batches"}

    def replaced(self, columns: str = "m") -> str:
        """Another version has taken over, and the first one has ended; gives the table of its rows."""
        self.sql(VIEW.format(columns) + GREEN)
        reconcile_all(self.env)
        table = self.put("v__green", columns, 7)
        self.runs("v__green", 9)
        reconcile_all(self.env)
        reconcile_all(self.env)
        self.ends("v__blue")
        return table


@pytest.fixture
def world(fresh: Any, clickhouse: ClickHouseServer) -> Iterator[World]:
    fresh.cluster.entities["a"] = Entity("a", {"topic.partitions": 1, "topic.replicas": 1})
    fresh.env = fresh.with_real(clickhouse=ClickHouseConnector)
    fresh.env.analyzer = NamedColumns(fresh.env.analyzer)
    clickhouse.run("CREATE DATABASE swaps ENGINE = Atomic")
    with TestClient(create_app(fresh.env), headers=fresh.headers) as client:
        made = World(fresh, client, clickhouse)
        assert client.post("/v1/statements", json={"sql": SET_UP, "store": "k"}).status_code == 200
        config = clickhouse.config(password=PASSWORD, database="swaps")
        assert client.put("/v1/stores/ch", json={"clickhouse": config}).status_code == 201
        made.sql(VIEW.format("n"))
        reconcile_all(fresh.env)
        made.beat("v", 7)
        made.put("v", "n", 1)
        yield made
    clickhouse.run("DROP DATABASE swaps")


def away(*_: Any, **__: Any) -> None:
    raise StoreError("store-unreachable", "nobody answers")


def test_the_store_follows_the_catalog_and_a_break_between_them_heals(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = world.query("v").meta.id
    world.sql("CREATE INDEX by_n ON v (n)")
    told = world.sql(VIEW.format("n, m") + GREEN)["results"][0]
    assert told["rows"][0][:2] == ["v__green", "blue-green"]
    reconcile_all(world.env)
    green = world.query("v__green")
    assert (world.version("v"), world.version("v__green")) == ("", green.meta.id)
    rows = world.put("v__green", "n, m", 1, 5)
    assert rows == f"v_rows_{green.meta.id[-8:]}"
    assert (world.shown(), world.tables()) == ([{"n": "1"}], {"v", "v_rows", rows})
    indexed = (
        "SELECT DISTINCT table FROM system.data_skipping_indices WHERE database = 'swaps' ORDER BY table"
    )
    assert world.server.rows(indexed) == [["v_rows"], [rows]]
    refused = world.sql(f"DROP ENTITY {rows} IN STORE ch", 409)
    assert refused["dependents"] == ["materialized view d.public.v"]

    with monkeypatch.context() as patch:
        patch.setattr(ClickHouseConnector, "show_view", away)
        world.beat("v__green", 9)
        for _ in range(3):
            reconcile_all(world.env)
        lead = world.query("v")
        assert (lead.meta.id, lead.status.state, world.names()) == (
            green.meta.id,
            "running",
            ["v", "v__blue"],
        )
        assert world.shown() == [{"n": "1"}], "the version before, whole"
        status = world.client.get("/v1/queries/v").json()["status"]
        assert status["message"] == "the view in store ch shows the version before: nobody answers"
        assert "TakingOver" in {one["type"] for one in status["conditions"]}
        world.beat("v", 10)
    for _ in range(2):
        reconcile_all(world.env)
        assert world.shown() == [{"n": "1", "m": "5"}]
    status = world.client.get("/v1/queries/v").json()["status"]
    assert (status["message"], status["state"]) == (None, "running")
    assert "TakingOver" not in {one["type"] for one in status["conditions"]}

    world.ends("v__blue")
    world.sql("ROLLBACK QUERY v")
    reconcile_all(world.env)
    assert world.version("v__green") == ""
    world.runs("v__green", 10)
    for _ in range(2):
        reconcile_all(world.env)
    assert (world.query("v").meta.id, world.shown()) == (first, [{"n": "1"}])
    assert world.tables() == {"v", "v_rows", rows}, "both are kept, and nothing else is left over"


def test_what_is_kept_is_dropped_alone_and_never_before_the_view_shows_the_other(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("leatstream.services.queries.reconcile.reconciler.show_version", lambda *_: None)
        rows = world.replaced()
        assert world.shown() == [{"n": "1"}]
        with world.env.open_unit() as unit:
            kept = unit.queries.find("v__blue")
            unit.queries.update(replace(kept, kept_until=kept.kept_until - timedelta(days=2)))
            unit.commit()
        for _ in range(2):
            reconcile_all(world.env)
    assert (world.names(), world.tables()) == (["v"], {"v", rows})
    assert world.shown() == [{"m": "7"}]
    # The next one begins beside this one, and is called off.
    world.sql(VIEW.format("n, m") + GREEN)
    reconcile_all(world.env)
    assert len(world.tables()) == 3
    assert world.client.delete("/v1/queries/v__green").status_code in (202, 204)
    world.tokens.pop(world.query("v__green").status.driver_id)
    reconcile_all(world.env)
    assert (world.names(), world.tables(), world.shown()) == (["v"], {"v", rows}, [{"m": "7"}])


def test_a_dropped_view_takes_the_rows_of_all_versions_along(world: World) -> None:
    world.replaced()
    world.sql(VIEW.format("n, m") + GREEN)
    reconcile_all(world.env)
    assert len(world.tables()) == 3, "what was kept before made room"
    world.tokens.clear()
    assert world.client.delete("/v1/queries/v").status_code in (202, 204)
    for _ in range(3):
        reconcile_all(world.env)
    assert (world.names(), world.tables()) == ([], set())


def test_a_version_that_outlives_its_view_leaves_a_new_view_alone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.replaced()
    with monkeypatch.context() as patch:
        patch.setattr(ClickHouseConnector, "drop_view_rows", away)
        world.tokens.clear()
        world.client.delete("/v1/queries/v")
        for _ in range(3):
            reconcile_all(world.env)
    world.tokens["d9"] = "t"
    world.sql(VIEW.format("n"))
    world.runs("v", 1)
    world.put("v", "n", 3)
    with world.env.open_unit() as unit:
        for one in unit.queries.page(limit=10):
            unit.queries.update(replace(one, status=replace(one.status, next_attempt_at=None)))
        unit.commit()
    reconcile_all(world.env)
    assert (world.names(), world.shown()) == (["v"], [{"n": "3"}])


def test_a_query_that_was_stopped_meanwhile_is_shown_all_the_same(world: World) -> None:
    world.sql(VIEW.format("m") + GREEN)
    assert world.client.patch("/v1/queries/v", json={"desired_state": "stopped"}).status_code == 200
    world.ends("v")
    world.put("v__green", "m", 4)
    world.runs("v__green", 9)
    for _ in range(2):
        reconcile_all(world.env)
    assert world.query("v").desired_state == "stopped"
    assert world.shown() == [{"m": "4"}]


def test_a_swap_while_the_store_was_asked_is_shown_after_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two servers may look after the two versions."""
    first = world.query("v").meta.id
    world.replaced()
    lead = world.query("v")
    show = ClickHouseConnector.show_view

    def overtaken(connector: ClickHouseConnector, view: StoredView, timeout: float = 10.0) -> None:
        with world.env.open_unit() as unit:
            relation = unit.relations.find("d.public.v")
            unit.relations.update(replace(relation, created_by_query=first))
            unit.commit()
        show(connector, view, timeout)

    with world.env.open_unit() as unit:
        unit.queries.update(replace(lead, status=replace(lead.status, view_behind=True)))
        unit.commit()
    monkeypatch.setattr(ClickHouseConnector, "show_view", overtaken)
    catch_up_view(world.env, world.query("v"))
    assert world.query("v__blue").status.view_behind


@pytest.mark.parametrize(
    ("text", "code", "part", "hint"),
    [
        (VIEW.format("m"), "requires-replacement", "columns, key and retention", "'replace.mode'"),
        (
            VIEW.format("n").replace("'ch'", "'ch', 'retention' = '1 day'"),
            "requires-replacement",
            "retention",
            "",
        ),
        (
            VIEW.format("m").replace("'ch'", "'ch', 'clickhouse.table.name' = 'w'") + GREEN,
            "requires-replacement",
            "its place cannot change",
            "DROP MATERIALIZED VIEW",
        ),
        (VIEW.format("m").replace(" WITH ('store' = 'ch')", "") + GREEN, "requires-replacement", "place", ""),
    ],
)
def test_what_cannot_change(world: World, text: str, code: str, part: str, hint: str) -> None:
    problem = world.sql(text, 409)
    assert (problem["code"], part in problem["detail"]) == (code, True), problem
    assert hint in problem["errors"][0]["hint"]
    assert world.names() == ["v"]


def test_another_retention_takes_another_version(world: World) -> None:
    text = VIEW.format("n").replace("'ch'", "'ch', 'retention' = '1 day'") + GREEN
    assert world.sql(text)["results"][0]["rows"][0][:2] == ["v__green", "blue-green"]
    reconcile_all(world.env)
    (engine,) = world.server.rows(
        "SELECT engine_full FROM system.tables WHERE database = 'swaps' AND name LIKE 'v_rows_%'"
    )
    assert "toIntervalSecond(86400)" in engine[0]


def test_a_kind_that_cannot_swap_refuses(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    cannot = replace(ClickHouseConnector.capabilities, view_swap=False)
    monkeypatch.setattr(ClickHouseConnector, "capabilities", cannot)
    problem = world.sql(VIEW.format("m") + GREEN, 422)
    assert (problem["code"], "cannot show the rows of one version" in problem["detail"]) == (
        "unsupported",
        True,
    )

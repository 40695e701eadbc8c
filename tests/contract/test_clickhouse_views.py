"""Materialized views that a store holds, from their statement to their end: ClickHouse beside topics in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from clickhouse_server import PASSWORD, ClickHouseServer
from starlette.testclient import TestClient

from leatstream.connectors.clickhouse.connector import ClickHouseConnector
from leatstream.rest.app import create_app
from leatstream.services.driver_calls import build_spec
from leatstream.services.queries.reconcile.store_steps import make_entities

CONTEXT = {"database": "demo", "schema": "public", "store": "k"}
BODIES: dict[str, dict[str, Any]] = {
    "/v1/databases/demo": {},
    "/v1/stores/k": {"kafka": {"bootstrap_servers": "localhost:9092"}},
    "/v1/stores/k/entities/pageviews": {"kafka": {"partitions": 3, "replicas": 1}},
    "/v1/relations/demo.public.pageviews": {
        "columns": [{"name": "viewtime", "type": "BIGINT"}, {"name": "userid", "type": "VARCHAR"}],
        "store": "k",
        "value_format": "json",
    },
}
GROUPS = "SELECT userid, viewtime FROM pageviews GROUP BY userid, viewtime"


@pytest.fixture
def world(fresh: Any, clickhouse: ClickHouseServer) -> Iterator[tuple[Any, TestClient]]:
    env = fresh.with_real(clickhouse=ClickHouseConnector)
    clickhouse.run("CREATE DATABASE IF NOT EXISTS views")
    with TestClient(create_app(env), headers=fresh.headers) as opened:
        store = {"clickhouse": clickhouse.config(password=PASSWORD, database="views")}
        for path, body in (BODIES | {"/v1/stores/ch": store}).items():
            answer = opened.put(path, json=body)
            assert answer.status_code == 201, answer.text
        yield env, opened
    clickhouse.run("DROP DATABASE views")


def sql(client: TestClient, text: str, status: int = 200) -> dict[str, Any]:
    answer = client.post("/v1/statements", json={"sql": text, **CONTEXT})
    assert answer.status_code == status, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a_view_lives_in_the_store_that_is_named(
    world: tuple[Any, TestClient], clickhouse: ClickHouseServer
) -> None:
    env, client = world
    text = f"CREATE MATERIALIZED VIEW v WITH ('store' = 'ch', 'retention' = '7 days') AS {GROUPS}"
    shown = client.post("/v1/statements:validate", json={"sql": text, **CONTEXT}).json()
    assert shown["valid"], shown
    plan = shown["statements"][0]["plan"]
    assert (plan["sink"]["store"], plan["sink"]["store_kind"], plan["sink"]["entity"]) == (
        "ch",
        "clickhouse",
        "v",
    )
    assert plan["delivery"] == "exactly_once"

    sql(client, text)
    relation = client.get("/v1/relations/demo.public.v").json()
    assert (relation["kind"], relation["store"], relation["topic"]) == ("materialized_view", "ch", "v")
    with env.open_unit(write=False) as unit:
        query = unit.queries.find("v")
        spec = build_spec(env, unit, query)
    assert (spec.sink.view, spec.sink.stored_view, spec.sink.entity) == (None, True, "v")
    assert (spec.sink.store.kind, spec.sink.key_columns) == ("clickhouse", ["userid", "viewtime"])
    assert (spec.trigger_interval_ms, len(spec.sink.store.secrets)) == (1000, 1)

    assert make_entities(env, query) is None
    columns = "SELECT name, type FROM system.columns WHERE database = 'views' AND table = 'v' ORDER BY name"
    assert clickhouse.rows(columns) == [["userid", "Nullable(String)"], ["viewtime", "Nullable(Int64)"]]
    tables = "SELECT name, engine FROM system.tables WHERE database = 'views' ORDER BY name"
    assert clickhouse.rows(tables) == [["v", "View"], ["v_rows", "ReplacingMergeTree"]]

    problem = sql(client, "SELECT * FROM v", 422)
    assert problem["code"] == "unsupported"
    assert "Query v in the store itself" in problem["errors"][0]["hint"]
    indexes = "SELECT name FROM system.data_skipping_indices WHERE database = 'views' ORDER BY name"
    for _ in range(2):
        sql(client, "CREATE INDEX IF NOT EXISTS i ON v (userid, viewtime)")
    made = [["i.0.bloom_filter"], ["i.1.bloom_filter"], ["i.1.minmax"]]
    assert clickhouse.rows(indexes) == made
    clickhouse.run("DROP TABLE views.v_rows")
    with env.open_unit(write=False) as unit:
        assert make_entities(env, unit.queries.find("v")) is None
    assert clickhouse.rows(indexes) == made, "as where a query starts again"
    sql(client, "DROP INDEX i")
    assert clickhouse.rows(indexes) == []
    assert sql(client, "CREATE INDEX i ON v (nothing)", 422)["code"] == "unknown-column"
    assert sql(client, "DROP STORE ch", 409)["code"] == "has-dependents"
    problem = sql(client, "DROP ENTITY v_rows IN STORE ch", 409)
    assert (problem["code"], problem["dependents"]) == ("has-dependents", ["materialized view demo.public.v"])
    assert clickhouse.rows(tables) == [["v", "View"], ["v_rows", "ReplacingMergeTree"]]
    problem = sql(
        client,
        f"CREATE MATERIALIZED VIEW w WITH ('store' = 'ch', 'clickhouse.table.name' = 'v') AS {GROUPS}",
        422,
    )
    assert "exists already in store ch, of demo.public.v" in problem["detail"]

    for other in (f"WITH ('store' = 'ch') AS {GROUPS}", f"AS {GROUPS}"):
        assert (
            sql(client, f"CREATE OR REPLACE MATERIALIZED VIEW v {other}", 409)["code"]
            == "requires-replacement"
        )
    again = text.replace("CREATE", "CREATE OR REPLACE").replace("pageviews", "pageviews WHERE viewtime > 5")
    sql(client, again)
    assert client.get("/v1/relations/demo.public.v").json()["store"] == "ch"

    sql(client, "DROP MATERIALIZED VIEW v")
    assert client.get("/v1/relations/demo.public.v").status_code == 404
    assert clickhouse.rows(tables) == []


@pytest.mark.parametrize(
    ("properties", "code", "said"),
    [
        ("'store' = 'k'", "unsupported", "Stores of kind kafka hold no materialized views."),
        ("'store' = 'nowhere'", "unknown-relation", "nowhere"),
        ("'clickhouse.table.name' = 't'", "invalid-property", "there is no 'store'"),
        ("'store' = 'ch', 'topic' = 't'", "invalid-property", "not a materialized view property"),
        (
            "'store' = 'ch', 'clickhouse.db.name' = 'a.b'",
            "invalid-property",
            "clickhouse.db.name must be a name",
        ),
        ("'store' = 'ch', 'clickhouse.db.name' = 'system'", "invalid-property", "cannot have a view"),
    ],
)
def test_what_cannot_hold_a_view(
    world: tuple[Any, TestClient], properties: str, code: str, said: str
) -> None:
    _, client = world
    answer = client.post(
        "/v1/statements",
        json={"sql": f"CREATE MATERIALIZED VIEW v WITH ({properties}) AS {GROUPS}", **CONTEXT},
    )
    problem = answer.json()
    assert (problem["code"], said in problem["detail"]) == (code, True), problem
    assert problem["errors"][0]["position"]["line"] == 1

"""CREATE TABLE: relations over a real PostgreSQL's tables, from declaration to the plan of what writes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from postgres_server import PASSWORD, PostgresServer
from starlette.testclient import TestClient

from leatstream.connectors.entities import Entity
from leatstream.connectors.postgres.connector import PostgresConnector
from leatstream.rest.app import create_app
from leatstream.services.driver_calls import build_spec

ORDERS = "CREATE STREAM orders (id BIGINT NOT NULL, item VARCHAR, n INTEGER) WITH ('store'='k','topic'='orders','value.format'='json')"
ITEMS = "CREATE CHANGELOG items (item VARCHAR, price DOUBLE, PRIMARY KEY (item)) WITH ('store'='k','topic'='items','value.format'='json')"
CONTEXT = {"database": "demo", "schema": "public", "store": "pg"}
TABLES = """
CREATE SCHEMA rooms;
CREATE TABLE rooms.items (item text PRIMARY KEY, price numeric(10,2) NOT NULL, tags text[], doc jsonb, code integer UNIQUE);
CREATE TABLE rooms.keyed (id bigint PRIMARY KEY, item text, n integer);
CREATE TABLE rooms.log (id bigint, item text, n integer);
GRANT ALL ON SCHEMA rooms TO shop;
GRANT ALL ON ALL TABLES IN SCHEMA rooms TO shop
"""


@pytest.fixture(scope="module")
def tables(postgres: PostgresServer) -> Iterator[PostgresServer]:
    with postgres.connect() as connection:
        connection.execute(TABLES)
    yield postgres
    with postgres.connect() as connection:
        connection.execute("DROP SCHEMA rooms CASCADE")


@pytest.fixture
def client(fresh: Any, tables: PostgresServer) -> Iterator[TestClient]:
    """Two topics with a stream and a changelog, and a store of tables."""
    env = fresh.with_real(postgres=PostgresConnector)
    for topic in ("orders", "items"):
        fresh.cluster.entities[topic] = Entity(topic, {"topic.partitions": 2, "topic.replicas": 1})
    with TestClient(create_app(env), headers=fresh.headers) as opened:
        assert opened.put("/v1/stores/k", json={"kafka": {"bootstrap_servers": "h:1"}}).status_code == 201
        store = opened.put("/v1/stores/pg", json={"postgres": tables.config(password=PASSWORD)})
        assert store.status_code == 201, store.text
        assert opened.put("/v1/databases/demo", json={}).status_code == 201
        for sql in (ORDERS, ITEMS):
            run(opened, sql)
        yield opened


def run(client: TestClient, sql: str) -> dict[str, Any]:
    answer = client.post("/v1/statements", json={"sql": sql, **CONTEXT})
    assert answer.status_code == 200, answer.text
    result: dict[str, Any] = answer.json()["results"][-1]
    return result


def validated(client: TestClient, sql: str, **more: Any) -> dict[str, Any]:
    answer = client.post("/v1/statements:validate", json={"sql": sql, **CONTEXT, **more})
    assert answer.status_code == 200, answer.text
    statement: dict[str, Any] = answer.json()["statements"][-1]
    return statement


def test_columns_and_key_are_the_tables_unless_they_are_given(client: TestClient) -> None:
    sql = "CREATE TABLE items_t WITH ('topic'='rooms.items')"
    plan = validated(client, sql)["plan"]
    assert (plan["primary_key"], plan["columns"][1]) == (
        ["item"],
        {"name": "price", "type": "DECIMAL(10, 2)", "not_null": True},
    )
    made = run(client, sql)
    assert (made["kind"], made["object"]) == (
        "create_table",
        {"noun": "relation", "name": "demo.public.items_t"},
    )
    shown = client.get("/v1/relations/demo.public.items_t").json()
    assert (shown["kind"], shown["primary_key"], shown["value_format"], shown["topic"]) == (
        "table",
        ["item"],
        "",
        "rooms.items",
    )
    assert [(c["name"], c["type"]) for c in shown["columns"]] == [
        ("item", "VARCHAR"),
        ("price", "DECIMAL(10, 2)"),
        ("tags", "ARRAY<VARCHAR>"),
        ("doc", "VARCHAR"),
        ("code", "INTEGER"),
    ]
    assert set(shown["effective"]) == {"store", "topic"}
    # The statement that is told makes the same table.
    run(client, "DROP TABLE items_t")
    run(client, shown["statement"])
    again = client.get("/v1/relations/demo.public.items_t").json()
    assert [again[k] for k in ("columns", "primary_key", "kind")][1:] == [["item"], "table"]
    assert run(client, "LIST TABLES")["rows"][0][:4] == ["demo.public.items_t", "table", "pg", "rooms.items"]
    assert run(client, "DESCRIBE TABLE items_t")["rows"][0][:3] == ["item", "VARCHAR", "true"]
    part = "CREATE OR REPLACE TABLE items_t (item VARCHAR, doc STRUCT<a BIGINT>, PRIMARY KEY (item)) WITH ('topic'='rooms.items')"
    run(client, part)
    assert run(client, "DESCRIBE RELATION items_t")["rows"][1][1].startswith("STRUCT<")
    same = client.get("/v1/relations/demo.public.items_t").json()["generation"]
    run(client, part)
    assert client.get("/v1/relations/demo.public.items_t").json()["generation"] == same


def test_a_table_is_a_resource(client: TestClient) -> None:
    path, body = "/v1/relations/demo.public.log", {"kind": "table", "store": "pg", "topic": "rooms.log"}
    made = client.put(path, json=body)
    assert made.status_code == 201, made.text
    assert made.json()["primary_key"] == []
    again = client.put(path, json=body)
    assert (again.status_code, again.json()["generation"]) == (200, made.json()["generation"])
    wrong = client.put(
        "/v1/relations/demo.public.x",
        json=body | {"primary_key": ["id"], "columns": [{"name": "id", "type": "BIGINT"}], "timestamp": "id"},
    )
    assert "timestamp has no meaning for a table" in wrong.json()["detail"]
    twice = client.put(path, json=body | {"timestamp": "id", "properties": {"postgresql.table.name": "log"}})
    assert [e["pointer"] for e in twice.json()["errors"]] == ["#/timestamp", "#/topic"]
    alone = client.put(path, json=body | {"primary_key": ["id"]}).json()["errors"]
    assert [(e["pointer"], e["hint"]) for e in alone] == [
        ("#/primary_key", "Leave it out too, or name the columns.")
    ]
    assert client.delete(path).status_code == 204
    # A stream still needs a format.
    stream = client.put(
        "/v1/relations/demo.public.s",
        json={"kind": "stream", "store": "k", "columns": [{"name": "a", "type": "BIGINT"}]},
    )
    assert stream.json()["errors"][0]["pointer"] == "#/value_format"


@pytest.mark.parametrize(
    ("sql", "code", "words"),
    [
        ("CREATE TABLE t WITH ('store'='k')", "unsupported", ["no tables of rows"]),
        ("CREATE TABLE t WITH ('store'='k') AS SELECT id FROM orders", "unsupported", ["no tables of rows"]),
        ("CREATE TABLE t WITH ('topic'='rooms.gone')", "entity-not-found", ["has no table rooms.gone"]),
        (
            "CREATE TABLE t (item BIGINT, tags VARCHAR NOT NULL, more VARCHAR, PRIMARY KEY (tags)) WITH ('topic'='rooms.items')",
            "type-mismatch",
            [
                "item is BIGINT, but text",
                "tags is NOT NULL, but may be NULL",
                "no column more",
                "no unique key",
            ],
        ),
        (
            "CREATE TABLE t (id BIGINT, PRIMARY KEY (n)) WITH ('topic'='rooms.log')",
            "unknown-column",
            ["names n"],
        ),
        (
            "CREATE TABLE t WITH ('topic'='rooms.log', 'value.format'='avro', 'timestamp'='id')",
            "invalid-property",
            ["timestamp has no meaning", "value.format has no meaning"],
        ),
        (
            "CREATE TABLE t (id BIGINT) WITH ('topic'='rooms.log') AS SELECT id FROM orders",
            "sql-syntax",
            ["takes no column list"],
        ),
        ("CREATE TABLE t", "sql-syntax", ["WITH or AS"]),
    ],
)
def test_what_cannot_be_a_table(client: TestClient, sql: str, code: str, words: list[str]) -> None:
    problems = validated(client, sql)["problems"]
    assert [p["code"] for p in problems] == [code] * len(words), problems
    for word in words:
        assert any(word in p["detail"] for p in problems), (word, problems)
    assert all(p["position"] for p in problems)


@pytest.mark.parametrize(
    ("select", "keys", "output"),
    [
        ("SELECT id, item FROM orders", [], "append"),
        ("SELECT item, count(*) AS n FROM orders GROUP BY item", ["item"], "update"),
        ("SELECT item, price FROM items", ["item"], "append"),
        (
            "SELECT window_start, item, count(*) AS n FROM TUMBLE(orders, SIZE 1 MINUTE) GROUP BY window_start, window_end, item",
            [],
            "append",
        ),
    ],
)
def test_rows_are_appended_or_upserted_as_the_select_says(
    client: TestClient, select: str, keys: list[str], output: str
) -> None:
    told = validated(client, f"CREATE TABLE t WITH ('postgresql.schema.name'='rooms') AS {select}")
    assert told["problems"] == []
    plan = told["plan"]
    sink = plan["sink"]
    assert (sink["kind"], sink["entity"], sink["entity_action"]) == ("table", "rooms.t", "create")
    assert (sink["primary_key"], plan["output_mode"], plan["delivery"]) == (keys, output, "exactly_once")
    assert set(sink["properties"]) == {"store", "topic"}


def test_a_query_writes_a_declared_table_by_its_key(client: TestClient) -> None:
    run(client, "CREATE TABLE log WITH ('topic'='rooms.log')")
    run(
        client,
        "CREATE TABLE keyed (id BIGINT, item VARCHAR, n INTEGER, PRIMARY KEY (id)) WITH ('topic'='rooms.keyed')",
    )
    told = validated(client, "INSERT INTO log SELECT id, item, n FROM orders")
    assert told["problems"] == []
    assert (told["plan"]["sink"]["primary_key"], told["plan"]["sink"]["kind"]) == ([], "table")
    groups = "INSERT INTO keyed SELECT id, max(item) AS item, max(n) AS n FROM orders GROUP BY {}"
    upserts = validated(client, groups.format("id"))
    assert upserts["problems"] == []
    assert (upserts["plan"]["output_mode"], upserts["plan"]["delivery"]) == ("update", "exactly_once")
    other = "INSERT INTO keyed SELECT max(id) AS id, item, max(n) AS n FROM orders GROUP BY item"
    (problem,) = validated(client, other)["problems"]
    assert (problem["code"], "replace each other by item" in problem["detail"]) == ("unsupported", True)
    (problem,) = validated(client, groups.format("id").replace("keyed", "log"))["problems"]
    assert (problem["code"], "window" in problem["detail"]) == ("unsupported", True)
    made = run(client, "INSERT INTO keyed SELECT id, item, n FROM orders QUERY WITH ('query.name'='q')")
    assert made["kind"] == "insert_into"
    planned = client.get("/v1/queries/q").json()["plan"]
    assert (planned["sink"]["primary_key"], planned["delivery"]) == (["id"], "exactly_once")
    run(client, "INSERT INTO keyed VALUES (7, 'lamp', 2)")
    run(client, "INSERT INTO keyed VALUES (7, 'lamp', 3)")
    printed = run(client, "PRINT ENTITY rooms.keyed")
    assert [column["name"] for column in printed["columns"]] == ["key", "value"]
    (row,) = printed["rows"]
    assert row == ['{"id" : 7}', '{"id":7,"item":"lamp","n":3}']
    refused = client.post("/v1/statements", json={"sql": "DROP TABLE keyed", **CONTEXT})
    assert refused.json()["code"] == "has-dependents"
    read = validated(client, "CREATE STREAM s WITH ('store'='k') AS SELECT * FROM log")["problems"]
    assert read[0]["code"] == "unsupported"
    assert "log is a table" in read[0]["detail"]


def test_a_planned_table_counts_as_there(client: TestClient) -> None:
    table = {
        "database": "demo",
        "schema": "public",
        "name": "later",
        "kind": "table",
        "store": "pg",
        "topic": "rooms.log",
    }
    told = validated(
        client, "INSERT INTO later SELECT id, item, n FROM orders", assume={"relations": [table]}
    )
    assert told["problems"] == []


LOOKUP = "CREATE STREAM priced WITH ('store'='k','topic.partitions'=1,'topic.replicas'=1) AS SELECT o.id, i.price FROM orders o {} JOIN items_t i {} ON o.item = i.item"


def test_a_lookup_join_is_planned(client: TestClient) -> None:
    run(client, "CREATE TABLE items_t WITH ('topic'='rooms.items')")
    told = validated(client, LOOKUP.format("LEFT", "WITH ('lookup.cache.ttl.millis'=500)"))
    assert told["problems"] == []
    plan = told["plan"]
    assert [(j["kind"], j["type"], j["within"], j["left"], j["right"]) for j in plan["joins"]] == [
        ("lookup-join-stream-table", "left", None, "o", "i")
    ]
    assert (plan["mode"], plan["delivery"]) == ("micro_batch", "at_least_once")
    assert "looked up batch by batch" in plan["mode_reason"]
    assert [(s["kind"], s["left_most"]) for s in plan["sources"]] == [("stream", True), ("table", False)]
    real = validated(client, LOOKUP.format("", "") + " QUERY WITH ('mode'='realtime')")["problems"]
    assert "cannot run in real-time mode" in real[0]["detail"]
    made = run(client, LOOKUP.format("", "") + " QUERY WITH ('query.name'='q')")
    assert made["kind"] == "create_stream_as"
    assert client.get("/v1/queries/q").json()["sources"] == ["demo.public.orders", "demo.public.items_t"]
    refused = client.post("/v1/statements", json={"sql": "DROP TABLE items_t", **CONTEXT})
    assert refused.json()["code"] == "has-dependents"
    # What is looked up and how long it is kept is no state: the records go on from where they were read.
    for sql in (
        LOOKUP.format("LEFT", ""),
        LOOKUP.format("", "WITH ('lookup.cache.ttl.millis'=5)"),
        LOOKUP.format("", "") + " AND i.price > 3",
    ):
        change = validated(client, sql, name="q")["plan"]["change"]
        assert change["class"] == "restart-from-offsets", sql


def test_a_changelogs_lookup_join_is_planned(client: TestClient) -> None:
    """It keeps nothing, so a changed one goes on from its offsets; the key is the changelog's."""
    run(client, "CREATE TABLE items_t WITH ('topic'='rooms.items')")
    text = (
        "CREATE CHANGELOG known WITH ('store'='k','topic.partitions'=1,'topic.replicas'=1) AS"
        " SELECT c.item, i.price FROM items c {} JOIN items_t i ON c.item = i.item"
    )
    plan = validated(client, text.format(""))["plan"]
    assert [j["kind"] for j in plan["joins"]] == ["lookup-join-changelog-table"]
    view = validated(client, f"CREATE MATERIALIZED VIEW x AS {text.format('').partition(' AS ')[2]}")["plan"]
    assert (view["sink"]["primary_key"], view["delivery"]) == (["item"], "exactly_once")
    assert (plan["sink"]["kind"], plan["sink"]["primary_key"]) == ("changelog", ["item"])
    run(client, text.format("") + " QUERY WITH ('query.name'='q')")
    change = validated(client, text.format("LEFT"), name="q")["plan"]["change"]
    assert change["class"] == "restart-from-offsets"


@pytest.mark.parametrize(
    ("sql", "code", "word"),
    [
        (
            "CREATE STREAM x WITH ('store'='k','topic.partitions'=1,'topic.replicas'=1) AS SELECT o.id FROM orders o JOIN items_t i ON i.code = o.item",
            "type-mismatch",
            "i.code is INTEGER, but is looked up by a value of Spark type string.",
        ),
        (
            "CREATE STREAM x WITH ('store'='k','topic.partitions'=1,'topic.replicas'=1) AS SELECT o.id FROM orders o WITH"
            " ('source.deserialization.error.handling'=IGNORE_AND_LOG, 'source.deserialization.error.log.topic'='log')"
            " JOIN items_t i ON i.item = o.item",
            "unsupported",
            "IGNORE_AND_LOG",
        ),
    ],
)
def test_lookup_joins_that_cannot_be(client: TestClient, sql: str, code: str, word: str) -> None:
    run(client, "CREATE TABLE items_t WITH ('topic'='rooms.items')")
    problems = validated(client, sql)["problems"]
    assert [p["code"] for p in problems] == [code], problems
    assert word in problems[0]["detail"]
    assert problems[0]["position"]


def test_a_table_that_has_changed_is_told_when_a_query_is_planned(
    client: TestClient, tables: PostgresServer
) -> None:
    with tables.connect() as connection:
        connection.execute(
            "CREATE TABLE rooms.shifting (item text, n integer); GRANT ALL ON rooms.shifting TO shop"
        )
    run(client, "CREATE TABLE shifting WITH ('topic'='rooms.shifting')")
    sql = "CREATE STREAM x WITH ('store'='k','topic.partitions'=1,'topic.replicas'=1) AS SELECT o.id FROM orders o JOIN shifting s ON s.item = o.item"
    assert validated(client, sql)["problems"] == []
    with tables.connect() as connection:
        connection.execute("ALTER TABLE rooms.shifting DROP COLUMN n")
    (problem,) = validated(client, sql)["problems"]
    assert (problem["code"], "has no column n" in problem["detail"]) == ("type-mismatch", True)
    with tables.connect() as connection:
        connection.execute("DROP TABLE rooms.shifting")
    (problem,) = validated(client, sql)["problems"]
    assert problem["code"] == "entity-not-found"


def test_a_job_gets_the_secrets_of_the_tables_it_looks_up_in(client: TestClient, fresh: Any) -> None:
    run(client, "CREATE TABLE items_t WITH ('topic'='rooms.items')")
    run(client, LOOKUP.format("", "") + " QUERY WITH ('query.name'='q')")
    with fresh.env.open_unit(write=False) as unit:
        query = unit.queries.find("q")
        spec = build_spec(fresh.env, unit, query)
    assert [(s.store.name, s.entity, s.keys) for s in spec.lookups] == [("pg", "rooms.items", ["item"])]
    assert [s.name for s in spec.stores()] == ["k", "pg", "k"]
    assert spec.lookups[0].store.secrets
    assert PASSWORD not in spec.model_dump_json()


def test_an_application_has_tables(client: TestClient) -> None:
    """Declared, made and written in one text; put again it is no change, and it goes whole."""
    text = """BEGIN APPLICATION shop
      CREATE TABLE prices WITH ('topic'='rooms.items');
      CREATE TABLE kept WITH ('postgresql.table.name'='app_kept') AS SELECT id, item FROM orders;
      INSERT INTO kept SELECT id, item FROM orders WHERE n > 1;
      CREATE STREAM priced WITH ('store'='k', 'topic.partitions'=1, 'topic.replicas'=1) AS
        SELECT o.id, p.price FROM orders o JOIN prices p ON o.item = p.item;
    END APPLICATION"""
    told = validated(client, text, name="shop")
    assert told["problems"] == []
    body = {"sql": text, **CONTEXT}
    made = client.put("/v1/applications/shop", json=body)
    assert made.status_code == 201, made.text
    shown = made.json()
    assert shown["relations"] == ["demo.public.prices"]
    assert shown["queries"] == [q["name"] for q in told["plan"]["queries"]]
    assert shown["sinks"] == ["demo.public.kept", "demo.public.kept", "demo.public.priced"]
    again = client.put("/v1/applications/shop", json=body)
    assert (again.status_code, again.json()["generation"]) == (200, 1)
    less = body | {"sql": text.replace("INSERT INTO kept SELECT id, item FROM orders WHERE n > 1;", "")}
    changed = client.put("/v1/applications/shop", json=less)
    assert changed.status_code == 200, changed.text
    assert changed.json()["plan"]["removed"] == ["shop_insert_into_kept"]
    assert client.delete("/v1/applications/shop").status_code == 204
    left = [one["name"] for one in client.get("/v1/relations").json()["items"]]
    assert left == ["items", "orders"]


@pytest.mark.parametrize("noun", ["TABLE", "CHANGELOG"])
def test_values_replace_the_row_of_the_declared_key(
    client: TestClient, tables: PostgresServer, noun: str
) -> None:
    """As rows of a query do: by the unique key that the relation names, not by the table's primary key."""
    run(
        client,
        f"CREATE {noun} coded (code INTEGER, item VARCHAR, price DECIMAL(10, 2), PRIMARY KEY (code))"
        " WITH ('topic'='rooms.items')",
    )
    for item in ("old", "new"):
        run(client, f"INSERT INTO coded VALUES (7, '{item}', 1)")
    with tables.connect() as connection:
        found = connection.execute("DELETE FROM rooms.items RETURNING item, code").fetchall()
    assert found == [("new", 7)]

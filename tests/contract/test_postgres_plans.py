"""Sinks that are tables, at plan time: a real PostgreSQL beside topics in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from postgres_server import PASSWORD, PostgresServer
from starlette.testclient import TestClient

from leatstream.connectors.entities import Entity
from leatstream.connectors.postgres.connector import PostgresConnector
from leatstream.rest.app import create_app

VISITS = "CREATE STREAM visits (id BIGINT, name VARCHAR, at TIMESTAMP) WITH ('store'='k','topic'='visits','value.format'='json')"
CONTEXT = {"database": "demo", "schema": "public", "store": "pg"}
TABLES = """
CREATE SCHEMA plans;
CREATE TABLE plans.fits (id bigint PRIMARY KEY, name text, at timestamp, made timestamptz NOT NULL DEFAULT now());
CREATE TABLE plans.unlike (id text, at boolean, must integer NOT NULL, number bigint GENERATED ALWAYS AS IDENTITY);
CREATE TABLE plans.parent (id bigint PRIMARY KEY, name text, twice text GENERATED ALWAYS AS (name || name) STORED);
CREATE TABLE plans.child () INHERITS (plans.parent);
GRANT ALL ON SCHEMA plans TO shop;
GRANT ALL ON ALL TABLES IN SCHEMA plans TO shop
"""


@pytest.fixture(scope="module")
def tables(postgres: PostgresServer) -> Iterator[PostgresServer]:
    with postgres.connect() as connection:
        connection.execute(TABLES)
    yield postgres
    with postgres.connect() as connection:
        connection.execute("DROP SCHEMA plans CASCADE")


@pytest.fixture
def client(fresh: Any, tables: PostgresServer) -> Iterator[TestClient]:
    """A topic and its stream, and a store of tables."""
    env = fresh.with_real(postgres=PostgresConnector)
    fresh.cluster.entities["visits"] = Entity("visits", {"topic.partitions": 3, "topic.replicas": 1})
    with TestClient(create_app(env), headers=fresh.headers) as opened:
        made = opened.put("/v1/stores/k", json={"kafka": {"bootstrap_servers": "h:1"}})
        assert made.status_code == 201
        store = opened.put("/v1/stores/pg", json={"postgres": tables.config(password=PASSWORD)})
        assert store.status_code == 201, store.text
        assert PASSWORD not in store.text
        assert store.json()["status"]["state"] == "ready"
        assert store.json()["status"]["server"]["wal_level"] == "logical"
        assert store.json()["postgres"]["host"] == "127.0.0.1"
        assert opened.put("/v1/databases/demo", json={}).status_code == 201
        made = opened.post("/v1/statements", json={"sql": VISITS, **CONTEXT})
        assert made.status_code == 200, made.text
        yield opened


def validated(client: TestClient, sql: str) -> dict[str, Any]:
    answer = client.post("/v1/statements:validate", json={"sql": sql, **CONTEXT})
    assert answer.status_code == 200, answer.text
    statement: dict[str, Any] = answer.json()["statements"][0]
    return statement


def test_a_table_is_made_for_a_stream(client: TestClient) -> None:
    told = validated(client, "CREATE STREAM copied AS SELECT id, name, at FROM visits")
    assert told["problems"] == []
    plan = told["plan"]
    assert (plan["delivery"], plan["mode"]) == ("exactly_once", "micro_batch")
    sink = plan["sink"]
    assert (sink["store_kind"], sink["entity"], sink["entity_action"]) == ("postgres", "copied", "create")
    assert set(sink["properties"]) == {"store", "topic"}


def test_the_table_is_named_by_the_references_words(client: TestClient) -> None:
    names = "'postgresql.db.name'='shop', 'postgresql.schema.name'='plans', 'postgresql.table.name'='fits'"
    told = validated(
        client,
        f"CREATE STREAM c WITH ({names}, 'delivery.guarantee'='exactly_once') AS SELECT id, name, at FROM visits",
    )
    assert told["problems"] == []
    sink = told["plan"]["sink"]
    assert (sink["entity"], sink["entity_action"]) == ("plans.fits", "reuse")
    assert sink["properties"]["topic"]["origin"] == "explicit"
    same = validated(client, "CREATE STREAM c WITH ('topic'='plans.fits') AS SELECT id, name, at FROM visits")
    assert same["plan"]["sink"]["entity"] == "plans.fits"


def test_a_topic_takes_batches_exactly_once_where_asked(client: TestClient) -> None:
    sql = "CREATE STREAM c WITH ('store'='k', 'topic.partitions'=1, 'topic.replicas'=1{}) AS SELECT id FROM visits"
    usual = validated(client, sql.format(""))["plan"]
    once = validated(client, sql.format(", 'delivery.guarantee'='exactly_once'"))["plan"]
    assert (usual["delivery"], once["delivery"]) == ("at_least_once", "exactly_once")
    assert once["mode"] == "micro_batch"


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ("'postgresql.db.name'='other'", ["database of store"]),
        ("'postgresql.table.name'='a', 'topic'='b'", ["both name the entity"]),
        ("'postgresql.schema.name'='a.b'", ["must be a name"]),
        (
            "'value.format'='json', 'key.format'='primitive', 'key.columns'='id'",
            ["key.format has no meaning", "key.columns has no meaning"],
        ),
        ("'headers.column'='json'", ["headers.column has no meaning for a table"]),
        ("'topic.partitions'=1", ["topic.partitions does not fit store 'pg'"]),
        ("'topic'='pg_catalog.x'", ["belongs to the server"]),
        ("'store'='k', 'postgresql.table.name'='a'", ["no property of a relation in a store of kind kafka"]),
        ("'store'='k', 'delivery.guarantee'='twice'", ["delivery.guarantee"]),
    ],
)
def test_properties_that_do_not_fit(client: TestClient, properties: str, words: list[str]) -> None:
    problems = validated(client, f"CREATE STREAM c WITH ({properties}) AS SELECT id FROM visits")["problems"]
    assert len(problems) == len(words), problems
    for problem, word in zip(problems, words, strict=True):
        assert word in problem["detail"]
        assert problem["position"]["line"] == 1


def test_changes_that_the_log_does_not_have_are_told_at_once(client: TestClient) -> None:
    """First rows would come of the children and of the computed column, and no change of them ever."""
    columns = "(id BIGINT, name VARCHAR, twice VARCHAR, PRIMARY KEY (id))"
    declared = f"CREATE CHANGELOG rows {columns} WITH ('store'='pg', 'topic'='plans.parent')"
    made = client.post("/v1/statements", json={"sql": declared, **CONTEXT})
    assert made.status_code == 200, made.text
    sink = "CREATE CHANGELOG c WITH ('store'='k', 'topic.partitions'=1, 'topic.replicas'=1) AS"
    problems = validated(client, f"{sink} SELECT id, name FROM rows")["problems"]
    assert [p["code"] for p in problems] == ["validation", "validation"]
    assert "plans.child inherit from it" in problems[0]["detail"]
    assert "UNION ALL" in problems[0]["hint"]
    assert "twice of demo.public.rows is a generated column" in problems[1]["detail"]
    assert all(problem["position"] for problem in problems)


def test_every_misfit_of_a_table_is_told_at_once(client: TestClient) -> None:
    sql = "CREATE STREAM c WITH ('topic'='plans.unlike') AS SELECT id, name, at FROM visits"
    problems = validated(client, sql)["problems"]
    details = [p["detail"] for p in problems]
    for words in (
        "id is BIGINT, which does not fit into text",
        "no column name",
        "at is TIMESTAMP",
        "must of the table",
    ):
        assert any(words in detail for detail in details), words
    assert {p["code"] for p in problems} == {"type-mismatch"}
    assert all(p["hint"] and p["position"]["offset"] == sql.index("c WITH") for p in problems)


def test_a_changelog_needs_a_unique_key_of_the_table(client: TestClient) -> None:
    rows = "CREATE CHANGELOG c WITH ('topic'='plans.{}') AS SELECT name AS name, count(*) AS n FROM visits GROUP BY name"
    assert any("no unique key" in p["detail"] for p in validated(client, rows.format("fits"))["problems"])


def test_a_table_of_a_store_is_told_by_statements(client: TestClient) -> None:
    def run(sql: str) -> dict[str, Any]:
        answer = client.post("/v1/statements", json={"sql": sql, **CONTEXT})
        assert answer.status_code == 200, answer.text
        result: dict[str, Any] = answer.json()["results"][-1]
        return result

    assert "plans.fits" in [row[0] for row in run("LIST ENTITIES")["rows"]]
    told = {row[0]: row[1] for row in run("DESCRIBE ENTITY plans.fits")["rows"]}
    assert told["primary_key"] == "id"
    assert told["column at"] == "TIMESTAMP (timestamp without time zone)"
    run('INSERT INTO ENTITY plans.fits VALUE(\'{"id": 1, "name": "x"}\')')
    run(
        "CREATE STREAM fits (id BIGINT, name VARCHAR, at TIMESTAMP) WITH ('postgresql.schema.name'='plans', 'postgresql.table.name'='fits')"
    )
    run("INSERT INTO fits (id, name) VALUES (2, 'y')")
    rows = run("PRINT ENTITY plans.fits WITH ('limit'=10)")["rows"]
    assert [row[0] for row in rows] == ['{"id" : 1}', '{"id" : 2}']
    run(
        "CREATE CHANGELOG fits_now (id BIGINT, name VARCHAR, PRIMARY KEY(id)) WITH ('postgresql.schema.name'='plans', 'postgresql.table.name'='fits')"
    )
    run("INSERT INTO fits_now VALUES (2, 'z')")
    assert '"name":"z"' in run("PRINT ENTITY plans.fits")["rows"][1][1]
    refused = client.post("/v1/statements", json={"sql": "DROP ENTITY plans.fits", **CONTEXT})
    assert refused.json()["code"] == "has-dependents"
    refused = client.post(
        "/v1/statements", json={"sql": "CREATE STREAM x (id BIGINT) WITH ('topic'='nowhere')", **CONTEXT}
    )
    assert refused.json()["code"] == "entity-not-found"
    insert = validated(client, "INSERT INTO fits SELECT id, name, at FROM visits")
    assert insert["problems"] == []
    assert insert["plan"]["delivery"] == "exactly_once"


def test_a_table_is_made_as_an_entity(client: TestClient) -> None:
    path = "/v1/stores/pg/entities/plans.made"
    columns = [
        {"name": "id", "type": "BIGINT"},
        {"name": "price", "type": "DECIMAL(10, 2)", "not_null": True},
    ]
    body = {"postgres": {"columns": columns, "primary_key": ["id"], "replica_identity": "full"}}
    made = client.put(path, json=body)
    assert made.status_code == 201, made.text
    shown = made.json()
    assert shown["postgres"]["primary_key"] == ["id"]
    assert shown["postgres"]["replica_identity"] == "full"
    assert [(c["name"], c["type"], c["not_null"]) for c in shown["postgres"]["columns"]] == [
        ("id", "BIGINT", False),
        ("price", "DECIMAL(10, 2)", True),
    ]
    assert (shown["kafka"], shown["kinesis"]) == (None, None)
    assert shown["effective"]["bytes"] > 0
    again = client.put(path, json=body)
    assert (again.status_code, again.json()["postgres"]) == (200, shown["postgres"])
    listed = {e["name"]: e for e in client.get("/v1/stores/pg/entities").json()["items"]}
    assert listed["plans.made"]["postgres"]["replica_identity"] == "full"
    other = client.put(path, json={"postgres": {"columns": columns[:1], "primary_key": ["id"]}})
    assert other.json()["code"] == "entity-conflict"
    changed = client.put(path, json={"postgres": {"replica_identity": "default"}})
    assert changed.json()["postgres"]["replica_identity"] == "default"
    assert client.delete(path).status_code == 204
    assert client.get(path).status_code == 404
    missing = client.put(path, json={"postgres": {}})
    assert missing.json()["code"] == "property-required"
    wrong = {"columns": [{"name": "a", "type": "TINYINT"}, {"name": "b", "type": "MAP<VARCHAR, BIGINT>"}]}
    told = client.put(path, json={"postgres": wrong | {"primary_key": ["c"]}}).json()
    assert [e["pointer"] for e in told["errors"]] == [
        "#/postgres/columns/0",
        "#/postgres/columns/1",
        "#/postgres/primary_key/0",
    ]


def test_a_table_is_made_by_a_statement(client: TestClient) -> None:
    def run(sql: str) -> Any:
        return client.post("/v1/statements", json={"sql": sql, **CONTEXT})

    made = run(
        "CREATE ENTITY plans.written WITH ('postgresql.columns'='id BIGINT, item VARCHAR(9) NOT NULL, PRIMARY KEY (id)',"
        " 'postgresql.replica.identity'='full'); DESCRIBE ENTITY plans.written"
    )
    assert made.status_code == 200, made.text
    told = {row[0]: row[1] for row in made.json()["results"][-1]["rows"]}
    assert told["column item"] == "VARCHAR(9) NOT NULL (character varying(9))"
    assert (told["primary_key"], told["replica_identity"]) == ("id", "full")
    assert (
        run("UPDATE ENTITY plans.written WITH ('postgresql.replica.identity'='default')").status_code == 200
    )
    assert run("DROP ENTITY plans.written").status_code == 200
    for properties, code in (
        ("'postgresql.replica.identity'='full'", "property-required"),
        ("'postgresql.columns'='id BIGINT) WITH (''store''=''pg'' '", "invalid-property"),
        ("'postgresql.columns'='id BIGINT); DROP STORE pg; CREATE STREAM x (y BIGINT'", "invalid-property"),
        ("'postgresql.columns'='id TINYINT'", "type-mismatch"),
        ("'postgresql.colums'='id BIGINT'", "invalid-property"),
    ):
        refused = run(f"CREATE ENTITY plans.written WITH ({properties})")
        assert refused.status_code >= 400, refused.text
        assert refused.json()["code"] == code, refused.text
        checked = validated(client, f"CREATE ENTITY plans.written WITH ({properties})")
        assert checked["problems"][0]["code"] == code


def test_a_stream_over_a_table_that_the_same_text_makes(client: TestClient) -> None:
    sql = (
        "CREATE ENTITY plans.both WITH ('postgresql.columns'='id BIGINT, name VARCHAR');"
        "CREATE STREAM b (id BIGINT, name VARCHAR) WITH ('topic'='plans.both')"
    )
    told = client.post("/v1/statements:validate", json={"sql": sql, **CONTEXT}).json()
    assert [s["problems"] for s in told["statements"]] == [[], []], told
    assert client.get("/v1/stores/pg/entities/plans.both").status_code == 404


def test_properties_of_topics_name_what_a_table_is_made_of(client: TestClient) -> None:
    sql = "CREATE ENTITY public.e IN STORE pg WITH ('topic.partitions'=1)"
    (fault,) = client.post("/v1/statements", json={"sql": sql}).json()["errors"]
    assert fault["detail"] == "topic.partitions does not fit store pg, which is of kind postgres."
    assert fault["hint"] == "Leave it out: a table is made of 'table.columns'."

"""Tables as sources at plan time: the real connector on the tests' PostgreSQL beside topics in memory."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from postgres_server import PASSWORD, PostgresServer, postgres_server
from starlette.testclient import TestClient

from leatstream.connectors.entities import Entity
from leatstream.connectors.postgres.connector import PostgresConnector
from leatstream.rest.app import create_app

CONTEXT = {"database": "demo", "schema": "public", "store": "k"}
COPY = "CREATE CHANGELOG {}_out WITH ('topic.partitions'=1, 'topic.replicas'=1) AS SELECT id, name FROM {}"


@pytest.fixture
def table(postgres: PostgresServer) -> Iterator[str]:
    name = f"t_{uuid.uuid4().hex[:8]}"
    with postgres.connect() as connection:
        connection.execute("SET ROLE shop")
        connection.execute(f"CREATE TABLE public.{name} (id bigint PRIMARY KEY, name text)")
        yield name
        connection.execute(f"DROP TABLE public.{name}")


@pytest.fixture
def client(fresh: Any, postgres: PostgresServer) -> Iterator[TestClient]:
    env = fresh.with_real(postgres=PostgresConnector)
    fresh.cluster.entities["views"] = Entity("views", {"topic.partitions": 3, "topic.replicas": 1})
    bodies: dict[str, dict[str, Any]] = {
        "/v1/databases/demo": {},
        "/v1/stores/k": {"kafka": {"bootstrap_servers": "localhost:9092"}},
        "/v1/stores/pg": {"postgres": postgres.config(password=PASSWORD)},
    }
    with TestClient(create_app(env), headers=fresh.headers) as opened:
        for path, body in bodies.items():
            assert opened.put(path, json=body).status_code == 201, path
        sql(
            opened,
            "CREATE STREAM views (id BIGINT, name VARCHAR) WITH ('topic'='views', 'value.format'='json')",
        )
        yield opened


def sql(client: TestClient, text: str) -> dict[str, Any]:
    answer = client.post("/v1/statements", json={"sql": text, **CONTEXT})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def declare(client: TestClient, kind: str, name: str, table: str, columns: str) -> None:
    sql(
        client,
        f"CREATE {kind} {name} ({columns}) WITH ('store'='pg', 'topic'='{table}', 'value.format'='json')",
    )


def problems(client: TestClient, text: str) -> list[tuple[str, str]]:
    answer = client.post("/v1/statements:validate", json={"sql": text, **CONTEXT})
    assert answer.status_code == 200, answer.text
    statement = answer.json()["statements"][0]
    return [(p["code"], p["detail"]) for p in statement["problems"]]


def test_a_changelog_over_a_table_is_planned(client: TestClient, table: str) -> None:
    declare(client, "CHANGELOG", "people", table, "id BIGINT, name VARCHAR, PRIMARY KEY (id)")
    ((code, said),) = problems(client, "CREATE CHANGELOG o AS SELECT id, name FROM people")
    assert code == "property-required"
    assert "topic.partitions" in said
    assert "postgres" in said
    assert problems(client, COPY.format("people", "people")) == []
    made = client.put("/v1/queries/q", json={"sql": COPY.format("people", "people"), **CONTEXT})
    assert made.status_code == 201, made.text
    assert made.json()["plan"]["mode"] == "micro_batch"
    assert made.json()["plan"]["sources"][0]["store_kind"] == "postgres"
    # The slot would stay behind, with the server's log.
    other = COPY.format("people", "views").replace("CHANGELOG", "STREAM")
    moved = client.put("/v1/queries/q", json={"sql": other, **CONTEXT})
    assert moved.json()["code"] == "requires-replacement"


def test_source_properties(client: TestClient, table: str) -> None:
    declare(client, "CHANGELOG", "people", table, "id BIGINT, name VARCHAR, PRIMARY KEY (id)")
    given = "'postgresql.slot.name'='mine', 'postgresql.publication.name'='Ours', 'postgresql.truncate.handling'='IGNORE'"
    assert problems(client, f"{COPY.format('x', 'people')} WITH ({given})") == []
    wrong = {
        "'postgresql.slot.name'='Mine'": "invalid-property",
        "'postgresql.slot.name'='leat_x'": "invalid-property",
        "'postgresql.decoding.plugin.name'='wal2json'": "unsupported",
        "'postgresql.truncate.handling'='skip'": "invalid-property",
        "'starting.position'='timestamp', 'starting.position.timestamp'=1": "invalid-property",
    }
    for written, code in wrong.items():
        ((found, _),) = problems(client, f"{COPY.format('x', 'people')} WITH ({written})")
        assert found == code, written
    topic = "CREATE STREAM o AS SELECT * FROM views WITH ('postgresql.slot.name'='mine')"
    ((code, said),) = problems(client, topic)
    assert (code, "kind kafka" in said) == ("invalid-property", True)
    twice = (
        "CREATE CHANGELOG o WITH ('topic.partitions'=1, 'topic.replicas'=1) AS SELECT a.id, b.name FROM people a"
        " WITH ('postgresql.slot.name'='mine') JOIN people b WITH ('postgresql.slot.name'='mine') ON a.id = b.id"
    )
    ((code, said),) = problems(client, twice)
    assert (code, "read twice" in said) == ("invalid-property", True)


def test_a_slot_has_one_query(client: TestClient, postgres: PostgresServer, table: str) -> None:
    """Each of two readers would get a part of the changes, whatever store they reach the server by."""
    declare(client, "CHANGELOG", "people", table, "id BIGINT, name VARCHAR, PRIMARY KEY (id)")
    again = {"postgres": postgres.config(password=PASSWORD)}
    assert client.put("/v1/stores/pg2", json=again).status_code == 201
    columns = "id BIGINT, name VARCHAR, PRIMARY KEY (id)"
    sql(
        client,
        f"CREATE CHANGELOG same ({columns}) WITH ('store'='pg2', 'topic'='{table}', 'value.format'='json')",
    )

    def reading(name: str, slot: str) -> str:
        return f"{COPY.format(name, name)} WITH ('postgresql.slot.name'='{slot}')"

    def put(query: str, text: str) -> Any:
        return client.put(f"/v1/queries/{query}", json={"sql": text, "desired_state": "stopped", **CONTEXT})

    assert put("one", reading("people", "mine")).status_code == 201
    ((code, said),) = problems(client, reading("same", "mine"))
    assert (code, "slot mine of store pg2 is read by query one" in said) == ("invalid-property", True)
    refused = put("two", reading("same", "mine"))
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid-property")
    assert client.get("/v1/queries/two").status_code == 404
    # Its own slot is no other's, and a query that is gone reads none.
    assert (
        put(
            "one", reading("people", "mine").replace("id, name FROM", "id, upper(name) AS name FROM")
        ).status_code
        == 200
    )
    assert put("two", reading("same", "other")).status_code == 201


def test_what_cannot_be_read_is_said_at_plan(
    client: TestClient, postgres: PostgresServer, table: str
) -> None:
    declare(client, "CHANGELOG", "wrong", table, "id INTEGER, nam VARCHAR, PRIMARY KEY (id)")
    found = problems(client, COPY.format("wrong", "wrong").replace("name", "nam"))
    assert [code for code, _ in found] == ["type-mismatch", "unknown-column"]
    declare(client, "STREAM", "rows", table, "id BIGINT, name VARCHAR")
    found = problems(client, COPY.format("rows", "rows").replace("CHANGELOG", "STREAM"))
    assert [code for code, _ in found] == ["unknown-column", "unknown-column"]
    assert "stream of changes" in found[0][1]
    declare(client, "CHANGELOG", "people", table, "id BIGINT, name VARCHAR, PRIMARY KEY (id)")
    ((code, said),) = problems(client, "SELECT * FROM people")
    assert (code, "nobody keeps" in said) == ("unsupported", True)
    with postgres.connect() as connection:
        connection.execute(f"ALTER TABLE public.{table} REPLICA IDENTITY NOTHING")
        ((code, said),) = problems(client, COPY.format("people", "people"))
        assert (code, "replica identity" in said) == ("validation", True)
        connection.execute(f"ALTER TABLE public.{table} DROP CONSTRAINT {table}_pkey")
        ((code, said),) = problems(client, COPY.format("people", "people"))
        assert (code, "no primary key" in said) == ("validation", True)


def test_the_slots_of_a_deleted_query_go_first(
    fresh: Any, client: TestClient, postgres: PostgresServer, table: str, eventually: Any
) -> None:
    declare(client, "CHANGELOG", "people", table, "id BIGINT, name VARCHAR, PRIMARY KEY (id)")
    made = client.put(
        "/v1/queries/q", json={"sql": COPY.format("people", "people"), "desired_state": "stopped", **CONTEXT}
    )
    assert made.status_code == 201, made.text
    conditions = {c["type"]: c for c in made.json()["status"]["conditions"]}
    assert "keeps its log" in conditions["SlotBehind"]["message"]
    slot = f"leat_{made.json()['id']}_g1_0"
    with postgres.connect() as connection:
        find = "SELECT 1 FROM pg_replication_slots WHERE slot_name = %s"
        create = "SELECT pg_create_logical_replication_slot(%s, 'pgoutput')"
        connection.execute(create, (slot,))
        connection.execute(create, (f"x_{slot}",))
        assert client.delete("/v1/queries/q").status_code in (202, 204)
        fresh.reconcile() if hasattr(fresh, "reconcile") else None
        eventually(lambda: client.get("/v1/queries/q").status_code == 404, what="the end of the query")
        assert connection.execute(find, (slot,)).fetchone() is None
        assert connection.execute(find, (f"x_{slot}",)).fetchone() is not None
        connection.execute("SELECT pg_drop_replication_slot(%s)", (f"x_{slot}",))


def test_a_database_without_logical_decoding(client: TestClient) -> None:
    with postgres_server(wal_level="replica") as plain:
        store = {"postgres": plain.config(password=PASSWORD)}
        assert client.put("/v1/stores/plain", json=store).status_code == 201
        with plain.connect() as connection:
            connection.execute("SET ROLE shop")
            connection.execute("CREATE TABLE public.people (id bigint PRIMARY KEY, name text)")
        columns = "id BIGINT, name VARCHAR, PRIMARY KEY (id)"
        sql(
            client,
            f"CREATE CHANGELOG people ({columns}) WITH ('store'='plain', 'topic'='people', 'value.format'='json')",
        )
        ((code, said),) = problems(client, COPY.format("people", "people"))
        assert (code, "wal_level = replica" in said) == ("store-rejected", True)

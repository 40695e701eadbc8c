"""A PostgreSQL table's changes through the whole product: into Kafka, a view and a join, over a kill -9."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import psutil
import psycopg
import pytest
from deadlines import patient
from postgres_server import PASSWORD, PostgresServer

from leatstream.connectors.registry import open_connector

pytestmark = [pytest.mark.stack, pytest.mark.timeout(400)]
COLUMNS = "id BIGINT, name VARCHAR, PRIMARY KEY (id)"


@pytest.fixture
def database(play: Any, postgres: PostgresServer) -> Iterator[psycopg.Connection[Any]]:
    """A store over a table of customers; the connection owns the table."""
    body = {"postgres": postgres.config(password=PASSWORD)}
    made = play.http.put(f"/v1/stores/{play.name}_pg", json=body)
    assert made.status_code == 201, made.text
    with postgres.connect() as connection:
        connection.execute("SET ROLE shop")
        connection.execute(f"CREATE TABLE public.{play.name} (id bigint PRIMARY KEY, name text)")
        connection.execute(
            f"INSERT INTO public.{play.name} SELECT i, 'n' || i FROM generate_series(1, 300) i"
        )
        yield connection
        connection.execute(f"DROP TABLE public.{play.name}")


def declared(play: Any, kind: str, name: str, columns: str) -> None:
    play.sql(
        f"CREATE {kind} {name} ({columns}) WITH ('store'='{play.name}_pg', 'topic'='{play.name}',"
        " 'value.format'='json')"
    )


def newest(play: Any, topic: str, wanted: dict[bytes, Any]) -> dict[bytes | None, Any]:
    """The topic's newest value per key, as soon as it is ``wanted`` or the time is over."""
    kafka = open_connector("kafka", "store", {"bootstrap_servers": play.kafka})
    deadline = time.monotonic() + patient(90)
    while True:
        found: dict[bytes | None, Any] = {}
        for record in kafka.read_records(topic, from_beginning=True, limit=None, idle_timeout=0.5):
            if record is not None and record.value is not None:
                found[record.key] = json.loads(record.value)
            elif record is not None:
                found.pop(record.key, None)
        if found == wanted or time.monotonic() > deadline:
            return found


def rows(database: psycopg.Connection[Any], play: Any) -> dict[bytes, Any]:
    found = database.execute(f"SELECT id, name FROM public.{play.name}").fetchall()
    return {row[0].to_bytes(8, "big", signed=True): {"id": row[0], "name": row[1]} for row in found}


def slots(database: psycopg.Connection[Any], query: str) -> list[str]:
    found = database.execute(
        "SELECT slot_name FROM pg_replication_slots WHERE slot_name LIKE %s UNION ALL"
        " SELECT pubname FROM pg_publication WHERE pubname LIKE %s",
        (f"leat_{query}_%", f"leat_{query}_%"),
    )
    return [row[0] for row in found.fetchall()]


@pytest.mark.core
def test_a_table_becomes_a_changelog_in_kafka_over_a_kill(
    play: Any, database: psycopg.Connection[Any], eventually: Any
) -> None:
    declared(play, "CHANGELOG", "customers", COLUMNS)
    sink, table = f"{play.name}.kept", play.name
    statement = (
        f"CREATE CHANGELOG kept WITH ('topic'='{sink}'{{}}) AS SELECT id, name FROM customers"
        " WHERE name IS NOT NULL"
    )
    missing = play.refused(statement.format(""))
    assert missing["code"] == "property-required", missing
    assert "topic.partitions" in missing["detail"]
    made = play.run("kept", statement.format(", 'topic.partitions'=1, 'topic.replicas'=1"))
    assert made["status"]["state"] == "running", made["status"]
    assert made["plan"]["mode"] == "micro_batch"
    query = made["id"]
    assert newest(play, sink, rows(database, play)) == rows(database, play)
    assert slots(database, query) == [f"leat_{query}_g1_0"] * 2

    database.execute(f"UPDATE public.{table} SET name = 'later' WHERE id <= 10")
    assert newest(play, sink, rows(database, play)) == rows(database, play)
    with contextlib.suppress(psutil.NoSuchProcess):
        os.kill(play.query(made["name"])["status"]["job"]["pid"], signal.SIGKILL)
    database.execute(f"DELETE FROM public.{table} WHERE id % 2 = 0")
    database.execute(f"UPDATE public.{table} SET id = -id WHERE id = 299")
    database.execute(f"INSERT INTO public.{table} VALUES (1000, 'new')")
    assert newest(play, sink, rows(database, play)) == rows(database, play)

    def watched() -> Any:
        (source,) = play.query(made["name"])["status"]["metrics"].get("sources") or [{}]
        return source.get("slot")

    slot = eventually(watched, what="word of the slot")
    assert slot["name"] == f"leat_{query}_g1_0"
    assert slot["lag_bytes"] <= slot["kept_bytes"]
    assert play.query(made["name"])["status"]["metrics"]["input_bytes_total"] > 0

    # A query that is stopped keeps its slot, and says so; a deleted one leaves nothing.
    stopped = play.http.patch(f"/v1/queries/{made['name']}", json={"desired_state": "stopped"})
    assert stopped.status_code == 200, stopped.text
    conditions = {c["type"]: c for c in play.wait(made["name"], "stopped")["status"]["conditions"]}
    assert "keeps its log" in conditions["SlotBehind"]["message"]
    assert len(slots(database, query)) == 2
    play.http.delete(f"/v1/queries/{made['name']}")
    eventually(lambda: not slots(database, query), what="the end of slot and publication")


def test_events_a_view_and_a_join(play: Any, database: psycopg.Connection[Any], eventually: Any) -> None:
    """A changelog over a table is a changelog like others."""
    declared(play, "CHANGELOG", "customers", COLUMNS)
    row = "STRUCT<id BIGINT, name VARCHAR>"
    declared(
        play,
        "STREAM",
        "events",
        f'op VARCHAR, before {row}, after {row}, source STRUCT<"table" VARCHAR, lsn BIGINT>',
    )
    source = play.stream("views", "n BIGINT, id BIGINT")
    joined, told = f"{play.name}.joined", f"{play.name}.told"
    view = play.run(
        "names", "CREATE MATERIALIZED VIEW names AS SELECT id, name FROM customers WHERE id < 5", shared=True
    )
    assert view["status"]["state"] == "running", view["status"]
    made = play.run(
        "told",
        f"CREATE STREAM told WITH ('topic'='{told}', 'topic.partitions'=1, 'topic.replicas'=1) AS SELECT op,"
        " before->id AS old, after->name AS name, source->\"table\" AS t FROM events WHERE op <> 'r'",
        shared=True,
    )
    assert made["status"]["state"] == "running", made["status"]
    made = play.run(
        "joined",
        f"CREATE STREAM joined WITH ('topic'='{joined}') AS SELECT v.n, c.name FROM views v"
        " WITH ('starting.position'='earliest') JOIN customers c ON v.id = c.id",
        shared=True,
    )
    assert made["status"]["state"] == "running", made["status"]
    table = play.name
    database.execute(f"UPDATE public.{table} SET name = 'x' WHERE id = 1")
    database.execute(f"DELETE FROM public.{table} WHERE id = 2")
    found = play.consume(told, 2)
    assert found == [
        {"op": "u", "old": None, "name": "x", "t": table},
        {"op": "d", "old": 2, "name": None, "t": table},
    ]

    def seen() -> Any:
        answer = play.sql("SELECT id, name FROM names ORDER BY id")["results"][0]["rows"]
        return answer == [[1, "x"], [3, "n3"], [4, "n4"]]

    eventually(seen, what="the view's rows")
    play.produce(source, [{"n": 1, "id": 4}])
    assert play.consume(joined, 1) == [{"n": 1, "name": "n4"}]

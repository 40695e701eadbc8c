"""PostgreSQL over TLS with an authority of its own: administration, a query's sink, and changes as a source."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deadlines import patient
from postgres_server import PASSWORD, PostgresServer, postgres_server
from pyspark.sql import SparkSession
from secured_broker import certificate
from test_postgres_sink import ITEMS, TableRun

from leatstream.connectors.entities import NewRecord
from leatstream.connectors.postgres.cdc import forget, read_changes
from leatstream.connectors.postgres.settings import PostgresConfig
from leatstream.connectors.registry import open_connector
from leatstream.errors import StoreError
from leatstream.plan.job_spec import ChangeFeed, ColumnSpec, SourceSpec, StoreRef

SECRET = {"password": PASSWORD}
# The address that tests connect to is not in it.
MADE = certificate("localhost", None)


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgres_server(tls=MADE) as found:
        own = {"host": "localhost", "ssl_mode": "verify_full", "ca_certificate": MADE[0]}
        yield replace(found, own=own)


def refused(server: PostgresServer, **more: Any) -> str:
    config = {k: v for k, v in server.config(**more).items() if v is not None}
    with pytest.raises(StoreError) as caught:
        open_connector("postgres", "s", config, SECRET).test(5)
    assert caught.value.code == "store-unreachable"
    assert "ca_certificate" in str(caught.value.faults[0].hint)
    return caught.value.detail


def test_only_the_right_server_is_trusted(server: PostgresServer) -> None:
    for mode in ("verify_full", "verify_ca"):
        open_connector("postgres", "s", server.config(ssl_mode=mode), SECRET).test(5)
    for mode in ("prefer", "require"):
        unchecked = server.config(ssl_mode=mode)
        del unchecked["ca_certificate"]
        open_connector("postgres", "s", unchecked, SECRET).test(5)
    stranger, _ = certificate()
    assert "certificate verify failed" in refused(server, ca_certificate=stranger)
    assert "certificate verify failed" in refused(server, ca_certificate=None)
    # Another name than the certificate's: verify_ca does not mind.
    assert "does not match" in refused(server, host="127.0.0.1")
    open_connector("postgres", "s", server.config(host="127.0.0.1", ssl_mode="verify_ca"), SECRET).test(5)
    # The server wants TLS, and says so.
    plain = server.config(ssl_mode="disable") | {"ca_certificate": None}
    with pytest.raises(StoreError, match="refused the login") as caught:
        open_connector("postgres", "s", plain, SECRET).test(5)
    assert "TLS" in str(caught.value.faults[0].hint)


def encrypted(server: PostgresServer, table: str) -> list[bool]:
    """Whether the connections that wrote the rows were, as a trigger has seen it."""
    with server.connect() as connection:
        return [row[0] for row in connection.execute(f'SELECT DISTINCT tls FROM "seen_{table}"').fetchall()]


def watch(server: PostgresServer, table: str) -> None:
    with server.connect() as connection:
        connection.execute(
            f'CREATE TABLE "seen_{table}" (tls boolean); GRANT ALL ON "seen_{table}" TO shop;'
            f'CREATE FUNCTION "look_{table}"() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO'
            f' public."seen_{table}" SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid(); RETURN NEW; END $$;'
            f'CREATE TRIGGER look BEFORE INSERT ON "{table}" FOR EACH ROW EXECUTE FUNCTION "look_{table}"()'
        )


def test_statements_write_over_tls(server: PostgresServer) -> None:
    store = open_connector("postgres", "s", server.config(), SECRET)
    table = f"t_{uuid.uuid4().hex[:8]}"
    with server.connect() as connection:
        connection.execute(
            f'CREATE TABLE "{table}" (id bigint PRIMARY KEY, v text); ALTER TABLE "{table}" OWNER TO shop'
        )
    watch(server, table)
    store.write_records(table, [NewRecord(None, b'{"id": 1, "v": "x"}')])
    assert encrypted(server, table) == [True]
    read = store.read_records(table, from_beginning=True, limit=1, idle_timeout=5)
    assert [r.value for r in read if r is not None] == [b'{"id":1,"v":"x"}']


@pytest.mark.spark
def test_a_query_writes_over_tls(spark: SparkSession, server: PostgresServer, tmp_path: Path) -> None:
    job = TableRun(
        spark, tmp_path, "CREATE STREAM o WITH ('store'='pg') AS SELECT id, name, n FROM s", ITEMS, server
    )
    job.make()
    watch(server, job.table)
    job.give({"s": [[str(i), {"id": i, "name": "x", "n": 1}, i] for i in range(3)]})
    job.run()
    assert [row[0] for row in job.rows()] == [0, 1, 2]
    assert encrypted(server, job.table) == [True]


@pytest.mark.spark
def test_changes_come_over_tls(spark: SparkSession, server: PostgresServer, tmp_path: Path) -> None:
    config = PostgresConfig(**server.config(), password=PASSWORD)
    name = f"t_{uuid.uuid4().hex[:8]}"
    own = f"leat_{uuid.uuid4().hex[:8]}_g1_0"
    source = SourceSpec(
        view=f"v_{name}",
        relation="d.s.r",
        store=StoreRef(name="pg", kind="postgres", config={}),
        entity=name,
        columns=[ColumnSpec(name="id", type="BIGINT")],
        value_format="json",
        key_format="primitive",
        starting_position="earliest",
        primary_key=["id"],
        feed=ChangeFeed(name=own, directory=(tmp_path / "checkpoint" / "changes" / "v").as_uri()),
    )
    seen: list[Any] = []
    with server.connect() as connection:
        connection.execute("SET ROLE shop")
        connection.execute(f"CREATE TABLE public.{name} (id bigint PRIMARY KEY)")
        connection.execute(f"INSERT INTO public.{name} VALUES (1)")
        writer = read_changes(spark, source, "pg", config).writeStream.foreachBatch(
            lambda frame, _: seen.extend(row[0] for row in frame.select("value").collect())
        )
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        deadline = time.monotonic() + patient(60)
        try:
            for wanted in (1, 2):
                while len(seen) < wanted:
                    assert query.isActive
                    assert time.monotonic() < deadline
                    time.sleep(0.05)
                if wanted == 1:
                    connection.execute(f"INSERT INTO public.{name} VALUES (2)")
            with server.connect() as beside:
                text = "SELECT DISTINCT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE usename = 'shop'"
                assert beside.execute(text).fetchall() == [(True,)]
        finally:
            query.stop()
            forget(own[: len("leat_12345678_")], "pg", config)
    assert [bytes(value) for value in seen] == [b'{"id":1}', b'{"id":2}']

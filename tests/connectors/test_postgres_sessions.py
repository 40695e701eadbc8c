"""What a session with PostgreSQL is set to, and what comes over it, whatever the role's own settings are."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from postgres_server import PASSWORD, PostgresServer

from leatstream.connectors.postgres.cdc import forget
from leatstream.connectors.postgres.cdc_changes import ChangeReader
from leatstream.connectors.postgres.cdc_position import Position
from leatstream.connectors.postgres.cdc_records import Form
from leatstream.connectors.postgres.cdc_server import ChangeServer
from leatstream.connectors.postgres.cdc_table import get_table
from leatstream.connectors.postgres.lookup import KeyColumn, Target, look_up
from leatstream.connectors.postgres.settings import PostgresConfig
from leatstream.connectors.postgres.workers import kept_connection

THIRD = 0.1 + 0.2
OLD = {"bytea_output": "'escape'", "extra_float_digits": "0"}


@pytest.fixture
def config(postgres: PostgresServer) -> PostgresConfig:
    return PostgresConfig(**postgres.config(), password=PASSWORD)


@pytest.fixture
def old_settings(postgres: PostgresServer) -> Iterator[None]:
    """The role's settings as an application that was written for PostgreSQL 8 wants them."""
    with postgres.connect() as connection:
        for name, value in OLD.items():
            connection.execute(f"ALTER ROLE shop SET {name} = {value}")
        yield
        for name in OLD:
            connection.execute(f"ALTER ROLE shop RESET {name}")


def changed(config: PostgresConfig, admin: Any, table: str, columns: dict[str, str], values: str) -> Any:
    """A row as the log gives it."""
    own = f"leat_{uuid.uuid4().hex[:8]}_g1_0"
    server = ChangeServer("pg", config, table, own, own)
    try:
        server.make_publication()
        start = Position(server.make_slot())
        admin.execute(f"INSERT INTO public.{table} VALUES ({values})")
        reader = ChangeReader(server, get_table(server), Form("shop", tuple(columns.items()), ("id",)), start)
        chunks = list(reader.read(server.peek(server.flushed(), 0)))
    finally:
        server.close()
        forget(own[: len("leat_12345678_")], "pg", config)
    ((record,),) = [chunk for chunk in chunks if chunk]
    assert record.value is not None
    return json.loads(record.value)


def looked_up(config: PostgresConfig, table: str, columns: dict[str, str]) -> Any:
    """The row with key 1 as a lookup gives it."""
    key = KeyColumn("id", "bigint", as_text=False, kind="BIGINT")
    target = Target("pg", config, table, tuple(columns.items()), (key,), 0)
    (batch,) = look_up(target, iter([pa.record_batch({"k0": ["1"]})]))
    (row,) = batch.to_pylist()
    return json.loads(row["value"])


@pytest.mark.usefixtures("old_settings")
def test_bytes_and_numbers_are_whole_whatever_the_role_is_set_to(
    config: PostgresConfig, admin: psycopg.Connection[Any]
) -> None:
    table = f"t_{uuid.uuid4().hex[:8]}"
    admin.execute(f"CREATE TABLE public.{table} (id bigint PRIMARY KEY, b bytea, d float8)")
    columns = {"id": "BIGINT", "b": "BYTES", "d": "DOUBLE"}
    row = {"id": 1, "b": "YWJjZGVm", "d": THIRD}
    assert changed(config, admin, table, columns, f"1, 'abcdef', {THIRD!r}") == row
    assert looked_up(config, table, columns) == row


def test_json_in_arrays_and_domains_is_json(config: PostgresConfig, admin: psycopg.Connection[Any]) -> None:
    table = f"t_{uuid.uuid4().hex[:8]}"
    for name, kind in (("one", "jsonb"), ("list", "json"), ("lists", "jsonb[]")):
        admin.execute(f"CREATE DOMAIN public.{name}_{table} AS {kind}")
    domains = ", ".join(f"{name} public.{name}_{table}" for name in ("one", "list", "lists"))
    admin.execute(f"CREATE TABLE public.{table} (id bigint PRIMARY KEY, many jsonb[], {domains})")
    columns = {
        "id": "BIGINT",
        "many": "ARRAY<STRUCT<a INTEGER>>",
        "one": "STRUCT<a INTEGER>",
        "list": "ARRAY<INTEGER>",
        "lists": "ARRAY<STRUCT<a INTEGER>>",
    }
    values = """1, ARRAY['{"a": 1}', NULL]::jsonb[], '{"a": 2}', ' [3]', ARRAY['{"a": 4}']::jsonb[]"""
    row = {"id": 1, "many": [{"a": 1}, None], "one": {"a": 2}, "list": [3], "lists": [{"a": 4}]}
    assert changed(config, admin, table, columns, values) == row
    assert looked_up(config, table, columns) == row


def test_no_statement_stays_prepared(config: PostgresConfig) -> None:
    """Another backend of a pooler would not know it."""
    connection = kept_connection(config, 60.0, 60.0)
    for _ in range(7):
        connection.execute("SELECT %s::text", ("a",))
    assert connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)

"""Rows of ClickHouse's tables by key, as tasks look them up."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from clickhouse_server import PASSWORD, ClickHouseServer

from leatstream.connectors.base import Connector
from leatstream.connectors.clickhouse.lookup import ClickHouseTableReader, look_up
from leatstream.connectors.entities import NewRecord
from leatstream.connectors.registry import open_connector
from leatstream.errors import StoreError
from leatstream.model.objects import Column
from leatstream.model.types import parse_type
from leatstream.plan.job_spec import ColumnSpec, LookupSpec, StoreRef


@pytest.fixture
def connector(clickhouse: ClickHouseServer) -> Connector:
    return open_connector("clickhouse", "s", clickhouse.config(), {"password": PASSWORD})


@pytest.fixture
def table(connector: Connector) -> Iterator[str]:
    name = f"t_{uuid.uuid4().hex[:8]}"
    yield name
    connector.drop_entity(name)


def parsed(text: str) -> list[tuple[str, Any]]:
    struct = parse_type(f"STRUCT<{text}>")
    return list(zip(struct.fields, struct.arguments, strict=True))


def reader(
    connector: Connector, table: str, columns: str, keys: list[str], ttl: int = 0
) -> ClickHouseTableReader:
    spec = LookupSpec(
        view="v",
        relation="r",
        store=StoreRef(name="s", kind="clickhouse", config={}),
        entity=table,
        columns=[ColumnSpec(name=name, type=str(kind)) for name, kind in parsed(columns)],
        left="l",
        keys=keys,
        values=keys,
        cache_ttl_ms=ttl,
    )
    found = connector.table_reader(spec)
    assert isinstance(found, ClickHouseTableReader)
    return found


def found(reader: ClickHouseTableReader, *keys: tuple[str, ...]) -> list[dict[str, Any]]:
    columns = {f"k{i}": pa.array(values, pa.string()) for i, values in enumerate(zip(*keys, strict=True))}
    rows = [
        json.loads(row.as_py())
        for batch in look_up(reader.target, iter([pa.record_batch(columns)]))
        for row in batch.column(0)
    ]
    return sorted(rows, key=json.dumps)


def test_rows_are_the_newest_and_deleted_ones_are_not_found(
    connector: Connector, table: str, clickhouse: ClickHouseServer
) -> None:
    columns = "k VARCHAR, n BIGINT, v VARCHAR"
    connector.create_table(table, [Column(n, t) for n, t in parsed(columns)], ["k", "n"])
    for value in ("old", "new"):
        rows = [{"k": k, "n": n, "v": value} for k in ("a", "b'\\\n") for n in (1, 2**53 + 1)]
        connector.write_records(table, [NewRecord(None, json.dumps(row).encode()) for row in rows])
    clickhouse.run(f"INSERT INTO shop.{table} VALUES ('a', 1, 'gone', 18446744073709551615, 1)")
    one = reader(connector, table, columns, ["k", "n"])
    assert found(one, ("a", "1"), ("a", "2"), ("b'\\\n", str(2**53 + 1)), ("a", str(2**53 + 1))) == [
        {"k": "a", "n": 2**53 + 1, "v": "new"},
        {"k": "b'\\\n", "n": 2**53 + 1, "v": "new"},
    ]
    many = [("a", str(n)) for n in range(2500)]
    assert found(one, *many) == []


def test_rows_are_kept_for_their_time(connector: Connector, table: str, clickhouse: ClickHouseServer) -> None:
    connector.create_table(table, [Column(n, t) for n, t in parsed("k BIGINT, v VARCHAR")], [])
    clickhouse.run(f"INSERT INTO shop.{table} VALUES (1, 'a'), (1, 'b'), (2, 'c'), (NULL, 'd')")
    kept = reader(connector, table, "k BIGINT, v VARCHAR", ["k"], ttl=60_000)
    assert [row["v"] for row in found(kept, ("1",), ("3",))] == ["a", "b"]
    clickhouse.run(f"INSERT INTO shop.{table} VALUES (1, 'later'), (3, 'later')")
    assert [row["v"] for row in found(kept, ("1",), ("3",), ("2",))] == ["a", "b", "c"]
    fresh = reader(connector, table, "k BIGINT, v VARCHAR", ["k"])
    assert [row["v"] for row in found(fresh, ("1",), ("3",))] == ["a", "b", "later", "later"]


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("BOOLEAN", True, "true"),
        ("TINYINT", -7, "-7"),
        ("BIGINT", 2**62 + 1, str(2**62 + 1)),
        ("DOUBLE", 0.1, "0.1"),
        ("FLOAT", 0.1, "0.1"),
        ("DECIMAL(20, 4)", "12345678901234.5600", "12345678901234.5600"),
        ("VARCHAR", "é'\\\t", "é'\\\t"),
        ("DATE", "1900-01-01", "1900-01-01"),
        ("TIME", "12:30:00", "12:30:00"),
        ("TIMESTAMP", "2026-01-02 03:04:05.678901", "2026-01-02 03:04:05.678901"),
        ("TIMESTAMP_LTZ", "2026-01-02 03:04:05.5Z", "2026-01-02 03:04:05.5"),
        ("BYTES", "AAH/", "0001FF"),
    ],
)
def test_keys_of_every_type(connector: Connector, table: str, kind: str, value: Any, text: str) -> None:
    columns = f"k {kind}, v BIGINT"
    connector.create_table(table, [Column(n, t) for n, t in parsed(columns)], ["k"])
    connector.write_records(table, [NewRecord(None, json.dumps({"k": value, "v": 1}).encode())])
    (row,) = found(reader(connector, table, columns, ["k"]), (text,))
    assert row["v"] == 1
    if kind.startswith("DECIMAL"):
        assert float(row["k"]) == float(value)
    elif kind != "TIMESTAMP_LTZ":
        assert row["k"] == value


def test_a_day_before_the_first_finds_nothing(connector: Connector, table: str) -> None:
    connector.create_table(table, [Column("k", parse_type("DATE"))], [])
    connector.write_records(table, [NewRecord(None, b'{"k": "1900-01-01"}')])
    one = reader(connector, table, "k DATE", ["k"])
    assert found(one, ("1899-12-31",), ("0001-01-01",), ("-0044-03-15",), ("12345-01-01",)) == []
    assert found(one, ("1900-01-01",)) == [{"k": "1900-01-01"}]


def test_columns_of_other_types(connector: Connector, table: str, clickhouse: ClickHouseServer) -> None:
    clickhouse.run(
        f"CREATE TABLE shop.{table} (u UUID, n UInt16, d Decimal(9, 2), e Enum8('x' = 1), l Array(Int32),"
        " m Map(String, Float64), j String, f Float64, at DateTime('Europe/Berlin')) ENGINE = MergeTree ORDER BY n"
    )
    clickhouse.run(
        f"INSERT INTO shop.{table} VALUES (toUUID('00000000-0000-0000-0000-000000000007'), 65535, 1.5, 'x', [1, 2],"
        " map('a', 0.5), '{\"a\": [1]}', nan, toDateTime('2026-01-02 03:04:05', 'UTC'))"
    )
    columns = (
        "u VARCHAR, n BIGINT, d DOUBLE, e VARCHAR, l ARRAY<INTEGER>, m MAP<VARCHAR, DOUBLE>,"
        " j STRUCT<a ARRAY<BIGINT>>, f DOUBLE, at TIMESTAMP_LTZ"
    )
    for keys, given in ((["n"], ("65535",)), (["u"], (str(uuid.UUID(int=7)),)), (["n", "e"], ("65535", "x"))):
        (row,) = found(reader(connector, table, columns, keys), given)
        assert row == {
            "u": str(uuid.UUID(int=7)),
            "n": 65535,
            "d": 1.5,
            "e": "x",
            "l": [1, 2],
            "m": {"a": 0.5},
            "j": {"a": [1]},
            "f": "NaN",
            "at": "2026-01-02 03:04:05Z",
        }
    assert found(reader(connector, table, "n BIGINT", ["n"]), ("-1",), ("65536",)) == []


def test_a_table_that_changed_is_refused(connector: Connector, table: str) -> None:
    connector.create_table(table, [Column("k", parse_type("VARCHAR"))], [])
    with pytest.raises(StoreError, match="no column v"):
        reader(connector, table, "k VARCHAR, v BIGINT", ["k"])
    with pytest.raises(StoreError, match="column k is BIGINT"):
        reader(connector, table, "k BIGINT", ["k"])
    with pytest.raises(StoreError, match="is gone"):
        reader(connector, f"{table}_x", "k BIGINT", ["k"])

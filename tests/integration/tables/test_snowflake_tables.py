"""Snowflake's sink in the suite of all table stores, against its double."""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from sink_suite import VALUES, TableSinkSuite
from snowflake_server import SnowflakeServer
from table_run import Row, TableServer

from leatstream.connectors.registry import open_connector
from leatstream.formats import json_writing
from leatstream.model.objects import Column
from leatstream.model.types import parse_type
from leatstream.plan.job_spec import ColumnSpec, LookupSpec, StoreRef

pytestmark = pytest.mark.spark


def table_rows(server: SnowflakeServer, entity: str) -> list[Row]:
    """A table's rows as its users read them; the double shows NULL as 1970 in columns of times."""
    table = f'SHOP.PUBLIC."{entity.upper()}"'
    with contextlib.closing(server.connect()) as connection:
        cursor = connection.cursor()
        described = cursor.execute(f"DESCRIBE TABLE {table}").fetchall()
        kinds = [row[1].split("(")[0] for row in described]
        read = [
            f't."{row[0]}"::VARCHAR' if "TIMESTAMP" in kind else f't."{row[0]}"'
            for row, kind in zip(described, kinds, strict=True)
        ]
        found = cursor.execute(f"SELECT {', '.join(read)} FROM {table} t ORDER BY 1").fetchall()
    return [tuple(value(*pair) for pair in zip(kinds, row, strict=True)) for row in found]


def value(kind: str, shown: Any) -> Any:
    if shown is None:
        return None
    if kind == "VARIANT":
        return json.loads(shown)
    if "TIMESTAMP" in kind:
        return datetime.fromisoformat(shown.replace("+00", "+00:00"))
    return bytes(shown) if kind == "BINARY" else shown


class TestSnowflake(TableSinkSuite):
    values: ClassVar[Mapping[str, tuple[str, Any, Any]]] = VALUES | {
        "s": ("TIME", "03:04:05.678901", "03:04:05.678901"),
    }

    @pytest.fixture
    def server(self, snowflake: SnowflakeServer) -> TableServer:
        return TableServer(
            "snowflake", snowflake.config(), snowflake.secrets, lambda entity: table_rows(snowflake, entity)
        )


def test_rows_are_looked_up_by_sparks_tasks(spark: SparkSession, snowflake: SnowflakeServer) -> None:
    kinds = {
        "a": ("DOUBLE", "0.1D", "0.1"),
        "b": ("TIMESTAMP_LTZ", "TIMESTAMP '2026-01-02 03:04:05.6+00:00'", "'2026-01-02T03:04:05.6+00:00'"),
        "c": ("TIMESTAMP", "TIMESTAMP_NTZ '2026-01-02 03:04:05'", "'2026-01-02 03:04:05'"),
        "d": ("DECIMAL(20, 4)", "CAST(1.5 AS DECIMAL(20, 4))", "1.5"),
        "e": ("BYTES", "X'00FF'", "TO_BINARY('00FF', 'HEX')"),
        "f": ("DATE", "DATE '2024-02-29'", "'2024-02-29'"),
    }
    connector = open_connector("snowflake", "s", snowflake.config(), snowflake.secrets)
    table = f"t_{uuid.uuid4().hex[:8]}"
    connector.create_table(table, [Column(n, parse_type(kind)) for n, (kind, *_) in kinds.items()], [])
    try:
        snowflake.run(f"INSERT INTO {table} SELECT {', '.join(there for *_, there in kinds.values())}")
        spec = LookupSpec(
            view="t",
            relation="t",
            store=StoreRef(name="s", kind="snowflake", config={}),
            entity=table,
            columns=[ColumnSpec(name=name, type=kind) for name, (kind, *_) in kinds.items()],
            left="l",
            keys=list(kinds),
            values=list(kinds),
        )
        reader = connector.table_reader(spec)
        for changed, found in ((None, 1), ("a", 0)):
            values = [F.expr("0.2D" if n == changed else here) for n, (_, here, _) in kinds.items()]
            keys = [text.alias(f"k{i}") for i, text in enumerate(reader.texts(values, json_writing.nested))]
            rows = reader.rows(spark.range(1).select(*keys)).collect()
            assert [set(json.loads(row.value)) for row in rows] == [set(kinds)] * found
    finally:
        connector.drop_entity(table)

"""Snowflake's sink in the suite of all table stores, against its double."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar

import pytest
from sink_suite import VALUES, Row, TableServer, TableSinkSuite
from snowflake_server import SnowflakeServer

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

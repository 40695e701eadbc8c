"""Record bytes without Spark; that they are Spark's own is tried in tests/integration/jobs."""

from __future__ import annotations

import json
import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from leatstream.errors import JobError
from leatstream.formats.values import json_record, primitive_bytes
from leatstream.model.objects import Column
from leatstream.model.types import parse_type


def written(kind: str, value: Any) -> str:
    return json_record([Column("v", parse_type(kind))], [value]).decode()[5:-1]


@pytest.mark.parametrize(
    ("kind", "value", "wanted"),
    [
        ("BOOLEAN", True, "true"),
        ("BIGINT", -5, "-5"),
        ("DOUBLE", 1.0, "1.0"),
        ("DOUBLE", 1e7, "1.0E7"),
        ("DOUBLE", 9999999.0, "9999999.0"),
        ("DOUBLE", 0.001, "0.001"),
        ("DOUBLE", -0.00012, "-1.2E-4"),
        ("DOUBLE", 1.7976931348623157e308, "1.7976931348623157E308"),
        ("DOUBLE", -0.0, "-0.0"),
        ("DOUBLE", float("nan"), '"NaN"'),
        ("DOUBLE", float("-inf"), '"-Infinity"'),
        ("DOUBLE", 5e-324, "4.9E-324"),
        ("DOUBLE", 2e23, "2.0E23"),
        ("FLOAT", 1.4e-45, "1.4E-45"),
        ("FLOAT", 0.1, "0.1"),
        ("FLOAT", 16777216.0, "1.6777216E7"),
        ("FLOAT", 3.4028235e38, "3.4028235E38"),
        ("DECIMAL(8, 2)", Decimal("5.00"), "5.00"),
        ("DECIMAL(9, 8)", Decimal("1E-8"), "1E-8"),
        ("VARCHAR", 'ü"\\\n\x1f\x7f/', '"ü\\"\\\\\\n\\u001F\x7f/"'),
        ("DATE", date(2024, 2, 29), '"2024-02-29"'),
        ("TIMESTAMP", datetime(2024, 1, 2, 3, 4, 0, 120000), '"2024-01-02 03:04:00.12"'),
        ("TIMESTAMP", datetime(2024, 1, 2, 3, 0), '"2024-01-02 03:00:00"'),
        ("TIMESTAMP_LTZ", datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC), '"2024-01-02 03:04:05Z"'),
        ("BYTES", b"hi", '"aGk="'),
        ("ARRAY<BIGINT>", [1, None], "[1,null]"),
        ("MAP<VARCHAR, BIGINT>", {"k": None}, '{"k":null}'),
        ("STRUCT<x BIGINT, y VARCHAR>", (1, None), '{"x":1,"y":null}'),
        ("VARCHAR", None, "null"),
    ],
)
def test_values(kind: str, value: Any, wanted: str) -> None:
    assert written(kind, value) == wanted
    json.loads(wanted)


def test_every_column_is_written_in_order() -> None:
    columns = [Column("B", parse_type("BIGINT")), Column('a"', parse_type("VARCHAR"))]
    assert json_record(columns, [None, "x"]) == b'{"B":null,"a\\"":"x"}'


def test_plain_values() -> None:
    assert primitive_bytes("ü", "VARCHAR") == "ü".encode()
    assert primitive_bytes(-2, "SMALLINT") == b"\xff\xfe"
    assert primitive_bytes(1, "BIGINT") == b"\0\0\0\0\0\0\0\1"
    assert primitive_bytes(1.5, "DOUBLE") == struct.pack(">d", 1.5)
    assert primitive_bytes(None, "VARCHAR") is None
    assert primitive_bytes(-1, "TINYINT") == b"\xff"
    assert primitive_bytes(0.1, "FLOAT") == struct.pack(">f", 0.1)
    assert primitive_bytes(1e300, "FLOAT") == struct.pack(">f", float("inf"))
    assert [primitive_bytes(v, "BOOLEAN") for v in (True, False, None)] == [b"\1", b"\0", None]
    assert primitive_bytes(b"\xff", "VARBINARY") == b"\xff"
    with pytest.raises(JobError, match="A primitive must be one of"):
        primitive_bytes(date(2024, 1, 1), "DATE")

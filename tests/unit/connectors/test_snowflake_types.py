"""Types of Snowflake's columns, and rows as JSON."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from leatstream.connectors.entities import Table, TableColumn
from leatstream.connectors.snowflake.staging import PIECE, StagedColumn, pieces
from leatstream.connectors.snowflake.types import (
    SNOWFLAKE_TYPES,
    column_type,
    fits,
    read_type,
    readable,
)
from leatstream.connectors.snowflake.values import row_writer
from leatstream.connectors.table_fit import misfits
from leatstream.errors import StoreError
from leatstream.model.objects import Column
from leatstream.model.types import parse_type


@pytest.mark.parametrize(
    ("ours", "theirs", "back"),
    [
        ("BOOLEAN", "BOOLEAN", "BOOLEAN"),
        ("TINYINT", "NUMBER(3,0)", "TINYINT"),
        ("SMALLINT", "NUMBER(5,0)", "SMALLINT"),
        ("INTEGER", "NUMBER(10,0)", "INTEGER"),
        ("BIGINT", "NUMBER(19,0)", "BIGINT"),
        ("FLOAT", "FLOAT", "DOUBLE"),
        ("DOUBLE", "FLOAT", "DOUBLE"),
        ("DECIMAL", "NUMBER(10,0)", "INTEGER"),
        ("DECIMAL(20, 4)", "NUMBER(20,4)", "DECIMAL(20, 4)"),
        ("VARCHAR", "VARCHAR", "VARCHAR"),
        ("VARCHAR(9)", "VARCHAR(9)", "VARCHAR(9)"),
        ("DATE", "DATE", "DATE"),
        ("TIME", "TIME(6)", "TIME"),
        ("TIMESTAMP(3)", "TIMESTAMP_NTZ(6)", "TIMESTAMP"),
        ("TIMESTAMP_LTZ", "TIMESTAMP_LTZ(6)", "TIMESTAMP_LTZ"),
        ("BYTES", "BINARY", "BYTES"),
        ("VARBINARY", "BINARY", "BYTES"),
        ("ARRAY<BIGINT>", "VARIANT", "VARCHAR"),
        ("MAP<VARCHAR, BIGINT>", "VARIANT", "VARCHAR"),
        ("STRUCT<a BIGINT>", "VARIANT", "VARCHAR"),
    ],
)
def test_columns_that_are_made(ours: str, theirs: str, back: str) -> None:
    kind = parse_type(ours)
    assert column_type(kind) == theirs
    assert str(read_type(theirs)) == back
    assert fits(kind, theirs)
    assert readable(kind, theirs) or ours == "FLOAT"


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("NUMBER(38,0)", "DECIMAL(38, 0)"),
        ("VARCHAR(16777216)", "VARCHAR"),
        ("TEXT", "VARCHAR"),
        ("TIMESTAMP_TZ(9)", "TIMESTAMP_LTZ"),
        ("OBJECT", "VARCHAR"),
        ("ARRAY(NUMBER)", "VARCHAR"),
        ("GEOGRAPHY", "VARCHAR"),
        ("BINARY(8388608)", "BYTES"),
    ],
)
def test_columns_of_others(theirs: str, ours: str) -> None:
    assert str(read_type(theirs)) == ours


@pytest.mark.parametrize(
    ("ours", "theirs", "does"),
    [
        ("BIGINT", "NUMBER(38,0)", True),
        ("BIGINT", "NUMBER(18,0)", False),
        ("BIGINT", "NUMBER(21,2)", True),
        ("BIGINT", "FLOAT", False),
        ("DECIMAL(10, 2)", "NUMBER(10,1)", False),
        ("DOUBLE", "NUMBER(38,10)", False),
        ("VARCHAR(30)", "VARCHAR(20)", True),
        ("VARCHAR", "VARIANT", True),
        ("VARCHAR", "DATE", False),
        ("DATE", "TIMESTAMP_NTZ(9)", True),
        ("TIMESTAMP", "TIMESTAMP_LTZ(9)", False),
        ("TIMESTAMP_LTZ", "TIMESTAMP_TZ(9)", True),
        ("ARRAY<BIGINT>", "ARRAY", True),
        ("ARRAY<BIGINT>", "OBJECT", False),
        ("STRUCT<a BIGINT>", "OBJECT", True),
    ],
)
def test_what_fits(ours: str, theirs: str, does: bool) -> None:
    assert fits(parse_type(ours), theirs) is does


@pytest.mark.parametrize(
    ("ours", "theirs", "does"),
    [
        ("BIGINT", "NUMBER(38,0)", True),
        ("BIGINT", "NUMBER(38,2)", False),
        ("DECIMAL(38, 2)", "NUMBER(10,2)", True),
        ("DECIMAL(10, 2)", "NUMBER(38,2)", False),
        ("FLOAT", "FLOAT", False),
        ("VARCHAR", "GEOGRAPHY", True),
        ("STRUCT<a BIGINT>", "VARIANT", True),
        ("STRUCT<a BIGINT>", "VARCHAR", False),
        ("TIMESTAMP", "DATE", False),
    ],
)
def test_what_can_be_read(ours: str, theirs: str, does: bool) -> None:
    assert readable(parse_type(ours), theirs) is does


def test_misfits_name_snowflakes_types() -> None:
    table = Table((TableColumn("a", read_type("NUMBER(5,0)"), "NUMBER(5,0)"),))
    (one,) = misfits(table, [Column("a", parse_type("BIGINT"))], (), SNOWFLAKE_TYPES)
    assert "does not fit into NUMBER(5,0)" in one.detail
    assert "NUMBER(19,0)" in one.hint


def test_how_values_are_staged() -> None:
    assert StagedColumn("a", "BIGINT", "NUMBER(38,0)").value(1) == "f.value[1]::VARCHAR::NUMBER(19,0)"
    # A cast to VARCHAR(3) would cut a longer text.
    assert StagedColumn("a", "VARCHAR", "VARCHAR(3)").value(1) == "f.value[1]::VARCHAR"
    assert StagedColumn("a", "TIME", "VARCHAR(20)").value(1) == "f.value[1]::VARCHAR"
    assert StagedColumn("a", "VARCHAR", "OBJECT").value(2) == "PARSE_JSON(f.value[2]::VARCHAR)"
    assert StagedColumn("a", "VARCHAR", "OBJECT").written == '"A"::OBJECT'
    assert StagedColumn("a", "BYTES", "BINARY(8)").value(1) == "TO_BINARY(f.value[1]::VARCHAR, 'HEX')"


def test_rows_go_in_pieces() -> None:
    row = json.dumps(["f", "x" * (PIECE // 3)])
    rows = [row] * 7
    assert [len(piece) for piece in pieces(rows, "t")] == [2, 2, 2, 1]
    assert [len(piece) for piece in pieces(["[1]", "x" * (2 * PIECE), "[2]"], "t")] == [1, 1, 1]
    assert list(pieces([], "t")) == []
    with pytest.raises(StoreError, match="16 MB"):
        list(pieces(["ä" * 8_000_001], "t"))


@pytest.mark.parametrize(
    ("kind", "native", "value", "shown"),
    [
        ("BIGINT", "NUMBER(38,0)", "9007199254740993", 9007199254740993),
        ("DOUBLE", "FLOAT", 0.1, 0.1),
        ("DOUBLE", "FLOAT", -math.inf, "-Infinity"),
        ("DOUBLE", "FLOAT", math.nan, "NaN"),
        ("VARCHAR", "FLOAT", 1e300, "1e+300"),
        ("BOOLEAN", "BOOLEAN", False, False),
        ("VARCHAR", "BOOLEAN", True, "true"),
        ("VARCHAR", "NUMBER(10,2)", "12.30", "12.30"),
        ("BYTES", "BINARY", "00FF", "AP8="),
        ("TIME", "TIME(9)", "12:00:00.100000000", "12:00:00.1"),
        ("TIMESTAMP", "TIMESTAMP_NTZ(9)", "2026-01-02 03:04:05.000000", "2026-01-02 03:04:05"),
        ("VARCHAR", "TIMESTAMP_TZ(9)", "2026-01-02 03:04:05.000000", "2026-01-02 03:04:05Z"),
        ("TIMESTAMP_LTZ", "TIMESTAMP_TZ(9)", "2026-01-02 03:04:05.5", "2026-01-02 03:04:05.5Z"),
        ("VARCHAR", "VARCHAR", 'a"b', 'a"b'),
        ("VARCHAR", "VARIANT", '{"a":1}', '{"a":1}'),
        ("STRUCT<a BIGINT>", "VARIANT", '{"a":1}', {"a": 1}),
        ("BIGINT", "NUMBER(38,0)", None, None),
    ],
)
def test_rows_as_json(kind: str, native: str, value: Any, shown: Any) -> None:
    write = row_writer([("c", parse_type(kind))], [native])
    assert json.loads(write([value])) == {"c": shown}

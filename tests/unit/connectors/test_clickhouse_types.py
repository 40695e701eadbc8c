"""Which column of ClickHouse takes and gives which type, and that no value changes on its way."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from leatstream.connectors.clickhouse.admin import engine_of
from leatstream.connectors.clickhouse.arrow_rows import DELETED, fit
from leatstream.connectors.clickhouse.fit import misfits
from leatstream.connectors.clickhouse.types import (
    bare,
    base_of,
    column_comment,
    column_type,
    fits,
    kept_type,
    read_type,
    readable,
)
from leatstream.connectors.clickhouse.values import Taker, ValueFaultError, enum_names
from leatstream.connectors.entities import Table, TableColumn
from leatstream.model.objects import Column
from leatstream.model.types import known_types, parse_type

SAMPLES = {
    "ARRAY": "ARRAY<BIGINT>",
    "MAP": "MAP<VARCHAR, BIGINT>",
    "STRUCT": "STRUCT<a BIGINT>",
    "DECIMAL": "DECIMAL(9, 2)",
}


@pytest.mark.parametrize("kind", known_types())
def test_a_made_column_takes_and_gives_what_it_was_made_for(kind: str) -> None:
    parsed = parse_type(SAMPLES.get(kind, kind))
    native = column_type(parsed)
    assert fits(parsed, native)
    assert readable(parsed, native)
    assert read_type(native, column_comment(parsed)) == parsed == kept_type(parsed)


def test_times_have_one_precision() -> None:
    assert str(kept_type(parse_type("TIMESTAMP(3)"))) == "TIMESTAMP"
    assert str(kept_type(parse_type("DECIMAL"))) == "DECIMAL(10, 0)"


def test_types_are_taken_apart() -> None:
    assert bare("LowCardinality(Nullable(String))") == ("String", True)
    assert bare("Array(Nullable(Int8))") == ("Array(Nullable(Int8))", False)
    assert base_of("Map(String, Tuple(a Int8, b Decimal(3, 1)))")[1] == (
        "String",
        "Tuple(a Int8, b Decimal(3, 1))",
    )
    assert enum_names("Enum8('a, b' = 1, 'it\\'s (' = 2)") == ["a, b", "it's ("]
    assert str(read_type("String", "leatstream type: nonsense")) == "VARCHAR"
    assert str(read_type("String", "a user's comment")) == "VARCHAR"


@pytest.mark.parametrize(
    ("kind", "native", "answer"),
    [
        ("SMALLINT", "Int64", True),
        ("BIGINT", "Int32", False),
        ("BIGINT", "UInt64", True),
        ("INTEGER", "UInt16", False),
        ("BIGINT", "Decimal(19, 0)", True),
        ("BIGINT", "Decimal(18, 0)", False),
        ("BIGINT", "Float64", False),
        ("INTEGER", "Float32", False),
        ("DOUBLE", "Float32", False),
        ("DECIMAL(10, 2)", "Decimal(12, 4)", True),
        ("DECIMAL(10, 2)", "Decimal(12, 5)", False),
        ("DECIMAL(10, 2)", "Decimal(76, 10)", True),
        ("VARCHAR", "UUID", True),
        ("VARCHAR", "LowCardinality(String)", True),
        ("VARCHAR", "Enum8('a' = 1)", True),
        ("VARCHAR", "FixedString(3)", False),
        ("VARCHAR", "IPv4", False),
        ("TIME", "UUID", False),
        ("DATE", "Date", True),
        ("DATE", "DateTime", False),
        ("TIMESTAMP", "DateTime64(3, 'UTC')", True),
        ("TIMESTAMP", "DateTime64(6)", False),
        ("TIMESTAMP", "DateTime('Europe/Berlin')", False),
        ("TIMESTAMP_LTZ", "DateTime('Europe/Berlin')", True),
        ("ARRAY<INTEGER>", "Array(Nullable(Int64))", True),
        ("ARRAY<INTEGER>", "Array(String)", False),
        ("ARRAY<DATE>", "Array(Date32)", False),
        ("ARRAY<ARRAY<INTEGER>>", "Array(Array(Int32))", False),
        ("ARRAY<ARRAY<INTEGER>>", "String", True),
        ("MAP<VARCHAR, DOUBLE>", "Map(String, Float64)", True),
        ("MAP<BIGINT, DOUBLE>", "Map(Int64, Float64)", False),
        ("STRUCT<a BIGINT>", "Tuple(a Int64)", False),
        ("BYTES", "String", True),
    ],
)
def test_what_fits(kind: str, native: str, answer: bool) -> None:
    assert fits(parse_type(kind), native) is answer


@pytest.mark.parametrize(
    ("native", "given", "kept"),
    [
        ("UInt8", pa.array([0, 255], pa.int64()), [0, 255]),
        ("Int16", pa.array([-7], pa.int8()), [-7]),
        ("Date", pa.array([date(1970, 1, 1), date(2149, 6, 6)]), [date(1970, 1, 1), date(2149, 6, 6)]),
        ("Date32", pa.array([date(1900, 1, 1), date(2299, 12, 31)]), [date(1900, 1, 1), date(2299, 12, 31)]),
        (
            "DateTime64(3)",
            pa.array([datetime(2026, 1, 2, 3, 4, 5, 678000)]),
            [datetime(2026, 1, 2, 3, 4, 5, 678000)],
        ),
        ("DateTime64(9)", pa.array([datetime(2262, 1, 1)]), [datetime(2262, 1, 1)]),
        ("Decimal(50, 2)", pa.array([Decimal("1.5")]), [Decimal("1.50")]),
        ("Enum8('a' = 1)", pa.array(["a", None]), ["a", None]),
        ("Array(UInt8)", pa.array([[1, 2], None], pa.list_(pa.int32())), [[1, 2], None]),
    ],
)
def test_a_value_arrives_as_it_is(native: str, given: pa.Array, kept: list[Any]) -> None:
    taken = Taker("c", native, not_null=False).taken(given)
    assert [
        one.replace(nanosecond=0) if hasattr(one, "nanosecond") else one for one in taken.to_pylist()
    ] == kept


@pytest.mark.parametrize(
    ("native", "given", "why"),
    [
        ("UInt8", pa.array([256]), "out of the range of UInt8"),
        ("UInt64", pa.array([-1]), "out of the range of UInt64"),
        ("Date", pa.array([date(2149, 6, 7)]), "out of the range of Date"),
        ("Date", pa.array([date(1969, 12, 31)]), "out of the range of Date"),
        ("Date32", pa.array([date(1899, 12, 31)]), "out of the range of Date32"),
        ("DateTime", pa.array([datetime(2106, 2, 7, 6, 28, 16)]), "out of the range of DateTime"),
        ("DateTime64(6)", pa.array([datetime(2300, 1, 1)]), "out of the range"),
        ("DateTime64(9)", pa.array([datetime(2263, 1, 1)]), "out of the range"),
        ("DateTime", pa.array([datetime(2026, 1, 1, 0, 0, 0, 1)]), "more digits of a second"),
        ("DateTime64(3)", pa.array([datetime(1960, 1, 1, 0, 0, 0, 1)]), "more digits of a second"),
        ("Decimal(4, 2)", pa.array([Decimal("100.00")]), "out of the range"),
        ("UUID", pa.array(["sesame"]), "no UUID"),
        ("Enum8('a' = 1)", pa.array(["sesame"]), "none of the column's Enum"),
        ("Array(UInt8)", pa.array([[1, None]]), "holds a NULL"),
        ("Array(UInt8)", pa.array([[256]]), "out of the range"),
        ("Map(String, Int8)", pa.array([[("a", None)]], pa.map_(pa.string(), pa.int32())), "holds a NULL"),
    ],
)
def test_a_value_that_would_change_is_refused_without_showing_it(
    native: str, given: pa.Array, why: str
) -> None:
    with pytest.raises(ValueFaultError, match=why) as caught:
        Taker("c", native, not_null=False).taken(given)
    assert "sesame" not in str(caught.value)


def test_rows_that_are_deleted_need_no_values() -> None:
    natives = (
        "Int64",
        "String",
        "UUID",
        "Enum8('a' = 1)",
        "Date",
        "DateTime64(6)",
        "Array(Int8)",
        "Decimal(9, 2)",
        "Bool",
    )
    kinds = (
        pa.int64(),
        pa.string(),
        pa.string(),
        pa.string(),
        pa.date32(),
        pa.timestamp("us"),
        pa.list_(pa.int8()),
    )
    takers = [Taker(f"c{i}", native, not_null=True) for i, native in enumerate(natives)]
    columns = [pa.array([None], kind) for kind in (*kinds, pa.decimal128(9, 2), pa.bool_())]
    names = [DELETED, *(taker.name for taker in takers)]
    gone = fit(pa.table([pa.array([True]), *columns], names), takers, keyed=True)
    assert all(column.null_count == 0 for column in gone.columns)
    with pytest.raises(ValueFaultError) as caught:
        fit(pa.table([pa.array([False]), *columns], names), takers, keyed=True)
    assert caught.value.column == "c0"


@pytest.mark.parametrize(
    ("name", "full", "engine"),
    [
        ("MergeTree", "MergeTree ORDER BY tuple() SETTINGS index_granularity = 8192", (None, None, 0)),
        (
            "MergeTree",
            "MergeTree ORDER BY k SETTINGS non_replicated_deduplication_window = 50, x = 1",
            (None, None, 50),
        ),
        ("ReplacingMergeTree", "ReplacingMergeTree ORDER BY k", (None, None, 0)),
        ("ReplacingMergeTree", "ReplacingMergeTree(ver, `is gone`) ORDER BY k", ("ver", "is gone", 0)),
        (
            "ReplicatedReplacingMergeTree",
            "ReplicatedReplacingMergeTree('/clickhouse/{uuid}', '{replica}', ver, gone) ORDER BY k",
            ("ver", "gone", None),
        ),
        (
            "ReplicatedMergeTree",
            "ReplicatedMergeTree('/t', '{replica}') ORDER BY k SETTINGS replicated_deduplication_window = 0",
            (None, None, 0),
        ),
    ],
)
def test_engines_are_read(name: str, full: str, engine: tuple[str | None, str | None, int | None]) -> None:
    found = engine_of(name, full)
    assert (found.version, found.deleted, found.window) == engine


def test_a_key_that_may_be_null_is_one() -> None:
    details = {
        "engine": "ReplacingMergeTree",
        "version_column": "v",
        "deleted_column": "d",
        "version_type": "UInt64",
    }
    table = Table((TableColumn("k", parse_type("BIGINT"), "Int64"),), ("k",), (("k",),), details)
    assert misfits(table, [Column("k", parse_type("BIGINT"))], ["k"]) == []

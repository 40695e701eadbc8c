"""Which column of an Oracle table a relation's column can be written to and read from, and its values."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

from leatstream.connectors.oracle.types import column_type, fits, native_type, read_type, readable
from leatstream.connectors.oracle.values import from_json, row_writer
from leatstream.errors import StoreError
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
    assert fits(parsed, column_type(parsed))
    assert readable(parsed, column_type(parsed))


@pytest.mark.parametrize(
    ("kind", "native", "answer"),
    [
        ("BOOLEAN", "NUMBER(1,0)", True),
        ("BOOLEAN", "BOOLEAN", True),
        ("BOOLEAN", "CHAR(1 BYTE)", False),
        ("BIGINT", "NUMBER", True),
        ("BIGINT", "NUMBER(18,0)", False),
        ("INTEGER", "BINARY_DOUBLE", True),
        ("INTEGER", "BINARY_FLOAT", False),
        ("BIGINT", "BINARY_DOUBLE", False),
        ("DECIMAL(10, 2)", "NUMBER(12,4)", True),
        ("DECIMAL(10, 2)", "NUMBER(10,1)", False),
        ("DOUBLE", "BINARY_FLOAT", False),
        ("DOUBLE", "NUMBER", False),
        ("VARCHAR", "VARCHAR2(3 BYTE)", True),
        ("VARCHAR", "CLOB", True),
        ("VARCHAR", "CHAR(3 CHAR)", False),
        ("TIME", "VARCHAR2(8 CHAR)", False),
        ("DATE", "DATE", True),
        ("TIMESTAMP", "DATE", False),
        ("TIMESTAMP", "TIMESTAMP(3)", False),
        ("TIMESTAMP", "TIMESTAMP(9)", True),
        ("TIMESTAMP", "TIMESTAMP(6) WITH TIME ZONE", False),
        ("TIMESTAMP_LTZ", "TIMESTAMP(6) WITH LOCAL TIME ZONE", True),
        ("BYTES", "RAW(16)", True),
        ("ARRAY<BIGINT>", "CLOB", True),
        ("ARRAY<BIGINT>", "XMLTYPE", False),
    ],
)
def test_fits(kind: str, native: str, answer: bool) -> None:
    assert fits(parse_type(kind), native) is answer


@pytest.mark.parametrize(
    ("native", "kind"),
    [
        ("NUMBER", "VARCHAR"),
        ("NUMBER(19,0)", "BIGINT"),
        ("NUMBER(38,0)", "DECIMAL(38, 0)"),
        ("NUMBER(12,2)", "DECIMAL(12, 2)"),
        ("NUMBER(2,5)", "DECIMAL(5, 5)"),
        ("NUMBER(2,-3)", "DECIMAL(5, 0)"),
        ("NUMBER(38,-3)", "VARCHAR"),
        ("VARCHAR2(20 BYTE)", "VARCHAR(20)"),
        ("VARCHAR2(4000 CHAR)", "VARCHAR"),
        ("DATE", "TIMESTAMP"),
        ("TIMESTAMP(9)", "TIMESTAMP"),
        ("TIMESTAMP(6) WITH LOCAL TIME ZONE", "TIMESTAMP_LTZ"),
        ("RAW(16)", "BYTES"),
        ("XMLTYPE", "VARCHAR"),
    ],
)
def test_read(native: str, kind: str) -> None:
    assert str(read_type(native)) == kind


def test_a_type_that_is_not_known_is_not_read() -> None:
    assert not readable(parse_type("VARCHAR"), "XMLTYPE")
    assert readable(parse_type("VARCHAR"), "TIMESTAMP(6)")
    assert not readable(parse_type("BIGINT"), "VARCHAR2(9 CHAR)")


@pytest.mark.parametrize(
    ("row", "native"),
    [
        (("NUMBER", None, None, 0, None), "NUMBER"),
        (("NUMBER", None, 0, 0, None), "NUMBER(38,0)"),
        (("NUMBER", 10, 2, 0, None), "NUMBER(10,2)"),
        (("VARCHAR2", None, None, 20, "C"), "VARCHAR2(20 CHAR)"),
        (("CHAR", None, None, 3, "B"), "CHAR(3 BYTE)"),
        (("RAW", None, None, 16, None), "RAW(16)"),
        (("TIMESTAMP(6)", None, 6, 0, None), "TIMESTAMP(6)"),
        (("CLOB", None, None, 0, None), "CLOB"),
    ],
)
def test_native_types(row: tuple[Any, ...], native: str) -> None:
    assert native_type(*row) == native


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("BIGINT", Decimal(7), "7"),
        ("DECIMAL(10, 2)", Decimal("1.50"), "1.50"),
        ("VARCHAR", Decimal("1E+3"), '"1000"'),
        ("VARCHAR", 'say "ß"', '"say \\"ß\\""'),
        ("VARCHAR", b"\x00\xff", '"00FF"'),
        ("BOOLEAN", Decimal(1), "true"),
        ("FLOAT", 0.10000000149011612, "0.1"),
        ("FLOAT", 16777216.0, "16777216"),
        ("FLOAT", 3.4028234663852886e38, "3.4028235e+38"),
        ("DOUBLE", float("nan"), '"NaN"'),
        ("DOUBLE", float("-inf"), '"-Infinity"'),
        ("DATE", datetime(2026, 1, 2), '"2026-01-02"'),
        ("TIMESTAMP", datetime(2026, 1, 2, 3, 4, 5, 6), '"2026-01-02 03:04:05.000006"'),
        ("TIMESTAMP_LTZ", datetime(2026, 1, 2), '"2026-01-02 00:00:00Z"'),
        ("BYTES", b"\x00\x01", '"AAE="'),
        ("ARRAY<BIGINT>", "[1, null]", "[1, null]"),
        ("BIGINT", None, "null"),
    ],
)
def test_values_are_written_as_json(kind: str, value: Any, text: str) -> None:
    assert row_writer([("c", parse_type(kind))], "t")([value]).decode() == f'{{"c":{text}}}'


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("BIGINT", Decimal("1.5")),
        ("DECIMAL(10, 2)", Decimal("1.234")),
        ("BOOLEAN", Decimal(2)),
        ("DATE", datetime(2026, 1, 2, 3)),
    ],
)
def test_a_value_that_would_lose_something_is_refused_without_being_told(kind: str, value: Any) -> None:
    with pytest.raises(StoreError, match="column") as caught:
        row_writer([("c", parse_type(kind))], "t")([value])
    assert str(value) not in str(caught.value)


@pytest.mark.parametrize(
    ("native", "value", "found"),
    [
        ("NUMBER(10,2)", 1.25, Decimal("1.25")),
        ("NUMBER(1,0)", True, 1),
        ("BINARY_DOUBLE", 1, 1.0),
        ("BLOB", "AAE=", b"\x00\x01"),
        ("DATE", "2026-01-02", datetime(2026, 1, 2)),
        ("TIMESTAMP(6) WITH TIME ZONE", "2026-01-02T03:04:05+02:00", datetime(2026, 1, 2, 1, 4, 5)),
        ("CLOB", [1, "é"], '[1, "é"]'),
        ("CLOB", None, None),
    ],
)
def test_values_are_read_from_json(native: str, value: Any, found: Any) -> None:
    assert from_json(value, native) == found


@pytest.mark.parametrize(
    ("native", "value"), [("NUMBER", "sesame"), ("BLOB", "é"), ("DATE", 5), ("VARCHAR2(9 CHAR)", "")]
)
def test_what_is_no_value_of_a_type(native: str, value: Any) -> None:
    with pytest.raises(ValueError, match="it") as caught:
        from_json(value, native)
    assert "sesame" not in str(caught.value)

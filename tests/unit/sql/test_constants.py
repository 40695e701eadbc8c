"""Constants as values of column types: exact, or refused."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from leatstream.model.types import parse_type
from leatstream.sql.constants import Constant, Misfit, value_of
from leatstream.sql.parser import parse


def constant(text: str) -> Constant:
    (statement,) = parse(f"INSERT INTO x VALUES ({text})")
    return statement.rows[0][0]  # type: ignore[attr-defined,no-any-return]


FITS: list[tuple[str, str, Any]] = [
    ("BOOLEAN", "FALSE", False),
    ("TINYINT", "-128", -128),
    ("BIGINT", "9223372036854775807", 2**63 - 1),
    ("BIGINT", "1e3", 1000),
    ("INTEGER", "5.0", 5),
    ("DOUBLE", "1e308", 1e308),
    ("DOUBLE", "'NaN'", float("nan")),
    ("FLOAT", "'-Infinity'", float("-inf")),
    ("FLOAT", "-0.5", -0.5),
    ("DECIMAL(8, 2)", "-123456.70", Decimal("-123456.70")),
    ("DECIMAL(8, 2)", "0", Decimal("0.00")),
    ("DECIMAL(38, 0)", "9" * 38, Decimal("9" * 38)),
    ("DECIMAL(38, 2)", "-0.10", Decimal("-0.10")),
    ("DECIMAL(5, 2)", "1E2", Decimal("100.00")),
    ("VARCHAR(3)", "'longer'", "longer"),
    ("BYTES", "X''", b""),
    ("VARBINARY", "x'0Aff'", b"\n\xff"),
    ("DATE", "'2024-02-29'", date(2024, 2, 29)),
    ("TIME", "'23:59:59.5'", "23:59:59.5"),
    ("TIMESTAMP", "TIMESTAMP '2024-01-02 03:04:05.678'", datetime(2024, 1, 2, 3, 4, 5, 678000)),
    ("TIMESTAMP_LTZ", "'2024-01-02T03:04:05+01:00'", datetime(2024, 1, 2, 2, 4, 5, tzinfo=UTC)),
    ("TIMESTAMP_LTZ", "'2024-01-02 03:04:05'", datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)),
    ("ARRAY<BIGINT>", "ARRAY[1, NULL]", [1, None]),
    ("MAP<VARCHAR, BIGINT>", "MAP['a', 1, 'b', NULL]", {"a": 1, "b": None}),
    ("STRUCT<a BIGINT, b ARRAY<VARCHAR>>", "STRUCT(1, ARRAY['x'])", (1, ["x"])),
    ("STRUCT<a BIGINT>", "NULL", None),
]


@pytest.mark.parametrize(("kind", "text", "wanted"), FITS, ids=[f"{k}-{t}" for k, t, _ in FITS])
def test_fits(kind: str, text: str, wanted: Any) -> None:
    found = value_of(constant(text), parse_type(kind))
    assert (type(found), repr(found)) == (type(wanted), repr(wanted))


MISFITS = [
    ("BOOLEAN", "1", "a number is no BOOLEAN"),
    ("BOOLEAN", "'true'", "a text"),
    ("TINYINT", "128", "-128 to 127"),
    ("BIGINT", "9223372036854775808", "holds"),
    ("BIGINT", "1e999999", "holds"),
    ("BIGINT", "1e99999999999999999999999", "range"),
    ("DECIMAL(8, 2)", "1e-400", "behind it"),
    ("BIGINT", "'1'", "a text is no BIGINT"),
    ("INTEGER", "1.5", "whole"),
    ("DOUBLE", "1e309", "too large"),
    ("FLOAT", "1e39", "too large"),
    ("DOUBLE", "'one'", "a text"),
    ("DECIMAL(4, 2)", "123", "2 digits before the point"),
    ("DECIMAL(4, 2)", "1.234", "2 behind it"),
    ("VARCHAR", "1", "a number is no VARCHAR"),
    ("BYTES", "'aGk='", "a text is no BYTES"),
    ("DATE", "'2023-02-29'", "no DATE"),
    ("DATE", "'20230201'", "no DATE"),
    ("DATE", "TIMESTAMP '2023-02-01 00:00:00'", "a TIMESTAMP is no DATE"),
    ("TIME", "'24:00:00'", "no TIME"),
    ("TIMESTAMP", "'2024-01-02'", "no TIMESTAMP"),
    ("TIMESTAMP", "'2024-01-02 03:04:05Z'", "no zone"),
    ("TIMESTAMP_LTZ", "'0001-01-01 00:00:00+10:00'", "range"),
    ("ARRAY<BIGINT>", "ARRAY['x']", "a text is no BIGINT"),
    ("ARRAY<BIGINT>", "STRUCT(1)", "a STRUCT"),
    ("MAP<VARCHAR, BIGINT>", "MAP['a']", "in turn"),
    ("MAP<VARCHAR, BIGINT>", "MAP['a', 1, 'a', 2]", "differ"),
    ("STRUCT<a BIGINT, b BIGINT>", "STRUCT(1)", "2 fields; 1 are given"),
]


@pytest.mark.parametrize(("kind", "text", "says"), MISFITS, ids=[f"{k}-{t}" for k, t, _ in MISFITS])
def test_misfits(kind: str, text: str, says: str) -> None:
    with pytest.raises(Misfit) as caught:
        value_of(constant(text), parse_type(kind))
    assert says in caught.value.detail
    assert caught.value.position.length

"""Values of views, and the functions that SQLite computes them with: exact, and bounded in size and time."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from leatstream.errors import RequestError
from leatstream.model.types import parse_type
from leatstream.model.view_values import decode_decimal, encode_decimal
from leatstream.services.selects.snapshots import reader
from leatstream.views.faults import gathered
from leatstream.views.sqlite_functions import Fault, register

LONG = [
    "123456789012345678901234567890",
    "-123456789012345678901234567890",
    "-99999999999999999999999999999999999999",
    "0.12345678901234567890123456789012345678",
    "-9999999999999999999999999999.9999999999",
]


def scale_of(text: str) -> int:
    return len(text.partition(".")[2])


@pytest.mark.parametrize("text", LONG)
def test_decimals_keep_every_digit(text: str) -> None:
    assert str(decode_decimal(encode_decimal(Decimal(text)))) == text


def test_long_decimals_sort_as_numbers() -> None:
    texts = sorted(LONG, key=lambda text: encode_decimal(Decimal(text)))
    assert texts == sorted(LONG, key=Decimal)


@pytest.mark.parametrize("text", LONG)
@pytest.mark.parametrize("encoded", [True, False], ids=["sqlite", "postgresql"])
def test_decimals_are_shown_with_every_digit(text: str, encoded: bool) -> None:
    show = reader(parse_type(f"DECIMAL(38, {scale_of(text)})"), encoded)
    assert show(encode_decimal(Decimal(text)) if encoded else Decimal(text)) == text


class Functions:
    """The functions, called one at a time."""

    def __init__(self) -> None:
        self.connection = sqlite3.connect(":memory:")
        self.fault: Fault = register(self.connection)

    def __call__(self, call: str, *arguments: Any) -> Any:
        return self.connection.execute(f"SELECT {call}", arguments).fetchone()[0]

    def fails(self, call: str, *arguments: Any) -> str:
        """What is told of a call that cannot be computed."""
        with pytest.raises(sqlite3.OperationalError):
            self(call, *arguments)
        assert self.fault.detail is not None
        return self.fault.detail


@pytest.fixture
def functions() -> Functions:
    return Functions()


@pytest.mark.parametrize("text", LONG)
def test_functions_keep_every_digit(functions: Functions, text: str) -> None:
    given, scale = encode_decimal(Decimal(text)), scale_of(text)
    minus = text[1:] if text.startswith("-") else f"-{text}"
    assert functions("leat_negative(?, 'DECIMAL')", given) == encode_decimal(Decimal(minus))
    assert functions("leat_abs(?, 'DECIMAL')", given) == encode_decimal(Decimal(text.lstrip("-")))
    assert functions(f"leat_cast(?, 'DECIMAL', 'VARCHAR', 38, {scale})", given) == text
    assert functions(f"leat_cast(?, 'VARCHAR', 'DECIMAL', 38, {scale})", text) == given
    assert functions(f"leat_round(?, {scale}, 'DECIMAL')", given) == given


@pytest.mark.parametrize("text", ["1e1000000", "-1e1000000", "1e99999999"])
@pytest.mark.parametrize("wanted", ["BIGINT", "INTEGER", "DECIMAL"])
def test_a_huge_number_is_told_at_once(functions: Functions, text: str, wanted: str) -> None:
    """Made an int it would have as many digits, and nothing could stop that."""
    told = functions.fails(f"leat_cast(?, 'VARCHAR', '{wanted}', 38, 0)", text)
    assert "range" in told or "does not fit" in told or "cannot be read" in told


def test_a_huge_zero_is_zero(functions: Functions) -> None:
    assert functions("leat_cast('0e1000000', 'VARCHAR', 'DECIMAL', 38, 0)") == "p00"
    assert functions("leat_round(15, -999999, 'BIGINT')") == 0


@pytest.mark.parametrize(
    "call",
    [
        "leat_pad('x', 400000000, 'ab', 'l')",
        "leat_pad('x', 400000000, 'ab', 'r')",
        "leat_replace(leat_pad('x', 1000000, 'x', 'r'), 'x', 'yy')",
        "leat_replace(leat_pad('x', 1000000, 'x', 'r'), 'x', leat_pad('x', 1000000, 'y', 'r'))",
    ],
)
def test_texts_that_functions_make_have_a_bound(functions: Functions, call: str) -> None:
    assert functions.fails(call) == "a text has more than 1000000 characters"
    assert functions.fault.sqlstate == "54000"


def test_long_fillings_are_not_multiplied(functions: Functions) -> None:
    long = "leat_pad('x', 1000000, 'y', 'r')"
    assert functions(f"leat_length(leat_pad('x', 1000000, {long}, 'l'))") == 1_000_000
    assert functions("leat_pad('x', 6, 'ab', 'l')") == "ababax"


def test_texts_put_together_have_a_bound(functions: Functions) -> None:
    with pytest.raises(sqlite3.DataError, match="too big"):
        functions("length(hex(zeroblob(20000000)))")


@pytest.mark.parametrize("text", ["1.5", "1e3", "1_000", "", "x", "\u0661"])
def test_only_whole_numbers_are_read_as_integers(functions: Functions, text: str) -> None:
    """As the engine does it under ANSI."""
    assert "cannot be read" in functions.fails("leat_cast(?, 'VARCHAR', 'INTEGER', 0, 0)", text)
    assert functions("leat_cast(' -7 ', 'VARCHAR', 'INTEGER', 0, 0)") == -7


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (" -1.5e3\n", -1500.0),
        (".5", 0.5),
        ("1.", 1.0),
        ("1e999", float("inf")),
        ("nAn", "NaN"),
        ("-NaN", "NaN"),
        ("+Inf", float("inf")),
        ("-infinity", float("-inf")),
    ],
)
def test_numbers_are_read_as_doubles(functions: Functions, text: str, number: Any) -> None:
    assert functions("leat_cast(?, 'VARCHAR', 'DOUBLE', 0, 0)", text) == number


@pytest.mark.parametrize("text", ["1_000", "", "x", "1e", "+nan", "infi", "\u0661", "\u00a01"])
@pytest.mark.parametrize("wanted", ["DOUBLE", "FLOAT"])
def test_nothing_else_is_read_as_a_double(functions: Functions, wanted: str, text: str) -> None:
    assert "cannot be read" in functions.fails(f"leat_cast(?, 'VARCHAR', '{wanted}', 0, 0)", text)


@pytest.mark.parametrize(
    "text",
    ["2026", "2026-1", "2026-1-1", " 2026-01-01 ", "2026-01-01 noon", "2026-1-1T", "+002026-01-01T25:00"],
)
def test_a_date_may_be_short_and_anything_may_follow(functions: Functions, text: str) -> None:
    """As the engine reads it: 20,454 days after 1970-01-01."""
    assert functions("leat_cast(?, 'VARCHAR', 'DATE', 0, 0)", text) == 20_454


@pytest.mark.parametrize(
    "text",
    [
        "20260101",
        "2026-W01-1",
        "2026 noon",
        "2026-",
        "2026-1-",
        "2026-13-01",
        "2026-02-30",
        "26-1-1",
        "",
        "x",
    ],
)
@pytest.mark.parametrize("wanted", ["DATE", "TIMESTAMP", "TIMESTAMP_LTZ"])
def test_nothing_else_is_read_as_a_date(functions: Functions, wanted: str, text: str) -> None:
    assert "cannot be read" in functions.fails(f"leat_cast(?, 'VARCHAR', '{wanted}', 0, 0)", text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2026", 0.0),
        ("2026-1-1", 0.0),
        ("2026-1-1 1", 3600.0),
        ("2026-01-01T1:2", 3720.0),
        ("2026-01-01 1:2:3.", 3723.0),
        ("2026-01-01 01:02:03.5", 3723.5),
        ("2026-01-01 00:00:00.1234569", 0.123456),
        ("2026-01-01 00:00:00Z", 0.0),
    ],
)
@pytest.mark.parametrize("wanted", ["TIMESTAMP", "TIMESTAMP_LTZ"])
def test_a_time_may_be_short(functions: Functions, wanted: str, text: str, seconds: float) -> None:
    expected = 20_454 * 86_400_000_000 + round(seconds * 1_000_000)
    assert functions(f"leat_cast(?, 'VARCHAR', '{wanted}', 0, 0)", text) == expected


def test_a_zone_counts_for_a_time_that_has_one(functions: Functions) -> None:
    text, midnight = "2026-01-01 02:00:00+02:00", 20_454 * 86_400_000_000
    assert functions("leat_cast(?, 'VARCHAR', 'TIMESTAMP_LTZ', 0, 0)", text) == midnight
    assert functions("leat_cast(?, 'VARCHAR', 'TIMESTAMP', 0, 0)", text) == midnight + 7_200_000_000


@pytest.mark.parametrize("clock", ["T", " noon", " 000000", " 24:00:00", " 00:00Z", " 00:00:00+19:00"])
def test_nothing_else_is_read_as_a_time(functions: Functions, clock: str) -> None:
    told = functions.fails("leat_cast(?, 'VARCHAR', 'TIMESTAMP', 0, 0)", f"2026-01-01{clock}")
    assert "cannot be read" in told


@pytest.mark.parametrize(
    ("values", "greatest", "least"),
    [
        ((1, 3, 2), 3, 1),
        ((None, 1, 2), 2, 1),
        ((None, None), None, None),
        (("B", "a", None), "a", "B"),
        ((1.5, "NaN", 2.0), "NaN", 1.5),
        ((b"a", b"b"), b"b", b"a"),
    ],
)
def test_greatest_and_least(functions: Functions, values: Any, greatest: Any, least: Any) -> None:
    """NULLs are passed over, and not-a-number is above all, as in Spark."""
    marks = ", ".join("?" for _ in values)
    assert functions(f"leat_greatest({marks})", *values) == greatest
    assert functions(f"leat_least({marks})", *values) == least


def test_an_answer_has_a_bound() -> None:
    """No more rows are taken than asked for, and the server holds no more than it can."""
    taken = []

    def rows() -> Iterator[tuple[object, ...]]:
        for i in range(1_000):
            taken.append(i)
            yield (text, i)

    text = "x" * 1_000
    assert len(gathered(rows(), 10)) == 10
    assert len(taken) <= 11
    taken.clear()
    text = "x" * 1_000_000
    with pytest.raises(RequestError) as told:
        gathered(rows(), 1_000)
    assert told.value.sqlstate == "54000"
    assert len(taken) == 68

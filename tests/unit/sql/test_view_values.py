"""Values of views, and the functions that SQLite computes them with: exact, and bounded in size and time."""

from __future__ import annotations

import sqlite3
from decimal import Decimal
from typing import Any

import pytest

from leatstream.model.types import parse_type
from leatstream.model.view_values import decode_decimal, encode_decimal
from leatstream.services.selects.snapshots import reader
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

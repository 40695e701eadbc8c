"""Users' functions without Spark: which results pass, which arguments fit, what an error tells."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import Any

import pytest

from leatstream.model.types import parse_type
from leatstream_jobs.functions.user_code import MARK, Aggregate, Code, Scalar, UserCodeError
from leatstream_jobs.functions.user_functions import fits
from leatstream_jobs.functions.user_values import BadResult, outgoing

MOMENT = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("kind", "value", "given"),
    [
        ("BIGINT", 5, 5),
        ("DOUBLE", 5, 5.0),
        ("DECIMAL(5, 2)", Decimal("1.5"), Decimal("1.50")),
        ("DECIMAL(5, 2)", 7, Decimal("7.00")),
        (
            "DECIMAL(38, 0)",
            Decimal("123456789012345678901234567890"),
            Decimal("123456789012345678901234567890"),
        ),
        ("DECIMAL(38, 10)", 10**27, Decimal("1000000000000000000000000000.0000000000")),
        ("TIMESTAMP_LTZ", MOMENT, MOMENT),
        ("TIMESTAMP", MOMENT.replace(tzinfo=None), MOMENT.replace(tzinfo=None)),
        ("ARRAY<BIGINT>", (1, None), [1, None]),
        ("STRUCT<a BIGINT, b VARCHAR>", {"b": "x"}, (None, "x")),
        ("MAP<VARCHAR, BIGINT>", {"k": None}, {"k": None}),
        ("VARCHAR", None, None),
    ],
)
def test_results_pass(kind: str, value: Any, given: Any) -> None:
    assert outgoing(kind)(value) == given


@pytest.mark.parametrize(
    ("kind", "value", "told"),
    [
        ("BIGINT", "5", "str, not BIGINT"),
        ("BIGINT", True, "bool, not BIGINT"),
        ("BIGINT", 1.0, "float, not BIGINT"),
        ("TINYINT", 128, "a number beyond TINYINT"),
        ("DECIMAL(3, 1)", Decimal("1.25"), "a number that does not fit DECIMAL(3, 1)"),
        ("DECIMAL(3, 1)", 100, "a number that does not fit DECIMAL(3, 1)"),
        ("DATE", MOMENT, "datetime, not DATE"),
        ("TIMESTAMP", MOMENT, "datetime with a time zone, not TIMESTAMP"),
        ("TIMESTAMP_LTZ", MOMENT.replace(tzinfo=None), "datetime without a time zone, not TIMESTAMP_LTZ"),
        ("STRUCT<a BIGINT>", {"z": 1}, "a dict with other keys than STRUCT<a BIGINT> has"),
        ("ARRAY<VARCHAR>", [b"x"], "bytes, not VARCHAR"),
    ],
)
def test_other_results_are_told_by_type(kind: str, value: Any, told: str) -> None:
    with pytest.raises(BadResult) as caught:
        outgoing(kind)(value)
    assert str(caught.value) == told


@pytest.mark.parametrize(
    ("given", "wanted", "fit"),
    [
        ("SMALLINT", "BIGINT", True),
        ("BIGINT", "INTEGER", False),
        ("BIGINT", "DECIMAL(20, 1)", True),
        ("BIGINT", "DECIMAL(19, 1)", False),
        ("DECIMAL(5, 2)", "DECIMAL(6, 2)", True),
        ("DECIMAL(5, 2)", "DECIMAL(6, 1)", False),
        ("DECIMAL(5, 2)", "DOUBLE", True),
        ("DOUBLE", "FLOAT", False),
        ("VARCHAR(3)", "VARCHAR", True),
        ("VARCHAR", "BIGINT", False),
        ("DATE", "TIMESTAMP", True),
        ("TIMESTAMP", "TIMESTAMP_LTZ", False),
        ("ARRAY<SMALLINT>", "ARRAY<BIGINT>", True),
        ("MAP<VARCHAR, BIGINT>", "MAP<VARCHAR, INTEGER>", False),
    ],
)
def test_arguments_fit_without_loss(given: str, wanted: str, fit: bool) -> None:
    assert fits(parse_type(given), parse_type(wanted)) is fit


def code(source: str, handler: str, returns: str = "BIGINT") -> Code:
    return Code("mine", "mine.py", source, handler, ["BIGINT"], returns, 30.0)


def test_an_error_tells_the_line_and_not_the_value() -> None:
    call = Scalar(code("def f(x):\n    y = {}\n    return y[x]\n", "f"))
    with pytest.raises(UserCodeError) as caught:
        call(12345)
    told = json.loads(str(caught.value).removeprefix(f"{MARK} ").removesuffix(f" {MARK}_END"))
    assert told == {"function": "mine", "file": "mine.py", "error": "KeyError", "line": 3, "text": ""}
    assert "12345" not in str(caught.value)


def test_many_rows_are_merged() -> None:
    source = (
        "class Total:\n"
        "    def create(self): return [0, 0]\n"
        "    def accumulate(self, acc, x): return [acc[0] + x, acc[1]]\n"
        "    def merge(self, a, b): return [a[0] + b[0], a[1] + b[1] + 1]\n"
        "    def finish(self, acc): return acc[0] * 10 + acc[1]\n"
    )
    assert Aggregate(code(source, "Total"))([(1,)] * 25_000) == 250_002
    assert Aggregate(code(source, "Total"))([]) == 0

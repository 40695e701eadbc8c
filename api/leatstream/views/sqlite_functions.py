"""What SQLite cannot do as Spark does it, in Python: exact numbers, any letter's case, dates."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import DecimalException
from typing import Any

from leatstream.model.view_values import MOST_CHARACTERS, micros, moment
from leatstream.views.sqlite_aggregates import AGGREGATES
from leatstream.views.sqlite_casts import cast
from leatstream.views.sqlite_numbers import NUMBERS, NotComputable

# Of a text, of bytes and of a row, also while it is put together.
MOST_BYTES = 32 << 20


@dataclass(slots=True)
class Fault:
    """What a function said last: SQLite itself only reports that one failed."""

    detail: str | None = None
    sqlstate: str = "22000"


def register(connection: sqlite3.Connection) -> Fault:
    """Give a connection the functions that the SQL of ``sql.snapshot`` calls."""
    fault = Fault()

    def kept(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            if any(value is None for value in arguments):
                return None
            try:
                return function(*arguments)
            except (NotComputable, ArithmeticError, DecimalException, ValueError, OverflowError) as error:
                fault.detail = str(error) if isinstance(error, NotComputable) else "a value is out of range"
                fault.sqlstate = error.sqlstate if isinstance(error, NotComputable) else "22003"
                raise

        return call

    for name, function, count in _FUNCTIONS:
        connection.create_function(name, count, kept(function), deterministic=True)
    for name, choose in (("leat_greatest", max), ("leat_least", min)):
        connection.create_function(name, -1, _extreme(choose), deterministic=True)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_BYTES)
    for name, made in AGGREGATES.items():
        connection.create_aggregate(name, 1, made)
    return fault


def _extreme(choose: Callable[..., Any]) -> Callable[..., Any]:
    """The greatest or least of values of one type, NULLs passed over; the text NaN is above all doubles."""

    def call(*values: Any) -> Any:
        return choose(
            (v for v in values if v is not None), key=lambda v: (isinstance(v, str), v), default=None
        )

    return call


# Texts


def _substring(text: str, start: int, length: int) -> str:
    first = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    return text[max(first, 0) : max(first + max(length, 0), 0)]


def _pad(text: str, length: int, filling: str, side: str) -> str:
    if length <= len(text) or not filling:
        return text[: max(length, 0)]
    _bounded(length)
    missing = length - len(text)
    more = (filling * (missing // len(filling) + 1))[:missing]
    return more + text if side == "l" else text + more


def _replace(text: str, part: str, new: str) -> str:
    if not part:
        return text
    if len(new) > len(part):
        _bounded(len(text) + text.count(part) * (len(new) - len(part)))
    return text.replace(part, new)


def _bounded(length: int) -> None:
    if length > MOST_CHARACTERS:
        raise NotComputable(f"a text has more than {MOST_CHARACTERS} characters", "54000")


def _find(text: str, part: str) -> int:
    return text.find(part) + 1


# Time


def _field(count: int, unit: str) -> Any:
    when = moment(count)
    if unit == "quarter":
        return (when.month + 2) // 3
    if unit == "week":
        return when.isocalendar()[1]
    if unit == "doy":
        return when.timetuple().tm_yday
    if unit == "dow":
        return when.isoweekday() % 7 + 1
    return getattr(when, unit)


def _truncated(unit: str, count: int) -> int:
    when = moment(count)
    place = {"year": 0, "quarter": 1, "month": 1, "week": 2, "day": 2, "hour": 3, "minute": 4, "second": 5}[
        unit
    ]
    fields = [when.year, when.month, when.day, when.hour, when.minute, when.second]
    made = datetime(*[f if i <= place else (1 if i < 3 else 0) for i, f in enumerate(fields)])  # type: ignore[arg-type]
    if unit == "quarter":
        made = made.replace(month=(when.month - 1) // 3 * 3 + 1)
    if unit == "week":
        made -= timedelta(days=made.weekday())
    return micros(made)


def _months(count: int, months: int) -> int:
    when = moment(count)
    total = when.year * 12 + when.month - 1 + months
    year, month = divmod(total, 12)
    first = datetime(year, month + 1, 1)
    following = datetime(year + (month == 11), (month + 1) % 12 + 1, 1)
    return micros(when.replace(year=year, month=month + 1, day=min(when.day, (following - first).days)))


_FUNCTIONS: list[tuple[str, Callable[..., Any], int]] = [
    *NUMBERS,
    ("leat_cast", cast, 5),
    ("leat_upper", str.upper, 1),
    ("leat_lower", str.lower, 1),
    ("leat_length", len, 1),
    ("leat_reverse", lambda text: text[::-1], 1),
    ("leat_trim", lambda text, side: {"b": text.strip, "l": text.lstrip, "r": text.rstrip}[side](" "), 2),
    ("leat_substring", _substring, 3),
    ("leat_pad", _pad, 4),
    ("leat_find", _find, 2),
    ("leat_replace", _replace, 3),
    ("leat_field", _field, 2),
    ("leat_truncated", _truncated, 2),
    ("leat_months", _months, 2),
]

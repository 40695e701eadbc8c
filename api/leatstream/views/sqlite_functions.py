"""What SQLite cannot do as Spark does it, in Python: exact numbers, any letter's case, dates."""

from __future__ import annotations

import math
import re
import sqlite3
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, DecimalException
from typing import Any

from leatstream.model.exact import EXACT, scaled
from leatstream.model.spark_texts import is_number, read_date, read_double, read_moment, trimmed
from leatstream.model.view_values import (
    MOST_CHARACTERS,
    NAN,
    day,
    decode_decimal,
    decode_double,
    encode_decimal,
    encode_double,
    micros,
    moment,
)
from leatstream.views.sqlite_aggregates import AGGREGATES

# Of a text, of bytes and of a row, also while it is put together.
MOST_BYTES = 32 << 20
_WHOLE = re.compile(r"[+-]?[0-9]+")
_EPOCH = date(1970, 1, 1).toordinal()
_RANGES = {"TINYINT": 7, "SMALLINT": 15, "INTEGER": 31, "BIGINT": 63}


class NotComputable(Exception):
    """A value that cannot be computed; ``sqlstate`` as PostgreSQL has it."""

    def __init__(self, detail: str, sqlstate: str = "22000") -> None:
        super().__init__(detail)
        self.sqlstate = sqlstate


@dataclass(slots=True)
class Fault:
    """What a function said last: SQLite itself only tells that one failed."""

    detail: str | None = None
    sqlstate: str = "22000"


def register(connection: sqlite3.Connection) -> Fault:
    """Give a connection the functions that ``sql.snapshot.dialects`` calls."""
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


# Numbers


def _zero() -> NotComputable:
    return NotComputable("division by zero", "22012")


def _integer(operator: str, left: int, right: int, kind: str) -> int:
    if operator in ("DIV", "%"):
        if right == 0:
            raise _zero()
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return _fit(quotient if operator == "DIV" else left - quotient * right, kind)
    return _fit({"+": left + right, "-": left - right, "*": left * right}[operator], kind)


def _fit(value: int, kind: str) -> int:
    bits = _RANGES[kind]
    if not -(1 << bits) <= value < 1 << bits:
        raise NotComputable(f"a value does not fit {kind}", "22003")
    return value


def _fitted(number: Decimal, kind: str) -> int:
    # Looked at before it is made an int: 1e999999 would have a million digits, and nothing could stop that.
    if number and number.adjusted() > 20:
        raise NotComputable(f"a value does not fit {kind}", "22003")
    return _fit(int(number) if number else 0, kind)


def _real(operator: str, left: Any, right: Any) -> Any:
    one, other = decode_double(left), decode_double(right)
    if operator in ("/", "%") and other == 0:
        raise _zero()
    if operator == "/":
        return encode_double(one / other)
    if operator == "%":
        return encode_double(math.fmod(one, other) if not math.isinf(one) else math.nan)
    try:
        return encode_double({"+": one + other, "-": one - other, "*": one * other}[operator])
    except OverflowError:
        return math.copysign(math.inf, one * math.copysign(1, other))


def _decimal(operator: str, left: str, right: str, precision: int, scale: int) -> Any:
    one, other = decode_decimal(left), decode_decimal(right)
    if operator in ("/", "%", "DIV") and other == 0:
        raise _zero()
    if operator == "DIV":
        return _fit(int(EXACT.divide_int(one, other)), "BIGINT")
    made = {
        "+": EXACT.add,
        "-": EXACT.subtract,
        "*": EXACT.multiply,
        "/": EXACT.divide,
        "%": EXACT.remainder,
    }[operator](one, other)
    return encode_decimal(_rounded(made, precision, scale))


def _rounded(value: Decimal, precision: int, scale: int) -> Decimal:
    made = scaled(value, scale, ROUND_HALF_UP)
    if made and made.adjusted() >= precision - scale:
        raise NotComputable(f"a value does not fit DECIMAL({precision}, {scale})", "22003")
    return made


def _round(value: Any, scale: int, kind: str) -> Any:
    if kind == "DECIMAL":
        return encode_decimal(scaled(decode_decimal(value), scale, ROUND_HALF_UP))
    number = Decimal(repr(decode_double(value))) if kind == "DOUBLE" else Decimal(value)
    if not number.is_finite():
        return value
    if scale >= -int(number.as_tuple().exponent):
        return value
    made = scaled(number, scale, ROUND_HALF_UP)
    return float(made) if kind == "DOUBLE" else _fitted(made, "BIGINT")


def _whole(word: str, value: Any, kind: str) -> Any:
    turn = math.floor if word == "floor" else math.ceil
    if kind == "DECIMAL":
        return encode_decimal(Decimal(turn(decode_decimal(value))))
    number = decode_double(value)
    if not math.isfinite(number):
        raise NotComputable("a value does not fit BIGINT", "22003")
    return _fit(turn(number), "BIGINT")


def _math(word: str, value: Any) -> Any:
    number = decode_double(value)
    if word == "sqrt":
        return NAN if number < 0 or math.isnan(number) else math.sqrt(number)
    if word == "exp":
        try:
            return encode_double(math.exp(number))
        except OverflowError:
            return math.inf
    return None if number <= 0 else encode_double(math.log(number))


def _power(base: Any, exponent: Any) -> Any:
    try:
        made = decode_double(base) ** decode_double(exponent)
    except (OverflowError, ZeroDivisionError):
        return math.inf
    return NAN if isinstance(made, complex) else encode_double(made)


def _absolute(value: Any, kind: str) -> Any:
    if kind == "DECIMAL":
        return encode_decimal(decode_decimal(value).copy_abs())
    return encode_double(abs(decode_double(value))) if kind in ("FLOAT", "DOUBLE") else _fit(abs(value), kind)


def _negative(value: Any, kind: str) -> Any:
    if kind == "DECIMAL":
        return encode_decimal(decode_decimal(value).copy_negate())
    return encode_double(-decode_double(value)) if kind in ("FLOAT", "DOUBLE") else _fit(-value, kind)


def _sign(value: Any, kind: str) -> float:
    number = float(decode_decimal(value)) if kind == "DECIMAL" else decode_double(value)
    return (number > 0) - (number < 0) + 0.0


# Conversions


def _cast(value: Any, given: str, wanted: str, precision: int, scale: int) -> Any:
    number: Any
    if wanted == "DECIMAL":
        number = _as_decimal(value, given)
        return encode_decimal(_rounded(number, precision, scale))
    if wanted in _RANGES:
        if given == "VARCHAR" and not _WHOLE.fullmatch(trimmed(value)):
            raise _unreadable(wanted)
        return _fitted(_as_decimal(value, given), wanted)
    if wanted == "DOUBLE":
        if given == "DECIMAL":
            return float(decode_decimal(value))
        if given == "VARCHAR":
            try:
                return encode_double(read_double(value))
            except ValueError:
                raise _unreadable(wanted) from None
        return encode_double(decode_double(value))
    if wanted == "FLOAT":
        return _single(value, given)
    if wanted == "VARCHAR":
        return _text(value, given, scale)
    if wanted == "BOOLEAN":
        return _truth(value, given)
    return _as_time(value, given, wanted)


def _single(value: Any, given: str) -> Any:
    """The nearest number of single precision, infinite beyond the largest."""
    number = decode_double(_cast(value, given, "DOUBLE", 0, 0))
    exact = number if given == "DOUBLE" or not math.isfinite(number) else _as_decimal(value, given)
    # A value between two doubles is moved to the odd one, so that it is rounded once and not twice.
    if exact != number and not struct.unpack("<q", struct.pack("<d", number))[0] & 1:
        number = math.nextafter(number, math.inf if exact > number else -math.inf)
    try:
        return encode_double(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError:
        return math.copysign(math.inf, number)


def _unreadable(wanted: str) -> NotComputable:
    return NotComputable(f"a text cannot be read as {wanted}", "22018")


def _as_decimal(value: Any, given: str) -> Decimal:
    if given == "DECIMAL":
        return decode_decimal(value)
    if given in ("FLOAT", "DOUBLE"):
        if not math.isfinite(decode_double(value)):
            raise NotComputable("a value is out of range", "22003")
        return Decimal(repr(float(value)))
    if given == "VARCHAR":
        if not is_number(trimmed(value)):
            raise _unreadable("a number")
        return Decimal(trimmed(value))
    return Decimal(int(value))


def _text(value: Any, given: str, scale: int) -> str:
    if given == "DECIMAL":
        return format(scaled(decode_decimal(value), scale), "f")
    if given == "BOOLEAN":
        return "true" if value else "false"
    if given == "DATE":
        return day(value).isoformat()
    if given in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        shown = moment(value).isoformat(" ", "microseconds")
        return shown.rstrip("0").rstrip(".")
    return str(value)


def _truth(value: Any, given: str) -> int:
    if given != "VARCHAR":
        return int(value != 0)
    word = trimmed(value).lower()
    if word in ("t", "true", "y", "yes", "1"):
        return 1
    if word in ("f", "false", "n", "no", "0"):
        return 0
    raise _unreadable("BOOLEAN")


def _as_time(value: Any, given: str, wanted: str) -> int:
    if given == "VARCHAR":
        try:
            if wanted == "DATE":
                return read_date(value).toordinal() - _EPOCH
            return micros(read_moment(value, zoned=wanted == "TIMESTAMP_LTZ"))
        except ValueError:
            raise _unreadable(wanted) from None
    if wanted == "DATE":
        return int(value) if given == "DATE" else int(value) // 86_400_000_000
    return int(value) * 86_400_000_000 if given == "DATE" else int(value)


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
    ("leat_integer", _integer, 4),
    ("leat_real", _real, 3),
    ("leat_decimal", _decimal, 5),
    ("leat_round", _round, 3),
    ("leat_whole", _whole, 3),
    ("leat_math", _math, 2),
    ("leat_power", _power, 2),
    ("leat_abs", _absolute, 2),
    ("leat_negative", _negative, 2),
    ("leat_sign", _sign, 2),
    ("leat_cast", _cast, 5),
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

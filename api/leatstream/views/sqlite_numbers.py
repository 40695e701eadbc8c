"""Numbers as Spark has them, for SQLite: exact, bounded by their type, NaN above all."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from leatstream.model.exact import EXACT, scaled
from leatstream.model.view_values import NAN, decode_decimal, decode_double, encode_decimal, encode_double

RANGES = {"TINYINT": 7, "SMALLINT": 15, "INTEGER": 31, "BIGINT": 63}


class NotComputable(Exception):
    """A value that cannot be computed; ``sqlstate`` as PostgreSQL has it."""

    def __init__(self, detail: str, sqlstate: str = "22000") -> None:
        super().__init__(detail)
        self.sqlstate = sqlstate


def _zero() -> NotComputable:
    return NotComputable("division by zero", "22012")


def _integer(operator: str, left: int, right: int, kind: str) -> int:
    if operator in ("/", "DIV", "%"):
        if right == 0:
            raise _zero()
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return _fit(left - quotient * right if operator == "%" else quotient, kind)
    return _fit({"+": left + right, "-": left - right, "*": left * right}[operator], kind)


def _fit(value: int, kind: str) -> int:
    bits = RANGES[kind]
    if not -(1 << bits) <= value < 1 << bits:
        raise NotComputable(f"a value does not fit {kind}", "22003")
    return value


def fitted(number: Decimal, kind: str) -> int:
    """A number without its fraction, as a type of whole numbers. Raises NotComputable if it does not fit."""
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
    return encode_decimal(rounded(made, precision, scale))


def rounded(value: Decimal, precision: int, scale: int) -> Decimal:
    """A number as DECIMAL(precision, scale). Raises NotComputable if it does not fit."""
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
    return float(made) if kind == "DOUBLE" else fitted(made, "BIGINT")


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


# Name, function, count of arguments.
NUMBERS: list[tuple[str, Callable[..., Any], int]] = [
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
]

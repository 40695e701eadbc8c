"""Plain values between bytes and columns: days for DATE, microseconds for TIMESTAMP, text for TIME.

What a text must look like to be a value of a type is said here once, in patterns that Java and Python read
alike; ``text_values`` has the same rules as Spark SQL.
"""

from __future__ import annotations

import math
import re
import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction

from leatstream.model.types import DataType

FIRST_DAY, LAST_DAY = -719_162, 2_932_896  # of the years 1 to 9999
DEEPEST = 64  # objects and lists inside each other, in one JSON record
_DAY = 86_400_000_000  # microseconds

# The whole text must match.
DAY = r"(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}"
TIME = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?"
MOMENT = (
    DAY + r"[ T](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,9})?)?"
    r"(?: ?(?:Z|[+-](?:(?:0[0-9]|1[0-7])(?::?[0-5][0-9])?|18(?::?00)?)))?"
)
DECIMAL = r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
BASE64 = r"(?:[A-Za-z0-9+/]{4})*+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"


class Undecodable(ValueError):
    """A record that is no row; its text says why and quotes nothing of it."""


class Unencodable(ValueError):
    """A row that is no record; its text says why and quotes nothing of it."""

    def marked(self) -> str:
        """The text so that the driver finds it again in Spark's error."""
        return f"LEAT_UNENCODABLE {self} LEAT_UNENCODABLE_END"


def fitting(value: Decimal, kind: DataType) -> Decimal:
    """The same number; raised when the column cannot hold it exactly."""
    precision, scale = (*kind.parameters, 0)[:2] if kind.parameters else (10, 0)
    if not value.is_finite():
        raise Undecodable("a value is no number")
    _, digits, exponent = value.as_tuple()
    point = int(exponent)
    tail = 0
    while tail < len(digits) and digits[len(digits) - 1 - tail] == 0:
        tail += 1
    if value and (-(point + tail) > scale or len(digits) + point > precision - scale):
        raise Undecodable("a number does not fit its DECIMAL column")
    return value if value else Decimal(0)


def decimal_of(text: str, kind: DataType) -> Decimal:
    """The number that a text's digits are, if the column can hold it exactly; Undecodable if not."""
    if not re.fullmatch(DECIMAL, text):
        raise Undecodable("a text is no decimal number")
    mantissa, _, exponent = text.lower().partition("e")
    if not mantissa.strip("-0."):
        return Decimal(0)
    if len(exponent) > 9:  # beyond what Decimal takes, and any DECIMAL
        raise Undecodable("a number does not fit its DECIMAL column")
    return fitting(Decimal(text), kind)


def nearest_single(text: str) -> float:
    """The FLOAT nearest to a number's digits, which need not be the one nearest to their DOUBLE."""
    double = float(text)
    single = _single(double)
    if double == 0 or math.isinf(double) or single == double:
        return single
    exact = Decimal(text)
    beside = math.nextafter(double, math.inf if exact > Decimal(double) else -math.inf)
    other = _single(beside)
    if exact == Decimal(double) or other == single or math.isinf(other):
        return single
    middle = (Fraction(single) + Fraction(other)) / 2
    return max(single, other) if Fraction(exact) > middle else min(single, other)


def _single(value: float) -> float:
    found: float = struct.unpack("f", struct.pack("f", value))[0]
    return found


def day_of(text: str) -> int:
    """The day, counted from 1970, of ``YYYY-MM-DD``; Undecodable if it is none."""
    try:
        if re.fullmatch(DAY, text):
            return date.fromisoformat(text).toordinal() + FIRST_DAY - 1
    except ValueError:
        pass
    raise Undecodable("a text is no day, YYYY-MM-DD")


def moment_of(text: str) -> int:
    """Microseconds since 1970 of date and time of day, in UTC without a zone; Undecodable if it is none."""
    if not re.fullmatch(MOMENT, text):
        raise Undecodable("a text is no date with a time of day")
    try:
        return moment(micros_of(datetime.fromisoformat(re.sub(" (?=[Z+-])", "", text))))
    except ValueError:
        raise Undecodable("a text is no date with a time of day") from None


def time_text(micros: int) -> str:
    """A time of day as this product's TIME is: ``hh:mm:ss[.f]``.

    Raises:
        Undecodable: it is no time of a day.
    """
    if not 0 <= micros < _DAY:
        raise Undecodable("a time of day is beyond the day")
    seconds, rest = divmod(micros, 1_000_000)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{rest:06d}".rstrip("0") if rest else text


def moment(micros: int) -> int:
    """The same; Undecodable beyond the years 1 to 9999."""
    if not FIRST_DAY * _DAY <= micros < (LAST_DAY + 1) * _DAY:
        raise Undecodable("a time is beyond the years 1 to 9999")
    return micros


def micros_of(value: int | datetime) -> int:
    """Microseconds since 1970 of a moment; one without a zone is taken as it stands."""
    if isinstance(value, int):
        return value
    aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    distance = aware - datetime(1970, 1, 1, tzinfo=UTC)
    return (distance.days * 86_400 + distance.seconds) * 1_000_000 + distance.microseconds


def time_micros(text: str) -> int:
    """Microseconds of a TIME's text.

    Raises:
        Unencodable: it is no time of day, or finer than microseconds.
    """
    main, _, fraction = text.partition(".")
    parts = main.split(":")
    if len(parts) != 3 or not all(p.isascii() and p.isdigit() and len(p) == 2 for p in parts):
        raise Unencodable("a TIME is not written hh:mm:ss")
    if fraction and not (fraction.isascii() and fraction.isdigit()):
        raise Unencodable("a TIME is not written hh:mm:ss")
    if fraction[6:].strip("0"):
        raise Unencodable("a TIME is finer than microseconds")
    hours, minutes, seconds = map(int, parts)
    if hours > 23 or minutes > 59 or seconds > 59:
        raise Unencodable("a TIME is beyond the day")
    return (hours * 3600 + minutes * 60 + seconds) * 1_000_000 + int(fraction[:6].ljust(6, "0"))

"""CAST as Spark does it, for SQLite."""

from __future__ import annotations

import math
import re
import struct
from datetime import date
from decimal import Decimal
from typing import Any

from leatstream.model.exact import scaled
from leatstream.model.spark_texts import is_number, read_date, read_double, read_moment, trimmed
from leatstream.model.view_values import (
    day,
    decode_decimal,
    decode_double,
    encode_decimal,
    encode_double,
    micros,
    moment,
)
from leatstream.views.sqlite_numbers import RANGES, NotComputable, fitted, rounded

_WHOLE = re.compile(r"[+-]?[0-9]+")
_EPOCH = date(1970, 1, 1).toordinal()


def cast(value: Any, given: str, wanted: str, precision: int, scale: int) -> Any:
    """A value of type ``given`` as one of ``wanted``. Raises NotComputable if it cannot be read as that."""
    number: Any
    if wanted == "DECIMAL":
        number = _as_decimal(value, given)
        return encode_decimal(rounded(number, precision, scale))
    if wanted in RANGES:
        if given == "VARCHAR" and not _WHOLE.fullmatch(trimmed(value)):
            raise _unreadable(wanted)
        return fitted(_as_decimal(value, given), wanted)
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
    number = decode_double(cast(value, given, "DOUBLE", 0, 0))
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

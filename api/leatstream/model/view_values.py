"""How the values of a materialized view lie in SQLite, which has only integers, doubles, texts and bytes.

    BOOLEAN                 0 or 1
    TINYINT … BIGINT        integer
    FLOAT, DOUBLE           double; not-a-number, which SQLite has none of, is the text NaN
    DECIMAL                 a text that sorts as the number does, see ``encode_decimal``
    DATE                    days since 1970-01-01
    TIMESTAMP, …_LTZ        microseconds since 1970-01-01 00:00:00 (of UTC)
    VARCHAR, TIME           text
    BYTES, VARBINARY        bytes
    ARRAY, MAP, STRUCT      JSON text, as the jobs write it

All of them compare, sort and group as Spark does it. PostgreSQL has types of its own for all but the last.
"""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from leatstream.model.types import DataType

NAN = "NaN"
# Of a text that a function over views makes, whichever database computes it.
MOST_CHARACTERS = 1_000_000
# What the text begins with at which PostgreSQL stumbles when one is longer: by SQL alone it raises nothing.
TOO_LONG = "leat-too-long"
INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
FLOATS = ("FLOAT", "DOUBLE")
NESTED = ("ARRAY", "MAP", "STRUCT")
MOMENTS = ("TIMESTAMP", "TIMESTAMP_LTZ")
_EPOCH = datetime(1970, 1, 1)
_COMPLEMENT = str.maketrans("0123456789", "9876543210")


def encode_decimal(value: Decimal) -> str:
    """A text that sorts as the number does, whatever the scales; equal numbers give equal texts.

    A positive number is ``p``, the count of its digits before the point in two digits, and its digits without
    needless zeros: 12.5 is ``p0212.5``. A negative one is ``n`` and the same, every digit taken from nine,
    closed by ``~``, so that longer fractions come first. Zero is ``p00``.
    """
    text = format(value.copy_abs(), "f")
    whole, _, fraction = text.partition(".")
    whole, fraction = whole.lstrip("0"), fraction.rstrip("0")
    body = f"{len(whole):02d}{whole}" + (f".{fraction}" if fraction else "")
    if value < 0 and (whole or fraction):
        return "n" + body.translate(_COMPLEMENT) + "~"
    return "p" + body


def decode_decimal(text: str) -> Decimal:
    """The number of ``encode_decimal``'s text."""
    body = text[1:]
    if text[0] == "n":
        return Decimal("0" + body[:-1].translate(_COMPLEMENT)[2:]).copy_negate()
    return Decimal("0" + body[2:])


def encode_double(value: float) -> float | str:
    """A double as SQLite keeps it: it has no not-a-number, and takes it for NULL."""
    return NAN if math.isnan(value) else value


def decode_double(value: float | str) -> float:
    """The double of what SQLite keeps."""
    return math.nan if value == NAN else float(value)


def encode(value: Any, kind: DataType) -> Any:
    """A Python value (date, Decimal, …) as it lies in SQLite."""
    if value is None:
        return None
    if kind.kind == "DECIMAL":
        return encode_decimal(value)
    if kind.kind in FLOATS:
        return encode_double(float(value))
    if kind.kind == "BOOLEAN":
        return int(value)
    if isinstance(value, datetime):
        return micros(value)
    if isinstance(value, date):
        return (value - _EPOCH.date()).days
    return value


def micros(moment: datetime) -> int:
    """Microseconds since 1970; a moment without zone is taken as it stands."""
    plain = moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
    return (plain - _EPOCH) // timedelta(microseconds=1)


def moment(count: int) -> datetime:
    """The moment so many microseconds after 1970, without zone; OverflowError outside the years 1 to 9999."""
    return _EPOCH + timedelta(microseconds=count)


def day(count: int) -> date:
    """The date of so many days since 1970; OverflowError outside the years 1 to 9999."""
    return _EPOCH.date() + timedelta(days=count)

"""JSON records read exactly, in plain Python: what every reader of JSON is compared with.

Nothing of the product is used but its types. Numbers are read from their digits (``decimal``), days and
moments by ``datetime``, structure by ``json``. It is slow, and meant to be obviously right.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
import struct
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, localcontext
from fractions import Fraction
from json.decoder import scanstring
from typing import Any

from leatstream.model.types import DataType, parse_type

DEEPEST = 64  # objects and lists inside each other, in one record

_BLANKS = " \t\r\n"
_BITS = {"TINYINT": 7, "SMALLINT": 15, "INTEGER": 31, "BIGINT": 63}
_WHOLE = re.compile(r"-?[0-9]+", re.ASCII)
_QUOTED_DECIMAL = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?", re.ASCII)
_WORDS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_TIME = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?", re.ASCII)
_MOMENT = re.compile(
    r"(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})[T ](?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})"
    r"(:(?P<second>[0-9]{2})(\.(?P<fraction>[0-9]{1,9}))?)?"
    r"( ?(Z|(?P<sign>[+-])(?P<hours>[0-9]{2})(:?(?P<minutes>[0-9]{2}))?))?",
    re.ASCII,
)


class NotExact(ValueError):
    """The record is no row of these columns."""


def read_record(columns: Sequence[tuple[str, str]], record: bytes) -> dict[str, Any]:
    """The values of a record's columns.

    DATE is a ``date``, TIMESTAMP a ``datetime`` without a zone, TIMESTAMP_LTZ one in UTC, TIME its text,
    DECIMAL a ``Decimal``, BYTES are ``bytes``; ARRAY is a list, MAP and STRUCT are dicts.

    Args:
        columns: names and types, ``NOT NULL`` behind a type if need be.
        record: its bytes.

    Raises:
        NotExact: it is not one JSON object, or a value does not fit its type.
    """
    text = _text_of(record)
    raw = dict(members(text))
    found = {}
    for name, told in columns:
        kind = parse_type(told.removesuffix(" NOT NULL"))
        value = read_value(kind, raw.get(name, "null"))
        if value is None and told.endswith(" NOT NULL"):
            raise NotExact(f"{name} is null")
        found[name] = value
    return found


def read_value(kind: DataType, raw: str) -> Any:
    """The value of one JSON text."""
    if raw == "null":
        return None
    return _READERS[kind.kind](kind, raw)


def _text_of(record: bytes) -> str:
    try:
        text = record.decode("utf-8").removeprefix("\ufeff").strip(_BLANKS)
        json.loads(text, parse_constant=_refuse, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        raise NotExact("no JSON") from None
    if not text.startswith("{"):
        raise NotExact("no object")
    depth, at = 0, 0
    while at < len(text):
        if text[at] == '"':
            at = scanstring(text, at + 1)[1]
            continue
        depth += (text[at] in "{[") - (text[at] in "}]")
        if depth > DEEPEST:
            raise NotExact("too deep")
        at += 1
    return text


def _refuse(word: str) -> Any:
    raise ValueError(word)


def members(raw: str) -> Iterator[tuple[str, str]]:
    """Names and texts of an object's members; the text is known to be JSON."""
    at = _after_blanks(raw, 1)
    while raw[at] != "}":
        name, at = scanstring(raw, at + 1)
        at = _after_blanks(raw, _after_blanks(raw, at) + 1)  # the colon
        end = _end_of(raw, at)
        yield name, raw[at:end]
        at = _next(raw, end)


def _elements(raw: str) -> Iterator[str]:
    at = _after_blanks(raw, 1)
    while raw[at] != "]":
        end = _end_of(raw, at)
        yield raw[at:end]
        at = _next(raw, end)


def _next(raw: str, at: int) -> int:
    at = _after_blanks(raw, at)
    return _after_blanks(raw, at + 1) if raw[at] == "," else at


def _after_blanks(raw: str, at: int) -> int:
    while raw[at] in _BLANKS:
        at += 1
    return at


def _end_of(raw: str, at: int) -> int:
    # Digits are not looked at here: there may be more of them than Python turns into a number.
    return json.JSONDecoder(parse_int=str, parse_float=str).raw_decode(raw, at)[1]


# -- values --------------------------------------------------------------------------------------------------


def _string(raw: str) -> str:
    if not raw.startswith('"'):
        raise NotExact("no text")
    return _whole_characters(scanstring(raw, 1)[0])


def _whole_characters(text: str) -> str:
    if any("\ud800" <= c <= "\udfff" for c in text):
        raise NotExact("half a character, which no UTF-8 has")
    return text


def _number(raw: str) -> str:
    if raw[0] not in "-0123456789":
        raise NotExact("no number")
    return raw


def _boolean(_: DataType, raw: str) -> bool:
    if raw not in ("true", "false"):
        raise NotExact("no boolean")
    return raw == "true"


def _whole(kind: DataType, raw: str) -> int:
    if not _WHOLE.fullmatch(raw) or len(raw) > 20:
        raise NotExact("no whole number")
    value, bound = int(raw), 1 << _BITS[kind.kind]
    if not -bound <= value < bound:
        raise NotExact("beyond the type")
    return value


def _double(_: DataType, raw: str) -> float:
    if raw.startswith('"'):
        word = _string(raw)
        if word not in _WORDS:
            raise NotExact("no number")
        return _WORDS[word]
    return float(_number(raw))


def _float(kind: DataType, raw: str) -> float:
    """The nearest single, from the digits and not from the nearest double."""
    value = _double(kind, raw)
    if raw.startswith('"') or value in (0.0, _WORDS["Infinity"], _WORDS["-Infinity"]):
        return value
    near: float = struct.unpack("f", struct.pack("f", value))[0]
    if math.isinf(near):
        return near
    exact = Fraction(raw)
    bits = struct.unpack("i", struct.pack("f", near))[0]
    best = near
    for other in (bits - 1, bits + 1):
        if other & 0x7F800000 == 0x7F800000 or bits & 0x7FFFFFFF == 0:
            continue
        single = struct.unpack("f", struct.pack("i", other))[0]
        distance, least = abs(Fraction(single) - exact), abs(Fraction(best) - exact)
        if distance < least or (distance == least and other % 2 == 0):
            best = single
    return best


def _decimal(kind: DataType, raw: str) -> Decimal:
    text = _string(raw) if raw.startswith('"') else _number(raw)
    if not _QUOTED_DECIMAL.fullmatch(text):
        raise NotExact("no decimal number")
    precision, scale = (*kind.parameters, 0)[:2] if kind.parameters else (10, 0)
    return exact_decimal(text, precision, scale)


def exact_decimal(text: str, precision: int, scale: int) -> Decimal:
    """The same number with ``scale`` digits behind the point.

    Raises:
        NotExact: it has more digits behind or before the point than there is room for.
    """
    mantissa, _, exponent = text.lower().partition("e")
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    if not digits:
        return Decimal(0).scaleb(-scale)
    power = int(exponent or "0") - len(fraction) + len(digits) - len(digits.rstrip("0"))
    digits = digits.rstrip("0")
    if -power > scale or len(digits) + power > precision - scale:
        raise NotExact("beyond the precision or scale")
    with localcontext() as context:
        context.prec = 100
        value = Decimal(digits).scaleb(power).quantize(Decimal(1).scaleb(-scale))
    return value.copy_negate() if mantissa.startswith("-") else value


def _varchar(_: DataType, raw: str) -> str:
    return _string(raw) if raw.startswith('"') else raw


def _bytes(_: DataType, raw: str) -> bytes:
    try:
        return base64.b64decode(_string(raw), validate=True)
    except (ValueError, binascii.Error):
        raise NotExact("no base64") from None


def _date(_: DataType, raw: str) -> date:
    return exact_date(_string(raw))


def exact_date(text: str) -> date:
    """A day of the years 1 to 9999 as ``YYYY-MM-DD``."""
    try:
        if _DATE.fullmatch(text):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise NotExact("no day")


def _time(_: DataType, raw: str) -> str:
    text = _string(raw)
    if not _TIME.fullmatch(text):
        raise NotExact("no time of day")
    return text


def exact_moment(text: str) -> datetime:
    """Date and time of day in SQL's or ISO's form, in UTC; without a zone it is UTC."""
    parts = _MOMENT.fullmatch(text)
    if parts is None:
        raise NotExact("no date and time of day")
    micros = (parts["fraction"] or "").ljust(6, "0")[:6]
    away = timedelta(hours=int(parts["hours"] or 0), minutes=int(parts["minutes"] or 0))
    try:
        local = datetime.combine(exact_date(parts["day"]), datetime.min.time(), UTC).replace(
            hour=int(parts["hour"]),
            minute=int(parts["minute"]),
            second=int(parts["second"] or 0),
            microsecond=int(micros),
        )
        if int(parts["minutes"] or 0) > 59 or away > timedelta(hours=18):
            raise NotExact("no zone")
        return local + away if parts["sign"] == "-" else local - away
    except (ValueError, OverflowError):
        raise NotExact("no date and time of day") from None


def _moment(_: DataType, raw: str) -> datetime:
    return exact_moment(_string(raw))


def _plain_moment(_: DataType, raw: str) -> datetime:
    return exact_moment(_string(raw)).replace(tzinfo=None)


def _array(kind: DataType, raw: str) -> list[Any]:
    if not raw.startswith("["):
        raise NotExact("no list")
    return [read_value(kind.arguments[0], part) for part in _elements(raw)]


def _map(kind: DataType, raw: str) -> dict[str, Any]:
    if not raw.startswith("{"):
        raise NotExact("no object")
    given = {_whole_characters(name): part for name, part in members(raw)}
    return {name: read_value(kind.arguments[1], part) for name, part in given.items()}


def _struct(kind: DataType, raw: str) -> dict[str, Any]:
    if not raw.startswith("{"):
        raise NotExact("no object")
    given = dict(members(raw))
    pairs = zip(kind.fields, kind.arguments, strict=True)
    return {name: read_value(part, given.get(name, "null")) for name, part in pairs}


_READERS: dict[str, Callable[[DataType, str], Any]] = {
    "BOOLEAN": _boolean,
    **dict.fromkeys(_BITS, _whole),
    "FLOAT": _float,
    "DOUBLE": _double,
    "DECIMAL": _decimal,
    "VARCHAR": _varchar,
    **dict.fromkeys(("BYTES", "VARBINARY"), _bytes),
    "DATE": _date,
    "TIME": _time,
    "TIMESTAMP": _plain_moment,
    "TIMESTAMP_LTZ": _moment,
    "ARRAY": _array,
    "MAP": _map,
    "STRUCT": _struct,
}

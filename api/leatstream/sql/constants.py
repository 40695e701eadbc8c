"""Values spelled out in VALUES, and what each is as a value of a column's type."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, tzinfo
from decimal import Decimal, InvalidOperation
from math import isinf
from typing import Any, Literal

from leatstream.errors import Position
from leatstream.model.types import DataType

ConstantKind = Literal[
    "null", "boolean", "number", "string", "date", "timestamp", "bytes", "array", "map", "struct"
]
# What each kind is called in an error, and how it is written.
_SHOWN = {
    "null": "NULL",
    "boolean": "a BOOLEAN",
    "number": "a number",
    "string": "a text",
    "date": "a DATE",
    "timestamp": "a TIMESTAMP",
    "bytes": "bytes",
    "array": "an ARRAY",
    "map": "a MAP",
    "struct": "a STRUCT",
}
_FORMS = {
    "BOOLEAN": "TRUE or FALSE",
    "VARCHAR": "'text'",
    "TIME": "'HH:MM:SS'",
    "DATE": "DATE 'YYYY-MM-DD'",
    "TIMESTAMP": "TIMESTAMP 'YYYY-MM-DD HH:MM:SS'",
    "TIMESTAMP_LTZ": "TIMESTAMP_LTZ 'YYYY-MM-DD HH:MM:SSZ'",
    "BYTES": "X'0aff'",
    "VARBINARY": "X'0aff'",
    "ARRAY": "ARRAY[…]",
    "MAP": "MAP[key, value, …]",
    "STRUCT": "STRUCT(…)",
}
_BITS = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64}
_TIME = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?\Z")
_STAMP = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)?\Z")
_SPECIAL = {"nan": "nan", "infinity": "inf", "-infinity": "-inf"}
_MAX_FLOAT = 3.4028234663852886e38


@dataclass(frozen=True, slots=True)
class Constant:
    """A value as it is written.

    Attributes:
        kind: ``date``, ``timestamp`` and ``bytes`` are ``DATE '…'``, ``TIMESTAMP '…'`` (or TIMESTAMP_LTZ)
            and ``X'…'``.
        text: of numbers (with their sign) and texts; hex digits of bytes; ``true`` or ``false``.
        items: elements of ``ARRAY[…]``, keys and values in turn of ``MAP[…]``, fields of ``STRUCT(…)``.
    """

    kind: ConstantKind
    position: Position
    text: str = ""
    items: tuple[Constant, ...] = ()


class Misfit(ValueError):
    """A constant that its column cannot hold: what is wrong, where, and what to write instead."""

    def __init__(self, detail: str, position: Position, hint: str | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.position = position
        self.hint = hint


def value_of(constant: Constant, kind: DataType) -> Any:
    """The Python value that a column of this type gets.

    Returns:
        None, bool, int, float, Decimal, str, bytes, date, datetime (TIMESTAMP without zone, TIMESTAMP_LTZ in
        UTC), list, dict of MAP and tuple of STRUCT.

    Raises:
        Misfit: the type cannot hold it without loss.
    """
    if constant.kind == "null":
        return None
    if kind.kind in ("ARRAY", "MAP", "STRUCT"):
        return _nested(constant, kind)
    if kind.kind in _BITS or kind.kind in ("FLOAT", "DOUBLE", "DECIMAL"):
        return _number(constant, kind)
    if kind.kind in ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ"):
        return _moment(constant, kind)
    if kind.kind == "BOOLEAN" and constant.kind == "boolean":
        return constant.text == "true"
    if kind.kind in ("BYTES", "VARBINARY") and constant.kind == "bytes":
        return bytes.fromhex(constant.text)
    if kind.kind == "VARCHAR" and constant.kind == "string":
        return constant.text
    if kind.kind == "TIME" and constant.kind == "string" and _TIME.match(constant.text):
        return constant.text
    raise _misfit(constant, kind)


def _misfit(constant: Constant, kind: DataType, why: str | None = None) -> Misfit:
    form = _FORMS.get(kind.kind, "a number")
    hint = None if why else f"Write {form}, or NULL."
    return Misfit(why or f"{_SHOWN[constant.kind]} is no {kind}", constant.position, hint)


def _number(constant: Constant, kind: DataType) -> int | float | Decimal:
    if kind.kind in ("FLOAT", "DOUBLE") and constant.kind == "string":
        special = _SPECIAL.get(constant.text.lower())
        if special is not None:
            return float(special)
    if constant.kind != "number":
        raise _misfit(constant, kind)
    try:
        number = Decimal(constant.text)
    except InvalidOperation:  # an exponent of very many digits
        raise _misfit(constant, kind, f"this number is out of {kind}'s range") from None
    if kind.kind in _BITS:
        return _whole(constant, kind, number)
    if kind.kind == "DECIMAL":
        return _decimal(constant, kind, number)
    value = float(number)
    if isinf(value) or (kind.kind == "FLOAT" and abs(value) > _MAX_FLOAT):
        raise _misfit(constant, kind, f"this number is too large for {kind}")
    return value


def _whole(constant: Constant, kind: DataType, number: Decimal) -> int:
    limit = 1 << (_BITS[kind.kind] - 1)
    # Compared before it is made an int: 1e999999 would have a million digits.
    if number.adjusted() > 20 or not -limit <= number < limit:
        raise _misfit(constant, kind, f"{kind} holds {-limit} to {limit - 1}")
    if number != number.to_integral_value():
        raise _misfit(constant, kind, f"{kind} holds whole numbers")
    return int(number)


def _decimal(constant: Constant, kind: DataType, number: Decimal) -> Decimal:
    precision, scale = (*kind.parameters, 0)[:2] if kind.parameters else (10, 0)
    # By its digits: normalize and quantize would round to the context's 28.
    sign, digits, power = number.as_tuple()
    exponent = int(power)
    figures = list(digits) if number else [0]
    while len(figures) > 1 and not figures[-1]:
        figures.pop()
        exponent += 1
    if number and (number.adjusted() >= precision - scale or -exponent > scale):
        shown = f"{precision - scale} digits before the point and {scale} behind it"
        raise _misfit(constant, kind, f"DECIMAL({precision}, {scale}) holds {shown}")
    padding = [0] * (exponent + scale) if number else []
    return Decimal((sign, (*figures, *padding), -scale))


def _moment(constant: Constant, kind: DataType) -> date | datetime:
    wanted = ("date", "string") if kind.kind == "DATE" else ("timestamp", "string")
    if constant.kind not in wanted:
        raise _misfit(constant, kind)
    text = constant.text.strip()
    try:
        if kind.kind == "DATE":
            return date.fromisoformat(text if re.match(r"\d{4}-\d\d-\d\d\Z", text) else "")
        moment = datetime.fromisoformat(text if _STAMP.match(text) else "")
    except ValueError:
        detail = f"this is no {kind.kind}"
        raise Misfit(detail, constant.position, f"Write {_FORMS[kind.kind]}.") from None
    if kind.kind == "TIMESTAMP_LTZ":
        return _in_utc(constant, kind, moment)
    if moment.tzinfo is not None:
        raise Misfit("a TIMESTAMP has no zone", constant.position, "Leave the zone out.")
    return moment


def _in_utc(constant: Constant, kind: DataType, moment: datetime) -> datetime:
    zone: tzinfo = moment.tzinfo or UTC
    try:
        return moment.replace(tzinfo=zone).astimezone(UTC)
    except OverflowError:
        raise _misfit(constant, kind, f"this moment is out of {kind.kind}'s range") from None


def _nested(constant: Constant, kind: DataType) -> Any:
    if constant.kind != kind.kind.lower():
        raise _misfit(constant, kind)
    items = constant.items
    if kind.kind == "ARRAY":
        return [value_of(item, kind.arguments[0]) for item in items]
    if kind.kind == "STRUCT":
        if len(items) != len(kind.fields):
            detail = f"{kind} has {len(kind.fields)} fields; {len(items)} are given"
            raise Misfit(detail, constant.position)
        return tuple(value_of(item, part) for item, part in zip(items, kind.arguments, strict=True))
    if len(items) % 2:
        raise Misfit("MAP[…] takes keys and values in turn", constant.position)
    found: dict[Any, Any] = {}
    for key, item in zip(items[::2], items[1::2], strict=True):
        name = value_of(key, kind.arguments[0])
        if name is None or name in found:
            raise Misfit("a MAP's keys differ and are not NULL", key.position)
        found[name] = value_of(item, kind.arguments[1])
    return found

"""SQL values as Python ones, for users' functions, and back. NULL is None everywhere.

BOOLEAN bool; TINYINT to BIGINT int; FLOAT, DOUBLE float; DECIMAL Decimal; VARCHAR, TIME str; BYTES bytes;
DATE date; TIMESTAMP datetime without zone; TIMESTAMP_LTZ datetime in UTC; ARRAY list; MAP dict; STRUCT dict.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

from leatstream.model.exact import scaled
from leatstream.model.types import DataType, parse_type

_INTEGERS = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64}
Convert = Callable[[Any], Any]


class BadResult(TypeError):
    """A result that is not of the declared type; its text names types only."""


def incoming(text: str) -> Convert | None:
    """How values of a type are handed to the user's code; None: as Spark gives them."""
    return _incoming(parse_type(text))


def _incoming(kind: DataType) -> Convert | None:
    if kind.kind in ("BYTES", "VARBINARY"):
        return bytes
    if kind.kind == "TIMESTAMP_LTZ":
        # Spark gives the worker's local time without a zone.
        return lambda value: value.astimezone(datetime.UTC)
    inner = [_incoming(part) for part in kind.arguments]
    if kind.kind == "ARRAY":
        return lambda value: [_apply(inner[0], item) for item in value]
    if kind.kind == "MAP":
        return lambda value: {_apply(inner[0], k): _apply(inner[1], v) for k, v in value.items()}
    if kind.kind == "STRUCT":
        names = kind.fields
        return lambda value: {n: _apply(f, v) for n, f, v in zip(names, inner, tuple(value), strict=True)}
    return None


def _apply(convert: Convert | None, value: Any) -> Any:
    return value if convert is None or value is None else convert(value)


def outgoing(text: str) -> Convert:
    """How a result is checked and handed to Spark; nothing is rounded, cut or guessed.

    The function it gives raises BadResult.
    """
    return _outgoing(parse_type(text))


def _outgoing(kind: DataType) -> Convert:
    check = _checker(kind)

    def convert(value: Any) -> Any:
        return None if value is None else check(value)

    return convert


def _checker(kind: DataType) -> Convert:
    word = kind.kind
    if word in _INTEGERS:
        return _integer(kind)
    if word in ("FLOAT", "DOUBLE"):
        return lambda value: float(_require(value, (int, float), kind))
    if word == "DECIMAL":
        return _decimal(kind)
    if word == "DATE":
        return lambda value: _refuse(value, kind, isinstance(value, datetime.datetime), datetime.date)
    if word == "TIMESTAMP":
        return lambda value: _refuse(value, kind, _aware(value), datetime.datetime)
    if word == "TIMESTAMP_LTZ":
        return lambda value: _refuse(value, kind, not _aware(value), datetime.datetime)
    if word in ("ARRAY", "MAP", "STRUCT"):
        return _nested(kind)
    plain: dict[str, Any] = {"BOOLEAN": bool, "VARCHAR": str, "TIME": str}
    wanted = plain.get(word, (bytes, bytearray))
    return lambda value: _require(value, wanted, kind)


def _integer(kind: DataType) -> Convert:
    limit = 1 << (_INTEGERS[kind.kind] - 1)

    def check(value: Any) -> Any:
        _require(value, int, kind)
        if not -limit <= value < limit:
            raise _bad(f"a number beyond {kind}")
        return value

    return check


def _decimal(kind: DataType) -> Convert:
    precision, scale = (*kind.parameters, 0)[:2] if kind.parameters else (10, 0)

    def check(value: Any) -> Any:
        number = Decimal(_require(value, (int, Decimal), kind))
        try:
            fitted = scaled(number, scale)
        except InvalidOperation:
            raise _bad(f"a number beyond {kind}") from None
        if fitted != number or len(fitted.as_tuple().digits) > precision:
            raise _bad(f"a number that does not fit {kind}")
        return fitted

    return check


def _nested(kind: DataType) -> Convert:
    inner = [_outgoing(part) for part in kind.arguments]
    if kind.kind == "ARRAY":
        return lambda value: [inner[0](item) for item in _require(value, (list, tuple), kind)]
    if kind.kind == "MAP":
        return lambda value: {inner[0](k): inner[1](v) for k, v in _require(value, dict, kind).items()}

    def struct(value: Any) -> Any:
        _require(value, dict, kind)
        if set(value) - set(kind.fields):
            raise _bad(f"a dict with other keys than {kind} has")
        return tuple(f(value.get(n)) for n, f in zip(kind.fields, inner, strict=True))

    return struct


def _aware(value: Any) -> bool:
    return isinstance(value, datetime.datetime) and value.tzinfo is not None


def _require(value: Any, wanted: Any, kind: DataType) -> Any:
    # bool is an int to Python, and no number to SQL.
    number = wanted is not bool and isinstance(value, bool)
    return _refuse(value, kind, number, wanted)


def _refuse(value: Any, kind: DataType, wrong: bool, wanted: Any) -> Any:
    if wrong or not isinstance(value, wanted):
        zone = ""
        if kind.kind in ("TIMESTAMP", "TIMESTAMP_LTZ") and isinstance(value, datetime.datetime):
            zone = " with a time zone" if value.tzinfo is not None else " without a time zone"
        raise _bad(f"{type(value).__name__}{zone}, not {kind}")
    return value


def _bad(text: str) -> BadResult:
    return BadResult(text)

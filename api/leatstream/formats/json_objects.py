"""JSON objects behind a schema's id, read into the declared columns without Spark.

A column takes the property of exactly its name; null and absent are NULL; others are passed over. The columns
decide, not the schema; what each type takes is the table of docs/sql/types.md, but for whole numbers, which
JSON Schema may write ``1.0``. Every value is read from its own piece of the text, so that no digit is lost.
Values here are plain: days for a DATE, microseconds for a TIMESTAMP, text for a TIME.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

from leatstream.formats.plain_values import (
    DEEPEST,
    TIME,
    Undecodable,
    day_of,
    decimal_of,
    moment_of,
    nearest_single,
)
from leatstream.model.types import DataType

Convert = Callable[[str], Any]

_BITS = {"TINYINT": 7, "SMALLINT": 15, "INTEGER": 31, "BIGINT": 63}
_WORDS = {f'"{word}"': float(word) for word in ("NaN", "Infinity", "-Infinity")}
_BLANKS = re.compile(r"[ \t\n\r]*")


@dataclass(frozen=True, slots=True)
class JsonReader:
    """Reads records of any JSON Schema.

    Attributes:
        getters: for each column what takes its value out of a record.
    """

    getters: tuple[Callable[[Mapping[str, str]], Any], ...]

    @classmethod
    def of(cls, names: Sequence[str], types: Sequence[DataType]) -> JsonReader:
        """Make one for these columns."""
        return cls(tuple(_getter(name, kind) for name, kind in zip(names, types, strict=True)))

    def read(self, value: bytes, at: int) -> Mapping[str, str]:
        """The members of the object that begins at a byte and ends with the value, as they stand.

        Raises:
            Undecodable: there is no JSON object.
        """
        return dict(_members(object_text(value[at:])))


def object_text(data: bytes) -> str:
    """The text of one JSON object, without what may stand around it; Undecodable."""
    try:
        text = data.decode().removeprefix("\ufeff").strip(" \t\n\r")
        _WHOLE.decode(text)
    except (ValueError, RecursionError):
        raise Undecodable("it holds no JSON behind the schema's id") from None
    if not text.startswith("{"):
        raise Undecodable("it holds no JSON object behind the schema's id")
    if text.count("{") + text.count("[") > DEEPEST and _depth(text) > DEEPEST:
        raise Undecodable(f"its objects and lists are nested more than {DEEPEST} deep")
    return text


def _depth(text: str) -> int:
    depth = most = at = 0
    while at < len(text):
        if text[at] == '"':
            at = scanstring(text, at + 1)[1]
            continue
        depth += (text[at] in "{[") - (text[at] in "}]")
        most = max(most, depth)
        at += 1
    return most


def _no_number(word: str) -> Any:
    raise ValueError(word)


# Numbers stay text: there may be more digits than Python turns into a number.
_WHOLE = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=_no_number)


def _members(raw: str) -> Iterator[tuple[str, str]]:
    """Names and texts of the members of what is known to be an object."""
    at = _next(raw, 1)
    while raw[at] != "}":
        name, at = scanstring(raw, at + 1)
        at = _next(raw, _next(raw, at) + 1)  # behind the colon
        end = _WHOLE.raw_decode(raw, at)[1]
        yield _whole_characters(name), raw[at:end]
        at = _next(raw, end)
        at = _next(raw, at + 1) if raw[at] == "," else at


def _elements(raw: str) -> Iterator[str]:
    at = _next(raw, 1)
    while raw[at] != "]":
        end = _WHOLE.raw_decode(raw, at)[1]
        yield raw[at:end]
        at = _next(raw, end)
        at = _next(raw, at + 1) if raw[at] == "," else at


def _next(raw: str, at: int) -> int:
    return _BLANKS.match(raw, at).end()  # type: ignore[union-attr]


def _getter(name: str, kind: DataType) -> Callable[[Mapping[str, str]], Any]:
    convert = _inner(kind)
    return lambda members: convert(members.get(name, "null"))


def _unfit() -> Undecodable:
    return Undecodable("a value does not fit its column")


def _string(raw: str) -> str:
    if not raw.startswith('"'):
        raise _unfit()
    return _whole_characters(scanstring(raw, 1)[0])


def _whole_characters(text: str) -> str:
    if not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
        raise Undecodable("a text holds half a character, which UTF-8 cannot")
    return text


def _number(raw: str) -> str:
    if raw[0] not in "-0123456789":
        raise _unfit()
    return raw


def _boolean(_: DataType) -> Convert:
    def convert(raw: str) -> Any:
        if raw not in ("true", "false"):
            raise _unfit()
        return raw == "true"

    return convert


def _whole(kind: DataType) -> Convert:
    bound = 1 << _BITS[kind.kind]
    widest = DataType("DECIMAL", (19, 0))

    def convert(raw: str) -> Any:
        # JSON Schema calls 1.0 an integer.
        value = int(decimal_of(_number(raw), widest))
        if not -bound <= value < bound:
            raise _unfit()
        return value

    return convert


def _double(_: DataType) -> Convert:
    def convert(raw: str) -> Any:
        return _WORDS[raw] if raw in _WORDS else float(_number(raw))

    return convert


def _float(_: DataType) -> Convert:
    def convert(raw: str) -> Any:
        return _WORDS[raw] if raw in _WORDS else nearest_single(_number(raw))

    return convert


def _decimal(kind: DataType) -> Convert:
    def convert(raw: str) -> Any:
        return decimal_of(_string(raw) if raw.startswith('"') else _number(raw), kind)

    return convert


def _text(_: DataType) -> Convert:
    def convert(raw: str) -> Any:
        return _string(raw) if raw.startswith('"') else raw

    return convert


def _bytes(_: DataType) -> Convert:
    def convert(raw: str) -> Any:
        try:
            return base64.b64decode(_string(raw), validate=True)
        except (ValueError, binascii.Error):
            raise _unfit() from None

    return convert


def _date(_: DataType) -> Convert:
    return lambda raw: day_of(_string(raw))


def _time(_: DataType) -> Convert:
    def convert(raw: str) -> Any:
        text = _string(raw)
        if not re.fullmatch(TIME, text):
            raise _unfit()
        return text

    return convert


def _moment(_: DataType) -> Convert:
    return lambda raw: moment_of(_string(raw))


def _array(kind: DataType) -> Convert:
    inner = _inner(kind.arguments[0])

    def convert(raw: str) -> Any:
        if not raw.startswith("["):
            raise _unfit()
        return [inner(item) for item in _elements(raw)]

    return convert


def _map(kind: DataType) -> Convert:
    inner = _inner(kind.arguments[1])

    def convert(raw: str) -> Any:
        if not raw.startswith("{"):
            raise _unfit()
        return [(name, inner(item)) for name, item in dict(_members(raw)).items()]

    return convert


def _struct(kind: DataType) -> Convert:
    getters = [(name, _getter(name, part)) for name, part in zip(kind.fields, kind.arguments, strict=True)]

    def convert(raw: str) -> Any:
        if not raw.startswith("{"):
            raise _unfit()
        members = dict(_members(raw))
        return {name: get(members) for name, get in getters}

    return convert


def _inner(kind: DataType) -> Convert:
    convert = _CONVERTERS[kind.kind](kind)
    return lambda raw: None if raw == "null" else convert(raw)


_CONVERTERS: Mapping[str, Callable[[DataType], Convert]] = {
    "BOOLEAN": _boolean,
    **dict.fromkeys(_BITS, _whole),
    "FLOAT": _float,
    "DOUBLE": _double,
    "DECIMAL": _decimal,
    "VARCHAR": _text,
    **dict.fromkeys(("BYTES", "VARBINARY"), _bytes),
    "DATE": _date,
    "TIME": _time,
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_LTZ"), _moment),
    "ARRAY": _array,
    "MAP": _map,
    "STRUCT": _struct,
}

"""JSON objects behind a schema's id, read into the declared columns and written from them, without Spark.

A column takes the property of exactly its name; null and absent are NULL; others are passed over. The columns
decide, not the schema: VARCHAR takes any value (numbers and objects as their JSON text), whole numbers must
fit, DECIMAL takes quoted numbers too, DATE, TIME and the TIMESTAMPs their ISO 8601 or SQL form, UTC without a
zone; BYTES is base64. Values here are plain: days for a DATE, microseconds for a TIMESTAMP, text for a TIME.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from leatstream.formats.plain_values import FIRST_DAY, Undecodable, Unencodable, fitting, micros_of, moment
from leatstream.model.types import DataType

Convert = Callable[[Any], Any]

_BITS = {"TINYINT": 7, "SMALLINT": 15, "INTEGER": 31, "BIGINT": 63}
_TIME = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?\Z")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?( ?(Z|[+-]\d\d:?\d\d))?\Z")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# -- reading -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class JsonReader:
    """Reads records of any JSON Schema.

    Attributes:
        getters: for each column what takes its value out of a record.
    """

    getters: tuple[Convert, ...]

    @classmethod
    def of(cls, names: Sequence[str], types: Sequence[DataType]) -> JsonReader:
        """Make one for these columns."""
        return cls(tuple(_getter(name, kind) for name, kind in zip(names, types, strict=True)))

    def read(self, value: bytes, at: int) -> dict[str, Any]:
        """The object that begins at a byte and ends with the value.

        Raises:
            Undecodable: there is no JSON object.
        """
        return parsed_object(value[at:])


def parsed_object(data: bytes) -> dict[str, Any]:
    """The object of a JSON text, fractions as Decimal; Undecodable."""
    try:
        found = json.loads(data.decode(), parse_float=Decimal, parse_constant=_no_number)
    except (ValueError, RecursionError, InvalidOperation):
        raise Undecodable("it holds no JSON behind the schema's id") from None
    if not isinstance(found, dict):
        raise Undecodable("it holds no JSON object behind the schema's id")
    return found


def _no_number(word: str) -> Any:
    raise ValueError(word)


def _getter(name: str, kind: DataType) -> Convert:
    convert = _CONVERTERS[kind.kind](kind)
    return lambda record: None if (value := record.get(name)) is None else convert(value)


def _unfit() -> Undecodable:
    return Undecodable("a value does not fit its column")


def _boolean(_: DataType) -> Convert:
    def convert(value: Any) -> Any:
        if not isinstance(value, bool):
            raise _unfit()
        return value

    return convert


def _whole(kind: DataType) -> Convert:
    bound = 1 << _BITS[kind.kind]

    def convert(value: Any) -> Any:
        # JSON Schema calls 1.0 an integer.
        if isinstance(value, Decimal) and -bound <= value < bound and value == value.to_integral_value():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not -bound <= value < bound:
            raise _unfit()
        return value

    return convert


def _fraction(_: DataType) -> Convert:
    def convert(value: Any) -> Any:
        if not isinstance(value, int | Decimal) or isinstance(value, bool):
            raise _unfit()
        try:
            return float(value)
        except OverflowError:
            raise _unfit() from None

    return convert


def _decimal(kind: DataType) -> Convert:
    def convert(value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, int | Decimal | str):
            raise _unfit()
        try:
            return fitting(Decimal(value), kind)
        except InvalidOperation:
            raise _unfit() from None

    return convert


def _text(_: DataType) -> Convert:
    def convert(value: Any) -> Any:
        try:
            return value if isinstance(value, str) else json_text(value)
        except RecursionError:  # what could be read may still be too deep to be written
            raise _unfit() from None

    return convert


def _bytes(_: DataType) -> Convert:
    def convert(value: Any) -> Any:
        try:
            return base64.b64decode(value, validate=True)
        except (TypeError, ValueError, binascii.Error):
            raise _unfit() from None

    return convert


def _date(_: DataType) -> Convert:
    def convert(value: Any) -> Any:
        try:
            return date.fromisoformat(value).toordinal() + FIRST_DAY - 1
        except (TypeError, ValueError):
            raise _unfit() from None

    return convert


def _time(_: DataType) -> Convert:
    def convert(value: Any) -> Any:
        if not isinstance(value, str) or not _TIME.match(value):
            raise _unfit()
        return value

    return convert


def _moment(_: DataType) -> Convert:
    def convert(value: Any) -> Any:
        if not isinstance(value, str) or not _MOMENT.match(value):
            raise _unfit()
        try:
            return moment(micros_of(datetime.fromisoformat(value.replace(" Z", "Z"))))
        except (ValueError, OverflowError):
            raise _unfit() from None

    return convert


def _array(kind: DataType) -> Convert:
    inner = _inner(kind.arguments[0])

    def convert(value: Any) -> Any:
        if not isinstance(value, list):
            raise _unfit()
        return [inner(item) for item in value]

    return convert


def _map(kind: DataType) -> Convert:
    inner = _inner(kind.arguments[1])

    def convert(value: Any) -> Any:
        if not isinstance(value, dict):
            raise _unfit()
        return [(name, inner(item)) for name, item in value.items()]

    return convert


def _struct(kind: DataType) -> Convert:
    getters = [(name, _getter(name, part)) for name, part in zip(kind.fields, kind.arguments, strict=True)]

    def convert(value: Any) -> Any:
        if not isinstance(value, dict):
            raise _unfit()
        return {name: get(value) for name, get in getters}

    return convert


def _inner(kind: DataType) -> Convert:
    convert = _CONVERTERS[kind.kind](kind)
    return lambda value: None if value is None else convert(value)


_CONVERTERS: Mapping[str, Callable[[DataType], Convert]] = {
    "BOOLEAN": _boolean,
    **dict.fromkeys(_BITS, _whole),
    **dict.fromkeys(("FLOAT", "DOUBLE"), _fraction),
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

# -- writing -------------------------------------------------------------------------------------------------


def record_writer(names: Sequence[str], types: Sequence[DataType]) -> Callable[[bytearray, Any], None]:
    """Writes the values of a row as the object that ``json_schema.schema_text`` describes."""
    struct = DataType("STRUCT", arguments=tuple(types), fields=tuple(names))

    def write(out: bytearray, row: Any) -> None:
        try:
            out += json_text(_told(row, struct)).encode()
        except UnicodeEncodeError:
            raise Unencodable("a text holds half a character, which UTF-8 cannot") from None

    return write


def _told(value: Any, kind: DataType) -> Any:
    """The value as JSON has it; NULL is written as null."""
    if value is None:
        return None
    if kind.kind in ("FLOAT", "DOUBLE") and not math.isfinite(value):
        raise Unencodable("JSON Schema's numbers have no NaN and no infinity")
    if kind.kind in ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ"):
        return _time_told(value, kind)
    if kind.kind in ("BYTES", "VARBINARY"):
        return base64.b64encode(value).decode()
    if kind.kind == "ARRAY":
        return [_told(item, kind.arguments[0]) for item in value]
    if kind.kind == "MAP":
        return {key: _told(item, kind.arguments[1]) for key, item in dict(value).items()}
    if kind.kind == "STRUCT":
        parts = [value[name] for name in kind.fields] if isinstance(value, Mapping) else value
        return {n: _told(v, t) for n, v, t in zip(kind.fields, parts, kind.arguments, strict=True)}
    return value


def _time_told(value: Any, kind: DataType) -> str:
    try:
        if kind.kind == "DATE":
            return str(date.fromordinal(value - FIRST_DAY + 1) if isinstance(value, int) else value)
        text = (_EPOCH + timedelta(microseconds=micros_of(value))).replace(tzinfo=None).isoformat()
    except (ValueError, OverflowError):
        raise Unencodable("JSON Schema's dates have the years 1 to 9999") from None
    return text + "Z" if kind.kind == "TIMESTAMP_LTZ" else text


def json_text(value: Any) -> str:
    """A JSON text without blanks, of values that may hold Decimals, whose digits are kept."""
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{json_text(str(k))}:{json_text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(json_text, value)) + "]"
    return json.dumps(value, ensure_ascii=False)

"""Protobuf messages read into the declared columns, and rows written as messages.

Reading. A column takes the field of exactly its name. A field that can tell whether it is set (``optional``,
in a ``oneof``, a message, everything in proto2) is NULL where it is not; another one has its default then.
INTEGER and the like take whole numbers, FLOAT, DOUBLE and DECIMAL any number, VARCHAR text and enums (the
name, of an unknown value the number), BYTES bytes and text, DECIMAL, DATE and TIME also text, TIMESTAMP and
TIMESTAMP_LTZ ``google.protobuf.Timestamp``; wrappers are what they wrap, a ``Duration`` is a DECIMAL of
seconds.

Writing. DATE, TIME and DECIMAL are text, TIMESTAMP and TIMESTAMP_LTZ ``google.protobuf.Timestamp``. Protobuf
has no NULL in a list or map, and does not tell a NULL list from an empty one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any

from leatstream.formats.avro_schema import UnfitSchema
from leatstream.formats.plain_values import (
    FIRST_DAY,
    Undecodable,
    Unencodable,
    fitting,
    micros_of,
    moment,
)
from leatstream.formats.protobuf_schema import DURATION, TIMESTAMP, WRAPPERS, is_map
from leatstream.model.types import DataType

Convert = Callable[[Any], Any]
_WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
_WHOLE_TYPES = (3, 4, 5, 6, 7, 13, 15, 16, 17, 18)
_NANO = Decimal(1).scaleb(-9)


def message_path(value: bytes, at: int) -> tuple[tuple[int, ...], int]:
    """The place of a record's message in its file, and where the message begins.

    Raises:
        Undecodable: the record has none.
    """
    count, at = _zigzag(value, at)
    if count == 0:
        return (0,), at
    if not 0 < count <= 32:
        raise Undecodable("it does not tell its message")
    path = []
    for _ in range(count):
        index, at = _zigzag(value, at)
        path.append(index)
    return tuple(path), at


def _zigzag(value: bytes, at: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 35, 7):
        if at >= len(value):
            break
        byte = value[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
    raise Undecodable("it does not tell its message")


@dataclass(frozen=True, slots=True)
class ProtobufReader:
    """Reads messages of one type; ``getters`` as ``AvroReader``'s."""

    message: Any
    getters: tuple[Convert | None, ...]

    @classmethod
    def of(cls, descriptor: Any, names: Sequence[str], types: Sequence[DataType]) -> ProtobufReader:
        """Make one.

        Raises:
            UnfitSchema: the message does not fit the columns.
        """
        from google.protobuf.message_factory import GetMessageClass

        fields = descriptor.fields_by_name
        getters = tuple(
            _getter(fields[n], t) if n in fields else None for n, t in zip(names, types, strict=True)
        )
        return cls(GetMessageClass(descriptor), getters)

    def read(self, value: bytes, at: int) -> Any:
        """The message that begins at a byte.

        Raises:
            Undecodable: the bytes are no such message.
        """
        from google.protobuf.message import DecodeError

        found = self.message()
        try:
            found.ParseFromString(value[at:])
        except (DecodeError, ValueError, RecursionError) as error:
            raise Undecodable(f"its bytes are not of its schema ({type(error).__name__})") from None
        if not found.IsInitialized():
            raise Undecodable("a required field is missing")
        return found


def _getter(field: Any, kind: DataType) -> Convert:
    name = field.name
    if is_map(field):
        return _map_getter(field, kind)
    if field.is_repeated:
        if kind.kind != "ARRAY":
            raise _unfit(field, kind)
        item = _convert(field, kind.arguments[0])
        return lambda message: [item(one) for one in getattr(message, name)]
    convert = _convert(field, kind)
    if field.has_presence:
        return lambda message: convert(getattr(message, name)) if message.HasField(name) else None
    return lambda message: convert(getattr(message, name))


def _map_getter(field: Any, kind: DataType) -> Convert:
    if kind.kind != "MAP":
        raise _unfit(field, kind)
    name = field.name
    key = _convert(field.message_type.fields_by_name["key"], kind.arguments[0])
    value = _convert(field.message_type.fields_by_name["value"], kind.arguments[1])
    return lambda message: [(key(k), value(v)) for k, v in getattr(message, name).items()]


def _unfit(field: Any, kind: DataType) -> UnfitSchema:
    what = field.message_type.full_name if field.message_type is not None else "another type"
    listed = "repeated " if field.is_repeated else ""
    return UnfitSchema(f"field {field.name} is {listed}{what} and its column {kind}")


def _same(value: Any) -> Any:
    return value


def _convert(field: Any, kind: DataType) -> Convert:
    if field.message_type is not None:
        return _message(field, kind)
    if field.type == 14 and kind.kind == "VARCHAR":
        names = {number: value.name for number, value in field.enum_type.values_by_number.items()}
        return lambda value: names.get(value) or str(value)
    found = _PLAIN.get(kind.kind, {}).get(_family(field.type))
    if found is None:
        raise _unfit(field, kind)
    return found(kind)


def _family(number: int) -> str:
    if number in _WHOLE_TYPES:
        return "whole"
    return {1: "fraction", 2: "fraction", 8: "bool", 9: "text", 12: "bytes"}.get(number, "enum")


def _exactly(kind: DataType) -> Convert:
    def convert(value: Any) -> Decimal:
        try:
            return fitting(Decimal(value if isinstance(value, str) else repr(value)), kind)
        except InvalidOperation:
            raise Undecodable("a text is no number") from None

    return convert


def _day(kind: DataType) -> Convert:
    def convert(value: str) -> int:
        try:
            return date.fromisoformat(value).toordinal() + FIRST_DAY - 1
        except ValueError:
            raise Undecodable("a text is no date") from None

    return convert


def _as_is(kind: DataType) -> Convert:
    return _same


_PLAIN: Mapping[str, Mapping[str, Callable[[DataType], Convert]]] = {
    "BOOLEAN": {"bool": _as_is},
    **{kind: {"whole": _as_is} for kind in _WHOLE},
    "FLOAT": {"whole": lambda _: float, "fraction": _as_is},
    "DOUBLE": {"whole": lambda _: float, "fraction": _as_is},
    "DECIMAL": {"whole": _exactly, "fraction": _exactly, "text": _exactly},
    "VARCHAR": {"text": _as_is},
    "TIME": {"text": _as_is},
    "DATE": {"text": _day},
    "BYTES": {"bytes": _as_is, "text": lambda _: str.encode},
    "VARBINARY": {"bytes": _as_is, "text": lambda _: str.encode},
}


def _message(field: Any, kind: DataType) -> Convert:
    message = field.message_type
    if message.full_name in WRAPPERS:
        inner = _convert(message.fields_by_name["value"], kind)
        return lambda value: inner(value.value)
    if message.full_name == TIMESTAMP and kind.kind in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        return lambda value: moment(value.seconds * 1_000_000 + value.nanos // 1_000)
    if message.full_name == DURATION and kind.kind == "DECIMAL":
        return lambda value: fitting(Decimal(value.seconds) + Decimal(value.nanos) * _NANO, kind)
    if kind.kind != "STRUCT":
        raise _unfit(field, kind)
    fields = message.fields_by_name
    getters = [
        (n, _getter(fields[n], t) if n in fields else None)
        for n, t in zip(kind.fields, kind.arguments, strict=True)
    ]
    return lambda value: {n: None if get is None else get(value) for n, get in getters}


# -- writing -------------------------------------------------------------------------------------------------


def record_writer(
    descriptor: Any, names: Sequence[str], types: Sequence[DataType]
) -> Callable[[bytearray, Any], None]:
    """Writes the values of a row as the message that ``protobuf_schema.schema_text`` describes."""
    from google.protobuf.message_factory import GetMessageClass

    make = GetMessageClass(descriptor)

    def write(out: bytearray, row: Any) -> None:
        message = make()
        for name, kind, value in zip(names, types, row, strict=True):
            _set(message, name, kind, value)
        out.append(0)  # the first message of the file
        out += message.SerializeToString(deterministic=True)

    return write


def _set(message: Any, name: str, kind: DataType, value: Any) -> None:
    if value is None:
        return
    if kind.kind == "ARRAY":
        place = getattr(message, name)
        for item in value:
            _add(place, kind.arguments[0], item)
    elif kind.kind == "MAP":
        place = getattr(message, name)
        for key, item in dict(value).items():
            if item is None:
                raise Unencodable("a MAP holds NULL, which Protobuf cannot")
            _put(place, key, kind.arguments[1], item)
    elif kind.kind == "STRUCT":
        inner = getattr(message, name)
        inner.SetInParent()
        _fill(inner, kind, value)
    elif kind.kind.startswith("TIMESTAMP"):
        inner = getattr(message, name)
        inner.SetInParent()
        inner.seconds, inner.nanos = _split(value)
    else:
        setattr(message, name, _told(kind, value))


def _fill(message: Any, kind: DataType, value: Any) -> None:
    values = [value[n] for n in kind.fields] if isinstance(value, Mapping) else value
    for name, part, one in zip(kind.fields, kind.arguments, values, strict=True):
        _set(message, name, part, one)


def _add(place: Any, kind: DataType, item: Any) -> None:
    if item is None:
        raise Unencodable("an ARRAY holds NULL, which Protobuf cannot")
    if kind.kind == "STRUCT":
        _fill(place.add(), kind, item)
    elif kind.kind.startswith("TIMESTAMP"):
        seconds, nanos = _split(item)
        place.add(seconds=seconds, nanos=nanos)
    else:
        place.append(_told(kind, item))


def _put(place: Any, key: str, kind: DataType, item: Any) -> None:
    if kind.kind == "STRUCT":
        _fill(place[key], kind, item)
    elif kind.kind.startswith("TIMESTAMP"):
        inner = place[key]
        inner.seconds, inner.nanos = _split(item)
    else:
        place[key] = _told(kind, item)


def _split(value: Any) -> tuple[int, int]:
    seconds, micros = divmod(micros_of(value), 1_000_000)
    return seconds, micros * 1_000


def _told(kind: DataType, value: Any) -> Any:
    if kind.kind == "DECIMAL":
        return format(value, "f")
    if kind.kind == "DATE":
        days = value if isinstance(value, int) else value.toordinal() + FIRST_DAY - 1
        return date.fromordinal(days - FIRST_DAY + 1).isoformat()
    return bytes(value) if kind.kind in ("BYTES", "VARBINARY") else value

"""Rows written in Avro's binary form, by the schema that ``avro_columns`` makes of their columns."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from leatstream.formats.plain_values import FIRST_DAY, Unencodable, micros_of, time_micros
from leatstream.model.types import DataType

Write = Callable[[bytearray, Any], None]

_SMALL = [bytes([(n << 1) ^ (n >> 63)]) for n in range(64)]
_FLOAT, _DOUBLE = struct.Struct("<f"), struct.Struct("<d")
_RANGES = {"TINYINT": 7, "SMALLINT": 15, "INTEGER": 31, "BIGINT": 63}


def record_writer(types: Sequence[DataType], needed: Sequence[bool]) -> Write:
    """Writes the values of a row as the record that ``avro_columns.schema_text`` describes.

    Args:
        types: of the columns.
        needed: whether a column is NOT NULL.
    """
    writers = [_writer(t) if n else _nullable(_writer(t)) for t, n in zip(types, needed, strict=True)]

    def write(out: bytearray, row: Any) -> None:
        for part, value in zip(writers, row, strict=True):
            part(out, value)

    return write


def write_long(out: bytearray, value: int) -> None:
    """A number in Avro's zigzag form."""
    if 0 <= value < 64:
        out += _SMALL[value]
        return
    rest = (value << 1) ^ (value >> 63)
    while rest > 0x7F:
        out.append((rest & 0x7F) | 0x80)
        rest >>= 7
    out.append(rest)


def _nullable(inner: Write) -> Write:
    def write(out: bytearray, value: Any) -> None:
        if value is None:
            out.append(0)
        else:
            out.append(2)
            inner(out, value)

    return write


def _writer(kind: DataType) -> Write:
    if kind.kind in _RANGES:
        return write_long
    if kind.kind == "ARRAY":
        return _array_writer(_nullable(_writer(kind.arguments[0])))
    if kind.kind == "MAP":
        return _map_writer(_nullable(_writer(kind.arguments[1])))
    if kind.kind == "STRUCT":
        return _struct_writer(kind)
    if kind.kind == "DECIMAL":
        return _decimal_writer(kind)
    return _WRITERS[kind.kind]


def write_bytes(out: bytearray, value: bytes) -> None:
    """Bytes behind their number."""
    write_long(out, len(value))
    out += value


def _write_text(out: bytearray, value: str) -> None:
    try:
        data = value.encode()
    except UnicodeEncodeError:
        raise Unencodable("a text holds half a character, which UTF-8 cannot") from None
    write_long(out, len(data))
    out += data


def _write_boolean(out: bytearray, value: bool) -> None:
    out.append(1 if value else 0)


def _write_float(out: bytearray, value: float) -> None:
    try:
        out += _FLOAT.pack(value)
    except OverflowError:
        out += _FLOAT.pack(math.copysign(math.inf, value))


def _write_double(out: bytearray, value: float) -> None:
    out += _DOUBLE.pack(value)


def _write_date(out: bytearray, value: int | date) -> None:
    write_long(out, value if isinstance(value, int) else value.toordinal() + FIRST_DAY - 1)


def _write_moment(out: bytearray, value: int | datetime) -> None:
    write_long(out, micros_of(value))


def _write_time(out: bytearray, value: str) -> None:
    write_long(out, time_micros(value))


def _decimal_writer(kind: DataType) -> Write:
    _, scale = (*kind.parameters, 0)[:2] if kind.parameters else (10, 0)

    def write(out: bytearray, value: Decimal) -> None:
        sign, digits, exponent = value.as_tuple()
        number = int("".join(map(str, digits)))
        shift = int(exponent) + scale
        number = number * 10**shift if shift >= 0 else number // 10**-shift
        number = -number if sign else number
        write_bytes(out, number.to_bytes((number.bit_length() + 8) // 8, "big", signed=True))

    return write


def _array_writer(item: Write) -> Write:
    def write(out: bytearray, value: Sequence[Any]) -> None:
        if value:
            write_long(out, len(value))
            for one in value:
                item(out, one)
        out.append(0)

    return write


def _map_writer(item: Write) -> Write:
    def write(out: bytearray, value: Any) -> None:
        pairs = dict(value)
        if pairs:
            write_long(out, len(pairs))
            for key, one in pairs.items():
                _write_text(out, key)
                item(out, one)
        out.append(0)

    return write


def _struct_writer(kind: DataType) -> Write:
    parts = [(n, _nullable(_writer(t))) for n, t in zip(kind.fields, kind.arguments, strict=True)]

    def write(out: bytearray, value: Any) -> None:
        values = [value[n] for n in kind.fields] if isinstance(value, Mapping) else value
        for (_, part), one in zip(parts, values, strict=True):
            part(out, one)

    return write


_WRITERS: Mapping[str, Write] = {
    "BOOLEAN": _write_boolean,
    "FLOAT": _write_float,
    "DOUBLE": _write_double,
    "VARCHAR": _write_text,
    "BYTES": write_bytes,
    "VARBINARY": write_bytes,
    "DATE": _write_date,
    "TIME": _write_time,
    "TIMESTAMP": _write_moment,
    "TIMESTAMP_LTZ": _write_moment,
}

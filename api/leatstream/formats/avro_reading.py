"""Avro's binary form, read into the declared columns.

A record is read by the schema it was written with; a column takes the field of exactly its name, and
is NULL where the schema has none. INTEGER and the like take int and long; FLOAT, DOUBLE and DECIMAL any
number; VARCHAR string, enum, uuid and bytes in UTF-8; BYTES bytes, fixed and string; DATE, TIME, TIMESTAMP
and TIMESTAMP_LTZ the logical types, of which BIGINT and INTEGER take the bare number. A number that does not
fit makes the record undecodable; nanoseconds are cut to microseconds, which is what Spark has.

Values here are plain: days for a DATE, microseconds for a TIMESTAMP, text for a TIME.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from io import BytesIO
from typing import Any
from uuid import UUID

from leatstream.formats.avro_schema import AvroType, UnfitSchema, plain_schema
from leatstream.formats.plain_values import FIRST_DAY, LAST_DAY, Undecodable, fitting, moment, time_text
from leatstream.model.types import DataType

Convert = Callable[[Any], Any]

_WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
_UNITS = {"millis": 1_000, "micros": 1}
_LONGEST_DECIMAL = 32  # bytes: 38 digits need 16


@dataclass(frozen=True, slots=True)
class AvroReader:
    """Reads records of one schema.

    Attributes:
        schema: as fastavro wants it.
        getters: for each column what takes its value out of a record; None where the schema has no field.
    """

    schema: Any
    getters: tuple[Convert | None, ...]

    @classmethod
    def of(cls, schema: AvroType, names: Sequence[str], types: Sequence[DataType]) -> AvroReader:
        """Make one.

        Raises:
            UnfitSchema: the schema does not fit the columns.
        """
        from fastavro import parse_schema
        from fastavro.schema import SchemaParseException

        if schema.kind == "record":
            fields = dict(zip(schema.fields, schema.parts, strict=True))
            getters = tuple(_getter(n, fields.get(n), t) for n, t in zip(names, types, strict=True))
        elif len(names) == 1:
            getters = (_convert(names[0], schema, types[0]) or _same,)
        else:
            raise UnfitSchema(f"it describes {schema.kind}, not a record")
        try:
            return cls(parse_schema(plain_schema(schema)), getters)
        except (SchemaParseException, ValueError) as error:
            raise UnfitSchema(f"its names are not legal ({type(error).__name__})") from None

    def read(self, value: bytes, at: int) -> Any:
        """The record that begins at a byte and ends with the value.

        Raises:
            Undecodable: the bytes are not of the schema.
        """
        source = BytesIO(value)
        source.seek(at)
        record = self._next(source)
        if source.tell() != len(value):
            raise Undecodable("bytes follow behind the record")
        return record

    def each(self, data: bytes, count: int) -> Iterator[Any]:
        """So many records, one behind the other, which are the whole of the data.

        Raises:
            Undecodable: from where on the bytes are not of the schema.
        """
        source = BytesIO(data)
        for _ in range(count):
            yield self._next(source)
        if source.tell() != len(data):
            raise Undecodable("bytes follow behind the records")

    def _next(self, source: BytesIO) -> Any:
        from fastavro import schemaless_reader

        try:
            return schemaless_reader(source, self.schema, None)
        except Exception as error:  # of damaged bytes the library raises whatever it runs into
            raise Undecodable(f"its bytes are not of its schema ({type(error).__name__})") from None


def _same(value: Any) -> Any:
    return value


def _getter(name: str, part: AvroType | None, kind: DataType) -> Convert | None:
    if part is None:
        return None
    convert = _convert(name, part, kind)
    if convert is None:
        return lambda record: record[name]
    found = convert
    return lambda record: None if (value := record[name]) is None else found(value)


def _convert(name: str, part: AvroType, kind: DataType) -> Convert | None:
    """What makes a column's value of a field's; None where it is the same.

    Raises:
        UnfitSchema: the types do not fit; the text names the field.
    """
    try:
        there = part.present()
    except UnfitSchema as error:
        raise UnfitSchema(f"field {name[:100]}: {error}") from None
    made = _CONVERTERS.get(kind.kind, _no_convert)(name, there, kind)
    if made is _UNFIT:
        shown = f"{there.kind} ({there.logical})" if there.logical else there.kind
        raise UnfitSchema(f"field {name[:100]} is {shown} and its column {kind}")
    return made


def _unfit(value: Any) -> Any:
    raise Undecodable("a value does not fit its column")


_UNFIT: Convert = _unfit


def _no_convert(name: str, part: AvroType, kind: DataType) -> Convert | None:
    return _UNFIT


def _boolean(name: str, part: AvroType, kind: DataType) -> Convert | None:
    return None if part.kind == "boolean" else _UNFIT


def _whole(name: str, part: AvroType, kind: DataType) -> Convert | None:
    return None if part.kind in ("int", "long") else _UNFIT


def _fraction(name: str, part: AvroType, kind: DataType) -> Convert | None:
    return float if part.kind in ("int", "long", "float", "double") else _UNFIT


def _text(name: str, part: AvroType, kind: DataType) -> Convert | None:
    if part.logical == "uuid" and part.kind == "fixed":
        return lambda value: str(UUID(bytes=value))
    if part.kind == "bytes" and part.logical is None:
        return _decoded
    return None if part.kind in ("string", "enum") else _UNFIT


def _decoded(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise Undecodable("bytes for a VARCHAR are not UTF-8") from None


def _bytes(name: str, part: AvroType, kind: DataType) -> Convert | None:
    if part.kind == "string":
        return lambda value: value.encode()
    return None if part.kind in ("bytes", "fixed") else _UNFIT


def _decimal(name: str, part: AvroType, kind: DataType) -> Convert | None:
    if part.logical == "decimal":
        scale = part.scale

        def unscaled(value: bytes) -> Decimal:
            if len(value) > _LONGEST_DECIMAL:
                raise Undecodable("a decimal is too long for its column")
            number = int.from_bytes(value, "big", signed=True)
            return fitting(Decimal((number < 0, tuple(map(int, str(abs(number)))), -scale)), kind)

        return unscaled
    if part.kind in ("int", "long"):
        return lambda value: fitting(Decimal(value), kind)
    if part.kind in ("float", "double"):
        return lambda value: fitting(Decimal(repr(value)), kind)
    return _UNFIT


def _date(name: str, part: AvroType, kind: DataType) -> Convert | None:
    if part.logical != "date":
        return _UNFIT

    def days(value: int) -> int:
        if not FIRST_DAY <= value <= LAST_DAY:
            raise Undecodable("a date is beyond the years 1 to 9999")
        return value

    return days


def _time(name: str, part: AvroType, kind: DataType) -> Convert | None:
    if part.logical in ("time-millis", "time-micros"):
        unit = _UNITS[part.logical[5:]]
        return lambda value: time_text(value * unit)
    return None if part.kind == "string" and part.logical is None else _UNFIT


def _moment(name: str, part: AvroType, kind: DataType) -> Convert | None:
    word = part.logical or ""
    if "timestamp-" not in word:
        return _UNFIT
    unit = word.rpartition("-")[2]
    if unit == "nanos":
        return lambda value: moment(value // 1_000)
    factor = _UNITS[unit]
    return lambda value: moment(value * factor)


def _array(name: str, part: AvroType, kind: DataType) -> Convert | None:
    if part.kind != "array":
        return _UNFIT
    inner = _convert(f"{name}[]", part.parts[0], kind.arguments[0])
    if inner is None:
        return None
    found = inner
    return lambda value: [None if item is None else found(item) for item in value]


def _map(name: str, part: AvroType, kind: DataType) -> Convert | None:
    if part.kind != "map" or kind.arguments[0].kind != "VARCHAR":
        return _UNFIT
    inner = _convert(f"{name}[]", part.parts[0], kind.arguments[1])
    if inner is None:
        return lambda value: list(value.items())
    found = inner
    return lambda value: [(k, None if item is None else found(item)) for k, item in value.items()]


def _struct(name: str, part: AvroType, kind: DataType) -> Convert | None:
    if part.kind != "record":
        return _UNFIT
    fields = dict(zip(part.fields, part.parts, strict=True))
    getters: list[tuple[str, Convert | None]] = []
    for field, inner in zip(kind.fields, kind.arguments, strict=True):
        known = fields.get(field)
        if known is None:
            getters.append((field, None))
            continue
        convert = _convert(f"{name}.{field}", known, inner)
        getters.append((field, _from_field(field, convert)))
    return lambda value: {field: None if get is None else get(value) for field, get in getters}


def _from_field(field: str, convert: Convert | None) -> Convert:
    if convert is None:
        return lambda record: record[field]
    return lambda record: None if (value := record[field]) is None else convert(value)


_CONVERTERS: Mapping[str, Callable[[str, AvroType, DataType], Convert | None]] = {
    "BOOLEAN": _boolean,
    **dict.fromkeys(_WHOLE, _whole),
    "FLOAT": _fraction,
    "DOUBLE": _fraction,
    "DECIMAL": _decimal,
    "VARCHAR": _text,
    "BYTES": _bytes,
    "VARBINARY": _bytes,
    "DATE": _date,
    "TIME": _time,
    "TIMESTAMP": _moment,
    "TIMESTAMP_LTZ": _moment,
    "ARRAY": _array,
    "MAP": _map,
    "STRUCT": _struct,
}

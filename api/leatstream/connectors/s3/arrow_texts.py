"""Values of Arrow as JSON texts, type by type: what a Parquet file holds is a value or says why it is none.

A DECIMAL is a text, which loses no digit, where a number is not asked for; instants are in UTC; bytes are
base64, or text for a VARCHAR; keys of maps are texts.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Sequence
from datetime import date
from itertools import islice, pairwise
from json.encoder import encode_basestring_ascii as quoted
from typing import Any
from uuid import UUID

from leatstream.connectors.s3.matching import check_columns
from leatstream.formats.avro_files import UnreadableFile
from leatstream.formats.plain_values import FIRST_DAY, LAST_DAY, Undecodable, moment
from leatstream.formats.values import from_plain, moment_text
from leatstream.model.types import DataType

Texts = list[str | None]
_NUMBERS = frozenset({"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE"})
_TEXT, _MOMENT = DataType("VARCHAR"), DataType("TIMESTAMP")
_BEYOND = "a value is beyond the years 1 to 9999"
_DAY = 86_400_000  # milliseconds
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


class Misfit(str):
    """Instead of a value's text: why there is none."""


def texts(values: Any, kind: DataType | None) -> Texts:
    """The values of an array as JSON texts; None is NULL, a Misfit says why its row is none.

    Args:
        values: an Arrow array.
        kind: the type that is declared, if any; what it cannot hold is left to the decoder.

    Raises:
        UnreadableFile: the array's type has no form in JSON.
    """
    import pyarrow as pa

    shape = values.type
    if isinstance(shape, pa.BaseExtensionType):
        return _extension(values, kind)
    if pa.types.is_dictionary(shape):
        return texts(values.dictionary_decode(), kind)
    read = next((read for matches, read in _READERS if getattr(pa.types, matches)(shape)), None)
    if read is None:
        raise UnreadableFile(f"values of its type ({shape}) are not read")
    return read(values, kind)


def _extension(values: Any, kind: DataType | None) -> Texts:
    if values.type.extension_name == "arrow.uuid" and (kind is None or kind.kind == "VARCHAR"):
        return _each(values.storage.to_pylist(), lambda value: f'"{UUID(bytes=value)}"')
    return texts(values.storage, kind)


def _each(values: Sequence[Any], written: Callable[[Any], str]) -> Texts:
    return [None if value is None else written(value) for value in values]


# -- plain values --------------------------------------------------------------------------------------------


def _nothing(values: Any, _: DataType | None) -> Texts:
    return [None] * len(values)


def _boolean(values: Any, _: DataType | None) -> Texts:
    return _each(values.to_pylist(), lambda value: "true" if value else "false")


def _whole(values: Any, kind: DataType | None) -> Texts:
    return _each(values.to_pylist(), quoted_number if _is_text(kind) else str)


def quoted_number(value: Any) -> str:
    """A number as text."""
    return f'"{value}"'


def _fraction(values: Any, kind: DataType | None) -> Texts:
    import pyarrow as pa

    if pa.types.is_float16(values.type):
        values = values.cast(pa.float32())
    if _is_text(kind):
        # With the digits that its own type needs, which are fewer than those of a double.
        shown = _each(values.cast(pa.string()).to_pylist(), quoted_number)
        return [_NO_NUMBERS.get(text or "", text) for text in shown]
    return _each(values.to_pylist(), lambda value: repr(value) if math.isfinite(value) else _endless(value))


def _endless(value: float) -> str:
    if value != value:
        return '"NaN"'
    return '"Infinity"' if value > 0 else '"-Infinity"'


_NO_NUMBERS = {'"nan"': '"NaN"', '"-nan"': '"NaN"', '"inf"': '"Infinity"', '"-inf"': '"-Infinity"'}


def _decimal(values: Any, kind: DataType | None) -> Texts:
    bare = kind is not None and kind.kind in _NUMBERS
    return _each(values.to_pylist(), lambda value: f"{value:f}" if bare else f'"{value:f}"')


def _text(values: Any, _: DataType | None) -> Texts:
    import pyarrow as pa

    try:
        return _each(values.to_pylist(), quoted)
    except UnicodeDecodeError:  # Parquet does not look at what it is given
        return _each(values.cast(pa.large_binary()).to_pylist(), _decoded)


def _bytes(values: Any, kind: DataType | None) -> Texts:
    found = values.to_pylist()
    return _each(found, _decoded) if _is_text(kind) else _each(found, _base64)


def _decoded(value: bytes) -> str:
    try:
        return quoted(value.decode())
    except UnicodeDecodeError:
        return Misfit("a value is not UTF-8")


def _base64(value: bytes) -> str:
    return f'"{base64.b64encode(value).decode()}"'


def _is_text(kind: DataType | None) -> bool:
    return kind is not None and kind.kind == "VARCHAR"


# -- times ---------------------------------------------------------------------------------------------------


def _date(values: Any, _: DataType | None) -> Texts:
    import pyarrow as pa

    days = values.cast(pa.int32() if pa.types.is_date32(values.type) else pa.int64()).to_pylist()
    per_day = 1 if pa.types.is_date32(values.type) else _DAY
    return _each(days, lambda count: _day(count // per_day))


def _day(days: int) -> str:
    if not FIRST_DAY <= days <= LAST_DAY:
        return Misfit(_BEYOND)
    return f'"{date.fromordinal(days - FIRST_DAY + 1).isoformat()}"'


def _timestamp(values: Any, _: DataType | None) -> Texts:
    import pyarrow as pa

    per_second, zone = _PER_SECOND[values.type.unit], "Z" if values.type.tz else ""

    def written(count: int) -> str:
        try:
            micros = moment(count * 1_000_000 // per_second)
        except Undecodable:
            return Misfit(_BEYOND)
        return f'"{moment_text(from_plain(micros, _MOMENT))}{zone}"'

    return _each(values.cast(pa.int64()).to_pylist(), written)


def _time(values: Any, _: DataType | None) -> Texts:
    import pyarrow as pa

    per_second = _PER_SECOND[values.type.unit]

    def written(count: int) -> str:
        seconds, rest = divmod(count, per_second)
        if not 0 <= seconds < 86_400:
            return Misfit("a time of day is beyond the day")
        fraction = f".{rest * (1_000_000_000 // per_second):09d}".rstrip("0").rstrip(".")
        return f'"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{fraction}"'

    counts = values.cast(pa.int32() if pa.types.is_time32(values.type) else pa.int64())
    return _each(counts.to_pylist(), written)


def _duration(values: Any, kind: DataType | None) -> Texts:
    """The count of its unit, which is what the file holds."""
    import pyarrow as pa

    return _whole(values.cast(pa.int64()), kind)


# -- values in values ----------------------------------------------------------------------------------------


def _struct(values: Any, kind: DataType | None) -> Texts:
    names = [field.name for field in values.type]
    declared = dict(zip(kind.fields, kind.arguments, strict=True)) if kind and kind.kind == "STRUCT" else {}
    check_columns(names, declared or dict.fromkeys(names), {})
    parts = zip(names, values.flatten(), strict=True)
    wanted = [(name, array) for name, array in parts if not declared or name in declared]
    heads = [quoted(name) for name, _ in wanted]
    columns = [texts(array, declared.get(name)) for name, array in wanted]
    rows = zip(*columns, strict=True) if columns else iter([()] * len(values))
    there = values.is_valid().to_pylist()
    return [_object(heads, row) if valid else None for valid, row in zip(there, rows, strict=True)]


def _list(values: Any, kind: DataType | None) -> Texts:
    import pyarrow.compute as pc

    part = kind.arguments[0] if kind is not None and kind.kind == "ARRAY" else None
    found = iter(texts(values.flatten(), part))
    return _each(pc.list_value_length(values).to_pylist(), lambda count: _array(list(islice(found, count))))


def _array(items: Sequence[str | None]) -> str:
    return _misfit(items) or "[" + ",".join(item or "null" for item in items) + "]"


def _map(values: Any, kind: DataType | None) -> Texts:
    parts = kind.arguments if kind is not None and kind.kind == "MAP" else (_TEXT, None)
    ends = values.offsets.to_pylist()
    first, last = ends[0], ends[-1]
    keys = [_key(text) for text in texts(values.keys.slice(first, last - first), parts[0])]
    items = texts(values.items.slice(first, last - first), parts[1])
    there = values.is_valid().to_pylist()
    places = [slice(start - first, end - first) for start, end in pairwise(ends)]
    return [
        _object(keys[place], items[place]) if valid else None
        for valid, place in zip(there, places, strict=True)
    ]


def _key(text: str | None) -> str:
    if text is None:
        return Misfit("a map has a key that is NULL")
    return text if text.startswith('"') or isinstance(text, Misfit) else quoted(text)


def _object(names: Sequence[str], items: Sequence[str | None]) -> str:
    members = (f"{name}:{item or 'null'}" for name, item in zip(names, items, strict=True))
    return _misfit(names) or _misfit(items) or "{" + ",".join(members) + "}"


def _misfit(found: Sequence[str | None]) -> Misfit | None:
    return next((text for text in found if isinstance(text, Misfit)), None)


# In this order: some of the questions are answered with yes for more than one type.
_READERS: tuple[tuple[str, Callable[[Any, DataType | None], Texts]], ...] = (
    ("is_null", _nothing),
    ("is_boolean", _boolean),
    ("is_integer", _whole),
    ("is_floating", _fraction),
    ("is_decimal", _decimal),
    ("is_string", _text),
    ("is_large_string", _text),
    ("is_string_view", _text),
    ("is_binary", _bytes),
    ("is_large_binary", _bytes),
    ("is_binary_view", _bytes),
    ("is_fixed_size_binary", _bytes),
    ("is_date", _date),
    ("is_timestamp", _timestamp),
    ("is_time", _time),
    ("is_duration", _duration),
    ("is_struct", _struct),
    ("is_map", _map),
    ("is_list", _list),
    ("is_large_list", _list),
    ("is_fixed_size_list", _list),
    ("is_list_view", _list),
    ("is_large_list_view", _list),
)

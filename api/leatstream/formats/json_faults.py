"""Why one record's JSON is no row of a relation: found in Python, off the path that records take.

Spark's reader (``formats.json``) only decides whether a record can be read. This says which columns are to
blame, for the error of a query that one record has ended, and for records that statements spell out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from leatstream.formats.excerpts import Number, described
from leatstream.formats.plain_values import (
    BASE64,
    DECIMAL,
    DEEPEST,
    TIME,
    Undecodable,
    day_of,
    moment_of,
)
from leatstream.model.types import DataType, parse_type
from leatstream.plan.job_spec import ColumnSpec

_BITS = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64}
_WHOLE = re.compile(r"-?[0-9]+\Z")
_NO_NUMBER = ("NaN", "Infinity", "-Infinity")
_MOST_SHOWN = 3  # faults of one record
_HALF = "has half a character (a lone surrogate)"


@dataclass(frozen=True, slots=True)
class RecordFault:
    """One thing that is wrong with a record.

    Attributes:
        column: the column, or the path inside it, such as ``items[2].price``; None = the record as a whole.
        expected: the type that was declared for it.
        found: the value; only with ``has_value``.
        why: what is wrong, of a record as a whole, or where the value alone does not say it.
    """

    column: str | None = None
    expected: str | None = None
    found: Any = None
    has_value: bool = False
    why: str | None = None

    def in_words(self, *, shown: bool) -> str:
        """The fault in words; ``shown`` = values may be shown."""
        if self.column is None:
            return str(self.why)
        if not self.has_value:
            return f"column {self.column} {self.why}"
        value = described(self.found, self.column, shown=shown)
        more = f" ({self.why})" if self.why else ""
        return f"column {self.column} is {self.expected}, the record has {value}{more}"


def faults_of(columns: Sequence[ColumnSpec], text: bytes) -> list[RecordFault]:
    """Everything that is wrong with a record's value, or key, of these columns; empty = none was found."""
    try:
        words = text.decode()
    except UnicodeDecodeError as error:
        return [RecordFault(why=f"it is not UTF-8 (byte {error.start + 1} of {len(text)})")]
    blanks = " \t\r\n"
    if not words.removeprefix("\ufeff").strip(blanks):
        return [RecordFault(why="it is empty")]
    reader = json.JSONDecoder(parse_int=Number, parse_float=Number, parse_constant=_refuse)
    begin = len(words) - len(words.removeprefix("\ufeff").lstrip(blanks))
    try:
        document, end = reader.raw_decode(words, begin)
    except RecursionError:
        return [RecordFault(why="it is nested too deeply")]
    except json.JSONDecodeError as error:
        return [RecordFault(why=f"it is not JSON (at character {error.pos + 1} of {len(words)})")]
    except ValueError as error:
        return [RecordFault(why=f"it is not JSON ({error})")]
    if not isinstance(document, dict):
        return [RecordFault(why="it is JSON, but not one object")]
    if words[end:].strip(blanks):
        more = len(words) - end
        return [RecordFault(why=f"{more} characters follow the object, which ends at character {end}")]
    whole = _of_whole(document)
    if whole is not None:
        return [RecordFault(why=whole)]
    return [fault for column in columns for fault in _of_column(column, document)]


def key_faults_of(columns: Sequence[ColumnSpec], text: bytes) -> list[RecordFault]:
    """The same of a record's key; what is wrong with it as a whole says that it is the key."""
    faults = faults_of(columns, text)
    return [replace(f, why=f"of its key, {f.why}") if f.column is None else f for f in faults]


def no_time(column: ColumnSpec, text: bytes) -> RecordFault:
    """The fault of a record whose event time is none; ``text`` is its value, in which there is no other."""
    why = "it is the event time of the relation, and holds none"
    value = json.loads(text.decode().removeprefix("\ufeff")).get(column.name)
    return RecordFault(column.name, column.type, value, has_value=True, why=why)


def in_words(faults: Sequence[RecordFault], *, shown: bool) -> str:
    """The first faults of a record in words; ``shown`` = values may be shown."""
    why = "; ".join(fault.in_words(shown=shown) for fault in faults[:_MOST_SHOWN])
    return f"{why}; {len(faults) - _MOST_SHOWN} more" if len(faults) > _MOST_SHOWN else why


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is no JSON number")


def _of_whole(document: dict[str, Any]) -> str | None:
    """What no record may have anywhere, declared or not."""
    level: list[Any] = [document]
    for _ in range(DEEPEST):
        parts = [one.values() if isinstance(one, dict) else one for one in level]
        level = [item for part in parts for item in part if isinstance(item, dict | list)]
        if not level:
            return None
    return f"it is nested more than {DEEPEST} levels deep"


def _of_column(column: ColumnSpec, document: dict[str, Any]) -> Iterator[RecordFault]:
    value = document.get(column.name)
    if value is None:
        if column.not_null:
            how = "null in the record" if column.name in document else "missing in the record"
            yield RecordFault(column.name, why=f"is NOT NULL, and is {how}")
        return
    yield from _misfits(column.name, parse_type(column.type), value)


def _misfits(path: str, kind: DataType, value: Any) -> Iterator[RecordFault]:
    """What of a value, which is not null at the top, does not fit the type."""
    if kind.kind == "VARCHAR" and isinstance(value, str) and _is_half(value):
        yield RecordFault(path, why=_HALF)
    if value is None or kind.kind == "VARCHAR":
        return
    if kind.kind in ("ARRAY", "MAP", "STRUCT"):
        if not isinstance(value, list if kind.kind == "ARRAY" else dict):
            yield RecordFault(path, str(kind), value, has_value=True)
            return
        if kind.kind == "MAP" and any(map(_is_half, value)):
            yield RecordFault(path, why=f"has a key that {_HALF}")
        for place, part, item in _inside(path, kind, value):
            yield from _misfits(place, part, item)
        return
    why = _scalar(kind, value)
    if why is not None:
        yield RecordFault(path, str(kind), value, has_value=True, why=why or None)


def _is_half(text: str) -> bool:
    return any("\ud800" <= c <= "\udfff" for c in text)


def _inside(path: str, kind: DataType, value: Any) -> Iterator[tuple[str, DataType, Any]]:
    if kind.kind == "ARRAY":
        yield from ((f"{path}[{n}]", kind.arguments[0], item) for n, item in enumerate(value))
    elif kind.kind == "STRUCT":
        pairs = zip(kind.fields, kind.arguments, strict=True)
        yield from ((f"{path}.{name}", part, value.get(name)) for name, part in pairs)
    else:
        yield from ((f"{path}[…]", kind.arguments[1], item) for item in value.values())


def _scalar(kind: DataType, value: Any) -> str | None:
    """Why a value does not fit; empty where both kinds say it, None where it fits."""
    name = kind.kind
    if name == "BOOLEAN":
        return None if isinstance(value, bool) else ""
    if name in _BITS:
        return _whole(value, _BITS[name])
    if name in ("FLOAT", "DOUBLE"):
        return None if isinstance(value, Number) or value in _NO_NUMBER else ""
    if name == "DECIMAL":
        return _decimal(kind, value)
    if not isinstance(value, str) or isinstance(value, Number):
        return ""
    if name in ("BYTES", "VARBINARY"):
        return None if re.fullmatch(BASE64, value) else "bytes are written in base64"
    if name == "DATE":
        return None if _is(day_of, value) else "a DATE is written as 2026-01-31"
    if name == "TIME":
        return None if re.fullmatch(TIME, value) else "a TIME is written as 13:05:00"
    if name in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        return None if _is(moment_of, value) else f"a {name} is written as 2026-01-31T13:05:00"
    return None


def _whole(value: Any, bits: int) -> str | None:
    if not isinstance(value, Number):
        return "a number is not quoted" if isinstance(value, str) and _WHOLE.match(value) else ""
    if not _WHOLE.match(value):
        return "it is no whole number"
    if len(value) > 20 or not -(2 ** (bits - 1)) <= int(value) < 2 ** (bits - 1):
        return "it is out of range"
    return None


def _decimal(kind: DataType, value: Any) -> str | None:
    if not isinstance(value, str) or not re.fullmatch(DECIMAL, value):
        return ""
    precision, scale = (*kind.parameters, 0)[:2] if kind.parameters else (10, 0)
    mantissa, _, exponent = value.lower().partition("e")
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    power = int(exponent or "0") - len(fraction) + len(digits) - len(digits.rstrip("0"))
    digits = digits.rstrip("0")
    if digits and -power > scale:
        return f"it has more than {scale} digits after the point"
    if digits and len(digits) + power > precision - scale:
        return f"it has more than {precision - scale} digits before the point"
    return None


def _is(read: Callable[[str], int], text: str) -> bool:
    try:
        read(text)
    except Undecodable:
        return False
    return True

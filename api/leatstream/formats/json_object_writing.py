"""Rows written as the JSON objects that ``json_schema.schema_text`` describes, without Spark."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from leatstream.formats.plain_values import FIRST_DAY, Unencodable, micros_of
from leatstream.model.types import DataType

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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

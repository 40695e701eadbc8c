"""Records made without Spark, byte for byte as the jobs write them, of values that a statement spells out.

``formats.json`` and ``formats.primitive`` say what the bytes are; here is the same in plain Python. Numbers
are written as Java writes them (``1.0E7``), because Spark's own writer does.
"""

from __future__ import annotations

import base64
import math
import re
import struct
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from leatstream.formats.plain_values import FIRST_DAY
from leatstream.formats.primitive import WIDTHS, check_plain
from leatstream.model.objects import Column
from leatstream.model.types import DataType

_EPOCH = datetime(1970, 1, 1)
_ESCAPED = re.compile(r'["\\\x00-\x1f]')
_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def json_record(columns: Sequence[Column], values: Sequence[Any]) -> bytes:
    """The JSON value of one record: every column is written, NULL as null.

    Args:
        columns: of the stream, in order.
        values: one Python value per column, as ``sql.constants.value_of`` gives them.
    """
    members = (f"{_text(c.name)}:{_json(v, c.type)}" for c, v in zip(columns, values, strict=True))
    return ("{" + ",".join(members) + "}").encode()


def from_plain(value: Any, kind: DataType) -> Any:
    """A value as ``formats.plain_values`` has it, as ``json_record`` takes it."""
    if value is None:
        return None
    if kind.kind == "DATE":
        return date.fromordinal(value - FIRST_DAY + 1)
    if kind.kind in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        moment = _EPOCH + timedelta(microseconds=value)
        return moment.replace(tzinfo=UTC) if kind.kind == "TIMESTAMP_LTZ" else moment
    if kind.kind == "ARRAY":
        return [from_plain(item, kind.arguments[0]) for item in value]
    if kind.kind == "MAP":
        pairs = value.items() if isinstance(value, Mapping) else value
        return {key: from_plain(item, kind.arguments[1]) for key, item in pairs}
    if kind.kind == "STRUCT":
        return [from_plain(value[n], t) for n, t in zip(kind.fields, kind.arguments, strict=True)]
    return value


def primitive_bytes(value: Any, kind_text: str) -> bytes | None:
    """The bytes of a record's key or value that is one plain value; None stays None.

    Raises:
        JobError: job-rejected, when a primitive cannot have this type.
    """
    kind = check_plain(kind_text)
    if value is None:
        return None
    if kind.kind == "VARCHAR":
        return str(value).encode()
    if kind.kind in ("BYTES", "VARBINARY"):
        return bytes(value)
    if kind.kind == "BOOLEAN":
        return b"\1" if value else b"\0"
    if kind.kind == "FLOAT":
        return struct.pack(">f", _single(value))
    if kind.kind == "DOUBLE":
        return struct.pack(">d", value)
    return int(value).to_bytes(WIDTHS[kind.kind], "big", signed=True)


def _json(value: Any, kind: DataType) -> str:
    if value is None:
        return "null"
    if kind.kind == "BOOLEAN":
        return "true" if value else "false"
    if kind.kind in ("FLOAT", "DOUBLE"):
        return _fraction(value, kind.kind == "FLOAT")
    if isinstance(value, int | Decimal):
        return str(value)
    if kind.kind == "ARRAY":
        return "[" + ",".join(_json(item, kind.arguments[0]) for item in value) + "]"
    if kind.kind == "MAP":
        inner = kind.arguments[1]
        return "{" + ",".join(f"{_text(k)}:{_json(v, inner)}" for k, v in value.items()) + "}"
    if kind.kind == "STRUCT":
        parts = zip(kind.fields, value, kind.arguments, strict=True)
        return "{" + ",".join(f"{_text(n)}:{_json(v, t)}" for n, v, t in parts) + "}"
    if isinstance(value, datetime):
        zone = "Z" if kind.kind == "TIMESTAMP_LTZ" else ""
        return _text(moment_text(value) + zone)
    if isinstance(value, date):
        return _text(value.isoformat())
    if isinstance(value, bytes):
        return _text(base64.b64encode(value).decode())
    return _text(value)


def moment_text(value: datetime) -> str:
    """Date and time of day in SQL's form, the fraction without trailing zeros, the zone left out."""
    text = value.replace(tzinfo=None).isoformat(" ", "microseconds")
    return text.rstrip("0").rstrip(".")


def _text(value: str) -> str:
    return '"' + _ESCAPED.sub(lambda m: _SHORT.get(m[0]) or f"\\u{ord(m[0]):04X}", value) + '"'


def _fraction(value: float, single: bool) -> str:
    """As Java's ``Double.toString`` and ``Float.toString``: the fewest digits that read back as the value.

    Javas before 19 sometimes write one digit more, of the same value.
    """
    if math.isnan(value):
        return '"NaN"'
    if single:
        value = _single(value)
    if math.isinf(value):
        return '"Infinity"' if value > 0 else '"-Infinity"'
    if value == 0:
        return repr(value)
    text = shortest_single(value) if single else repr(value)
    if len(Decimal(text).normalize().as_tuple().digits) == 1:
        # Java writes two digits at least, and then the two that are nearest: 4.9E-324, not 5E-324.
        text = f"{value:.1e}"
    sign, digits, exponent = Decimal(text).normalize().as_tuple()
    figures = "".join(map(str, digits))
    power = len(figures) - 1 + int(exponent)  # of the first digit
    minus = "-" if sign else ""
    if -3 <= power < 7:
        plain = format(Decimal(text).normalize(), "f")
        return plain if "." in plain else plain + ".0"
    return f"{minus}{figures[0]}.{figures[1:] or '0'}E{power}"


def _single(value: float) -> float:
    """The nearest FLOAT."""
    try:
        found: float = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return found


def shortest_single(value: float) -> str:
    """The fewest digits that read back as a FLOAT."""
    for digits in range(1, 10):
        text = f"{value:.{digits - 1}e}"
        if struct.unpack("f", struct.pack("f", float(text)))[0] == value:
            return text
    return repr(value)

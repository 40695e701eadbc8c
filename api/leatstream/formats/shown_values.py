"""Plain values in JSON, as SELECT answers them: no digit is lost.

Whole numbers are numbers; DECIMAL is a text with all the digits of its scale; FLOAT and DOUBLE are numbers
but for "NaN", "Infinity" and "-Infinity"; times are texts as in the jobs' records; bytes are base64.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from leatstream.formats.values import from_plain, moment_text, shortest_single
from leatstream.model.exact import scaled
from leatstream.model.types import DataType


def shown(value: Any, kind: DataType) -> Any:
    """A value of ``formats.plain_values`` as JSON has it."""
    if value is None:
        return None
    if kind.kind == "DECIMAL":
        return decimal_text(value, kind)
    if kind.kind in ("FLOAT", "DOUBLE"):
        return number(value, single=kind.kind == "FLOAT")
    if kind.kind in ("BYTES", "VARBINARY"):
        return base64.b64encode(value).decode()
    if kind.kind == "DATE":
        return from_plain(value, kind).isoformat()
    if kind.kind in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        moment: datetime = from_plain(value, kind)
        return moment_text(moment) + ("Z" if kind.kind == "TIMESTAMP_LTZ" else "")
    if kind.kind == "ARRAY":
        return [shown(item, kind.arguments[0]) for item in value]
    if kind.kind == "MAP":
        pairs = value.items() if isinstance(value, Mapping) else value
        return {str(key): shown(item, kind.arguments[1]) for key, item in pairs}
    if kind.kind == "STRUCT":
        parts = zip(kind.fields, kind.arguments, strict=True)
        return {name: shown(value[name], part) for name, part in parts}
    return value


def decimal_text(value: Decimal, kind: DataType) -> str:
    """A DECIMAL with all the digits of its scale."""
    scale = (*kind.parameters, 0)[:2][1] if kind.parameters else 0
    return format(scaled(value, scale), "f")


def number(value: float, *, single: bool) -> float | str:
    """A FLOAT or DOUBLE; a text where JSON has no such number."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return float(shortest_single(value)) if single else value

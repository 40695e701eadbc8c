"""Values between Python, as python-oracledb has them, and JDBC."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import jpype


def bind(prepared: Any, values: Sequence[Any]) -> None:
    for place, value in enumerate(values, 1):
        prepared.setObject(place, _java(value))


def _java(value: Any) -> Any:
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return jpype.JClass("java.lang.Long")(value)
    if isinstance(value, Decimal):
        return jpype.JClass("java.math.BigDecimal")(str(value))
    if isinstance(value, bytes):
        return jpype.JArray(jpype.JByte)(value)
    if isinstance(value, datetime):
        assert value.tzinfo is None, "the library would drop the zone"
        return jpype.JClass("java.time.LocalDateTime").parse(value.isoformat())
    if isinstance(value, date):
        return jpype.JClass("java.time.LocalDate").parse(value.isoformat())
    return value


def rows(result: Any) -> Iterator[Any]:
    """First the names, then the rows."""
    facts = result.getMetaData()
    count = facts.getColumnCount()
    kinds = [str(facts.getColumnTypeName(i)) for i in range(1, count + 1)]
    yield [[str(facts.getColumnLabel(i)) for i in range(1, count + 1)]]
    while result.next():
        yield tuple(_python(result, i, kind) for i, kind in enumerate(kinds, 1))


def _python(result: Any, place: int, kind: str) -> Any:
    if result.getObject(place) is None:
        return None
    if kind.startswith("TIMESTAMP"):
        return datetime.fromisoformat(str(result.getObject(place, jpype.JClass("java.time.LocalDateTime"))))
    if "BINARY" in kind:
        return bytes(result.getBytes(place))
    if kind in ("REAL", "DOUBLE PRECISION"):
        return float(result.getDouble(place))
    if kind in ("NUMERIC", "DECFLOAT", "BIGINT", "INTEGER", "TINYINT", "SMALLINT"):
        return Decimal(str(result.getBigDecimal(place)))
    return str(result.getString(place))

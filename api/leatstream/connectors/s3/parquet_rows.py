"""Rows of Parquet files as JSON objects."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

_BEYOND = b"a value is beyond the years 1 to 9999"


def objects(batch: pa.RecordBatch, kinds: Mapping[str, str]) -> Iterator[bytes]:
    """The rows of a batch as JSON objects, in the forms that ``formats.json`` reads.

    A DECIMAL is a text, which loses no digit; instants are in UTC; bytes are base64, or text for a VARCHAR.
    A row with a time beyond the years 1 to 9999 is no JSON, and so an undecodable record.
    """
    import pyarrow as pa

    columns = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if pa.types.is_timestamp(column.type):
            unit = "us" if column.type.unit == "ns" else column.type.unit
            column = column.cast(pa.timestamp(unit, column.type.tz and "UTC"), safe=False)
        if pa.types.is_binary(column.type) and kinds.get(name) == "VARCHAR":
            column = _as_text(column)
        columns.append(column)
    table = pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
    for row in _as_python(table):
        yield _BEYOND if row is None else _object(row)


def _as_python(table: pa.RecordBatch) -> list[dict[str, Any] | None]:
    """The rows; None for one with a time that Python does not know."""
    try:
        return list(table.to_pylist(maps_as_pydicts="lossy"))
    except OverflowError:
        if table.num_rows == 1:
            return [None]
    return [row for i in range(table.num_rows) for row in _as_python(table.slice(i, 1))]


def _object(row: dict[str, Any]) -> bytes:
    try:
        return json.dumps(row, default=_plain, allow_nan=False).encode()
    except ValueError:
        return json.dumps(_finite(row), default=_plain).encode()


def _as_text(column: Any) -> Any:
    import pyarrow as pa

    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        return column


def _plain(value: Any) -> Any:
    for kind, written in _WRITTEN:
        if isinstance(value, kind):
            return written(value)
    return str(value)


def _moment(value: datetime) -> str:
    if value.tzinfo is None:
        return value.isoformat(" ")
    return value.astimezone(UTC).replace(tzinfo=None).isoformat(" ") + "Z"


# A datetime is a date too.
_WRITTEN: tuple[tuple[type, Callable[[Any], str]], ...] = (
    (datetime, _moment),
    (date, lambda value: value.isoformat()),
    (Decimal, lambda value: format(value, "f")),
    (bytes, lambda value: base64.b64encode(value).decode()),
)


def _finite(value: Any) -> Any:
    """The value with NaN and the infinities as the texts that JSON has for them here."""
    if isinstance(value, float):
        if value != value:
            return "NaN"
        if value in (float("inf"), float("-inf")):
            return "Infinity" if value > 0 else "-Infinity"
        return value
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list) else value

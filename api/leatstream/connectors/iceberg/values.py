"""Values of Arrow as the JSON that ``formats.json`` reads, and JSON's values as those of Arrow.

A DECIMAL is a text, which loses no digit; instants are in UTC; bytes are base64; keys of maps are texts.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from json.encoder import encode_basestring_ascii as quoted
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from leatstream.connectors.s3.arrow_texts import Misfit, texts
from leatstream.errors import StoreError
from leatstream.model.types import DataType

if TYPE_CHECKING:
    import pyarrow as pa


def json_rows(
    batch: pa.RecordBatch | pa.Table, kinds: Mapping[str, DataType] = MappingProxyType({})
) -> list[bytes]:
    """The rows of a batch as JSON objects.

    Args:
        batch: the rows.
        kinds: the types that columns are declared as, where they are.

    Raises:
        StoreError: store-rejected, a value has no form in JSON, such as a date beyond the year 9999.
    """
    names: Sequence[str] = batch.schema.names
    columns: list[list[str | None]] = []
    for name in names:
        found: list[str | None] = []
        column = batch.column(name)
        for chunk in getattr(column, "chunks", [column]):
            found += texts(chunk, kinds.get(name))
        wrong = next((one for one in found if isinstance(one, Misfit)), None)
        if wrong is not None:
            raise StoreError("store-rejected", f"A value of column {name} cannot be shown: {wrong}.")
        columns.append(found)
    heads = [f"{quoted(name)}:" for name in names]
    return [
        (
            "{" + ",".join(head + (text or "null") for head, text in zip(heads, row, strict=True)) + "}"
        ).encode()
        for row in zip(*columns, strict=True)
    ]


def arrow_value(value: Any, kind: pa.DataType) -> Any:
    """A value of JSON as what ``pa.array`` takes for a type.

    Raises:
        ValueError, TypeError, ArithmeticError: it is none of the type.
    """
    import pyarrow as pa

    is_a = pa.types
    if value is None:
        return None
    if is_a.is_list(kind) or is_a.is_large_list(kind):
        return [arrow_value(one, kind.value_type) for one in value]
    if is_a.is_map(kind):
        return [
            (arrow_value(_key(key, kind.key_type), kind.key_type), arrow_value(one, kind.item_type))
            for key, one in value.items()
        ]
    if is_a.is_struct(kind):
        unknown = set(value) - {field.name for field in kind}
        if unknown:
            raise ValueError("unknown member")
        return {field.name: arrow_value(value.get(field.name), field.type) for field in kind}
    return _plain(value, kind)


def _plain(value: Any, kind: pa.DataType) -> Any:
    import pyarrow as pa

    is_a = pa.types
    if is_a.is_decimal(kind):
        return Decimal(str(value))
    if is_a.is_floating(kind):
        return float(value)
    if is_a.is_binary(kind) or is_a.is_large_binary(kind) or is_a.is_fixed_size_binary(kind):
        return base64.b64decode(value, validate=True)
    if is_a.is_date(kind):
        return date.fromisoformat(value)
    if is_a.is_time(kind):
        return time.fromisoformat(value)
    if is_a.is_timestamp(kind):
        found = datetime.fromisoformat(value)
        if kind.tz is None:
            return found if found.tzinfo is None else found.astimezone(UTC).replace(tzinfo=None)
        return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    if is_a.is_string(kind) or is_a.is_large_string(kind):
        return value if isinstance(value, str) else str(value)
    if is_a.is_integer(kind) and (isinstance(value, bool) or int(value) != value):
        raise ValueError("no whole number")
    return value


def _key(text: str, kind: pa.DataType) -> Any:
    import pyarrow as pa

    if pa.types.is_integer(kind):
        return int(text)
    return {"true": True, "false": False}[text] if pa.types.is_boolean(kind) else text

"""Column types as Arrow has them, between Spark and what reads and writes records in its workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leatstream.model.types import DataType

if TYPE_CHECKING:
    import pyarrow as pa


def arrow_type(kind: DataType) -> pa.DataType:
    """The Arrow type of a column, as Spark has it."""
    return _arrow(kind, plain=False)


def plain_array(values: pa.Array, kind: DataType) -> pa.Array:
    """Dates and times as numbers, which are quicker to take out."""
    wanted = _arrow(kind, plain=True)
    return values if values.type.equals(wanted) else values.cast(wanted)


def _arrow(kind: DataType, *, plain: bool) -> pa.DataType:
    import pyarrow as pa

    if kind.kind == "DECIMAL":
        precision, scale = (*kind.parameters, 0)[:2] if kind.parameters else (10, 0)
        return pa.decimal128(precision, scale)
    if kind.kind == "ARRAY":
        return pa.list_(_arrow(kind.arguments[0], plain=plain))
    if kind.kind == "MAP":
        return pa.map_(*(_arrow(part, plain=plain) for part in kind.arguments))
    if kind.kind == "STRUCT":
        pairs = zip(kind.fields, kind.arguments, strict=True)
        return pa.struct([(name, _arrow(part, plain=plain)) for name, part in pairs])
    if plain and kind.kind in ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ"):
        return pa.int32() if kind.kind == "DATE" else pa.int64()
    return {
        "BOOLEAN": pa.bool_(),
        "TINYINT": pa.int8(),
        "SMALLINT": pa.int16(),
        "INTEGER": pa.int32(),
        "BIGINT": pa.int64(),
        "FLOAT": pa.float32(),
        "DOUBLE": pa.float64(),
        "VARCHAR": pa.string(),
        "TIME": pa.string(),
        "BYTES": pa.binary(),
        "VARBINARY": pa.binary(),
        "DATE": pa.date32(),
        "TIMESTAMP": pa.timestamp("us"),
        "TIMESTAMP_LTZ": pa.timestamp("us", tz="UTC"),
    }[kind.kind]

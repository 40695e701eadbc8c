"""Rows of Arrow as values that python-oracledb binds, and what it has to know of them beforehand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from leatstream.connectors.oracle.errors import library
from leatstream.connectors.oracle.types import base_of
from leatstream.errors import StoreError

if TYPE_CHECKING:
    import pyarrow as pa

    from leatstream.connectors.oracle.sink import Target

# Bound as these whatever the first rows hold, which may be NULL; large objects in one trip, as LONG.
_BOUND = {
    "NUMBER": "DB_TYPE_NUMBER",
    "BINARY_FLOAT": "DB_TYPE_BINARY_FLOAT",
    "BINARY_DOUBLE": "DB_TYPE_BINARY_DOUBLE",
    "DATE": "DB_TYPE_DATE",
    "CLOB": "DB_TYPE_LONG",
    "NCLOB": "DB_TYPE_LONG_NVARCHAR",
    "BLOB": "DB_TYPE_LONG_RAW",
}


def sizes(target: Target) -> list[Any]:
    """How each value of a row is bound; None where the library sees it from the values."""
    found = [_size(native) for native in target.natives]
    number = library().DB_TYPE_NUMBER
    return [number, number, *found] if target.keys else found


def _size(native: str) -> Any:
    base, _ = base_of(native)
    if base.startswith("TIMESTAMP"):
        # Of UTC, which is the session's zone.
        return library().DB_TYPE_TIMESTAMP
    name = _BOUND.get(base)
    return None if name is None else getattr(library(), name)


def rows_of(batch: pa.RecordBatch, target: Target, first: int) -> list[tuple[Any, ...]]:
    """The rows of a batch; of a keyed table with their numbers before them.

    Args:
        batch: the columns of the target, before them of a keyed table whether the row is deleted.
        target: what is written.
        first: number of the first row.

    Raises:
        StoreError: a value that Oracle would keep as another one, or Python cannot hold.
    """
    head = 1 if target.keys else 0
    columns: list[Any] = [range(first, first + batch.num_rows), batch.column(0).to_pylist()][: 2 * head]
    for name, native, values in zip(target.columns, target.natives, batch.columns[head:], strict=True):
        _check(values, name, target.entity)
        columns.append(_values(values, name, native, target.entity))
    return list(zip(*columns, strict=True))


def _check(values: pa.Array, name: str, entity: str) -> None:
    """Oracle has no empty text: it would be NULL there."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = values.type
    long = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    if not (long or pa.types.is_string(kind) or pa.types.is_binary(kind)):
        return
    if pc.any(pc.equal(pc.binary_length(values), 0)).as_py():
        detail = (
            f"Table {entity} does not take a value of column {name}: it is empty, which Oracle keeps as NULL."
        )
        hint = f"Write NULLIF({name}, '') in the query if NULL is meant."
        raise StoreError("store-rejected", detail, hint=hint)


def _values(values: pa.Array, name: str, native: str, entity: str) -> list[Any]:
    import pyarrow as pa

    if pa.types.is_timestamp(values.type) and values.type.tz is not None:
        values = values.cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us"))
    try:
        found: list[Any] = values.to_pylist()
    except (OverflowError, ValueError):
        detail = f"Table {entity} does not take a value of column {name}: it is not from the years 1 to 9999."
        raise StoreError("store-rejected", detail) from None
    if base_of(native)[0] == "BOOLEAN":
        return [None if value is None else bool(value) for value in found]
    return found

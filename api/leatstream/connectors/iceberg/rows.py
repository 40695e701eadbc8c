"""Rows of a query as Arrow in the very shape of a table's schema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from leatstream.errors import StoreError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.schema import Schema


def arrow_schema(schema: Schema, columns: Sequence[str]) -> pa.Schema:
    """These columns of a table, as Arrow.

    Raises:
        StoreError: store-rejected, the table was altered and lacks one of them.
    """
    import pyarrow as pa
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    whole = schema_to_pyarrow(schema, include_field_ids=False)
    missing = [name for name in columns if name not in whole.names]
    if missing:
        raise StoreError(
            "store-rejected",
            f"The table was altered: it has no column {missing[0]}.",
            hint="Restore the column in the table, or replace the query with one that does not use it.",
        )
    return pa.schema([whole.field(name) for name in columns])


def shaped(rows: pa.RecordBatch | pa.Table, wanted: pa.Schema, entity: str) -> pa.Table:
    """Rows with the types of a table's columns; by position.

    Args:
        rows: of a query.
        wanted: the columns in the table's own types.
        entity: the table, for messages.

    Raises:
        StoreError: store-rejected, a value does not fit; it is not quoted.
    """
    import pyarrow as pa

    table = pa.table(rows) if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
    columns = []
    for values, field in zip(table.columns, wanted, strict=True):
        try:
            found = values if values.type.equals(field.type) else values.cast(field.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise _unfit(entity, field.name, f"it is no {field.type}") from None
        if not field.nullable and found.null_count:
            raise _unfit(entity, field.name, "it is NULL, and the column is required")
        columns.append(found)
    return pa.Table.from_arrays(columns, schema=wanted)


def completed(rows: pa.Table, schema: Schema) -> pa.Table:
    """Rows with all columns of a table; those that are not written have their default, or are NULL.

    pyiceberg would fill them in too, but looks for the columns of the partitions before.
    """
    import pyarrow as pa

    names = [field.name for field in schema.fields]
    wanted = arrow_schema(schema, names)
    columns = [
        rows.column(one.name)
        if one.name in rows.column_names
        else pa.repeat(pa.scalar(one.write_default, field.type), rows.num_rows)
        for one, field in zip(schema.fields, wanted, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=wanted)


def last_of_keys(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    """The last row of each key."""
    import pyarrow as pa
    import pyarrow.compute as pc

    place = "__leat_place"
    numbered = rows.select(list(keys)).append_column(place, pa.array(range(rows.num_rows), pa.int64()))
    last = numbered.group_by(list(keys)).aggregate([(place, "max")]).column(f"{place}_max")
    return rows.take(last.take(pc.sort_indices(last)))


def without_keys(rows: pa.Table, gone: pa.Table, keys: Sequence[str]) -> pa.Table:
    """The rows whose key is none of ``gone``, which has just the columns of the key.

    Args:
        rows: of a table.
        gone: keys.
        keys: names of the key's columns.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    place = "__leat_place"
    numbered = rows.select(list(keys)).append_column(place, pa.array(range(rows.num_rows), pa.int64()))
    left = numbered.join(gone, keys=list(keys), join_type="left anti").column(place)
    return rows.take(left.take(pc.sort_indices(left)))


def _unfit(entity: str, column: str, why: str) -> StoreError:
    return StoreError(
        "store-rejected",
        f"Table {entity} does not take a value of column {column}: {why}.",
        hint="Change the value in the query, with TRY_CAST, COALESCE or WHERE, or change the table.",
    )

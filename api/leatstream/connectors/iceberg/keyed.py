"""Rows that replace those of the same keys, in a transaction of one commit."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from leatstream.connectors.iceberg.rows import completed, without_keys

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.table import Table, Transaction

_ORDERED = ("int", "long", "date", "time", "timestamp", "timestamptz", "string", "decimal")


def replace_rows(
    table: Table, transaction: Transaction, *, keys: pa.Table, new: pa.Table, note: Mapping[str, str]
) -> None:
    """Delete the rows of these keys and append new ones.

    Args:
        table: as the transaction began with it.
        transaction: takes the changes.
        keys: the columns of the key, each key once.
        new: rows in the shape of the table's schema.
        note: for the summaries of the snapshots.
    """
    import pyarrow as pa

    condition = key_filter(table, keys)
    kept: pa.Table | None = None
    if len(keys.column_names) > 1:
        # Of several columns the condition holds for all combinations of their values: for more rows.
        there = table.scan(row_filter=condition).to_arrow()
        kept = without_keys(there, keys.cast(_only(there.schema, keys)), keys.column_names)
    # That new rows replace none is no news.
    warnings.filterwarnings("ignore", "Delete operation did not match any records")
    transaction.delete(condition, snapshot_properties=dict(note))
    new = completed(new, table.schema())
    if kept is not None and kept.num_rows:
        new = pa.concat_tables([kept.cast(new.schema), new])
    if new.num_rows:
        transaction.append(new, snapshot_properties=dict(note))


def _only(schema: pa.Schema, keys: pa.Table) -> pa.Schema:
    import pyarrow as pa

    return pa.schema([schema.field(name) for name in keys.column_names])


def key_filter(table: Table, keys: pa.Table) -> BooleanExpression:
    """A condition that holds for the rows of these keys.

    Statistics of files are compared with lists of at most 200 values, so each list comes with its range.
    """
    from pyiceberg.expressions import AlwaysTrue, And, GreaterThanOrEqual, In, LessThanOrEqual

    found: BooleanExpression = AlwaysTrue()
    for name in keys.column_names:
        values: list[Any] = keys.column(name).unique().to_pylist()
        found = And(found, In(name, values))  # type: ignore[call-arg, arg-type] # pydantic hides its __init__
        if str(table.schema().find_type(name)).partition("(")[0] in _ORDERED and values:
            least, most = GreaterThanOrEqual(name, min(values)), LessThanOrEqual(name, max(values))  # type: ignore[call-arg]
            bounds = And(least, most)
            found = And(found, bounds)
    return found

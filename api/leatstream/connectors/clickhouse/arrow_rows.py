"""Rows in Arrow, made what a table takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from leatstream.connectors.clickhouse.values import Taker, ValueFaultError

if TYPE_CHECKING:
    import pyarrow as pa

DELETED = "__leat_deleted"


def fit(rows: pa.Table, takers: Sequence[Taker], keyed: bool) -> pa.Table:
    """The rows with the columns of a table, and where they are keyed ``DELETED`` before them.

    Args:
        rows: one column for each of the table's; where they are keyed, first whether a row is deleted.
        takers: the table's columns, in their order.
        keyed: whether rows replace each other.

    Raises:
        ValueFaultError: a column cannot hold a value.
    """
    import pyarrow as pa

    (batch,) = rows.combine_chunks().to_batches()
    deleted = batch.column(0) if keyed else None
    columns: dict[str, pa.Array] = {} if deleted is None else {DELETED: deleted}
    for taker, values in zip(takers, batch.columns[int(keyed) :], strict=True):
        try:
            columns[taker.name] = taker.taken(values, deleted)
        except ValueFaultError as fault:
            raise ValueFaultError(fault.why, taker.name) from None
    return pa.table(columns)


def versioned(rows: pa.Table, version: str, deleted: str, first: int) -> pa.Table:
    """The rows of ``fit`` with the table's own columns for versions and deletions.

    Args:
        rows: with ``DELETED``.
        version: name of the column of versions.
        deleted: name of the column of deletions.
        first: version of the first row; each one has a higher one than the row before.
    """
    import numpy as np
    import pyarrow as pa

    versions = pa.array(np.arange(first, first + rows.num_rows, dtype=np.uint64))
    flags = rows.column(0).cast(pa.uint8())
    return rows.drop_columns([DELETED]).append_column(version, versions).append_column(deleted, flags)


def stream(rows: pa.Table) -> bytes:
    """The rows as one block of an Arrow stream, compressed: a third of the bytes take the wire."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(sink, rows.schema, options=options) as writer:
        writer.write_table(rows.combine_chunks(), max_chunksize=max(1, rows.num_rows))
    return bytes(sink.getvalue())

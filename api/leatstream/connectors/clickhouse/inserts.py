"""A batch's rows in Arrow, cut into inserts of bounded size.

An insert is one block of the server's, which it keeps whole or not at all. Without a key the token decides
whether it is there, not the rows. So the same rows have to make the same inserts, whatever their order is.
Most batches are one insert, whose rows are the batch's. Larger ones are cut by a hash of each row.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

HASH = "__leat_hash"
"""The last column of rows without a key: equal rows have equal ones."""
_ROWS, _SIZE = 500_000, 64 << 20
"""The rows or bytes at which an insert is full.

A server may split inserts of more than ``max_insert_block_size`` rows, by default a million.
"""


def in_order(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The rows of a batch, insert by insert, in their order."""
    import pyarrow as pa

    parts: list[pa.RecordBatch] = []
    count = size = 0
    # Spark's own batches are small, unless its settings do not bound them.
    for batch in (whole.slice(at, _ROWS) for whole in batches for at in range(0, whole.num_rows, _ROWS)):
        if parts and (count + batch.num_rows > _ROWS or size + batch.nbytes > _SIZE):
            yield pa.Table.from_batches(parts)
            parts, count, size = [], 0, 0
        parts.append(batch)
        count, size = count + batch.num_rows, size + batch.nbytes
    if parts:
        yield pa.Table.from_batches(parts)


def cut_alike(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[str, pa.Table]]:
    """The rows of a batch without ``HASH``, insert by insert, whatever order they come in.

    Each insert has a name in its batch. Inserts of the same name have the same rows, unless equal hashes of
    different rows lie just where a batch is cut: of 64 bits, once in a billion years.
    """
    import pyarrow as pa

    waiting: list[pa.RecordBatch] = []
    count = size = 0
    for batch in batches:
        waiting.append(batch)
        count, size = count + batch.num_rows, size + _weight(batch)
        if count > _ROWS or size > _SIZE:
            with tempfile.TemporaryDirectory(prefix="leat-batch-") as directory:
                yield from _cut(itertools.chain(waiting, batches), Path(directory) / "rows")
            return
    if waiting:
        yield "0", pa.Table.from_batches(waiting).drop_columns([HASH])


def _cut(batches: Iterator[pa.RecordBatch], path: Path) -> Iterator[tuple[str, pa.Table]]:
    """Cut what is more than one insert; the rows lie on the disk meanwhile, and their hashes in memory."""
    import numpy as np
    import pyarrow as pa

    first = next(batches)
    hashes, size = [], 0
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, first.schema) as writer:
        for batch in itertools.chain([first], batches):
            writer.write_batch(batch)
            hashes.append(batch.column(HASH).to_numpy())
            size += _weight(batch)
    # Rows of one hash are equal: which of them are in which insert makes no difference.
    order = np.argsort(np.concatenate(hashes), kind="stable")
    number = max(-(-len(order) // _ROWS), -(-size // _SIZE))
    insert_of = np.empty(len(order), dtype=np.uint32)
    for index, rows in enumerate(np.array_split(order, number)):
        insert_of[rows] = index
    with pa.memory_map(str(path)) as file:
        reader = pa.ipc.open_file(file)
        for index in range(number):
            parts, begin = [], 0
            for i in range(reader.num_record_batches):
                batch = reader.get_batch(i)
                mine = np.flatnonzero(insert_of[begin : begin + batch.num_rows] == index)
                parts.append(batch.take(pa.array(mine)))
                begin += batch.num_rows
            yield f"{index}/{number}", pa.Table.from_batches(parts).drop_columns([HASH])


def _weight(batch: pa.RecordBatch) -> int:
    """The bytes of some rows; the same in all, however they are divided into batches."""
    return sum(map(_bytes, batch.columns))


def _bytes(values: pa.Array) -> int:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = values.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return 4 * len(values) + (pc.sum(pc.binary_length(values)).as_py() or 0)
    if pa.types.is_list(kind):
        return 4 * len(values) + _bytes(values.flatten())
    if pa.types.is_map(kind):
        begin, end = values.offsets[0].as_py(), values.offsets[-1].as_py()
        parts = (part.slice(begin, end - begin) for part in (values.keys, values.items))
        return 4 * len(values) + sum(map(_bytes, parts))
    if pa.types.is_struct(kind):
        return sum(map(_bytes, values.flatten()))
    return len(values) * max(1, int(kind.bit_width) // 8)

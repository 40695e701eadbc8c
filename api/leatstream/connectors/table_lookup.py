"""A table's rows by the values of some of its columns, fetched by Spark's tasks: no row nobody asks for.

A task takes the values of a batch, as texts, and asks for a thousand of them at a time. The kind gives
``fetch``, which asks its store once for all of them. Rows are JSON texts of the relation's columns. Where the
relation allows it, a worker keeps rows for a while.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Hashable, Iterator
from typing import TYPE_CHECKING, Protocol

from leatstream.connectors.store_marks import marked
from leatstream.errors import StoreError

if TYPE_CHECKING:
    import pyarrow as pa

CHUNK = 1000
KEPT_ROWS = 20_000
"""Of a worker's rows that are kept for their time; beyond that the oldest are dropped."""
Key = tuple[str, ...]


class LookupTarget(Hashable, Protocol):
    """What a task needs to know to look rows up; equal ones share what is kept."""

    @property
    def ttl_ms(self) -> int:
        """How long rows are kept; 0 = they are not."""


Fetch = Callable[[list[Key], bool], list[tuple[int, bytes]]]
"""Keys to their rows, each with the index of its key where the flag asks for it (else with 0)."""
Able = Callable[[Key], bool]
"""Whether a row can have this key; stores refuse to read some texts as values."""
_rows: dict[tuple[LookupTarget, Key], tuple[float, list[bytes]]] = {}  # a worker's own, oldest first


def look_up(
    target: LookupTarget, able: Able, fetch: Fetch, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """A task: the rows of the keys of its batches, as ``value``.

    Raises:
        RuntimeError: with the mark of the StoreError that ``fetch`` raised.
    """
    import pyarrow as pa

    try:
        for batch in batches:
            keys = zip(*(c.to_pylist() for c in batch.columns), strict=True)
            wanted = (key for key in keys if able(key))
            while chunk := list(itertools.islice(wanted, CHUNK)):
                rows = [value.decode() for value in found(target, fetch, chunk)]
                yield pa.record_batch({"value": pa.array(rows, pa.string())})
    except StoreError as error:
        raise RuntimeError(marked("table", error)) from None


def found(target: LookupTarget, fetch: Fetch, keys: list[Key]) -> list[bytes]:
    """The rows of keys: those that are kept, and for the others those in the store."""
    if not target.ttl_ms:
        return [row for _, row in fetch(keys, False)]
    now = time.monotonic()
    kept = {key: _rows[target, key] for key in keys if (target, key) in _rows}
    rows = [row for until, rows in kept.values() if until > now for row in rows]
    missing = [key for key in keys if key not in kept or kept[key][0] <= now]
    fresh: dict[Key, list[bytes]] = {key: [] for key in missing}
    if missing:
        for number, row in fetch(missing, True):
            fresh[missing[number]].append(row)
    for key, new in fresh.items():
        _rows.pop((target, key), None)
        # From before the rows were asked for: none is older than it may be.
        _rows[target, key] = (now + target.ttl_ms / 1000, new)
        rows += new
    _forget()
    return rows


def _forget() -> None:
    """Keep what is kept within its bound; a key without rows counts as one."""
    count = sum(max(1, len(rows)) for _, rows in _rows.values())
    while count > KEPT_ROWS:
        oldest = next(iter(_rows))
        count -= max(1, len(_rows.pop(oldest)[1]))

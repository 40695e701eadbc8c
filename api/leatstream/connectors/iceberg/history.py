"""Which snapshots of a table a query reads next, and from where on.

An offset is what Spark keeps of a batch's end: ``snapshot``, up to which was read, and ``since``, from where
the batch began. So a batch is repeated alike, even where the query's own beginning would be another by now.
``whole`` says that the batch is all rows that the snapshot has.

A first snapshot without rows, which leatstream gives to tables, is never read up to: a query waits before it
as in a table without snapshots. So it may be expired at any time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from leatstream.connectors.iceberg.options import SKIP, START
from leatstream.errors import StoreError

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

Offset = dict[str, Any]
NOWHERE = ""
"""Before a table's first snapshot."""
_APPEND, _REPLACE = "append", "replace"


def offset(snapshot: str, since: str = NOWHERE, *, whole: bool = False) -> Offset:
    """An offset of these members.

    Args:
        snapshot: up to which was read.
        since: from where the batch began.
        whole: whether it is all rows of the snapshot.
    """
    return {"snapshot": snapshot, "since": since, "whole": whole}


def beginning(table: Table, entity: str, position: str, moment: int | None, start: str | None) -> Offset:
    """Where a new query starts.

    Args:
        table: as it is now.
        entity: its name, for messages.
        position: ``earliest``, ``latest`` or ``timestamp``.
        moment: epoch milliseconds, with ``timestamp``.
        start: id of a snapshot behind which to start, whatever the position.

    Raises:
        StoreError: store-rejected, the table does not have the start any more.
    """
    if start is not None:
        if start not in {str(one.snapshot_id) for one in ancestors(table)}:
            detail = f"Table {entity} has no snapshot {start} that its present one came from"
            raise _lost(detail, f"Correct {START!r} of the relation.")
        return offset(start, start)
    if position == "timestamp":
        return _since(table, entity, moment or 0)
    current = _current(table)
    if position == "earliest" or current is None:
        return offset(NOWHERE, whole=position == "earliest")
    return offset(str(current.snapshot_id), str(current.snapshot_id))


def _since(table: Table, entity: str, moment: int) -> Offset:
    """Behind the last snapshot before a moment."""
    line = ancestors(table)
    before = next((one for one in line if one.timestamp_ms < moment), None)
    if before is not None and not _is_blank(before):
        return offset(str(before.snapshot_id), str(before.snapshot_id))
    if line and not _is_whole(line[-1]):
        detail = f"Table {entity} has no snapshots from before that time any more: they were expired"
        raise _lost(detail, "'starting.position' = 'earliest' reads all rows of the table, then new ones")
    return offset(NOWHERE)


def ancestors(table: Table) -> list[Snapshot]:
    """The present snapshot and those that it came from, the newest first, as far as the table has them."""
    found: list[Snapshot] = []
    one = table.current_snapshot()
    while one is not None:
        found.append(one)
        parent = one.parent_snapshot_id
        one = None if parent is None else table.snapshot_by_id(parent)
    return found


def pending(table: Table, entity: str, start: Offset) -> list[Snapshot]:
    """The snapshots behind an offset, the oldest first.

    Args:
        table: as it is now.
        entity: its name, for messages.
        start: the offset.

    Raises:
        StoreError: store-rejected, those in between were expired, or the table was set back.
    """
    found: list[Snapshot] = []
    for one in ancestors(table):
        if str(one.snapshot_id) == start["snapshot"]:
            return found[::-1]
        found.append(one)
    if start["snapshot"] == NOWHERE and (not found or _is_whole(found[-1])):
        return found[::-1]
    detail = (
        f"Table {entity} no longer has the snapshot up to which the query has read "
        f"({start['snapshot'] or 'its first one'}): it was expired, or the table was set back"
    )
    hint = "Start the query over, and keep snapshots for longer than it may stand still."
    raise _lost(detail, hint)


def advanced(table: Table, entity: str, start: Offset, *, skip: bool, most: int) -> Offset:
    """The end of the next batch; ``start`` itself where there is nothing new.

    Args:
        table: as it is now.
        entity: its name.
        start: the end of the last batch.
        skip: whether snapshots that overwrite or delete rows are passed over.
        most: rows after which a batch ends; a snapshot is read as a whole.

    Raises:
        StoreError: store-rejected, a snapshot overwrites or deletes rows, or the position is lost.
    """
    if start["whole"] and start["snapshot"] == NOWHERE:
        current = _current(table)
        return start if current is None else offset(str(current.snapshot_id), whole=True)
    end, rows = start["snapshot"], 0
    behind = pending(table, entity, start)
    if all(_is_blank(one) for one in behind):
        return start
    for one in behind:
        _check(one, entity, skip=skip)
        end = str(one.snapshot_id)
        rows += _count(one, "added-records") or 0
        if rows >= most:
            break
    return start if end == start["snapshot"] else offset(end, start["snapshot"])


def appended(table: Table, entity: str, end: Offset) -> list[Snapshot]:
    """The snapshots of a batch that append rows.

    Args:
        table: as it is now.
        entity: its name, for messages.
        end: the end of the batch.
    """
    behind = pending(table, entity, offset(end["since"]))
    ids = [str(one.snapshot_id) for one in behind]
    if end["snapshot"] not in ids:
        detail = f"Table {entity} no longer has snapshot {end['snapshot']}, which a batch ends with"
        raise _lost(detail, "Start the query over, and keep snapshots for longer than it may stand still.")
    mine: Sequence[Snapshot] = behind[: ids.index(end["snapshot"]) + 1]
    return [one for one in mine if _operation(one) == _APPEND]


def _check(snapshot: Snapshot, entity: str, *, skip: bool) -> None:
    operation = _operation(snapshot)
    if operation in (_APPEND, _REPLACE) or skip:
        return
    raise StoreError(
        "store-rejected",
        f"Snapshot {snapshot.snapshot_id} of table {entity} changes rows that were read before "
        f"({operation}); a stream reads only appended rows.",
        hint=f"With {SKIP!r} = TRUE in the relation such snapshots are passed over.",
    )


def _current(table: Table) -> Snapshot | None:
    """The present snapshot, unless it is a blank one."""
    found = table.current_snapshot()
    return None if found is None or _is_blank(found) else found


def _is_first(snapshot: Snapshot) -> bool:
    """Whether a snapshot came from none. pyiceberg forgets the parent of one whose parent it expires."""
    return snapshot.parent_snapshot_id is None and (snapshot.sequence_number or 0) <= 1


def _is_blank(snapshot: Snapshot) -> bool:
    """Whether it is a table's first snapshot and has no rows."""
    return _is_first(snapshot) and _count(snapshot, "total-records") == 0


def _is_whole(snapshot: Snapshot) -> bool:
    """Whether no rows came before a snapshot: it is the first one, or the one after a blank one."""
    added = _count(snapshot, "added-records")
    is_second = snapshot.sequence_number == 2 and _operation(snapshot) == _APPEND
    return _is_first(snapshot) or (
        is_second and added is not None and added == _count(snapshot, "total-records")
    )


def _count(snapshot: Snapshot, name: str) -> int | None:
    """A number of a snapshot's summary, where it says it."""
    text = snapshot.summary.get(name) if snapshot.summary is not None else None
    return int(text) if text is not None else None


def _operation(snapshot: Snapshot) -> str:
    return snapshot.summary.operation.value if snapshot.summary is not None else "unknown"


def _lost(detail: str, hint: str) -> StoreError:
    return StoreError("store-rejected", f"{detail}.", hint=hint)

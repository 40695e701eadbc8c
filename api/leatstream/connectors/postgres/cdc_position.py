"""Where a reader of a table's changes stands, and which changes its first rows already hold.

The first rows are read in chunks, in the order of the primary key, all in one transaction's view: a mark.
Where a restart had to begin a new transaction, each mark tells up to which key its rows go. A change whose
transaction the mark of its row's key could see is in those rows and is passed over.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from leatstream.connectors.postgres.pgoutput import format_lsn, parse_lsn

_STATE = "__state"
_XIDS = 1 << 32
Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """What a transaction saw that read first rows.

    Attributes:
        snapshot: PostgreSQL's ``pg_snapshot``: ``xmin:xmax:xip,xip``.
        lsn: commits from this place of the log on it could not see.
        last: key of the last row read in it; None = to the end.
        at: when it began by the server's clock, epoch microseconds, which is the time of its rows; 0 = not
            known, of offsets from before this was kept.
    """

    snapshot: str
    lsn: int
    last: Key | None = None
    at: int = 0

    def sees(self, xid: int) -> bool:
        """Whether the transaction with this number (the lower 32 bits) was over for it."""
        low, high, running = self.snapshot.split(":")
        if _is_before(xid, int(low)):
            return True
        if not _is_before(xid, int(high)):
            return False
        return xid not in {int(x) % _XIDS for x in running.split(",") if x}


def _is_before(xid: int, bound: int) -> bool:
    """Numbers of transactions go round; two of the same time are less than half a round apart."""
    return (xid - bound) % _XIDS > _XIDS // 2


@dataclass(frozen=True, slots=True)
class Position:
    """What Spark keeps as the source's offset.

    Attributes:
        lsn: transactions that end at or before it are done with.
        rows: how many of the table's first rows have been read.
        complete: whether those are all.
        after: key of the last one.
        marks: what was seen while they were read.
    """

    lsn: int
    rows: int = 0
    complete: bool = True
    after: Key | None = None
    marks: tuple[Mark, ...] = ()

    @property
    def settled(self) -> int:
        """From this place on every commit counts."""
        return max((mark.lsn for mark in self.marks), default=0)

    @property
    def since(self) -> int:
        """No change that the first rows lack may have an earlier time than this."""
        return max((mark.at + 1 for mark in self.marks), default=0)

    def with_rows(self, count: int, last: Key | None, seen: Mark, *, complete: bool) -> Position:
        """The position after a chunk of first rows."""
        marks = self.marks
        if marks and marks[-1].snapshot == seen.snapshot:
            marks = marks[:-1]
        after = last or self.after
        mark = replace(seen, last=None if complete else after)
        return Position(self.lsn, self.rows + count, complete, after, (*marks, mark))

    def moved(self, lsn: int) -> Position:
        """The position after changes; marks that no later commit can stand before are forgotten."""
        if lsn <= self.settled:
            return replace(self, lsn=lsn)
        return replace(self, lsn=lsn, marks=(), after=None)

    def as_offset(self, entity: str) -> dict[str, Any]:
        """For Spark's offset log; what stands under the entity's name is what people are shown."""
        shown: dict[str, Any] = {"lsn": format_lsn(self.lsn)}
        state: dict[str, Any] = {}
        if self.rows:
            shown["rows"] = self.rows
        if not self.complete:
            state["complete"] = False
        if self.after is not None:
            state["after"] = list(self.after)
        if self.marks:
            state["marks"] = [
                [m.snapshot, format_lsn(m.lsn), list(m.last) if m.last else None, m.at] for m in self.marks
            ]
        return {entity: shown} | ({_STATE: json.dumps(state)} if state else {})


def read_offset(offset: Mapping[str, Any], entity: str) -> Position:
    """Read back what ``as_offset`` wrote."""
    shown, state = offset[entity], json.loads(offset.get(_STATE, "{}"))
    after = state.get("after")
    return Position(
        parse_lsn(shown["lsn"]),
        int(shown.get("rows", 0)),
        bool(state.get("complete", True)),
        tuple(after) if after else None,
        tuple(
            Mark(snapshot, parse_lsn(lsn), tuple(last) if last else None, *at)
            for snapshot, lsn, last, *at in state.get("marks", ())
        ),
    )

"""From messages of the log to records, in the order of commits: what the first rows hold is passed over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from leatstream.connectors.postgres.cdc_position import Key, Position
from leatstream.connectors.postgres.cdc_records import Form, Record, Shaper
from leatstream.connectors.postgres.cdc_server import ChangeServer
from leatstream.connectors.postgres.cdc_shape import read_shape
from leatstream.connectors.postgres.cdc_table import SourceTable, current_rows, key_ranges
from leatstream.connectors.postgres.pgoutput import (
    UNCHANGED,
    Begin,
    Change,
    Commit,
    RelationShape,
    Truncate,
    Values,
    decode,
)
from leatstream.errors import StoreError

_CHUNK = 10_000
_BEGIN = 0x42


@dataclass(slots=True)
class _Event:
    """A change on its way.

    Attributes:
        old_news, new_news: whether it counts for the row under its old key and under its new one.
        old_since, new_since: the times that it may not come before there.
    """

    shaper: Shaper
    change: Change
    at: int
    lsn: int
    old_news: bool = True
    new_news: bool = True
    xid: int = 0
    old_since: int = 0
    new_since: int = 0


@dataclass
class ChangeReader:
    """Reads messages of whole transactions behind a position.

    Attributes:
        end: where the last transaction read ends; 0 before any.
        messages: how many messages came.
    """

    server: ChangeServer
    table: SourceTable
    form: Form
    position: Position
    end: int = 0
    messages: int = 0
    _shapers: dict[int, Shaper | None] = field(default_factory=dict)

    def read(self, messages: Iterable[tuple[int, bytes]], upto: int | None = None) -> Iterator[list[Record]]:
        """Records of the transactions behind the position, up to and with that which ends at ``upto``.

        Raises:
            StoreError: the table has been emptied or altered, or keeps too little of its old rows.
            MalformedMessage: bytes that are no message.
        """
        records: list[Record] = []
        waiting: list[_Event] = []
        skipped, at, xid, judged = False, 0, 0, False
        marks, settled, done = self.position.marks, self.position.settled, self.position.lsn
        keyed, since = bool(self.form.key), self.position.since
        for lsn, data in messages:
            self.messages += 1
            if skipped and data[0] != _BEGIN:
                if data[0] == 0x43:
                    self._committed(decode(data))
                elif data[0] == 0x52:
                    self._shape(decode(data))
                continue
            message = decode(data)
            if message.__class__ is Change:
                shaper, new = self._shapers.get(message.relation), message.new
                if shaper is None:
                    continue
                if shaper.lacking:
                    message = shaper.completed(message)
                    new = message.new
                unsent = (message.op == "u" or shaper.lacking) and new is not None and UNCHANGED in new
                if judged or waiting or unsent:
                    waiting.append(_Event(shaper, message, at, lsn, xid=xid if judged else -1))
                elif new is None or message.key is not None or message.old is not None:
                    self._write(_Event(shaper, message, at, lsn), records)
                elif keyed:
                    records.append(shaper.upsert(shaper.key(new), new, at, lsn))
                else:
                    op = b"c" if message.op == "c" else b"u"
                    records.append(shaper.envelope(op, shaper.key(new), None, new, at, lsn))
                if len(records) + len(waiting) >= _CHUNK:
                    yield records + self._settle(waiting)
                    records, waiting = [], []
            elif isinstance(message, Begin):
                if upto is not None and message.commit_lsn >= upto:
                    break
                at, xid, judged = message.commit_us, message.xid, False
                skipped = message.commit_lsn < done
                if not skipped and marks and message.commit_lsn < settled:
                    judged = len(marks) > 1
                    skipped = not judged and marks[0].sees(xid)
                if not judged:
                    # Times are taken before commits can be seen, and joins take the newest row by its time.
                    at = max(at, since)
            elif isinstance(message, Commit):
                self._committed(message)
            elif isinstance(message, RelationShape):
                self._shape(message)
            elif isinstance(message, Truncate):
                records += self._settle(waiting)
                waiting = []
                records += self._emptied(message, at, lsn)
        yield records + self._settle(waiting)

    def _committed(self, message: object) -> None:
        if isinstance(message, Commit):
            self.end = message.end_lsn

    def _shape(self, message: object) -> None:
        if not isinstance(message, RelationShape):
            return
        self._shapers[message.oid] = None
        if message.oid == self.table.oid:
            shaper, self.table = read_shape(self.server, self.form, self.table, message)
            self._shapers[message.oid] = shaper
        elif (message.schema, message.name) == (self.table.schema, self.table.name):
            raise StoreError(
                "entity-not-found",
                f"Store {self.server.store}: table {self.server.entity} is another one now than that whose "
                "changes the log has: it was dropped and made again, or changed its name with another.",
            )

    def _emptied(self, message: Truncate, at: int, lsn: int) -> list[Record]:
        shapers = [s for s in (self._shapers.get(oid) for oid in message.relations) if s is not None]
        if not shapers or (self.form.key and self.form.truncates):
            return []
        if self.form.key:
            raise StoreError(
                "store-rejected",
                f"Store {self.server.store}: table {self.server.entity} was emptied by TRUNCATE, which does "
                "not tell the rows; a changelog cannot take them back.",
                hint="'postgresql.truncate.handling' = 'ignore' keeps the rows that were there.",
            )
        return [shapers[0].envelope(b"t", None, None, None, at, lsn)]

    # -- changes that need a second look ---------------------------------------------------------------------

    def _settle(self, events: list[_Event]) -> list[Record]:
        """Records of changes, in order; those whose rows the first rows hold are left out."""
        if not events:
            return []
        self._judge([event for event in events if event.xid >= 0])
        self._fill([event for event in events if event.change.new and UNCHANGED in event.change.new])
        records: list[Record] = []
        for event in events:
            self._write(event, records)
        return records

    def _judge(self, events: list[_Event]) -> None:
        """Compare keys with the marks' ranges; the server does, as it has the order of keys."""
        if not events:
            return
        marks = self.position.marks
        keys: list[Key] = []
        for event in events:
            keys.append(event.shaper.key_of(_identity(event, old=True)))
            keys.append(event.shaper.key_of(_identity(event, old=False)))
        bounds = [mark.last for mark in marks if mark.last is not None]
        ranges = key_ranges(self.server, self.table, keys, bounds)
        for index, event in enumerate(events):
            old, new = (
                marks[min(ranges[2 * index], len(marks) - 1)],
                marks[min(ranges[2 * index + 1], len(marks) - 1)],
            )
            event.old_news, event.new_news = not old.sees(event.xid), not new.sees(event.xid)
            event.old_since, event.new_since = old.at + 1, new.at + 1

    def _fill(self, events: list[_Event]) -> None:
        """Fill in values that were not sent: from the old row, else from the row as it is now.

        Of a changelog's row that is there no more only the old key counts: what took it away follows in the
        log, under the new key.
        """
        asked: list[tuple[_Event, list[int]]] = []
        for event in events:
            new, old = event.change.new or [], event.change.old or event.change.key
            for index, value in enumerate(new):
                if value is UNCHANGED and old is not None and isinstance(old[index], bytes):
                    new[index] = old[index]
            missing = [place for place, _ in event.shaper.wanted if new[place] is UNCHANGED]
            if missing:
                asked.append((event, missing))
        names: dict[str, None] = {}
        for event, _ in asked:
            names |= dict.fromkeys(name for _, name in event.shaper.wanted)
        have = {column.name for column in self.table.columns}
        wanted = [name for name in names if name in have]
        if not asked:
            return
        keys = [event.shaper.key_of(event.change.new or []) for event, _ in asked]
        rows = current_rows(self.server, self.table, keys, wanted)
        for (event, missing), row in zip(asked, rows, strict=True):
            if row is None and self.form.key:
                event.new_news = False
                continue
            by_name = dict(zip(wanted, row or [None] * len(wanted), strict=True))
            place_names = dict(event.shaper.wanted)
            new = event.change.new or []
            for place in missing:
                new[place] = by_name.get(place_names[place])

    def _write(self, event: _Event, records: list[Record]) -> None:
        change, shaper = event.change, event.shaper
        before = change.old if change.old is not None else change.key
        if not self.form.key:
            self._tell(event, before, records)
            return
        new_key = shaper.key(change.new) if change.new is not None else None
        if change.op != "c" and (change.new is None or before is not None):
            old_key = shaper.key(self._old(event))
            if old_key != new_key and event.old_news:
                records.append(Record(old_key, None, max(event.at, event.old_since), event.lsn))
        if change.new is not None and new_key is not None and event.new_news:
            at = max(event.at, event.new_since)
            records.append(shaper.upsert(new_key, change.new, at, event.lsn))

    def _tell(self, event: _Event, before: Values | None, records: list[Record]) -> None:
        """A stream's event.

        A row whose key changed may have been read at the start under one of its keys only: then it came, or
        it went.
        """
        change, shaper = event.change, event.shaper
        op, after = change.op.encode(), change.new
        if op == b"u" and event.old_news != event.new_news:
            op, before, after = (b"c", None, after) if event.new_news else (b"d", before, None)
        if event.old_news or event.new_news:
            key = shaper.key(after if after is not None else self._old(event))
            at = max(event.at, event.old_since, event.new_since)
            records.append(shaper.envelope(op, key, before, after, at, event.lsn))

    def _old(self, event: _Event) -> Values:
        """The old row or its key; StoreError where it lacks the key."""
        values = _identity(event, old=True)
        if any(not isinstance(values[place], bytes) for place in event.shaper.key_places):
            raise StoreError(
                "store-rejected",
                f"Store {self.server.store}: the log does not tell the primary key of a row of "
                f"{self.server.entity} that has gone.",
                hint="Its replica identity has to be DEFAULT or FULL.",
            )
        return values


def _identity(event: _Event, *, old: bool) -> Values:
    """The values that hold the key of the row before or after a change."""
    change = event.change
    before = change.old if change.old is not None else change.key
    if old:
        return before if before is not None else (change.new or [])
    return change.new if change.new is not None else (before or [])

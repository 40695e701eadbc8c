"""Spark's view of a table's changes: a Python data source with one partition, as commits have one order.

Imported by ``read_changes`` and by Spark's Python workers only. The settings travel inside the pickled class,
not as options: options end up in plans and logs. The process that plans the batches reads while it looks for
a batch's end, and leaves the records in a file of the checkpoint for the task. So a repeated batch has the
same records; a batch of changes whose file is lost is read from the log once more.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows

from leatstream.connectors.postgres.cdc_changes import ChangeReader
from leatstream.connectors.postgres.cdc_note import NOTE, SlotNote
from leatstream.connectors.postgres.cdc_position import Position, read_offset
from leatstream.connectors.postgres.cdc_records import Form, Record, Shaper, first_rows
from leatstream.connectors.postgres.cdc_rows import FirstRows, check_order
from leatstream.connectors.postgres.cdc_server import ChangeServer
from leatstream.connectors.postgres.cdc_shape import check_table
from leatstream.connectors.postgres.cdc_table import SourceTable, get_table
from leatstream.connectors.postgres.pgoutput import MalformedMessage, format_lsn
from leatstream.connectors.postgres.settings import PostgresConfig
from leatstream.connectors.store_marks import marked
from leatstream.errors import StoreError

DDL = "key BINARY, value BINARY, timestamp TIMESTAMP, lsn BIGINT"
_SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("lsn", pa.int64()),
    ]
)
# Between two looks at a log without changes, and between two advances of a slot that has none.
_GAP, _QUIET = 0.1, 5.0
_CHUNK = 50_000
# How long a server may be away before the query is told.
_AWAY = 60.0


@dataclass(frozen=True, slots=True)
class SourcePlan:
    """What a reader needs to know.

    Attributes:
        own: name of what the query has of its own, made of its id, its generation and the scan's number.
        own_publication: whether the publication is.
        first_rows: whether the rows that are there come before the changes.
        most: about how many changes a micro-batch has.
        directory: where records wait for their task.
        durable: whether that lies in the checkpoint.
    """

    store: str
    config: PostgresConfig
    entity: str
    form: Form
    slot: str
    publication: str
    own: str
    own_publication: bool
    first_rows: bool
    most: int
    directory: str
    durable: bool

    def server(self) -> ChangeServer:
        """What is asked of PostgreSQL."""
        return ChangeServer(self.store, self.config, self.entity, self.slot, self.publication)


@dataclass
class ChangeRange(InputPartition):
    """The records between two offsets; ``path`` is where they should be."""

    start: dict[str, Any]
    end: dict[str, Any]
    path: str


class ChangeStream(DataSourceStreamReader):
    """Plans micro-batches in one process, hands them to tasks by file."""

    def __init__(self, plan: SourcePlan) -> None:
        self._plan = plan
        self._server: ChangeServer | None = None
        self._table: SourceTable | None = None
        self._first: FirstRows | None = None
        self._begun = self._checked = False
        self._kept: list[Path] = []
        self._confirmed = 0
        self._note: SlotNote | None = None
        self._seen = 0
        self._advanced = 0.0
        self._away_since: float | None = None

    # -- in the planning process -----------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:
        """Where a new query starts: publication and slot are made here."""
        plan = self._plan
        with said():
            server = self._open()
            check_table(server, plan.form, self._described())
            if plan.first_rows:
                check_order(server, self._described())
            server.drop_older(plan.own)
            if plan.own_publication and server.make_publication():
                # A slot from before it could not read what was written in between.
                server.drop_own_slot(plan.own)
            server.require_publication()
            begin = server.make_slot()
            return Position(begin, complete=not plan.first_rows).as_offset(plan.entity)

    def getDefaultReadLimit(self) -> ReadLimit:
        """Bound of one micro-batch."""
        return ReadMaxRows(self._plan.most)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Read on from ``start``, up to which all is done with; what was read waits in a file."""
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else self._plan.most
        position = read_offset(start, self._plan.entity)
        with said():
            try:
                self._begin(position)
                while self._kept:
                    self._kept.pop().unlink(missing_ok=True)
                found = self._rows(position, most) if not position.complete else self._changes(position, most)
            except StoreError as error:
                if not self._is_short_absence(error):
                    raise
                return start
        self._away_since = None
        return found.as_offset(self._plan.entity)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """One, or none."""
        entity = self._plan.entity
        if start == end:
            return []
        return [
            ChangeRange(start, end, str(self._path(read_offset(start, entity), read_offset(end, entity))))
        ]

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing: the next look forgets what is done with."""

    def stop(self) -> None:
        """Let go of the connections."""
        self._close_first()
        if self._server is not None:
            self._server.close()

    def _open(self) -> ChangeServer:
        if self._server is None:
            self._server = self._plan.server()
        return self._server

    def _begin(self, position: Position) -> None:
        """At the first look, and after an absence: it may be another server that answers now."""
        server = self._open()
        if self._checked:
            return
        slot = server.require_all()
        self._check_end(server.flushed(), position)
        directory, identity = Path(self._plan.directory), server.identity()
        # Elsewhere it may be of another time, and older than what the query did on another machine.
        self._note = (
            SlotNote.read(directory, self._plan.slot, identity) if self._plan.durable and identity else None
        )
        if self._begun:
            self._check_alone()
        elif slot.confirmed > max(self._asked() or slot.confirmed, position.lsn):
            raise self._taken(slot.confirmed)
        self._confirmed, self._seen = slot.confirmed, 0
        self._table = get_table(server)
        check_table(server, self._plan.form, self._table)
        # No batch is needed any more.
        directory.mkdir(parents=True, exist_ok=True)
        for path in directory.iterdir():
            if path.name != NOTE:
                path.unlink(missing_ok=True)
        if self._note is not None:
            self._note.write(max(slot.confirmed, position.lsn))
        self._begun = self._checked = True

    def _check_end(self, end: int, position: Position) -> None:
        """A restored server, or a standby promoted before it had all, would write other changes there."""
        if end < position.lsn:
            raise StoreError(
                "entity-not-found",
                f"Store {self._plan.store}: the server's log ends before {format_lsn(position.lsn)}, which "
                "has been read already: it is not the server, or not the state of it, that was read.",
            )

    def _is_short_absence(self, error: StoreError) -> bool:
        """Whether to wait for a server that does not answer; the first look has to succeed."""
        if error.code != "store-unreachable" or not self._begun:
            return False
        self._close_first()
        self._checked = False
        now = time.monotonic()
        self._away_since = self._away_since or now
        time.sleep(0.5)
        return now - self._away_since < _AWAY

    def _rows(self, position: Position, most: int) -> Position:
        """The next of the table's first rows."""
        server, table = self._open(), self._described()
        columns = [c.name for c in table.columns if c.name in {name for name, _ in self._plan.form.images()}]
        if self._first is None:
            self._first = FirstRows(server, table, columns, first=not position.rows)
        first, most = self._first, min(most, _CHUNK)
        rows = first.chunk(position.after, most)
        keys = len(table.key)
        last = tuple((value or b"").decode() for value in rows[-1][-keys:]) if rows else None
        complete = len(rows) < most
        found = position.with_rows(len(rows), last, first.seen, complete=complete)
        oids = {c.name: c.oid for c in table.columns}
        names = [*columns, *(c.name for c in table.key if c.name not in columns)]
        shaper = Shaper(self._plan.form, table, [(name, oids[name]) for name in names])
        width = len(columns)
        # The key's columns come last once more.
        places = [*range(width), *(width + i for i, c in enumerate(table.key) if c.name not in columns)]
        shaped = [[row[place] for place in places] for row in rows]
        path = self._path(position, found)
        self._keep(path, iter([first_rows(shaper, shaped, first.seen.at, first.seen)]))
        self._kept.append(path)
        if complete:
            self._close_first()
        return found

    def _changes(self, position: Position, most: int) -> Position:
        """The next changes; the same position if there are none."""
        server = self._open()
        end = server.flushed()
        self._check_end(end, position)
        self._advance(position.lsn)
        if end <= self._seen:
            self._pause()
            return position
        reader = ChangeReader(server, self._described(), self._plan.form, position)
        path = self._path(position, position)
        count = self._keep(path, reader.read(server.peek(end, most)))
        self._table = reader.table
        if count:
            self._check_alone()
            found = position.moved(reader.end)
            self._kept.append(path.rename(self._path(position, found)))
            return found
        path.unlink()
        if reader.messages >= most:
            # Nothing of all this counts: it has to go before more can be seen.
            self._let_go(reader.end)
        else:
            self._seen = end
            if time.monotonic() - self._advanced > _QUIET:
                self._check_alone()
                self._let_go(end)
            self._pause()
        return position

    def _let_go(self, lsn: int) -> None:
        """Advance over what has no change of the table: that it is in the publication is seen first."""
        self._open().require_publication()
        self._advance(lsn)

    def _advance(self, lsn: int) -> None:
        if lsn > self._confirmed:
            # Told before it is done: the server may do it and be gone before it says so, and so may we.
            if self._note is not None:
                self._note.write(lsn)
            self._confirmed, self._advanced = lsn, time.monotonic()
            self._open().advance(lsn)

    def _check_alone(self) -> None:
        """What another reader has taken from the slot is not in what was just read."""
        own = max(self._confirmed, self._asked())
        at = self._open().require_all().confirmed
        if at > own:
            raise self._taken(at)

    def _asked(self) -> int:
        """What the query may have asked the slot for, also before this start; 0 = not known."""
        return (self._note.lsn or 0) if self._note is not None else 0

    def _taken(self, at: int) -> StoreError:
        return StoreError(
            "entity-not-found",
            f"Store {self._plan.store}: another reader has taken changes from slot "
            f"{self._plan.slot}, up to {format_lsn(at)}: they cannot be read a second time.",
            hint="A slot has one reader: give this query another, and start it from the beginning.",
        )

    def _pause(self) -> None:
        # Spark asks without a pause; so wait here rather than answer "nothing" a hundred times a second.
        time.sleep(_GAP)

    def _described(self) -> SourceTable:
        if self._table is None:
            self._table = get_table(self._open())
        return self._table

    def _close_first(self) -> None:
        if self._first is not None:
            self._first.close()
            self._first = None

    def _path(self, start: Position, end: Position) -> Path:
        name = f"{start.lsn:016x}-{start.rows}-{end.lsn:016x}-{end.rows}.arrow"
        return Path(self._plan.directory) / name

    def _keep(self, path: Path, chunks: Iterator[list[Record]]) -> int:
        """Write records into a file; how many."""
        count, partial = 0, path.with_suffix(".partial")
        with pa.OSFile(str(partial), "wb") as file, pa.ipc.new_stream(file, _SCHEMA) as writer:
            for records in chunks:
                if records:
                    writer.write_batch(batch_of(records))
                    count += len(records)
        partial.rename(path)
        return count

    # -- in a task -------------------------------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of a range: from the file, or from the log once more."""
        if not isinstance(partition, ChangeRange):
            raise TypeError("a partition of another reader")
        if Path(partition.path).exists():
            with pa.memory_map(partition.path) as file:
                yield from pa.ipc.open_stream(file)
            return
        with said():
            start = read_offset(partition.start, self._plan.entity)
            end = read_offset(partition.end, self._plan.entity)
            if not start.complete:
                raise StoreError(
                    "entity-not-found",
                    f"Store {self._plan.store}: rows of table {self._plan.entity} that were read at the "
                    "start are not in the checkpoint any more.",
                )
            server = self._plan.server()
            reader = ChangeReader(server, get_table(server), self._plan.form, start)
            for records in reader.read(server.peek(end.lsn, 0), end.lsn):
                yield batch_of(records)
            if reader.end < end.lsn:
                self._check_end(server.flushed(), end)
                raise self._taken(server.require_slot().confirmed)
            server.close()


def batch_of(records: Sequence[Record]) -> pa.RecordBatch:
    """Records as Arrow."""
    keys, values, times, places = zip(*records, strict=True) if records else ((), (), (), ())
    return pa.record_batch(
        [
            pa.array(keys, pa.binary()),
            pa.array(values, pa.binary()),
            pa.array(times, pa.int64()).cast(_SCHEMA.field("timestamp").type),
            pa.array(places, pa.int64()),
        ],
        schema=_SCHEMA,
    )


@contextmanager
def said() -> Iterator[None]:
    """A StoreError as a marked sentence that the driver finds again in Spark's error."""
    try:
        yield
    except StoreError as error:
        raise RuntimeError(marked("source", error)) from None
    except MalformedMessage as error:
        broken = StoreError("store-rejected", f"PostgreSQL's log has a message that cannot be read: {error}.")
        raise RuntimeError(marked("source", broken)) from None

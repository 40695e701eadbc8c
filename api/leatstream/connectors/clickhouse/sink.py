"""Rows of a query into a table, exactly once, without transactions.

One task of Spark writes a batch, as inserts of bounded size in Arrow's format; no row passes through the
driver's Python. What is repeated changes nothing, in one of two ways:

- Without a key, each insert has a token, of the query, its checkpoint, the batch and the insert's name in it.
  The table remembers the tokens of its last inserts, and drops an insert whose token it knows. The token
  decides, not the rows: so a replay has to make the same inserts (``clickhouse.inserts``).
- With a key, the table is a ReplacingMergeTree of version and deletion, which is read with FINAL. A row's
  version is the batch's, noted in ``leatstream_batches`` before the rows are written, and the row's place in
  the batch. A replay writes the same versions again.

An older attempt finds in ``leatstream_batches`` that it is fenced. One that has passed that look already
writes the same tokens, or the same versions, as the newer one.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from leatstream.connectors.arrow_tasks import ArrowTasks, Batches
from leatstream.connectors.clickhouse import batches as progress
from leatstream.connectors.clickhouse.admin import (
    WINDOW,
    WINDOW_SETTING,
    ClickHouseAdmin,
    engine_of_table,
)
from leatstream.connectors.clickhouse.arrow_rows import DELETED, fit, stream, versioned
from leatstream.connectors.clickhouse.batches import Progress
from leatstream.connectors.clickhouse.errors import reported, value_error
from leatstream.connectors.clickhouse.inserts import HASH, cut_alike, in_order
from leatstream.connectors.clickhouse.names import place, quoted, split_entity
from leatstream.connectors.clickhouse.settings import ClickHouseConfig, connect
from leatstream.connectors.clickhouse.types import base_of
from leatstream.connectors.clickhouse.values import Taker, ValueFaultError
from leatstream.connectors.entities import Table
from leatstream.connectors.one_task import counted, write_in_one_task
from leatstream.connectors.writers import Nested, Written
from leatstream.errors import AttemptBehindError, StoreError
from leatstream.model.types import parse_type
from leatstream.plan.job_spec import JobSpec, SinkSpec

if TYPE_CHECKING:
    import pyarrow as pa
    from clickhouse_connect.driver.client import Client
    from pyspark.sql import Column, DataFrame

_CONNECT, _WRITE = 10.0, 600.0  # seconds
_NESTED = ("ARRAY", "MAP", "STRUCT")
_clients: dict[ClickHouseConfig, Client] = {}  # idle ones of this worker, for its next tasks
ROW_BITS = 22
"""Of a version: the place of a row in its batch. The others are the batch's, in milliseconds."""


@dataclass(frozen=True, slots=True)
class Target:
    """What a task needs to know to write a batch.

    Attributes:
        takers: the sink's columns of the table, in the order of the rows'.
        keyed: whether rows replace each other: the first column is then whether the row is deleted.
        version: column of the rows' versions, where they are keyed.
        deleted: column that says that a row is deleted.
        checkpoint: name of the query's checkpoint; another one counts batches from 0.
    """

    store: str
    config: ClickHouseConfig
    entity: str
    takers: tuple[Taker, ...]
    keyed: bool
    version: str
    deleted: str
    query: str
    checkpoint: str
    attempt: int

    @property
    def database(self) -> str:
        """The table's database, where ``leatstream_batches`` is."""
        return split_entity(self.entity, self.config.home)[0]


class ClickHouseTableWriter:
    """Writes the batches of one attempt of a query."""

    def __init__(self, store: str, config: ClickHouseConfig, spec: JobSpec, table: Table) -> None:
        sink = spec.sink
        natives = {column.name: column for column in table.columns}
        engine = engine_of_table(table)
        self._engine = engine
        self._tasks = ArrowTasks()
        self.target = Target(
            store=store,
            config=config,
            entity=sink.entity,
            takers=tuple(
                Taker(column.name, natives[column.name].native, natives[column.name].not_null)
                for column in sink.columns
            ),
            keyed=bool(sink.key_columns),
            version=engine.version or "",
            deleted=engine.deleted or "",
            query=spec.query_id,
            checkpoint=spec.checkpoint_name,
            attempt=spec.attempt,
        )
        self._kinds = [parse_type(column.type) for column in sink.columns]
        self._keys = {i for i, column in enumerate(sink.columns) if column.name in sink.key_columns}
        self._last = self._open(ClickHouseAdmin(store, config), spec.sink)

    def committed(self) -> int | None:
        """Number of the last batch of this checkpoint that was begun when the attempt began."""
        return self._last

    def texts(self, values: Sequence[Column], nested: Nested) -> list[Column]:
        """The sink's columns: of their own types, and as JSON where the table's column is a text."""
        return [
            nested(taker.name, kind, value)
            if kind.kind in _NESTED and base_of(taker.native)[0] == "String"
            else value
            for value, kind, taker in zip(values, self._kinds, self.target.takers, strict=True)
        ]

    def write(self, frame: DataFrame, number: int) -> Written:
        """Write one micro-batch; returns when it is there.

        Args:
            frame: ``key`` and ``value``, structs of ``c0``, ``c1``, …; a row without ``value`` is deleted.
                Rows of a key are in their order.
            number: Spark's batch number.

        Returns:
            The rows and their bytes in Arrow; nothing for a replay of a batch that is complete.
        """
        from pyspark.sql import functions as F

        columns = [
            F.coalesce(F.col(f"value.c{i}"), F.col(f"key.c{i}")) if i in self._keys else F.col(f"value.c{i}")
            for i in range(len(self.target.takers))
        ]
        rows = [column.alias(f"c{i}") for i, column in enumerate(columns)]
        task = functools.partial(write_rows, self.target, number)
        if self.target.keyed:
            deleted = F.col("value").isNull().alias(DELETED)
            return write_in_one_task(self._tasks, frame.select(deleted, *rows), task)
        nested = [
            kind.kind in _NESTED and base_of(taker.native)[0] != "String"
            for kind, taker in zip(self._kinds, self.target.takers, strict=True)
        ]
        return write_in_one_task(
            self._tasks, frame.select(*rows, row_hash(columns, nested).alias(HASH)), task
        )

    def _open(self, admin: ClickHouseAdmin, sink: SinkSpec) -> int | None:
        """Make this attempt the one that may write; the last batch of its checkpoint."""
        target = self.target
        what = f"preparing table {target.entity}"
        with admin.client(what, _CONNECT) as client:
            if not target.keyed:
                self._remember(client)
            progress.make(client, target.database)
            found = progress.read(client, target.database, target.query)
            if found is not None and found.attempt > target.attempt:
                raise AttemptBehindError(_fenced(target).detail, found.attempt)
            mine = Progress(target.query, target.checkpoint, target.attempt)
            if found is not None:
                if sink.stored_view and found.checkpoint != target.checkpoint:
                    self._empty(client, found)
                same = found.checkpoint == target.checkpoint
                mine = replace(mine, version=found.version)
                mine = replace(mine, batch=found.batch, complete=found.complete) if same else mine
            if found != mine:
                progress.note(client, target.database, mine)
        return mine.batch

    def _empty(self, client: Client, found: Progress) -> None:
        """Delete the rows of a view; the query, which starts again, fills it.

        Until that is done, the attempt has a checkpoint without a name: a later one empties it again.
        """
        target = self.target
        begun = Progress(target.query, "", target.attempt, version=found.version, complete=False)
        progress.note(client, target.database, begun)
        client.command(f"TRUNCATE TABLE {place(target.entity, target.config.home)}")

    def _remember(self, client: Client) -> None:
        """Have the table remember its inserts, without which a replay would double rows.

        Raises:
            StoreError: the user may not have it so.
        """
        if self._engine.window is None or self._engine.window > 0:
            return
        from clickhouse_connect.driver.exceptions import DatabaseError

        target, setting = self.target, WINDOW_SETTING
        if self._engine.replicated:
            setting = "replicated_deduplication_window"
        table = place(target.entity, target.config.home)
        statement = f"ALTER TABLE {table} MODIFY SETTING {setting} = {WINDOW}"
        try:
            client.command(statement)
        except DatabaseError as error:
            raise StoreError(
                "store-rejected",
                f"Store {target.store}: table {target.entity} does not remember its inserts "
                f"({setting} = 0), and the user may not change that ({error.name or error.code}): "
                "a repeated batch would be doubled.",
                hint=f"Run as the table's owner: {statement}.",
            ) from None


def row_hash(columns: Sequence[Column], nested: Sequence[bool]) -> Column:
    """A hash of whole rows. Spark's passes over NULL, also within arrays, and there is none of maps.

    Args:
        columns: all of them.
        nested: which are arrays or maps; their texts are hashed.
    """
    from pyspark.sql import functions as F

    shown = [F.to_json(one) if text else one for one, text in zip(columns, nested, strict=True)]
    return F.xxhash64(*shown, *(column.isNull() for column in columns))


def _fenced(target: Target) -> StoreError:
    """A newer attempt writes the table."""
    return StoreError("store-rejected", f"A newer attempt of the query writes table {target.entity} now.")


def write_rows(target: Target, number: int, batches: Batches) -> Batches:
    """A task: write the batch; gives its rows and their bytes.

    Args:
        target: where it is written.
        number: the batch's.
        batches: its rows.
    """
    return counted(batches, functools.partial(_write, target, number))


def _write(target: Target, number: int, batches: Iterator[pa.RecordBatch]) -> Written:
    what = f"writing to table {target.entity}"
    refusals = reported(target.store, what, target.config.where, _WRITE, target.entity)
    with refusals, _client(target.config) as client:
        found = progress.read(client, target.database, target.query)
        if found is None or (found.checkpoint, found.attempt) != (target.checkpoint, target.attempt):
            raise _fenced(target)
        if found.batch is not None and (found.batch, found.complete) >= (number, True):
            return Written()
        begun = replace(found, batch=number, complete=False)
        if target.keyed and found.batch != number:
            begun = replace(begun, version=max(progress.now(client), found.version + 1))
            progress.note(client, target.database, begun)
        written = _insert(client, target, begun, batches)
        last = begun.version + (written.rows >> ROW_BITS if target.keyed else 0)
        progress.note(client, target.database, replace(begun, version=last, complete=True))
    return written


@contextlib.contextmanager
def _client(config: ClickHouseConfig) -> Iterator[Client]:
    """A client, kept for the worker's next task unless this one fails: connecting costs several requests."""
    client = _clients.pop(config, None)
    if client is not None and not client.ping():
        client.close()
        client = None
    client = client or connect(config, _CONNECT, _WRITE)
    try:
        yield client
    except BaseException:
        client.close()
        raise
    _clients[config] = client


def _insert(client: Client, target: Target, begun: Progress, batches: Iterator[pa.RecordBatch]) -> Written:
    """Insert after insert."""
    written = Written()
    if target.keyed:
        for rows in in_order(batches):
            fitted = _fitted(target, rows)
            first = (begun.version << ROW_BITS) + written.rows
            # No token: versions count, and a replay may cut rows of other keys at other places.
            _send(client, target, versioned(fitted, target.version, target.deleted, first), {})
            written += Written(fitted.num_rows, fitted.nbytes)
        return written
    for name, rows in cut_alike(batches):
        fitted = _fitted(target, rows)
        token = f"{target.query}.{target.checkpoint}.{begun.batch}.{name}"
        _send(client, target, fitted, {"insert_deduplication_token": token})
        written += Written(fitted.num_rows, fitted.nbytes)
    return written


def _fitted(target: Target, rows: pa.Table) -> pa.Table:
    try:
        return fit(rows, target.takers, target.keyed)
    except ValueFaultError as fault:
        raise value_error(target.store, target.entity, fault.column, fault.why) from None


def _send(client: Client, target: Target, rows: pa.Table, settings: dict[str, str]) -> None:
    """One insert."""
    client.raw_insert(
        place(target.entity, target.config.home),
        column_names=[quoted(name) for name in rows.schema.names],
        insert_block=stream(rows),
        settings=settings,
        fmt="ArrowStream",
    )

"""Rows of a query into a table that only the workspace may write, by way of a volume and a SQL warehouse.

One task of Spark writes a batch as a Parquet file of the volume, and sends one statement that reads it. Rows
with a key are merged: the last one of each key of the batch. Others are copied: COPY INTO loads a file of one
name once, and a batch's file always has the same name. Either may be repeated without another result. What is
in the table is noted in the volume afterwards (``databricks.volume``), and is not written again.

An older attempt of the query, which does not know yet that it was given up, may stage its rows, look whether
it may write, and send its statement, all slowly. A new attempt therefore does this before it writes:

1. It notes its number. An attempt that looks from now on is refused.
2. It deletes the staged files. A statement that was sent after the look, and has not read its file, fails.
3. It sets a property of the table, which makes all writes fail that are under way. A statement that had read
   its file is one of them, or was complete before.

The same is done where the answer to a statement was lost, before it is repeated.
"""

from __future__ import annotations

import contextlib
import functools
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from leatstream.connectors.arrow_tasks import ArrowTasks, Batches
from leatstream.connectors.databricks.errors import LostStatementError, RefusedStatementError
from leatstream.connectors.databricks.settings import DatabricksConfig
from leatstream.connectors.databricks.sink import fenced, written_rows
from leatstream.connectors.databricks.staging import StagedColumn, copy_statement, merge_statement, write_file
from leatstream.connectors.databricks.statements import Warehouse
from leatstream.connectors.databricks.volume import TOP, QueryFolder
from leatstream.connectors.databricks.workspace import Workspace
from leatstream.connectors.entities import Table
from leatstream.connectors.one_task import counted, write_in_one_task
from leatstream.connectors.writers import Nested, Written
from leatstream.errors import AttemptBehindError, StoreError
from leatstream.plan.job_spec import JobSpec

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

_RUNS = 900.0  # seconds for a statement, with the start of the warehouse
_TRIES, _PAUSE = 5, 0.5  # of a statement beside other writers; seconds, growing


@dataclass(frozen=True, slots=True)
class ManagedTarget:
    """What a task needs to know to write a batch.

    Attributes:
        name: the table, as statements write it.
        identity: the table's id in the catalog.
        columns: in the order of a row.
        keys: names of those by which rows replace each other; empty where each row is kept.
    """

    store: str
    config: DatabricksConfig
    entity: str
    name: str
    identity: str
    columns: tuple[StagedColumn, ...]
    keys: tuple[str, ...]
    query: str
    checkpoint: str
    attempt: int

    def folder(self) -> QueryFolder:
        """The query's folder in the volume."""
        path = f"{self.config.volume}/{TOP}/{self.identity}/{self.query}"
        return QueryFolder(Workspace(self.store, self.config), path)

    def warehouse(self) -> Warehouse:
        """The warehouse."""
        return Warehouse(Workspace(self.store, self.config))


class ManagedTableWriter:
    """Writes the batches of one attempt of a query."""

    def __init__(
        self, store: str, config: DatabricksConfig, spec: JobSpec, table: Table, name: str, identity: str
    ) -> None:
        """Claim the table for this attempt.

        Args:
            store: the store's name.
            config: its settings, with a volume.
            spec: the job.
            table: as it is now.
            name: the table, as statements write it.
            identity: its id in the catalog.
        """
        natives = {column.name: column.native for column in table.columns}
        self._tasks = ArrowTasks()
        self.target = ManagedTarget(
            store=store,
            config=config,
            entity=spec.sink.entity,
            name=name,
            identity=identity,
            columns=tuple(StagedColumn(c.name, c.type, natives[c.name]) for c in spec.sink.columns),
            keys=tuple(spec.sink.key_columns),
            query=spec.query_id,
            checkpoint=spec.checkpoint_name,
            attempt=spec.attempt,
        )
        self._last = claim(self.target)

    def committed(self) -> int | None:
        """Number of the last batch of this checkpoint that was there when the attempt began."""
        return self._last

    def texts(self, values: Sequence[Column], nested: Nested) -> list[Column]:
        """The sink's columns as they are: Parquet has all of their types."""
        return list(values)

    def write(self, frame: DataFrame, number: int) -> Written:
        """Write one micro-batch; returns when it is committed. See ``TableWriter``."""
        rows = written_rows(frame, [column.name for column in self.target.columns], self.target.keys)
        return write_in_one_task(self._tasks, rows, functools.partial(write_rows, self.target, number))


def claim(target: ManagedTarget) -> int | None:
    """Make this attempt the one that may write; the last batch of its checkpoint.

    Raises:
        AttemptBehindError: a newer attempt writes already.
        StoreError: what the workspace says.
    """
    folder = target.folder()
    folder.begin(target.attempt)
    begun = folder.attempts()
    if max(begun) > target.attempt:
        folder.forget([target.attempt])
        raise AttemptBehindError(fenced(target.entity).detail, max(begun))
    older = [number for number in begun if number < target.attempt]
    if older or folder.staged():
        _stop_others(target, folder, target.warehouse())
        folder.forget(older)
    return folder.last_batch(target.checkpoint)


def _stop_others(target: ManagedTarget, folder: QueryFolder, warehouse: Warehouse) -> None:
    """Make every statement of the query fail that has not committed yet."""
    for name in folder.staged():
        folder.unstage(name)
    # A value that was never there: only a change makes other writes fail.
    value = f"attempt {target.attempt} {uuid.uuid4().hex[:8]}"
    statement = f"ALTER TABLE {target.name} SET TBLPROPERTIES ('leatstream.{target.query}' = '{value}')"
    for again in _tries():
        try:
            warehouse.run(statement, f"preparing table {target.entity}", _RUNS)
        except RefusedStatementError as error:
            if not (error.is_conflict and again):
                raise
        else:
            return


def write_rows(target: ManagedTarget, number: int, batches: Batches) -> Batches:
    """A task: stage the batch and have it written; gives its rows and their bytes.

    Args:
        target: what is written.
        number: of the batch.
        batches: its rows, as ``written_rows`` makes them.
    """
    return counted(batches, functools.partial(_write, target, number))


def _write(target: ManagedTarget, number: int, batches: Iterator[pa.RecordBatch]) -> Written:
    folder, warehouse = target.folder(), target.warehouse()
    last = folder.last_batch(target.checkpoint)
    if last is not None and last >= number:
        return Written()
    with tempfile.TemporaryDirectory(prefix="leat-databricks-") as scratch:
        file = Path(scratch) / "rows.parquet"
        written = Written(write_file(file, target.columns, batches), file.stat().st_size)
        for again in _tries():
            name = _file_name(target, number)
            try:
                # In this order: see the head of this file.
                folder.stage(name, file)
                _check(target, folder)
                statement = _statement(target, folder, name)
                warehouse.run(statement, f"writing to table {target.entity}", _RUNS, rows=True)
                break
            except LostStatementError:
                if not again:
                    raise
                _stop_others(target, folder, warehouse)
            except RefusedStatementError as error:
                if not (again and (error.is_conflict or error.lacks_file)):
                    raise
            finally:
                # What is left there is deleted when the next attempt begins.
                with contextlib.suppress(StoreError):
                    folder.unstage(name)
    folder.note_batch(target.checkpoint, number)
    return written


def _file_name(target: ManagedTarget, number: int) -> str:
    """The same for every COPY INTO of a batch; for each MERGE one that no other statement waits for."""
    name = f"{target.checkpoint}-{number:08d}"
    return f"{name}-{uuid.uuid4().hex[:8]}.parquet" if target.keys else f"{name}.parquet"


def _check(target: ManagedTarget, folder: QueryFolder) -> None:
    """Raise where this attempt is not the newest one any more."""
    begun = folder.attempts()
    if not begun:
        raise StoreError(
            "store-rejected",
            f"Store {target.store}: the folder {folder.path} was deleted, which says who may write.",
            hint="Restart the query. Leave the folder alone while queries write.",
        )
    if max(begun) != target.attempt:
        raise fenced(target.entity)


def _tries() -> Iterator[bool]:
    """Whether there is another try after this one."""
    for number in range(_TRIES):
        if number:
            time.sleep(_PAUSE * number)
        yield number + 1 < _TRIES


def _statement(target: ManagedTarget, folder: QueryFolder, name: str) -> str:
    if target.keys:
        return merge_statement(target.name, f"{folder.rows}/{name}", target.columns, target.keys)
    return copy_statement(target.name, folder.rows, name, target.columns)

"""Rows of a query into a Delta table of a bucket, exactly once: a batch and its number are one version.

One task of Spark writes a batch with delta-rs, past the warehouse. Delta's log keeps for each application a
number that grows (``txn``). A query has two: the last batch of its checkpoint, which is committed with the
rows, and its newest attempt. A batch whose number is in the log is a replay and writes nothing. Of two
writers of one batch S3 lets one make the next version, and the other one looks again.

Rows with a key are merged: the last one of each key of the batch. Delta copies the files with these keys.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from leatstream.connectors.arrow_tasks import ArrowTasks, Batches
from leatstream.connectors.databricks.errors import file_errors
from leatstream.connectors.databricks.files import opened
from leatstream.connectors.databricks.settings import DatabricksFiles
from leatstream.connectors.one_task import counted, write_in_one_task
from leatstream.connectors.writers import Nested, Written
from leatstream.errors import AttemptBehindError, StoreError
from leatstream.formats.arrow_types import arrow_type
from leatstream.model.types import parse_type
from leatstream.plan.job_spec import JobSpec

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable
    from pyspark.sql import Column, DataFrame

_DELETED = "__leat_deleted"
_TRIES, _PAUSE = 5, 0.5  # of a commit beside other writers; seconds, growing


@dataclass(frozen=True, slots=True)
class Target:
    """What a task needs to know to write a batch.

    Attributes:
        columns: names and types, in the order of a row.
        keys: names of those by which rows replace each other; empty where each row is kept.
    """

    store: str
    files: DatabricksFiles
    location: str
    entity: str
    columns: tuple[tuple[str, str], ...]
    keys: tuple[str, ...]
    query: str
    checkpoint: str
    attempt: int

    @property
    def batches(self) -> str:
        """The application whose number is the last batch."""
        return f"leatstream/{self.query}/{self.checkpoint}"

    @property
    def attempts(self) -> str:
        """The application whose number is the newest attempt."""
        return f"leatstream/{self.query}/attempt"


class DatabricksTableWriter:
    """Writes the batches of one attempt of a query."""

    def __init__(self, store: str, files: DatabricksFiles, location: str, spec: JobSpec) -> None:
        sink = spec.sink
        self._tasks = ArrowTasks()
        self.target = Target(
            store=store,
            files=files,
            location=location,
            entity=sink.entity,
            columns=tuple((column.name, column.type) for column in sink.columns),
            keys=tuple(sink.key_columns),
            query=spec.query_id,
            checkpoint=spec.checkpoint_name,
            attempt=spec.attempt,
        )
        with file_errors(store, sink.entity):
            self._last = _claim(self.target)

    def committed(self) -> int | None:
        """Number of the last batch of this checkpoint that was there when the attempt began."""
        return self._last

    def texts(self, values: Sequence[Column], nested: Nested) -> list[Column]:
        """The sink's columns as they are: Delta has all of their types."""
        return list(values)

    def write(self, frame: DataFrame, number: int) -> Written:
        """Write one micro-batch; returns when it is committed. See ``TableWriter``."""
        rows = written_rows(frame, [name for name, _ in self.target.columns], self.target.keys)
        return write_in_one_task(self._tasks, rows, functools.partial(write_rows, self.target, number))


def written_rows(frame: DataFrame, columns: Sequence[str], keys: Sequence[str]) -> DataFrame:
    """The rows of a batch: the columns as ``c0``, ``c1``, …, and whether the row of its key is deleted.

    Args:
        frame: ``key`` and ``value``, as of ``TableWriter.write``.
        columns: names of the sink's columns.
        keys: names of those of the key.
    """
    from pyspark.sql import functions as F

    values = [
        F.coalesce(F.col(f"value.c{i}"), F.col(f"key.c{i}")) if name in keys else F.col(f"value.c{i}")
        for i, name in enumerate(columns)
    ]
    rows = [value.alias(f"c{i}") for i, value in enumerate(values)]
    return frame.select(*rows, F.col("value").isNull().alias(_DELETED))


def _claim(target: Target) -> int | None:
    """Make this attempt the one that may write; the last batch of its checkpoint."""
    for again in _tries():
        table = opened(target.location, target.files)
        newest = table.transaction_version(target.attempts)
        if newest is not None and newest > target.attempt:
            raise AttemptBehindError(fenced(target.entity).detail, newest)
        if newest != target.attempt and not _committed(
            functools.partial(table.create_write_transaction, [], "append", table.schema()),
            (target.attempts, target.attempt),
            again,
        ):
            continue
        return table.transaction_version(target.batches)
    raise fenced(target.entity)


def fenced(entity: str) -> StoreError:
    """A newer attempt writes the table."""
    return StoreError("store-rejected", f"A newer attempt of the query writes table {entity} now.")


def write_rows(target: Target, number: int, batches: Batches) -> Batches:
    """A task: write the batch as one version; gives its rows and their bytes.

    Args:
        target: what is written.
        number: of the batch.
        batches: its rows, as ``DatabricksTableWriter.write`` makes them.
    """
    return counted(batches, functools.partial(_write, target, number))


def _write(target: Target, number: int, batches: Iterator[pa.RecordBatch]) -> Written:
    rows: pa.Table | None = None
    with file_errors(target.store, target.entity):
        for again in _tries():
            table = opened(target.location, target.files)
            if table.transaction_version(target.attempts) != target.attempt:
                raise fenced(target.entity)
            last = table.transaction_version(target.batches)
            if last is not None and last >= number:
                return Written()
            if rows is None:
                rows = _table(target, batches)
            write = _merge(table, target, rows) if target.keys else _append(table, target, rows)
            if _committed(write, (target.batches, number), again):
                return Written(rows.num_rows, rows.nbytes)
    raise fenced(target.entity)


def _tries() -> Iterator[bool]:
    """Whether there is another try after this one."""
    for number in range(_TRIES):
        if number:
            time.sleep(_PAUSE * number)
        yield number + 1 < _TRIES


def _committed(write: Any, transaction: tuple[str, int], again: bool) -> bool:
    """Commit with the number of an application; False where another writer was first, for another try."""
    from deltalake import CommitProperties, Transaction
    from deltalake.exceptions import CommitFailedError

    # The client's own tries would not look at the numbers again.
    properties = CommitProperties(app_transactions=[Transaction(*transaction)], max_commit_retries=0)
    try:
        write(commit_properties=properties)
    except CommitFailedError:
        if not again:
            raise
        return False
    return True


def _table(target: Target, batches: Iterator[pa.RecordBatch]) -> pa.Table:
    """The rows under the table's names; of a keyed table the last one of each key."""
    import pyarrow as pa

    rows = pa.Table.from_batches(list(batches))
    rows = rows.rename_columns([*(name for name, _ in target.columns), _DELETED])
    if target.keys:
        keys = zip(*(rows.column(name).to_pylist() for name in target.keys), strict=True)
        last = {key: place for place, key in enumerate(keys)}
        rows = rows.take(pa.array(sorted(last.values()), pa.int64()))
    kinds = [(name, arrow_type(parse_type(kind))) for name, kind in target.columns]
    return rows.cast(pa.schema([*kinds, (_DELETED, pa.bool_())]))


def _append(table: DeltaTable, target: Target, rows: pa.Table) -> Any:
    import pyarrow as pa
    from deltalake import write_deltalake

    own = pa.schema(table.schema())
    given = {name: rows.column(name) for name, _ in target.columns}
    columns = [
        given[field.name].cast(field.type) if field.name in given else pa.nulls(rows.num_rows, field.type)
        for field in own
    ]
    full = pa.Table.from_arrays(columns, schema=own)
    return functools.partial(write_deltalake, table, full, mode="append")


def _merge(table: DeltaTable, target: Target, rows: pa.Table) -> Any:
    same = " AND ".join(f"t.{_quoted(key)} = s.{_quoted(key)}" for key in target.keys)
    every = {_quoted(name): f"s.{_quoted(name)}" for name, _ in target.columns}
    rest = {_quoted(name): f"s.{_quoted(name)}" for name, _ in target.columns if name not in target.keys}

    def write(commit_properties: Any) -> None:
        merger = table.merge(
            rows, same, source_alias="s", target_alias="t", commit_properties=commit_properties
        ).when_matched_delete(predicate=f"s.{_DELETED}")
        if rest:
            merger = merger.when_matched_update(rest, predicate=f"NOT s.{_DELETED}")
        merger.when_not_matched_insert(every, predicate=f"NOT s.{_DELETED}").execute()

    return write


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

"""Rows of a query into a table, exactly once: a micro-batch is one commit that holds its number.

Without a key Spark's tasks write files, and the driver commits their names. With one the batch passes through
the driver: the rows of its keys are deleted and the last row of each key is appended, in one transaction.
pyiceberg deletes by writing the files again that hold such rows, so a batch costs what these files weigh.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from leatstream.connectors.arrow_tasks import ArrowTasks
from leatstream.connectors.iceberg.admin import IcebergAdmin
from leatstream.connectors.iceberg.commits import (
    Target,
    alone,
    claim,
    commit_batch,
    is_there,
    remove_progress,
    summary,
)
from leatstream.connectors.iceberg.files import FilePlan, read_files, remove_stray, write_task
from leatstream.connectors.iceberg.keyed import replace_rows
from leatstream.connectors.iceberg.rows import arrow_schema, last_of_keys, shaped
from leatstream.connectors.store_marks import find_mark, marked
from leatstream.connectors.writers import Nested, Written
from leatstream.errors import StoreError
from leatstream.plan.job_spec import JobSpec

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table, Transaction
    from pyiceberg.table.metadata import TableMetadata
    from pyspark.sql import Column, DataFrame

_TIMEOUT = 60.0
_FRESH = 240.0  # seconds; a catalog's credentials for a table's files are valid for longer
_GONE = "gone"


class IcebergTableWriter:
    """Writes the batches of one attempt of a query."""

    def __init__(self, admin: IcebergAdmin, spec: JobSpec) -> None:
        sink = spec.sink
        self._admin = admin
        self._tasks = ArrowTasks()
        self.target = Target(
            store=admin.store,
            entity=sink.entity,
            columns=tuple(column.name for column in sink.columns),
            keys=tuple(sink.key_columns),
            query=spec.query_id,
            checkpoint=spec.checkpoint_name,
            attempt=spec.attempt,
        )
        self._last = claim(admin, self.target)
        self._table: tuple[float, Table, TableMetadata] | None = None

    def committed(self) -> int | None:
        """Number of the last batch of this checkpoint that was there when the attempt began."""
        return self._last

    def texts(self, values: Sequence[Column], nested: Nested) -> list[Column]:
        """The sink's columns as they are: Arrow holds them all, and the task casts them to the table's."""
        return list(values)

    def write(self, frame: DataFrame, number: int) -> Written:
        """Write one micro-batch; returns when it is committed.

        Args:
            frame: ``key`` and ``value``, structs of ``c0``, ``c1``, …; see ``TableWriter``.
            number: Spark's batch number.

        Returns:
            The rows and their bytes; nothing for a replay.

        Raises:
            RuntimeError: with a mark of ``store_marks``.
        """
        try:
            # Only another attempt can have committed a later batch, and the commit detects that.
            repeated = self._last is not None and number <= self._last
            if repeated and is_there(self._loaded(number), self.target, number):
                # Spark must compute the whole batch to keep its state, as in every replay.
                frame.write.format("noop").mode("overwrite").save()
                return Written()
            return self._upsert(frame, number) if self.target.keys else self._append(frame, number)
        except StoreError as error:
            raise RuntimeError(marked("sink", error)) from None
        except Exception as error:
            mark = find_mark(str(error))
            if mark is None:
                raise
            raise RuntimeError(marked(mark[0], StoreError(mark[1], mark[2]))) from None

    def _loaded(self, number: int) -> Table:
        table = self._admin.loaded(self.target.entity, _TIMEOUT, f"writing to table {self.target.entity}")
        return self._ready(table, number)

    def _known(self, number: int) -> Table:
        """The table as last loaded, if that is recent; the commit loads it again and detects changes."""
        if self._table is None or time.monotonic() - self._table[0] > _FRESH:
            return self._loaded(number)
        _, table, metadata = self._table
        table.metadata = metadata
        alone(table, self.target.query, self._folder(number))
        return table

    def _ready(self, table: Table, number: int) -> Table:
        """Keep a loaded table, and its metadata from before the batch's own settings; the table to write."""
        self._table = (time.monotonic(), table, table.metadata)
        alone(table, self.target.query, self._folder(number))
        return table

    def _folder(self, number: int) -> str:
        return f"{self.target.checkpoint}-{number:08d}-{self.target.attempt}"

    # -- without a key ---------------------------------------------------------------------------------------

    def _append(self, frame: DataFrame, number: int) -> Written:
        from pyspark.sql import functions as F

        target = self.target
        rows = frame.select(*(F.col(f"value.c{i}").alias(f"c{i}") for i in range(len(target.columns))))
        table = self._known(number)
        form = _form(table)
        found, written = self._write_files(rows, table)
        if not found:
            return Written()

        def stage(table: Table, transaction: Transaction) -> None:
            nonlocal found, written, form
            self._ready(table, number)
            if _form(table) != form:
                # The files fit neither the table's new columns nor its new partitions.
                form = _form(table)
                found, written = self._write_files(rows, table)
            snapshot = transaction.update_snapshot(snapshot_properties=summary(target, number))
            merging = table.properties.get("commit.manifest-merge.enabled", "").lower() == "true"
            with snapshot.merge_append() if merging else snapshot.fast_append() as appended:
                for one in found:
                    appended.append_data_file(one)

        return written if commit_batch(self._admin, target, number, stage) else Written()

    def _write_files(self, rows: DataFrame, table: Table) -> tuple[list[DataFile], Written]:
        target = self.target
        plan = FilePlan.of(target.store, target.entity, self._admin.where, target.columns, table)
        made = self._tasks.run(rows, functools.partial(write_task, plan))
        return read_files(made), Written(sum(row["rows"] for row in made), sum(row["size"] for row in made))

    # -- with a key ------------------------------------------------------------------------------------------

    def _upsert(self, frame: DataFrame, number: int) -> Written:
        target = self.target
        rows = self._flat(frame).toArrow()
        if not rows.num_rows:
            return Written()

        def stage(table: Table, transaction: Transaction) -> None:
            alone(table, target.query, self._folder(number))
            wanted = arrow_schema(table.schema(), target.columns)
            last = last_of_keys(_with_keys(rows, wanted, target), target.keys)
            gone = last.column(_GONE)
            new = last.filter(_not(gone)).drop_columns([_GONE])
            replace_rows(
                table,
                transaction,
                keys=last.select(list(target.keys)),
                new=shaped(new, wanted, target.entity),
                note=summary(target, number),
            )

        done = commit_batch(self._admin, target, number, stage)
        return Written(rows.num_rows, rows.nbytes) if done else Written()

    def _flat(self, frame: DataFrame) -> DataFrame:
        """The columns, and whether the row of this key is to go; of such a row only the key is there."""
        from pyspark.sql import functions as F

        names = self.target.columns
        parts = [
            F.coalesce(F.col(f"value.c{i}"), F.col(f"key.c{i}"))
            if name in self.target.keys
            else F.col(f"value.c{i}")
            for i, name in enumerate(names)
        ]
        deleted = F.col("value").isNull().alias(_GONE)
        return frame.select(*(part.alias(f"c{i}") for i, part in enumerate(parts)), deleted)


def _form(table: Table) -> tuple[object, ...]:
    """What data files depend on: the table itself, its columns and its partitions."""
    return table.metadata.table_uuid, table.schema().schema_id, table.spec().spec_id


def _not(values: Any) -> Any:
    import pyarrow.compute as pc

    return pc.invert(values)


def _with_keys(rows: pa.Table, wanted: pa.Schema, target: Target) -> pa.Table:
    """The rows under the sink's names, with key columns of the table's types; the others stay as they are."""
    import pyarrow as pa

    keyed = [field if field.name in target.keys else None for field in wanted]
    keys = pa.schema([field for field in keyed if field is not None])
    places = [i for i, field in enumerate(keyed) if field is not None]
    cast = shaped(rows.select([f"c{i}" for i in places]), keys, target.entity)
    columns = {name: rows.column(f"c{i}") for i, name in enumerate(target.columns)}
    columns |= {name: cast.column(name) for name in keys.names}
    return pa.table({**columns, _GONE: rows.column(_GONE)})


def forget_query(admin: IcebergAdmin, entity: str, query: str, timeout: float) -> int:
    """Remove what a table keeps of a query that has ended: its properties, and files that no snapshot has.

    Args:
        admin: of the store.
        entity: its name in the store.
        query: id of one that has ended.
        timeout: seconds.

    Returns:
        How many files were left over.
    """
    deadline = time.monotonic() + timeout
    table = remove_progress(admin, entity, query, timeout)
    if table is None:
        return 0
    with admin.catalog(f"removing files of query {query}", timeout):
        return remove_stray(admin.loaded(entity, timeout, "removing files"), query, deadline)

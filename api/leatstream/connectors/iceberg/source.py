"""Spark's view of a table: a Python data source that reads each appended row once.

Imported by ``IcebergConnector.read_stream`` and by Spark's Python workers only. The settings travel inside
the pickled class, not as options: options end up in plans and logs.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit

from leatstream.connectors.iceberg.admin import IcebergAdmin
from leatstream.connectors.iceberg.history import Offset, advanced, appended, beginning
from leatstream.connectors.iceberg.lookup import kept_admin
from leatstream.connectors.iceberg.settings import IcebergGlueConfig, IcebergRestConfig
from leatstream.connectors.iceberg.values import json_rows
from leatstream.connectors.store_marks import marked
from leatstream.errors import StoreError
from leatstream.model.types import parse_type

if TYPE_CHECKING:
    from pyiceberg.table import FileScanTask, Table

DDL = "value BINARY, timestamp TIMESTAMP, snapshot BIGINT, file STRING, row BIGINT"
_SCHEMA = pa.schema(
    [
        ("value", pa.binary()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("snapshot", pa.int64()),
        ("file", pa.string()),
        ("row", pa.int64()),
    ]
)
_TIMEOUT = 60.0
_LOOK = 2.0  # seconds between two looks at a table without news; each is a request
_TASK_BYTES, _TASK_FILES = 64 * 1024 * 1024, 200


@dataclass(frozen=True, slots=True)
class SourcePlan:
    """What a reader needs to know.

    Attributes:
        columns: names and types of the relation's columns.
        start: id of the snapshot behind which a new query starts; None = by ``starting_position``.
        skip: whether snapshots that overwrite or delete rows are passed over.
        most: rows after which a micro-batch ends.
    """

    store: str
    config: IcebergRestConfig | IcebergGlueConfig
    entity: str
    columns: tuple[tuple[str, str], ...]
    starting_position: str
    starting_ms: int | None
    start: str | None
    skip: bool
    most: int


@dataclass
class FileGroup(InputPartition):
    """Some files of one snapshot, read one after the other."""

    snapshot: int
    moment: int
    files: list[FileScanTask] = field(default_factory=list)


class IcebergReader(DataSourceStreamReader):
    """Plans micro-batches in one process, reads them in others."""

    def __init__(self, plan: SourcePlan) -> None:
        self._plan = plan
        self._looked = 0.0

    # -- in the planning process -----------------------------------------------------------------------------

    def initialOffset(self) -> Offset:
        """Where a new query starts."""
        plan = self._plan
        with self._table() as table:
            return beginning(table, plan.entity, plan.starting_position, plan.starting_ms, plan.start)

    def getDefaultReadLimit(self) -> ReadLimit:
        """A batch ends with a snapshot."""
        return ReadAllAvailable()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """The end of the next batch; ``start`` itself where there is nothing new."""
        wait = self._looked + _LOOK - time.monotonic()
        if wait > 0:
            # Spark asks without a pause.
            time.sleep(min(wait, 0.2))
            return start
        with self._table() as table:
            end = advanced(table, self._plan.entity, start, skip=self._plan.skip, most=self._plan.most)
        self._looked = time.monotonic() if end == start else 0.0
        return end

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """The files of the batch's snapshots: large ones alone, small ones together."""
        if start == end:
            return []
        with self._table() as table:
            if end["whole"]:
                snapshot = table.snapshot_by_id(int(end["snapshot"]))
                moment = snapshot.timestamp_ms if snapshot is not None else 0
                files = table.scan(snapshot_id=int(end["snapshot"])).plan_files()
                return _groups(int(end["snapshot"]), moment, files)
            groups: list[InputPartition] = []
            for one in appended(table, self._plan.entity, end):
                files = table.incremental_append_scan(
                    from_snapshot_id_exclusive=one.parent_snapshot_id,
                    to_snapshot_id_inclusive=one.snapshot_id,
                ).plan_files()
                groups += _groups(one.snapshot_id, one.timestamp_ms, files)
            return groups

    def commit(self, end: Offset) -> None:
        """Nothing is held anywhere."""

    @contextmanager
    def _table(self) -> Iterator[Table]:
        """The table as it is now; errors are marked sentences that the driver finds again."""
        plan = self._plan
        what = f"reading table {plan.entity}"
        try:
            admin = kept_admin(plan.store, plan.config)
            with admin.catalog(what, _TIMEOUT):
                yield admin.loaded(plan.entity, _TIMEOUT, what)
        except StoreError as error:
            raise RuntimeError(marked("source", error)) from None

    # -- in a task -------------------------------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of some files."""
        if not isinstance(partition, FileGroup):
            raise TypeError("a partition of another reader")
        plan = self._plan
        try:
            admin = kept_admin(plan.store, plan.config)
            with admin.catalog(f"reading table {plan.entity}", _TIMEOUT, rows=True):
                yield from _rows(plan, admin, partition)
        except StoreError as error:
            raise RuntimeError(marked("source", error)) from None


def _groups(snapshot: int, moment: int, files: Any) -> list[InputPartition]:
    groups: list[InputPartition] = []
    group, size = FileGroup(snapshot, moment), 0
    for one in sorted(files, key=lambda one: str(one.file.file_path)):
        if group.files and (
            size + one.file.file_size_in_bytes > _TASK_BYTES or len(group.files) == _TASK_FILES
        ):
            groups.append(group)
            group, size = FileGroup(snapshot, moment), 0
        group.files.append(one)
        size += one.file.file_size_in_bytes
    return [*groups, group] if group.files else groups


def _rows(plan: SourcePlan, admin: IcebergAdmin, group: FileGroup) -> Iterator[pa.RecordBatch]:
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan

    table = admin.loaded(plan.entity, _TIMEOUT, f"reading table {plan.entity}")
    names = [name for name, _ in plan.columns]
    kinds = {name: parse_type(kind) for name, kind in plan.columns}
    # By the ids of the columns, so that files from before one was renamed are read too.
    scan = ArrowScan(table.metadata, table.io, table.schema().select(*names), AlwaysTrue())
    for one in group.files:
        number = 0
        for batch in scan.to_record_batches([one]):
            values = json_rows(batch.select(names), kinds)
            yield _batch(values, group, str(one.file.file_path), number)
            number += len(values)


def _batch(values: list[bytes], group: FileGroup, file: str, first: int) -> pa.RecordBatch:
    count = len(values)
    moment = pa.scalar(group.moment * 1000, pa.int64()).cast(_SCHEMA.field("timestamp").type)
    return pa.record_batch(
        [
            pa.array(values, pa.binary()),
            pa.repeat(moment, count),
            pa.repeat(pa.scalar(group.snapshot, pa.int64()), count),
            pa.repeat(pa.scalar(file, pa.string()), count),
            pa.array(range(first, first + count), pa.int64()),
        ],
        schema=_SCHEMA,
    )

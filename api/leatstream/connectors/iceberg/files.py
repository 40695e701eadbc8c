"""A task's rows into files of data, and what is left of failed attempts out of them.

Imported by Spark's Python workers too. Files are written by pyiceberg's own code for its appends, so that
they have the table's field ids, statistics and partitions. They go into a folder of the query's own, of batch
and attempt: an attempt that was given up and does not know it can overwrite none that is in the table.
"""

from __future__ import annotations

import functools
import itertools
import pickle
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from leatstream.connectors.iceberg.commits import query_path
from leatstream.connectors.iceberg.errors import reported
from leatstream.connectors.iceberg.null_lists import keep_null_lists
from leatstream.connectors.iceberg.rows import arrow_schema, completed, shaped
from leatstream.connectors.store_marks import marked
from leatstream.errors import StoreError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.io.pyarrow import PyArrowFileIO
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table

_CHUNK = 128 * 1024 * 1024  # bytes of Arrow that a task holds; in Parquet a tenth to a third of it
_TIMEOUT = 60.0
_OF_CATALOG = ("credential", "token")  # the catalog's login, which no task needs
_HISTORY: Mapping[str, Any] = {
    "snapshots": [],
    "snapshot_log": [],
    "metadata_log": [],
    "refs": {},
    "current_snapshot_id": None,
}


@dataclass(frozen=True, slots=True)
class FilePlan:
    """What a task needs to know to write files.

    Attributes:
        columns: of the rows, in their order.
        metadata: of the table, JSON, without its history.
        access: what the table's file system needs, credentials included.
    """

    store: str
    entity: str
    where: str
    columns: tuple[str, ...]
    metadata: str
    access: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, store: str, entity: str, where: str, columns: tuple[str, ...], table: Table) -> FilePlan:
        """The plan for a table as it is loaded.

        Args:
            store: its name.
            entity: its name in the store.
            where: the catalog's place.
            columns: of the rows.
            table: just loaded.
        """
        metadata = table.metadata.model_copy(update=dict(_HISTORY)).model_dump_json()
        access = {key: one for key, one in table.io.properties.items() if key not in _OF_CATALOG}
        return cls(store, entity, where, columns, metadata, access)


def write_task(plan: FilePlan, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A task: write its rows; gives ``rows``, ``size`` and ``file`` of each.

    Raises:
        RuntimeError: with the mark of what the store says.
    """
    import pyarrow as pa

    try:
        with reported(plan.store, f"writing to table {plan.entity}", plan.where, _TIMEOUT, rows=True):
            for one in _written(plan, batches):
                yield pa.record_batch(
                    {
                        "rows": pa.array([one.record_count], pa.int64()),
                        "size": pa.array([one.file_size_in_bytes], pa.int64()),
                        "file": pa.array([pickle.dumps(one)], pa.binary()),
                    }
                )
    except StoreError as error:
        raise RuntimeError(marked("sink", error)) from None


def read_files(rows: list[Any]) -> list[DataFile]:
    """The files that tasks have written."""
    return [pickle.loads(row["file"]) for row in rows]  # noqa: S301 - our own tasks made it


def _written(plan: FilePlan, batches: Iterator[pa.RecordBatch]) -> Iterator[DataFile]:
    from pyiceberg.io.pyarrow import _dataframe_to_data_files
    from pyiceberg.table.metadata import TableMetadataUtil

    keep_null_lists()
    metadata = TableMetadataUtil.parse_raw(plan.metadata)
    wanted = arrow_schema(metadata.schema(), plan.columns)
    files = _files(tuple(sorted(plan.access.items())))
    counter = itertools.count()
    for chunk in _chunks(shaped(batch, wanted, plan.entity) for batch in batches if batch.num_rows):
        whole = completed(chunk, metadata.schema())
        yield from _dataframe_to_data_files(metadata, whole, files, counter=counter)


@functools.lru_cache(maxsize=4)
def _files(access: tuple[tuple[str, str], ...]) -> PyArrowFileIO:
    """The file system, cached so that this worker's next tasks use its connections again."""
    from pyiceberg.io.pyarrow import PyArrowFileIO

    return PyArrowFileIO(dict(access))


def _chunks(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    import pyarrow as pa

    waiting: list[pa.Table] = []
    size = 0
    for table in tables:
        waiting.append(table)
        size += table.nbytes
        if size >= _CHUNK:
            yield pa.concat_tables(waiting)
            waiting, size = [], 0
    if waiting:
        yield pa.concat_tables(waiting)


def remove_stray(table: Table, query: str, deadline: float) -> int:
    """Delete the files of a query that no snapshot of the table has; how many there were.

    Args:
        table: as it is after the query's last commit.
        query: that has ended.
        deadline: on the monotonic clock; then the rest stays.
    """
    from pyarrow import fs as file_systems
    from pyiceberg.io.pyarrow import PyArrowFileIO

    files = table.io
    if not isinstance(files, PyArrowFileIO):
        return 0
    root = query_path(table, query)
    scheme, netloc, path = PyArrowFileIO.parse_location(root)
    system = files.fs_by_scheme(scheme, netloc)
    selector = file_systems.FileSelector(path, allow_not_found=True, recursive=True)
    there = {one.path for one in system.get_file_info(selector) if one.is_file}
    stray = there - _known(table, there, deadline)
    for one in sorted(stray):
        if time.monotonic() > deadline:
            break
        system.delete_file(one)
    return len(stray)


def _known(table: Table, there: set[str], deadline: float) -> set[str]:
    """Those of these paths that a snapshot has; all of them, where there was no time to look."""
    from pyiceberg.io.pyarrow import PyArrowFileIO

    found: set[str] = set()
    seen: set[str] = set()
    for snapshot in reversed(table.snapshots()):
        for manifest in snapshot.manifests(table.io):
            if found == there or manifest.manifest_path in seen:
                continue
            if time.monotonic() > deadline:
                return there
            seen.add(manifest.manifest_path)
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False):
                path = PyArrowFileIO.parse_location(entry.data_file.file_path)[2]
                if path in there:
                    found.add(path)
    return found

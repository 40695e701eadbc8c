"""Spark's view of a prefix: a Python data source that reads each file once.

Imported by ``S3Connector.read_stream`` and by Spark's Python workers only. The settings travel inside the
pickled class, not as options: options end up in plans and logs.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit

from leatstream.connectors.s3.admin import Found, S3Admin
from leatstream.connectors.s3.errors import is_changed, is_gone, s3_error
from leatstream.connectors.s3.files import rows
from leatstream.connectors.s3.layout import Layout, Row
from leatstream.connectors.s3.objects import StoreAway, open_file
from leatstream.connectors.s3.positions import Bounds, advance, batch_of, beginning, begun, pending
from leatstream.connectors.s3.settings import S3Config, s3_client
from leatstream.connectors.store_marks import marked
from leatstream.errors import StoreError

DDL = "value BINARY, timestamp TIMESTAMP, file STRING, row BIGINT, fault STRING, reason STRING"
_SCHEMA = pa.schema(
    [
        ("value", pa.binary()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("file", pa.string()),
        ("row", pa.int64()),
        ("fault", pa.string()),
        ("reason", pa.string()),
    ]
)
_TIMEOUT, _ATTEMPTS = 20.0, 3
_LOOK, _NAP = 1.0, 0.2  # seconds: between two listings, and to wait where there is nothing
_STALE = 10.0  # seconds: after which what waits is listed again
_TASK_BYTES, _TASK_FILES = 16 * 1024 * 1024, 200


@dataclass(frozen=True, slots=True)
class SourcePlan:
    """What a reader needs to know."""

    store: str
    config: S3Config
    entity: str
    layout: Layout
    starting_position: str
    starting_ms: int | None
    bounds: Bounds


@dataclass
class FileGroup(InputPartition):
    """Some files, read one after the other."""

    files: list[tuple[str, int, str, int]]


class S3Reader(DataSourceStreamReader):
    """Plans micro-batches in one process, reads them in others."""

    def __init__(self, plan: SourcePlan) -> None:
        self._plan = plan
        self._waiting: list[Found] = []
        self._listed = 0.0
        self._last: dict[str, Any] | None = None
        self._admin: S3Admin | None = None

    # -- in the planning process -----------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:
        """Where a new query starts."""
        plan = self._plan
        if plan.starting_position == "earliest":
            return beginning(plan.entity, 0)
        if plan.starting_position == "timestamp":
            return beginning(plan.entity, plan.starting_ms or 0)
        # What is there is read already, so to speak; what appears late counts as new.
        files = self._list()
        newest = max((file.modified for file in files), default=0)
        floor = max(0, newest - plan.bounds.late_ms)
        return beginning(plan.entity, floor, (file for file in files if file.modified >= floor))

    def getDefaultReadLimit(self) -> ReadLimit:
        """The bounds are the relation's properties."""
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """The offset after the next files; where there are none ``start`` itself, if it is not the first."""
        now = time.monotonic()
        if start != self._last:
            # What waits was found with regard to another offset.
            self._last, self._waiting, self._listed = start, [], 0.0
        if not self._waiting or now - self._listed > _STALE:
            if now - self._listed < _LOOK:
                # Spark asks without a pause.
                time.sleep(_NAP)
                return start
            self._waiting = self._list()
            self._listed = time.monotonic()
        self._waiting = pending(start, self._waiting)
        if not self._waiting:
            self._last = begun(start)
            return self._last
        self._last, self._waiting = advance(start, self._plan.entity, self._waiting, self._plan.bounds)
        return self._last

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Large files alone, small ones together."""
        if start == end:
            return []
        groups: list[InputPartition] = []
        group: list[tuple[str, int, str, int]] = []
        size = 0
        for file in batch_of(end):
            if group and (size + file.size > _TASK_BYTES or len(group) == _TASK_FILES):
                groups.append(FileGroup(group))
                group, size = [], 0
            group.append((file.key, file.size, file.etag, file.modified))
            size += file.size
        return [*groups, FileGroup(group)] if group else groups

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing is held anywhere."""

    def _list(self) -> list[Found]:
        with said(self._plan.store, self._plan.config, f"listing {self._plan.entity}"):
            self._admin = self._admin or S3Admin(self._plan.store, self._plan.config)
            return self._admin.files(self._plan.entity, _TIMEOUT)

    # -- in a task -------------------------------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of some files; of one that cannot be read the fault is the last one."""
        if not isinstance(partition, FileGroup):
            raise TypeError("a partition of another reader")
        plan = self._plan
        client = s3_client(plan.config, _TIMEOUT, _ATTEMPTS)
        prefix = S3Admin(plan.store, plan.config).prefix(plan.entity)
        for item in partition.files:
            file = Found(*item)
            with said(plan.store, plan.config, f"reading {file.key}"):
                path = file.key[len(prefix) :]
                for chunk in _rows(client, plan, file, path):
                    yield _batch(chunk, path, file.modified)


def _rows(client: Any, plan: SourcePlan, file: Found, path: str) -> Iterator[list[Row]]:
    from botocore.exceptions import ClientError

    number = 0
    try:
        for chunk in rows(path, open_file(client, plan.config.bucket, file), plan.layout):
            number = chunk[-1].number + 1
            yield chunk
    except ClientError as error:
        if not is_gone(error) and not is_changed(error):
            raise
        text = "it was deleted" if is_gone(error) else "it was replaced"
        text += " before it was read"
        yield [Row(number, text.encode(), text)]


def _batch(chunk: Sequence[Row], file: str, modified: int) -> pa.RecordBatch:
    moment = pa.scalar(modified * 1000, pa.int64()).cast(_SCHEMA.field("timestamp").type)
    return pa.record_batch(
        [
            pa.array([row.value for row in chunk], pa.binary()),
            pa.repeat(moment, len(chunk)),
            pa.repeat(pa.scalar(file, pa.string()), len(chunk)),
            pa.array([row.number for row in chunk], pa.int64()),
            pa.array([row.fault for row in chunk], pa.string()),
            pa.array([row.reason for row in chunk], pa.string()),
        ],
        schema=_SCHEMA,
    )


@contextmanager
def said(store: str, config: S3Config, what: str, role: str = "source") -> Iterator[None]:
    """Turn what S3 says into a marked sentence that the driver finds again in Spark's error."""
    from botocore.exceptions import BotoCoreError, ClientError
    from botocore.parsers import ResponseParserError

    try:
        yield
    except (BotoCoreError, ClientError, ResponseParserError) as error:
        told = s3_error(store, what, error, config, _TIMEOUT)
        raise RuntimeError(marked(role, told)) from None
    except StoreAway as error:
        told = s3_error(store, what, error.cause, config, _TIMEOUT)
        raise RuntimeError(marked(role, told)) from None
    except StoreError as error:
        raise RuntimeError(marked(role, error)) from None

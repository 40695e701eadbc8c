"""Spark's view of a stream: a Python data source with a partition per shard.

Imported by ``KinesisConnector.read_stream`` and by Spark's Python workers only. The settings travel inside
the pickled class, not as options: options end up in plans and logs. The process that plans the batches reads
the records while it looks for a batch's end and leaves them in files for the tasks; a task reads from Kinesis
itself only when a batch is repeated after a restart.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows

from leatstream.connectors.aws.errors import store_error
from leatstream.connectors.kinesis.aggregates import apart
from leatstream.connectors.kinesis.settings import KinesisConfig, kinesis_client
from leatstream.connectors.kinesis.shards import START, Gone, Walk, reread
from leatstream.connectors.store_marks import marked
from leatstream.errors import StoreError

DDL = "key BINARY, value BINARY, timestamp TIMESTAMP, shard STRING, sequence_number STRING"
_SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("shard", pa.string()),
        ("sequence_number", pa.string()),
    ]
)
_TIMEOUT, _ATTEMPTS = 20.0, 2
# Of the module: a reader itself is pickled into tasks, which a lock cannot be.
_ONE_DIRECTORY = threading.Lock()


@dataclass(frozen=True, slots=True)
class SourcePlan:
    """What a reader needs to know.

    Attributes:
        most: records of one micro-batch.
        directory: where records wait for their task; removed with the driver's work directory.
    """

    store: str
    config: KinesisConfig
    stream: str
    starting_position: str
    starting_ms: int | None
    most: int
    directory: str


@dataclass
class ShardRange(InputPartition):
    """A shard's records between two positions. ``path`` holds them, while that file is there."""

    shard: str
    start: str
    before: str
    after: str
    path: str | None


class KinesisReader(DataSourceStreamReader):
    """Plans micro-batches in one process, reads them in others."""

    def __init__(self, plan: SourcePlan) -> None:
        self._plan = plan
        self._walk: Walk | None = None
        self._kept: dict[tuple[str, str, str], Path] = {}
        self._directory: Path | None = None

    # -- in the planning process -----------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:
        """Where a new query starts."""
        with said(self._plan):
            return self._walker().initial(self._plan.starting_position, self._plan.starting_ms)

    def getDefaultReadLimit(self) -> ReadLimit:
        """Bound of one micro-batch."""
        return ReadMaxRows(self._plan.most)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Walk on from ``start``; what was read on the way waits in files."""
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        with said(self._plan):
            return self._walker().advance(start, most)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """One partition for each shard that has something."""
        old, new, found = start[self._plan.stream], end[self._plan.stream], []
        for shard, after in new.items():
            before = old.get(shard, "")
            if after != before:
                path = self._kept.get((shard, before, after))
                found.append(ShardRange(shard, end[START], before, after, str(path) if path else None))
        return found

    def commit(self, end: dict[str, Any]) -> None:
        """Drop the files of records that are done with."""
        positions = end[self._plan.stream]
        for shard, before, after in list(self._kept):
            if positions.get(shard, after) == after:
                self._kept.pop((shard, before, after)).unlink(missing_ok=True)

    def stop(self) -> None:
        """Drop all files."""
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)

    def _walker(self) -> Walk:
        if self._walk is None:
            client = kinesis_client(self._plan.config, _TIMEOUT, _ATTEMPTS)
            self._walk = Walk(client, self._plan.stream, self._keep)
        return self._walk

    def _keep(
        self, shard: str, before: str, after: str, answers: Sequence[Sequence[Mapping[str, Any]]]
    ) -> None:
        if not answers:
            return
        with _ONE_DIRECTORY:  # shards are walked at the same time
            if self._directory is None:
                self._directory = Path(tempfile.mkdtemp(prefix="kinesis-", dir=self._plan.directory))
        path = self._directory / f"{uuid.uuid4().hex}.arrow"
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, _SCHEMA) as writer:
            for records in answers:
                writer.write_batch(batch_of(shard, records))
        self._kept[shard, before, after] = path

    # -- in a task -------------------------------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of a range: from the file, or from Kinesis once more."""
        if not isinstance(partition, ShardRange):
            raise TypeError("a partition of another reader")
        if partition.path is not None and Path(partition.path).exists():
            with pa.memory_map(partition.path) as file:
                yield from pa.ipc.open_stream(file)
            return
        with said(self._plan):
            client = kinesis_client(self._plan.config, _TIMEOUT, _ATTEMPTS)
            for records in reread(
                client,
                self._plan.stream,
                partition.shard,
                partition.start,
                partition.before,
                partition.after,
            ):
                yield batch_of(partition.shard, records)


def batch_of(shard: str, records: Sequence[Mapping[str, Any]]) -> pa.RecordBatch:
    """Kinesis's records as Arrow; those that are several make as many rows."""
    found = [(record.get("ApproximateArrivalTimestamp"), *one) for record in records for one in apart(record)]
    arrived, keys, values, numbers = zip(*found, strict=True) if found else ((), (), (), ())
    return pa.record_batch(
        [
            pa.array(keys, pa.binary()),
            pa.array(values, pa.binary()),
            pa.array(arrived, _SCHEMA.field(2).type),
            pa.repeat(pa.scalar(shard, pa.string()), len(found)),
            pa.array(numbers, pa.string()),
        ],
        schema=_SCHEMA,
    )


@contextmanager
def said(plan: Any, role: str = "source") -> Iterator[None]:
    """Turn what AWS says into a marked sentence that the driver finds again in Spark's error."""
    from botocore.exceptions import BotoCoreError, ClientError

    what = f"{'reading' if role == 'source' else 'writing to'} stream {plan.stream}"
    where = plan.config.endpoint_url or f"region {plan.config.region}"
    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise RuntimeError(marked(role, store_error(plan.store, what, error, where, _TIMEOUT))) from None
    except Gone as error:
        gone = StoreError("entity-not-found", f"Store {plan.store}: {error}.")
        raise RuntimeError(marked(role, gone)) from None
    except StoreError as error:
        raise RuntimeError(marked(role, error)) from None

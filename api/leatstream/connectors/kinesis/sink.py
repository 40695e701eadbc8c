"""Spark's way into a stream: a Python sink whose tasks write with PutRecords; at least once.

Imported by ``KinesisConnector`` and by Spark's Python workers only. As in ``kinesis_source``,
the settings travel inside the pickled class.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamArrowWriter,
    DataSourceStreamWriter,
    WriterCommitMessage,
)

from leatstream.connectors.kinesis.put import check_kept, put, requests
from leatstream.connectors.kinesis.settings import KinesisConfig, kinesis_client
from leatstream.connectors.kinesis.source import said

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TIMEOUT, _ATTEMPTS = 30.0, 2


@dataclass(frozen=True, slots=True)
class SinkPlan:
    """What a writer needs to know."""

    store: str
    config: KinesisConfig
    stream: str


@dataclass
class Sent(WriterCommitMessage):
    """How many records a task has sent, repetitions included."""

    records: int


def sink_class(plan: SinkPlan, name: str) -> type[DataSource]:
    """A data source of its own for one sink, to be registered under ``name``; see ``source_class``."""
    return type("KinesisTarget", (_KinesisSink,), {"plan": plan, "format": name, "__module__": __name__})


class _KinesisSink(DataSource):
    plan: ClassVar[SinkPlan]
    format: ClassVar[str]

    @classmethod
    def name(cls) -> str:
        return cls.format

    def streamWriter(self, schema: Any, overwrite: bool) -> DataSourceStreamWriter:
        return KinesisWriter(self.plan)


class KinesisWriter(DataSourceStreamArrowWriter):
    """Writes a task's rows one request after the other, so that a key's records keep their order."""

    def __init__(self, plan: SinkPlan) -> None:
        self._plan = plan

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Sent:
        """Write all rows; returns when Kinesis has taken them."""
        sent, client = 0, None
        with said(self._plan, "sink"):
            for entries in requests(_rows(self._plan.stream, iterator)):
                client = client or kinesis_client(self._plan.config, _TIMEOUT, _ATTEMPTS)
                sent += put(client, self._plan.stream, entries)
        return Sent(sent)


def write_batch(frame: DataFrame, plan: SinkPlan) -> None:
    """Have a frame of ``key`` and ``value`` written by its own tasks; returns when Kinesis has taken all.

    Raises:
        PySparkException: with a mark of ``store_marks``: what Kinesis says, or one of the sources.
    """

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        sent = KinesisWriter(plan).write(batches).records
        yield pa.record_batch({"sent": pa.array([sent], pa.int64())})

    frame.select("key", "value").mapInArrow(task, "sent bigint").collect()


def _rows(stream: str, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[bytes | None, bytes]]:
    for batch in batches:
        keys, values = batch.column("key").to_pylist(), batch.column("value").to_pylist()
        for key, value in zip(keys, values, strict=True):
            if value is None:  # Kinesis has no tombstones; an empty record is the nearest to none
                check_kept(stream, key)
            yield key, value or b""

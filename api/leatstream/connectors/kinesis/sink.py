"""Micro-batches into a stream: each of Spark's tasks writes its rows with PutRecords; at least once.

Imported by ``KinesisConnector`` and by Spark's Python workers only. The settings travel inside the pickled
task, not as options: options end up in plans and logs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from leatstream.connectors.kinesis.put import check_kept, put, requests, size_of
from leatstream.connectors.kinesis.settings import KinesisConfig, kinesis_client
from leatstream.connectors.kinesis.source import said
from leatstream.connectors.writers import COUNTS, Written, counts, told

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TIMEOUT, _ATTEMPTS = 30.0, 2


@dataclass(frozen=True, slots=True)
class SinkPlan:
    """What a writer needs to know."""

    store: str
    config: KinesisConfig
    stream: str


def write_records(plan: SinkPlan, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A task: write all rows, one request after the other, so that a key's records keep their order.

    Gives the records that Kinesis has taken and the bytes of their keys and values, each record once.
    """
    written, client = Written(), None
    with said(plan, "sink"):
        for entries in requests(_rows(plan.stream, batches)):
            client = client or kinesis_client(plan.config, _TIMEOUT, _ATTEMPTS)
            put(client, plan.stream, entries)
            written += Written(len(entries), sum(map(size_of, entries)))
    yield counts(written)


def write_batch(frame: DataFrame, plan: SinkPlan) -> Written:
    """Have a frame of ``key`` and ``value`` written by its own tasks; returns when Kinesis has taken all.

    Raises:
        PySparkException: with a mark of ``store_marks``: what Kinesis says, or one of the sources.
    """
    return told(frame.select("key", "value").mapInArrow(partial(write_records, plan), COUNTS))


def _rows(stream: str, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[bytes | None, bytes]]:
    for batch in batches:
        keys, values = batch.column("key").to_pylist(), batch.column("value").to_pylist()
        for key, value in zip(keys, values, strict=True):
            if value is None:  # Kinesis has no tombstones; an empty record is the nearest to none
                check_kept(stream, key)
            yield key, value or b""

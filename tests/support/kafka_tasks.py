"""Tasks that write a batch into Kafka exactly once; run as a program, one whose batch another takes over.

That is a process of its own, as librdkafka has once ended the process of an overtaken producer (SIGABRT). A
worker of Spark may end so, and is started again; the process of the tests would take all others along.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

import pyarrow as pa

from leatstream.connectors.kafka.settings import KafkaConfig
from leatstream.connectors.kafka.transactions import Target, write_records


def records(*values: int) -> Iterator[pa.RecordBatch]:
    """Rows for these numbers, without keys."""
    rows = {"key": pa.array([None] * len(values), pa.binary())}
    rows["value"] = pa.array([json.dumps({"id": v}).encode() for v in values], pa.binary())
    yield pa.record_batch(rows)


def written(target: Target, number: int, batches: Iterator[pa.RecordBatch]) -> int:
    """How many records a task has written; it tells their bytes too."""
    (told,) = [row for batch in write_records(target, number, batches) for row in batch.to_pylist()]
    assert told["size"] == told["rows"] * len(b'{"id": 1}')
    return int(told["rows"])


def main(bootstrap: str, topic: str) -> None:
    """Write the batch 0 of two records, and let another task do so after the first of them."""
    one = Target("k", KafkaConfig(bootstrap_servers=bootstrap), topic, topic, "g1", 1)

    def overtaken() -> Iterator[pa.RecordBatch]:
        yield from records(1)
        print(written(one, 0, records(1, 2)), flush=True)
        yield from records(2)

    written(one, 0, overtaken())


if __name__ == "__main__":
    main(*sys.argv[1:])

"""The sinks of table stores against their bare client libraries, which write the same rows of the same Spark.

A round is one batch of ``--rows`` rows in a stream's sink: ours with its bookkeeping, in one commit; the bare
client with what its documentation shows first (``insert_arrow``, ``append``), from the driver. Servers are
those of the tests: chdb behind HTTP, and a REST catalog over moto's S3.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from report import Spread, conditions, keep, table

from leatstream.connectors.registry import open_connector
from leatstream.model.objects import Column
from leatstream.model.types import parse_type
from leatstream.plan.job_spec import ColumnSpec, JobSpec, Mode, SinkSpec, StoreRef
from leatstream_jobs.runtime.session import start_session
from leatstream_jobs.writing.table_sink import table_rows

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

COLUMNS = {"id": "BIGINT", "name": "VARCHAR", "price": "DOUBLE", "at": "TIMESTAMP"}
Write = Callable[[int], None]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000, help="rows of a batch")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", help="write the raw numbers here")
    options = parser.parse_args()
    print(conditions())
    found: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        spark = start_session(Path(directory), 2)
        rows = spark.range(options.rows).selectExpr(
            "id",
            "concat('name of ', id) AS name",
            "id / 3.0D AS price",
            "current_timestamp()::timestamp_ntz AS at",
        )
        frame = rows.cache()
        frame.count()
        for kind, open_kind in (("clickhouse", clickhouse), ("iceberg_rest", iceberg)):
            ours, bare = stack.enter_context(open_kind(spark, frame))
            rates = found.setdefault(kind, {"leatstream": [], "bare client": []})
            for number in range(options.rounds + 1):
                both = [("leatstream", ours), ("bare client", bare)]
                for name, write in both if number % 2 else both[::-1]:
                    begin = time.perf_counter()
                    write(number)
                    if number:  # the first round warms up
                        rates[name].append(options.rows / (time.perf_counter() - begin))
        spark.stop()
    shown: list[list[Any]] = []
    for kind, rates in found.items():
        ours_p50, bare_p50 = Spread.of(rates["leatstream"]).p50, Spread.of(rates["bare client"]).p50
        shown.append([kind, ours_p50, bare_p50, ours_p50 / bare_p50])
    print(table(["store", "rows/s", "bare client, rows/s", "ratio"], shown))
    print("Goal: ratio >= 0.7.")
    keep(options.json, found)


def ours_into(spark: Any, frame: Any, kind: str, config: Any, secrets: Any, entity: str) -> Write:
    """A sink of a new table; gives what writes the frame as a batch."""
    connector = open_connector(kind, "target", config, secrets)
    columns = [ColumnSpec(name=name, type=type_) for name, type_ in COLUMNS.items()]
    connector.create_table(entity, [Column(c.name, parse_type(c.type)) for c in columns], ())
    sink = SinkSpec(
        relation="d.s.o",
        store=StoreRef(name="target", kind=kind, config=dict(config)),
        entity=entity,
        columns=columns,
        value_format="json",
    )
    spec = JobSpec(
        query_id=uuid.uuid4().hex,
        query_name="q",
        generation=1,
        attempt=1,
        fencing_token="t",
        sql="",
        sources=[],
        sink=sink,
        mode=Mode.MICRO_BATCH,
        mode_reason="",
        checkpoint="file:///nowhere/g1",
    )
    writer = connector.table_writer(spec)
    hidden = frame.selectExpr(
        "*", "CAST(NULL AS BINARY) AS __leat_rowkey", "CAST(NULL AS TIMESTAMP) AS __leat_rowtime"
    )
    batch = table_rows(hidden, sink, writer)

    def write(number: int) -> None:
        writer.write(batch, number)

    return write


@contextmanager
def clickhouse(spark: Any, frame: Any) -> Iterator[tuple[Write, Write]]:
    """ClickHouse: ours, and ``insert_arrow``."""
    import clickhouse_connect
    from clickhouse_server import PASSWORD, USER, clickhouse_server

    with clickhouse_server() as server:
        write = ours_into(spark, frame, "clickhouse", server.config(), {"password": PASSWORD}, "ours")
        client = clickhouse_connect.get_client(
            host="127.0.0.1", port=server.port, username=USER, password=PASSWORD, database="shop"
        )
        client.command(
            "CREATE TABLE bare (id Int64, name String, price Float64, at DateTime64(6))"
            " ENGINE = MergeTree ORDER BY ()"
        )
        yield write, lambda _: client.insert_arrow("bare", frame.toArrow())


@contextmanager
def iceberg(spark: Any, frame: Any) -> Iterator[tuple[Write, Write]]:
    """An Iceberg REST catalog: ours, and ``append``."""
    from aws_server import aws_server
    from lakes import rest_lake

    with aws_server() as address, rest_lake(address) as lake:
        write = ours_into(spark, frame, "iceberg_rest", lake.config, lake.secrets, "bench.ours")
        bare = lake.catalog.create_table("bench.bare", frame.limit(1).toArrow().schema)
        yield write, lambda _: bare.append(frame.toArrow())


if __name__ == "__main__":
    main()

"""Reading and writing Avro and Protobuf beside JSON: the same rows, the same Spark, in turns.

A record is read into columns (or made of them) by the very code of the jobs and then thrown away, so that the
store does not count. Rows a second of wall time, with as many tasks at once as there are cores; the ratio is
to JSON in the same round. The schema comes over HTTP from a stand-in, once per worker.
"""

from __future__ import annotations

import argparse
import json as plain_json
import os
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from report import Spread, conditions, keep, table, verdict

from leatstream.formats.registered_schema import schema_text
from leatstream.formats.registry_client import RegistryAddress
from leatstream.model.objects import Column
from leatstream.model.types import parse_type
from leatstream.plan.job_spec import ColumnSpec, SinkSpec, SourceSpec, StoreRef
from leatstream_jobs.reading import scans
from leatstream_jobs.runtime.session import start_session
from leatstream_jobs.writing import sink_rows
from leatstream_jobs.writing.described_sink import RecordForm

GOAL_RATIO = 2.0  # times the time that JSON takes: half its rate
FORMATS = ("json", "avro", "protobuf")
TYPES = {
    "viewtime": "BIGINT",
    "userid": "VARCHAR",
    "pageid": "VARCHAR",
    "price": "DOUBLE",
    "at": "TIMESTAMP_LTZ",
}
COLUMNS = [ColumnSpec(name=name, type=kind) for name, kind in TYPES.items()]
STORE = StoreRef(name="s", kind="kafka", config={})


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="the first is not counted")
    parser.add_argument("--records", type=int, default=400_000)
    parser.add_argument("--json", help="write the raw numbers here")
    options = parser.parse_args()
    print(conditions())
    columns = [Column(name, parse_type(kind)) for name, kind in TYPES.items()]
    schemas = {form: schema_text(form, columns, "bench.out", None) for form in FORMATS[1:]}
    registry = stand_in([schemas[form] for form in FORMATS[1:]])
    address = RegistryAddress.of("bench", "confluent", registry, None, None, None)
    rates: dict[str, dict[str, list[float]]] = {"read": {}, "write": {}}
    with tempfile.TemporaryDirectory() as directory:
        spark = start_session(Path(directory), os.cpu_count() or 1)
        rows = made(spark, options.records, f"{directory}/rows")
        records = {form: recorded(spark, rows, form, schemas, f"{directory}/{form}") for form in FORMATS}
        for number in range(options.rounds):
            for form in FORMATS if number % 2 == 0 else FORMATS[::-1]:
                frame = scans.decoded(records[form], source(form), None, address)
                read = rate(frame.select(*TYPES), options.records)
                write = rate(written(rows, form, schemas), options.records)
                if number:
                    rates["read"].setdefault(form, []).append(read)
                    rates["write"].setdefault(form, []).append(write)
        spark.stop()
    show(rates)
    print(conditions())
    keep(options.json, rates)


def made(spark: SparkSession, count: int, place: str) -> DataFrame:
    """Rows, from files: making them does not count."""
    frame = spark.range(count).select(
        (F.col("id") + 1_700_000_000_000).alias("viewtime"),
        F.concat(F.lit("User_"), F.col("id") % 1000).alias("userid"),
        F.concat(F.lit("Page_"), F.col("id") % 97).alias("pageid"),
        (F.col("id") * 1.5).alias("price"),
        F.timestamp_micros(F.col("id") * 1000 + 1_700_000_000_000_000).alias("at"),
        F.lit(None).cast("binary").alias("__leat_rowkey"),
        F.current_timestamp().alias("__leat_rowtime"),
    )
    frame.write.parquet(place)
    return spark.read.parquet(place)


def written(rows: DataFrame, form: str, schemas: dict[str, str]) -> DataFrame:
    """Records of the rows."""
    sink = SinkSpec(
        relation="bench",
        store=STORE,
        entity="t",
        columns=COLUMNS,
        value_format=form,
        value_schema=schemas.get(form),
    )
    number = FORMATS.index(form) if form in schemas else None
    return sink_rows.shaped(rows, sink, RecordForm(value_id=number))


def recorded(
    spark: SparkSession, rows: DataFrame, form: str, schemas: dict[str, str], place: str
) -> DataFrame:
    """The same in files, as a store's reading half gives them."""
    written(rows, form, schemas).write.parquet(place)
    position = F.struct(F.lit("t").alias("topic"), F.lit(0).alias("partition"), F.lit(1).alias("offset"))
    return spark.read.parquet(place).select(
        "key", "value", F.lit(0).cast("timestamp").alias("timestamp"), position.alias("__leat_rowmeta")
    )


def source(form: str) -> SourceSpec:
    """How they are read."""
    return SourceSpec(
        view="leat_src_0", relation="bench", store=STORE, entity="t", columns=COLUMNS, value_format=form
    )


def rate(frame: DataFrame, count: int) -> float:
    """Rows a second."""
    begin = time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    return count / (time.perf_counter() - begin)


def stand_in(texts: list[str]) -> str:
    """Address of what answers for schemas 1, 2, …"""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            number = int(self.path.rsplit("/", 1)[1])
            body = {"schema": texts[number - 1], "schemaType": FORMATS[number].upper()}
            data = plain_json.dumps(body).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


def show(rates: dict[str, dict[str, list[float]]]) -> None:
    """Print what was measured."""
    lines: list[list[Any]] = []
    for what, found in rates.items():
        for form in FORMATS:
            slower = [b / a for a, b in zip(found[form], found["json"], strict=True)]
            middle = Spread.of(slower).p50
            lines.append([f"{what} {form}", Spread.of(found[form]).p50, 1 / middle])
            if form != "json" and what == "read":
                print(verdict(f"{what} {form}: time of JSON", middle, GOAL_RATIO, "x"))
    print(table(["", "rows/s", "ratio to JSON"], lines))


if __name__ == "__main__":
    main()

"""Spark with Delta Lake as a process of its own: what runs the statements of the facade of a Databricks warehouse.

``delta_warehouse.py FOLDER``: prints its port, and answers each POST with a statement's rows or its error. A statement
has a session of its own, as in a warehouse. The member ``once`` is an application's number of Delta's log: a write
whose number is in the log already writes nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
from deadlines import patient

_STARTS = 120.0  # seconds
_RUNS = 300.0


class DeltaWarehouse:
    """A running warehouse, as its facade uses it."""

    def __init__(self, port: int) -> None:
        self.address = f"http://127.0.0.1:{port}/"

    def run(self, statement: str, once: str | None = None) -> dict[str, Any]:
        """Run a statement: ``rows`` and ``columns``, or ``error``."""
        answer = httpx2.post(
            self.address, json={"statement": statement, "once": once}, timeout=patient(_RUNS)
        )
        found: dict[str, Any] = answer.json()
        return found


@contextlib.contextmanager
def delta_warehouse(folder: Path) -> Iterator[DeltaWarehouse]:
    """Start a warehouse whose tables lie in a folder; its process ends with the context."""
    log = folder / "warehouse.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, __file__, str(folder)],
            stdout=subprocess.PIPE,
            stderr=output,
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parent)},
        )
    assert process.stdout is not None
    late = threading.Timer(patient(_STARTS), process.kill)
    late.start()
    try:
        port = process.stdout.readline()
        late.cancel()
        assert port, f"Spark with Delta Lake does not start: {log.read_text()[-2000:]}"
        yield DeltaWarehouse(int(port))
    finally:
        late.cancel()
        process.kill()
        process.wait()
        process.stdout.close()


def _session(folder: str) -> Any:
    from pyspark.sql import SparkSession

    from leatstream.dev.jars import ensure

    settings = {
        "spark.jars": ",".join(map(str, ensure("delta"))),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": f"{folder}/tables",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "900m",
        "spark.driver.extraJavaOptions": _java_options(),
        # Rows are few: compiling Java for each statement would be most of its time.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    builder = SparkSession.builder.master("local[2]").appName("warehouse")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _java_options() -> str:
    """Few threads, and the drivers' archive of classes where it has been made."""
    from leatstream.dev.class_archive import archive_path
    from leatstream.dev.java import find_java

    options = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xlog:disable", "-Xlog:all=error:stderr"]
    java = find_java()
    archive = archive_path(java) if java is not None else None
    if archive is not None and archive.exists():
        options.append(f"-XX:SharedArchiveFile={archive}")
    return " ".join(options)


def _run(spark: Any, statement: str, once: str | None) -> dict[str, Any]:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    own = spark.newSession()
    if once is not None:
        own.conf.set("spark.databricks.delta.write.txnAppId", once)
        own.conf.set("spark.databricks.delta.write.txnVersion", "1")
    try:
        frame = own.sql(statement)
        rows = [[_text(value) for value in row] for row in frame.collect()]
        return {"columns": frame.columns, "rows": rows}
    except PySparkException as error:
        return {"error": str(error).split("\n\nJVM stacktrace")[0]}
    except Py4JJavaError as error:
        return {"error": str(error.java_exception.getMessage())}


def _text(value: Any) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, default=str) if isinstance(value, list | dict) else str(value)


def _serve(folder: str) -> None:
    spark = _session(folder)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            data = json.dumps(_run(spark, asked["statement"], asked["once"])).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    _serve(sys.argv[1])

"""The peer: the same filter job as a user would write it in PySpark by hand, in a process of its own.

Started by the benchmarks. It says ``ready`` once its session is up, waits for a line on standard input,
starts the query, says ``running``, and ends when standard input ends (so it never outlives its benchmark).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

FORMS = ("same", "defaults")


def main() -> None:
    """Be the peer process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--form", choices=FORMS, required=True, help="Kafka client settings")
    parser.add_argument("--mode", choices=("micro_batch", "realtime"), required=True)
    parser.add_argument("--from", dest="position", choices=("earliest", "latest"), required=True)
    parser.add_argument("--warm-up", action="store_true", help="warm the session as the product does")
    for name in ("bootstrap", "source", "sink", "directory"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()

    from leatstream_jobs.runtime.session import start_session

    work = Path(options.directory)
    spark = start_session(work, 8)
    if options.warm_up:
        from leatstream_jobs.driver.warmup import warm_up

        warm_up(spark, options.bootstrap, work, lambda _step: None)
    print("ready", flush=True)
    if not sys.stdin.readline():
        return
    query = start(spark, options)
    print("running", flush=True)
    while query.isActive and _still_wanted():
        pass
    if query.exception() is not None:
        print(f"failed: {query.exception()}", file=sys.stderr)
        os._exit(1)
    query.stop()
    os._exit(0)


def start(spark: Any, options: argparse.Namespace) -> Any:
    """The job itself. It is what the documentation of Spark teaches, with the record's key passed on."""
    from pyspark.sql import functions as F

    realtime = options.mode == "realtime"
    source, sink = client_settings(options.form, options.bootstrap, options.source, options.sink, realtime)
    reader = spark.readStream.format("kafka").options(**source).option("subscribe", options.source)
    reader = reader.option("startingOffsets", options.position)
    if not realtime:
        reader = reader.option("maxOffsetsPerTrigger", "500000")
    schema = "viewtime BIGINT, userid STRING, pageid STRING"
    rows = (
        reader.load()
        .select("key", F.from_json(F.col("value").cast("string"), schema).alias("r"))
        .where("r.pageid <> 'Page_7'")
        .select("key", "r.viewtime", F.upper("r.userid").alias("userid"), "r.pageid")
    )
    out = rows.select("key", F.to_json(F.struct("viewtime", "userid", "pageid")).alias("value"))
    writer = out.writeStream.format("kafka").options(**sink).option("topic", options.sink)
    writer = writer.option("checkpointLocation", f"{options.directory}/checkpoint")
    if realtime:
        return writer.outputMode("update").trigger(realTime="60000 milliseconds").start()
    return writer.outputMode("append").trigger(processingTime="0 milliseconds").start()


def client_settings(
    form: str, bootstrap: str, source: str, sink: str, realtime: bool
) -> tuple[dict[str, str], dict[str, str]]:
    """Options of Spark's Kafka source and sink: those that the product uses, or nothing but the address."""
    if form == "defaults":
        plain = {"kafka.bootstrap.servers": bootstrap}
        return plain, plain
    from leatstream.connectors.kafka.connector import KafkaConnector
    from leatstream.connectors.kafka.settings import KafkaConfig
    from leatstream.plan.job_spec import SinkSpec, SourceSpec, StoreRef

    connector = KafkaConnector("bench", KafkaConfig(bootstrap_servers=bootstrap))
    store = StoreRef(name="bench", kind="kafka", config={"bootstrap_servers": bootstrap})
    scan = SourceSpec(view="v", relation="bench", store=store, entity=source, columns=[], value_format="json")
    target = SinkSpec(relation="bench", store=store, entity=sink, columns=[], value_format="json")
    return connector.source_options(scan, realtime), connector.sink_options(target, realtime)


def _still_wanted() -> bool:
    import select

    readable, _, _ = select.select([sys.stdin], [], [], 0.2)
    return not readable or bool(sys.stdin.readline())


class Peer:
    """The peer process from outside."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        """Take over a started process."""
        self._popen = process
        self.process = psutil.Process(process.pid)

    def go(self) -> None:
        """Start the query; returns when Spark has taken it."""
        assert self._popen.stdin is not None
        self._popen.stdin.write("go\n")
        self._popen.stdin.flush()
        self.expect("running")

    def expect(self, word: str) -> None:
        """Wait for a word; RuntimeError when the process ends before."""
        assert self._popen.stdout is not None
        line = self._popen.stdout.readline().strip()
        if line != word:
            raise RuntimeError(f"the hand-written job said {line!r} instead of {word!r}")

    def end(self) -> None:
        """Let it stop in order; force it after a while."""
        assert self._popen.stdin is not None
        self._popen.stdin.close()
        try:
            self._popen.wait(40)
        except subprocess.TimeoutExpired:
            for child in self.process.children(recursive=True):
                child.kill()
            self._popen.kill()
            self._popen.wait(10)


@contextmanager
def running_peer(
    bootstrap: str,
    source: str,
    sink: str,
    *,
    form: str,
    mode: str,
    position: str,
    environment: Mapping[str, str],
    warm_up: bool = False,
) -> Iterator[Peer]:
    """Start the peer with a session that is ready; ``go`` starts its query."""
    from leatstream.cli.serving import driver_environment
    from leatstream.dev.jars import spark_jars
    from leatstream.dev.java import find_java

    java = find_java()
    if java is None:
        raise RuntimeError("there is no Java; see `leat doctor`")
    env = {**os.environ, **driver_environment(java, tuple(spark_jars())), **environment}
    with tempfile.TemporaryDirectory(prefix="leat-peer-", ignore_cleanup_errors=True) as directory:
        argv = [sys.executable, str(Path(__file__).resolve()), "--form", form, "--mode", mode]
        argv += ["--from", position, "--bootstrap", bootstrap, "--source", source, "--sink", sink]
        argv += ["--directory", directory, *(["--warm-up"] if warm_up else [])]
        with (Path(directory) / "peer.log").open("w+") as log:
            process = subprocess.Popen(
                argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )
            peer = Peer(process)
            try:
                peer.expect("ready")
                yield peer
            except RuntimeError as error:
                time.sleep(0.5)
                log.seek(0)
                raise RuntimeError(f"{error}\n{log.read()[-3000:]}") from None
            finally:
                peer.end()


if __name__ == "__main__":
    main()

"""``python -m leatstream_jobs.driver.class_archive FILE``: writes Spark's classes as the JVM keeps them.

A JVM that maps them (``-XX:SharedArchiveFile``) reads, checks and lays out none of them again; measured: a
driver takes 8 instead of 14 seconds of CPU until it is warm. The file fits one build of Java and one set of
jars; the JVM itself compares them and ignores the archive where they differ.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from leatstream_jobs.attempt.running import wait_for
from leatstream_jobs.driver.loop import warm_analyzer
from leatstream_jobs.driver.warmup import warm_up
from leatstream_jobs.runtime.session import ARCHIVE_VARIABLE, DEFAULT_JVM_OPTIONS, jvm_process, start_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_END_SECONDS = 600.0  # writing is 15 seconds of CPU
_STATE_SECONDS = 60.0


def write_archive(path: Path) -> None:
    """Start Spark, use it as drivers do, and let the JVM write its classes when it ends.

    Args:
        path: appears whole or not at all; left empty where this Java cannot write one, so that nobody tries
            again.
    """
    part = path.with_suffix(f".{os.getpid()}.part")
    os.environ.pop(ARCHIVE_VARIABLE, None)
    os.environ["LEATSTREAM_DRIVER_JVM_OPTIONS"] = (
        f'{DEFAULT_JVM_OPTIONS} "-XX:ArchiveClassesAtExit={part}" -Xlog:cds*=off -Xlog:class+path=off'
    )
    try:
        with tempfile.TemporaryDirectory(prefix="leat-classes-") as directory:
            _load_classes(Path(directory))
        part.touch()
        part.replace(path)
    finally:
        # A JVM that is left running would continue to write; one that has written has ended.
        for left in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                left.kill()
                left.wait(10)
        part.unlink(missing_ok=True)


def _load_classes(work_dir: Path) -> None:
    spark = start_session(work_dir, 2)
    process = jvm_process(spark)
    warm_up(spark, None, work_dir, lambda _step: None)
    warm_analyzer(spark)
    _use_state(spark, work_dir)
    spark.stop()
    process.stdin.close()  # the JVM ends with it, in order
    process.wait(_END_SECONDS)


def _use_state(spark: SparkSession, work_dir: Path) -> None:
    """An aggregate: the shuffle and RocksDB are no part of warming up."""
    rows = spark.readStream.format("rate").option("rowsPerSecond", 10).load()
    counted = rows.groupBy((rows["value"] % 3).alias("k")).count()
    stream = counted.writeStream.format("noop").outputMode("update")
    query = stream.option("checkpointLocation", str(work_dir / "state")).start()
    try:
        wait_for(lambda: len(query.recentProgress) > 1, _STATE_SECONDS)
    finally:
        query.stop()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    write_archive(Path(sys.argv[1]))

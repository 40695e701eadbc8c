"""The driver's one SparkSession: quiet, in UTC, with everything it writes below the work directory.

Its tasks run in the driver itself, or in executors on a cluster where LEATSTREAM_SPARK_CONF names a master.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import socket
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leatstream_jobs.runtime.java_names import keep_names
from leatstream_jobs.runtime.local_files import spare_programs
from leatstream_jobs.runtime.worker_python import worker_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG = logging.getLogger(__name__)
# Small drivers: the first compiler only and the serial collector start fastest and take least memory; a busy
# query costs about three times the CPU per record then, so the launcher overrides this where that matters.
DEFAULT_JVM_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xss1m"
DEFAULT_MEMORY = "512m"
# Names the file that class_archive.py writes; it may not be there, or be empty.
ARCHIVE_VARIABLE = "LEATSTREAM_CLASS_ARCHIVE"
_TASKS_END, _LOOK = 2.0, 0.02  # seconds
_STATE_STORES = "org.apache.spark.sql.execution.streaming.state.StateStore$"

# Spark logs a stopped query's interrupts as errors with stack traces; people get the driver's own words.
_LOG4J = """\
status = off
appenders = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {directory}/spark.log
appender.file.filePattern = {directory}/spark.log.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd'T'HH:mm:ss.SSS'Z'}}{{UTC}} %p %c{{1}}: %m%n%ex{{short}}
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 5MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 1
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
logger.bridge.name = org.apache.hadoop.util.NativeCodeLoader
logger.bridge.level = error
logger.kafka.name = org.apache.kafka
logger.kafka.level = error
"""


# Queries that share a driver take turns, and what RocksDB keeps outside the heap is bounded for all together.
_SHARED = {
    "spark.scheduler.mode": "FAIR",
    "spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage": "true",
    "spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB": "256",
}


def settings(work_dir: Path, slots: int, environment: dict[str, str]) -> dict[str, str]:
    """Spark settings of a driver; none holds a secret, as they end up in the JVM's command line.

    Args:
        work_dir: directory that this driver alone uses.
        slots: tasks at once; real-time mode holds one per source partition.
        environment: where the LEATSTREAM_* variables are read from; LEATSTREAM_SPARK_CONF is a JSON object of
            Spark settings, which win.
    """
    options = environment.get("LEATSTREAM_DRIVER_JVM_OPTIONS", DEFAULT_JVM_OPTIONS)
    jars = [jar for jar in environment.get("LEATSTREAM_SPARK_JARS", "").split(os.pathsep) if jar]
    log4j = f"-Dlog4j2.configurationFile=file:{work_dir}/log4j2.properties"
    java = f"{options}{_archive(environment)} -Djava.io.tmpdir={work_dir / 'tmp'} {log4j}"
    own = {
        "spark.master": f"local[{slots}]",
        "spark.app.name": "leatstream",
        "spark.jars": ",".join(jars),
        "spark.driver.memory": environment.get("LEATSTREAM_DRIVER_MEMORY", DEFAULT_MEMORY),
        "spark.driver.extraJavaOptions": java,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": f"{work_dir}/local",
        # How old the row counts of a running real-time batch may be.
        "spark.executor.heartbeatInterval": "1s",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.redaction.regex": "(?i)secret|password|token|access[.]?key|jaas|truststore|keystore",
        "spark.sql.warehouse.dir": f"{work_dir}/warehouse",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        # Names are exact once our parser has folded them; "A" and a are two columns.
        "spark.sql.caseSensitive": "true",
        "spark.sql.shuffle.partitions": "2",
        # To note the line that called it PySpark calls into the JVM five times more for each column that is
        # made: thousands of calls in a batch that is processed in Python.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        # A query whose batches are processed in Python runs some ninety classes: with those of the driver's
        # warm-up they do not fit into the 100 that Spark keeps, and each batch compiled them again.
        "spark.sql.codegen.cache.maxEntries": "1000",
        # What is moved for sinks are Arrow batches of a megabyte: Java would hold the last hundred of them.
        "spark.serializer.objectStreamReset": "1",
        "spark.sql.streaming.metricsEnabled": "false",
        "spark.sql.streaming.minBatchesToRetain": "20",
        "spark.sql.streaming.stopTimeout": "20s",
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        # What is not uploaded when the stores are closed is uploaded by the next attempt.
        "spark.sql.streaming.stateStore.maintenanceShutdownTimeout": "2s",
        "spark.sql.streaming.stateStore.maintenanceForceShutdownTimeout": "2s",
    }
    configured: dict[str, str] = json.loads(environment.get("LEATSTREAM_SPARK_CONF") or "{}")
    return own | configured


def _archive(environment: dict[str, str]) -> str:
    """The JVM's flag for its archive of classes, once there is one."""
    path = Path(environment.get(ARCHIVE_VARIABLE) or os.devnull)
    there = path.is_file() and path.stat().st_size > 0
    return f' "-XX:SharedArchiveFile={path}"' if there else ""


def start_session(work_dir: Path, slots: int, *, shared: bool = False) -> SparkSession:
    """Start the JVM and the session.

    Args:
        work_dir: directory that this driver alone uses; made when it does not exist.
        slots: tasks at once.
        shared: whether many queries will run in it.
    """
    for name in ("tmp", "local", "warehouse"):
        (work_dir / name).mkdir(parents=True, exist_ok=True)
    (work_dir / "log4j2.properties").write_text(_LOG4J.format(directory=work_dir), encoding="utf-8")
    # Another Spark on the machine must not be picked up, nor its workers' Python.
    for name in ("SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "SPARK_REMOTE"):
        os.environ.pop(name, None)
    wanted = settings(work_dir, slots, dict(os.environ)) | (_SHARED if shared else {})
    local = wanted["spark.master"].startswith("local")
    # Executors may be on other machines.
    python = str(worker_python(work_dir)) if local else sys.executable
    if local:
        wanted = _unix_sockets(work_dir) | wanted
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = python
    if local:
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"

    # PySpark repeats every analysis error, with the JVM's stack, on stderr.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL + 1)

    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    for key, value in wanted.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    keep_names(spark)
    spare_programs(spark)
    if not local:
        from leatstream_jobs.runtime.shipped_code import ship_code

        ship_code(spark, work_dir)
    return spark


def _unix_sockets(work_dir: Path) -> dict[str, str]:
    """Settings that have Python's workers talk to the JVM over files of a directory, where the system can.

    Over TCP each side waits for the other's acknowledgement: up to 40 ms in each batch for each worker.
    """
    place = work_dir / "sockets"
    place.mkdir(mode=0o700, exist_ok=True)
    # The path of a socket may have 107 bytes: this one is short wherever the directory is.
    short = f"/proc/{os.getpid()}/fd/{os.open(place, os.O_RDONLY)}"
    try:
        # Some volumes hold no sockets, and some systems have no such paths.
        with socket.socket(socket.AF_UNIX) as probe, socket.socket(socket.AF_UNIX) as other:
            probe.bind(f"{short}/probe")
            probe.listen()
            other.connect(f"{short}/probe")
        (place / "probe").unlink()
    except OSError as error:
        _LOG.info("workers talk over TCP: no socket can be made in %s: %s", place, error)
        return {}
    return {
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.unix.domain.socket.dir": short,
    }


def own_session(spark: SparkSession) -> SparkSession:
    """A session for one query: its views, functions and settings are its own. This thread works with it."""
    made: Any = spark.newSession()
    # A data source in Python is looked up in the thread's active session, which the new one is not by itself.
    made._get_j_spark_session_class(made._jvm).setActiveSession(made._jsparkSession)
    return made  # type: ignore[no-any-return]


def free_of_queries(spark: SparkSession) -> bool:
    """Close what a query that has stopped leaves in a JVM of its own; whether nothing of it is at work there.

    On a cluster its executors have the state, and nobody can say.
    """
    context: Any = spark.sparkContext
    if not context.master.startswith("local"):
        return False
    end = time.monotonic() + _TASKS_END
    while _running_tasks(context):
        if time.monotonic() >= end:  # such as a user's function that takes no notice
            return False
        time.sleep(_LOOK)
    # Only now: a task would open its store again. Their maintenance would else go on writing into the
    # checkpoint, which another driver may have by now.
    getattr(getattr(context._jvm, _STATE_STORES), "MODULE$").stop()
    return True


def _running_tasks(context: Any) -> int:
    """By the scheduler's own books: the status tracker hears of a task up to a second later."""
    counts = context._jsc.sc().taskScheduler().runningTasksByExecutors().valuesIterator()
    running = 0
    while counts.hasNext():
        running += int(counts.next())
    return running


def collect_garbage(spark: SparkSession) -> None:
    """Give a query's memory back: objects of Python hold objects of the JVM, and connections."""
    jvm: Any = spark.sparkContext._jvm
    gc.collect()
    jvm.System.gc()


def jvm_process(spark: SparkSession) -> Any:
    """The JVM's ``subprocess.Popen``; None when it was not started from here."""
    return getattr(spark.sparkContext._gateway, "proc", None)

"""Flink SQL as a process of its own, fetched for the run: beside the project's environment and not into it.

The distribution comes from PyPI (329 MB), its Kafka connector from Maven Central, both pinned. A Java program
with Flink's table environment runs the statements and their job in the same process (``execution.target``
local). Flink has its own defaults, but for two slots, SerialGC, the given heap, and checkpoints in files:
checkpoints in memory fail beyond 5 MB; Flink then starts the job again and writes its rows twice.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
from stack import BenchError

from leatstream.dev.jars import Jar, bring
from leatstream.dev.java import find_java, java_environment

FLINK = "apache-flink-libraries==2.3.0"
CONNECTOR = Jar(
    "org.apache.flink",
    "flink-sql-connector-kafka",
    "5.0.0-2.2",
    "5605c691d11a501382c383fecba37a7a552467da5ab7ba904ef5d6f3d62c5616",
)
# Java runs it from its source; the job is in the same process.
PROGRAM = """
import java.nio.file.*;
import org.apache.flink.table.api.*;

public class Job {
  public static void main(String[] arguments) throws Exception {
    var tables = TableEnvironment.create(EnvironmentSettings.newInstance().inStreamingMode().build());
    tables.getConfig().set("execution.target", "local").set("parallelism.default", "2")
      .set("table.local-time-zone", "UTC").set("execution.checkpointing.interval", "10s")
      .set("execution.checkpointing.storage", "filesystem")
      .set("execution.checkpointing.dir", "file:" + arguments[1]);
    TableResult last = null;
    for (String statement : Files.readString(Path.of(arguments[0])).split(";"))
      last = tables.executeSql(statement);
    last.await();
  }
}
"""
# As Flink's own scripts open them; the distribution on PyPI is without these.
OPENED = (
    *("java.lang", "java.lang.reflect", "java.net", "java.io", "java.nio", "java.text", "java.time"),
    *(
        "java.util",
        "java.util.concurrent",
        "java.util.concurrent.atomic",
        "java.util.concurrent.locks",
        "sun.nio.ch",
    ),
)
# Flink's own errors, such as a job that it restarts, are printed when a run fails.
LOGGING = """rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %p %c{1} %m%n
"""


@contextlib.contextmanager
def flink_home(kept: Path | None) -> Iterator[Path]:
    """Flink's distribution with the connector among its libraries."""
    with tempfile.TemporaryDirectory(prefix="leat-flink-") as name:
        target = kept or Path(name)
        home = target / "pyflink"
        if not home.exists():
            pip = [
                sys.executable,
                "-m",
                "pip",
                "install",
                "--quiet",
                "--no-deps",
                "--target",
                str(target),
                FLINK,
            ]
            subprocess.run(pip, check=True)
        (jar,) = bring([CONNECTOR])
        if not (home / "lib" / jar.name).exists():
            shutil.copy(jar, home / "lib")
        yield home


@contextlib.contextmanager
def running_flink(home: Path, script: str, heap: str) -> Iterator[tuple[psutil.Process, Path]]:
    """A process with Flink and its job inside, and what it says."""
    with tempfile.TemporaryDirectory(prefix="leat-flink-job-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "job.sql").write_text(script)
        (folder / "Job.java").write_text(PROGRAM)
        (folder / "log4j2.properties").write_text(LOGGING)
        java = find_java()
        if java is None:
            raise BenchError("there is no Java")
        opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
        settings = [
            f"-Xmx{heap}",
            "-XX:+UseSerialGC",
            f"-Dlog4j.configurationFile={folder}/log4j2.properties",
        ]
        settings += [f"-Djava.io.tmpdir={folder}", "-cp", f"{home}/lib/*"]
        told = [str(folder / "job.sql"), str(folder / "checkpoints")]
        log = folder / "client.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [str(java.executable), *settings, *opened, str(folder / "Job.java"), *told],
                cwd=name,
                env=java_environment(java),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            yield psutil.Process(process.pid), log
        except BenchError as error:
            raise BenchError(f"{error}\nFlink says:\n{log.read_text(errors='replace')[-3000:]}") from None
        finally:
            process.kill()
            process.wait(30)

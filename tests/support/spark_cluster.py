"""A Spark standalone cluster of local processes: one master, two workers."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
from deadlines import patient

from leatstream.dev.java import find_java
from leatstream.dev.ports import free_ports

DEADLINE = 90.0


class SparkCluster:
    """A cluster that runs."""

    def __init__(self, master: str, web: str) -> None:
        self.master = master
        self._web = web

    def told(self) -> dict[str, Any]:
        """What the master says of itself."""
        with urllib.request.urlopen(f"{self._web}/json/", timeout=10) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def busy_workers(self) -> int:
        """Workers that lend cores to an application."""
        return sum(worker["coresused"] > 0 for worker in self.told()["workers"])


@contextlib.contextmanager
def spark_cluster(place: Path) -> Iterator[SparkCluster]:
    """Start one and end all of its processes.

    The workers' Python finds a broken ``leatstream`` first, so that what works on them came with the driver.
    """
    java = find_java()
    assert java is not None
    home = Path(pyspark.__file__).parent
    place.mkdir(parents=True, exist_ok=True)
    broken = place / "broken" / "leatstream"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise ImportError('not the code that was shipped')")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("LEATSTREAM_", "SPARK_"))}
    environment |= {"SPARK_HOME": str(home), "JAVA_HOME": str(java.home), "PYTHONPATH": str(broken.parent)}
    environment["SPARK_SCALA_VERSION"] = "2.13"  # as Spark's own scripts tell the worker
    small = ["-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{home}/jars/*"]
    processes: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str) -> None:
        command = [str(java.executable), *small, f"org.apache.spark.deploy.{name}", *arguments]
        with (place / f"{len(processes)}.log").open("wb") as log:
            processes.append(
                subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)
            )

    port, web = free_ports(2)
    cluster = SparkCluster(f"spark://127.0.0.1:{port}", f"http://127.0.0.1:{web}")
    try:
        start("master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(web))
        for i in range(2):
            work = ["--work-dir", str(place / f"worker{i}"), "--cores", "2", "--memory", "2g"]
            start("worker.Worker", "--host", "127.0.0.1", "--webui-port", "0", *work, cluster.master)
        _wait_for_workers(cluster, processes, place)
        yield cluster
    finally:
        for process in reversed(processes):
            process.terminate()  # a worker ends its executors
        for process in processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(15)
            process.kill()
            process.wait()


def _wait_for_workers(cluster: SparkCluster, processes: list[subprocess.Popen[bytes]], place: Path) -> None:
    deadline = time.monotonic() + patient(DEADLINE)
    while True:
        # Before its own pages are there, the master answers with its first one.
        with contextlib.suppress(OSError, ValueError):
            if [w["state"] for w in cluster.told()["workers"]] == ["ALIVE", "ALIVE"]:
                return
        said = "".join(log.read_text(errors="replace")[-1500:] for log in sorted(place.glob("*.log")))
        assert all(process.poll() is None for process in processes), said
        assert time.monotonic() < deadline, said
        time.sleep(0.1)

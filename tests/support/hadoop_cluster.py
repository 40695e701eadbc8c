"""HDFS and YARN, as one JVM of real name node, data node, resource manager and node manager: no twins of them.

Their jars come from Maven by the project's own way, with the sums below, into the cache of jars (57 MB).
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from leatstream.dev.jars import Jar, bring
from leatstream.dev.java import find_java
from leatstream.dev.ports import free_ports

JARS = (
    Jar(
        "org.apache.hadoop",
        "hadoop-client-minicluster",
        "3.5.0",
        "06772d24529e59939915979b3edba204d367750ef7dc5120411f35221dd4818c",
    ),
    # What its classes for tests refer to.
    Jar("junit", "junit", "4.13.2", "8e495b634469d64fb8acfa3495a065cbacc8a0fff55ce1e31007be4c16dc57d3"),
    Jar(
        "org.hamcrest",
        "hamcrest-core",
        "1.3",
        "66fdef91e9739348df7a096aa384a5685f4e875584cce89386a7a47251c4d8e9",
    ),
    Jar(
        "org.junit.jupiter",
        "junit-jupiter-api",
        "5.13.4",
        "d1bb81abfd9e03418306b4e6a3390c8db52c58372e749c2980ac29f0c08278f1",
    ),
    Jar(
        "org.junit.platform",
        "junit-platform-commons",
        "1.13.4",
        "1c25ca641ebaae44ff3ad21ca1b2ef68d0dd84bfeb07c4805ba7840899b77408",
    ),
    Jar(
        "org.opentest4j",
        "opentest4j",
        "1.3.0",
        "48e2df636cab6563ced64dcdff8abb2355627cb236ef0bf37598682ddf742f1b",
    ),
    Jar(
        "org.mockito",
        "mockito-core",
        "4.11.0",
        "4b909690cab288c761eb94c0bf0e814496cf3921d8affac84cd87774530351e5",
    ),
    # For the certificates of YARN's proxy.
    Jar(
        "org.bouncycastle",
        "bcprov-jdk18on",
        "1.82",
        "14cde2fdfaa8890480a8e5b67aceef0c90f96682c1e23c133bafdc9e0b3255ce",
    ),
    Jar(
        "org.bouncycastle",
        "bcpkix-jdk18on",
        "1.82",
        "bdc723e20834832ac6af136cb5b5ff05e43b71d4fa151cc6510d9212ee086e63",
    ),
    Jar(
        "org.bouncycastle",
        "bcutil-jdk18on",
        "1.82",
        "4420691958ad1c0ba275a6d6d8a6317adbdbdc9277055b6a72aa89c88cda8c7d",
    ),
)
_FLAGS = ["-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]


def s3a_jars() -> list[Path]:
    """hadoop-aws, and of the AWS SDK what it needs for checkpoints: 13 MB in place of the bundle's 600."""
    lines = (Path(__file__).parents[1] / "manual" / "s3a.jars").read_text().splitlines()
    found = [(line.split()[0].split(":"), line.split()[1]) for line in lines]
    return bring([Jar(*coordinate, sha256) for coordinate, sha256 in found])


def write_site(file: Path, settings: Mapping[str, str]) -> None:
    """A file of Hadoop's settings."""
    site = ElementTree.Element("configuration")
    for key, value in settings.items():
        one = ElementTree.SubElement(site, "property")
        ElementTree.SubElement(one, "name").text = key
        ElementTree.SubElement(one, "value").text = value
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(ElementTree.tostring(site))


class HadoopCluster:
    """A cluster that runs.

    Attributes:
        url: of its HDFS.
        conf_dir: HADOOP_CONF_DIR for its clients.
    """

    def __init__(self, jvm: Any, place: Path) -> None:
        self._jvm = jvm
        (port,) = free_ports(1)
        self.url, self.conf_dir = f"hdfs://127.0.0.1:{port}", place / "conf"
        self.conf_dir.mkdir(parents=True)
        conf = jvm.org.apache.hadoop.hdfs.HdfsConfiguration()
        conf.set("hdfs.minidfs.basedir", str(place / "hdfs"))
        builder = getattr(jvm.org.apache.hadoop.hdfs, "MiniDFSCluster$Builder")
        self._hdfs = builder(conf).nameNodePort(port).numDataNodes(1).build()
        self._hdfs.waitActive()
        self._yarn: Any = None
        self._conf = conf

    def start_yarn(self) -> None:
        """A resource manager and one node manager, found by ``conf_dir``."""
        known = self._jvm.org.apache.hadoop.yarn.conf.YarnConfiguration(self._conf)
        for key, value in {
            "yarn.scheduler.minimum-allocation-mb": "128",
            "yarn.minicluster.yarn.nodemanager.resource.memory-mb": "6144",
            "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "99.5",
            "yarn.nodemanager.vmem-check-enabled": "false",
            "yarn.scheduler.capacity.maximum-am-resource-percent": "1.0",
            "yarn.scheduler.capacity.root.queues": "default",
            "yarn.scheduler.capacity.root.default.capacity": "100",
        }.items():
            known.set(key, value)
        self._yarn = self._jvm.org.apache.hadoop.yarn.server.MiniYARNCluster("leatstream", 1, 1, 1)
        self._yarn.init(known)
        self._yarn.start()
        # Of the rest much is for itself alone.
        told = self._yarn.getConfig().getValByRegex(r"yarn\.resourcemanager\..*address|fs\.defaultFS")
        write_site(self.conf_dir / "yarn-site.xml", dict(told))

    def applications(self) -> int:
        """How many applications have containers."""
        return int(
            self._yarn.getResourceManager().getResourceScheduler().getRootQueueMetrics().getAppsRunning()
        )

    def names(self, path: str) -> list[str]:
        """Names in a folder of HDFS; none where there is no such folder."""
        place = self._jvm.org.apache.hadoop.fs.Path(path)
        files = self._hdfs.getFileSystem()
        return (
            sorted(one.getPath().getName() for one in files.listStatus(place)) if files.exists(place) else []
        )

    def backdate(self, path: str, seconds: float) -> None:
        """Have a file be older."""
        at = int((time.time() - seconds) * 1000)
        self._hdfs.getFileSystem().setTimes(self._jvm.org.apache.hadoop.fs.Path(path), at, -1)

    def stop_hdfs(self) -> None:
        """The name node goes: nobody answers at its port."""
        self._hdfs.shutdownNameNode(0)

    def start_hdfs(self) -> None:
        """It is back, with all that it held."""
        self._hdfs.restartNameNode(True)

    def close(self) -> None:
        """End all of it."""
        if self._yarn is not None:
            self._yarn.stop()
        self._hdfs.shutdown()


@contextlib.contextmanager
def hadoop_cluster(place: Path) -> Iterator[HadoopCluster]:
    """Start HDFS in some seconds; YARN when asked."""
    java = find_java()
    assert java is not None
    spark = Path(pyspark.__file__).parent / "jars"
    named = ("hadoop-client-*", "slf4j-api*", "log4j-*", "jcl-over-slf4j*", "py4j-*")
    jars = [*bring(JARS), *(jar for name in named for jar in spark.glob(name))]
    place.mkdir(parents=True, exist_ok=True)
    with (place / "hadoop.log").open("w") as log:
        port, password, process = launch_gateway(
            jarpath=str(next(spark.glob("py4j-*"))),
            classpath=os.pathsep.join(map(str, jars)),
            javaopts=_FLAGS,
            die_on_exit=True,
            redirect_stdout=log,
            redirect_stderr=log,
            cwd=str(place),
            java_path=str(java.executable),
            enable_auth=True,
            return_proc=True,
        )
        known = GatewayParameters(port=port, auth_token=password, auto_convert=True)
        gateway = JavaGateway(gateway_parameters=known)
        try:
            cluster = HadoopCluster(gateway.jvm, place)
            yield cluster
            cluster.close()
        finally:
            gateway.close()
            process.kill()
            process.wait()

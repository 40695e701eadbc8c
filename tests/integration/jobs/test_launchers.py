"""Every launcher that can run here keeps to one conformance suite."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from driver_variables import driver_variables
from kube_double import KubeDouble
from launched import ORPHAN_SECONDS, LauncherConformance, Place, members, seen_in_processes
from spark_cluster import SparkCluster, spark_cluster

from leatstream.engine.clusters import Cluster
from leatstream.engine.kubernetes_api import KubernetesAddress, KubernetesApi
from leatstream.engine.pod_manifests import PodPlan, pod_name
from leatstream.engine.pods import PodLauncher
from leatstream.engine.processes import DriverCommand, LocalLauncher
from leatstream.ports import Launcher

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


class ProcessPlace(Place):
    """Drivers beside the server; their executors in them, or on a cluster."""

    def __init__(self, directory: Path, cluster: Cluster | None = None) -> None:
        self._directory = directory
        self._cluster = cluster

    def open(self, url: str) -> Launcher:
        (self._directory / "url").write_text(url)
        return LocalLauncher(
            DriverCommand(
                url_file=self._directory / "url",
                work_dir=self._directory / "work",
                log_dir=self._directory / "logs",
                environment=driver_variables(),
                slots=4,
                orphan_seconds=ORPHAN_SECONDS,
                cluster=self._cluster.environment() if self._cluster is not None else {},
            )
        )

    def shown(self, driver: str) -> str:
        return seen_in_processes(driver, self._directory / "work")


class StandalonePlace(ProcessPlace):
    """Executors on a standalone cluster of two workers."""

    def __init__(self, directory: Path, spark: SparkCluster) -> None:
        conf = {"spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"}
        super().__init__(
            directory,
            Cluster(
                kind="standalone",
                master=spark.master,
                executors=2,
                executor_cores=1,
                executor_memory="512m",
                conf=conf,
            ),
        )
        self._spark = spark

    def busy(self) -> bool:
        return self._spark.busy_workers() == 2

    def remains(self, driver: str) -> list[object]:
        # One driver at a time holds cores in this suite once it runs a query.
        return [
            *super().remains(driver),
            *([] if len(self._spark.told()["activeapps"]) <= 1 else ["application"]),
        ]


class KubernetesPlace(Place):
    """Pods of a double of a cluster, which runs them as processes."""

    def __init__(self, directory: Path, cluster: KubeDouble) -> None:
        self._directory = directory
        self._cluster = cluster
        (directory / "token").write_text(cluster.token)

    def open(self, url: str) -> Launcher:
        address = KubernetesAddress(
            url=self._cluster.url, namespace="streams", token_file=self._directory / "token", ca_file=None
        )
        plan = PodPlan(
            image="leatstream:test",
            service_account="drivers",
            environment=driver_variables(),
            slots=4,
            orphan_seconds=ORPHAN_SECONDS,
        )
        launcher = PodLauncher(KubernetesApi(address), plan, "srv_1", url, self._directory / "logs")
        launcher.check()
        return launcher

    def shown(self, driver: str) -> str:
        """The pod, its processes, and the files that code in it can read once the driver runs."""
        name = pod_name(driver)
        seen = [repr((p.cmdline(), p.environ())) for p in members(driver)]
        own = (self._directory / "cluster" / name / "leat-own").iterdir()
        return "\n".join(
            [json.dumps(self._cluster.objects["pods", name]), *seen, *(f.read_text() for f in own)]
        )

    def remains(self, driver: str) -> list[Any]:
        return [*super().remains(driver), *([s] if (s := self._secret(driver)) else [])]

    def _secret(self, driver: str) -> str | None:
        # A pod that ended by itself is there, with its Secret, until a server takes it away.
        name = pod_name(driver)
        return name if ("secrets", name) in self._cluster.objects and not self._over(name) else None

    def _over(self, name: str) -> bool:
        pod = self._cluster.objects.get(("pods", name))
        return pod is not None and pod["status"]["phase"] in ("Succeeded", "Failed")


@pytest.mark.long
class TestLocal(LauncherConformance):
    """The launcher ``local``."""

    @pytest.fixture
    def place(self, tmp_path: Path) -> Place:
        return ProcessPlace(tmp_path)


@pytest.mark.long
class TestStandalone(LauncherConformance):
    """The launcher ``standalone``, on a real cluster of local processes."""

    @pytest.fixture
    def place(self, tmp_path: Path) -> Iterator[Place]:
        with spark_cluster(tmp_path / "cluster") as spark:
            yield StandalonePlace(tmp_path, spark)
            assert spark.told()["activeapps"] == []


class TestKubernetes(LauncherConformance):
    """The launcher ``kubernetes``; a real API server is asked by ``tests/manual/real_apiserver.py``."""

    @pytest.fixture
    def place(self, tmp_path: Path) -> Iterator[Place]:
        cluster = KubeDouble(tmp_path / "cluster", "drivers")
        yield KubernetesPlace(tmp_path, cluster)
        assert [key for key in cluster.objects if key[0] != "serviceaccounts"] == [], "all was cleared away"
        cluster.close()

"""From settings to the launcher of drivers."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from leatstream.engine.clusters import Cluster
from leatstream.engine.driver_account import DriverAccount, find_account
from leatstream.engine.kubernetes_api import KubernetesApi, find_address
from leatstream.engine.memory import size
from leatstream.engine.pod_manifests import PodPlan, mounts_checkpoints, read_template
from leatstream.engine.pods import PodLauncher
from leatstream.engine.processes import DriverCommand, LocalLauncher
from leatstream.errors import StackError, sentence
from leatstream.ports import Launcher
from leatstream.settings import Settings

# The second JIT compiler takes some 50 MB and more CPU at the start; without it each record of a busy query
# costs about three times as much for ever.
SMALL_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xss1m"
BUSY_JVM = "-XX:+UseSerialGC -Xss1m"
# What the Python workers of a query may take on top, for two of them.
_WORKERS = 256 << 20


def open_launcher(
    settings: Settings, server: str, url_file: Path, environment: Mapping[str, str]
) -> Launcher:
    """The launcher that the settings name.

    Args:
        settings: of the server.
        server: its id.
        url_file: file that holds the API's address, for drivers of this machine.
        environment: Java, jars and the like for drivers; no secrets.

    Raises:
        StackError: ``part-failed``, the settings do not fit together, or the cluster refuses us.
    """
    variables = {
        "LEATSTREAM_DRIVER_MEMORY": settings.driver_memory,
        "LEATSTREAM_DRIVER_JVM_OPTIONS": settings.driver_jvm_options or SMALL_JVM,
        **environment,
    }
    data_dir = settings.data_dir.resolve()
    if settings.launcher == "kubernetes":
        return _pods(settings, server, data_dir / "logs" / "drivers", variables)
    cluster = _cluster(settings)
    account = driver_account(settings)
    if account is not None:
        account.check({**variables, "": str(url_file)})
    return LocalLauncher(
        DriverCommand(
            url_file=url_file,
            work_dir=data_dir / "drivers",
            log_dir=data_dir / "logs" / "drivers",
            environment=variables,
            slots=slots(settings),
            cluster=cluster.environment() if cluster is not None else {},
            warm_up_kafka=settings.warm_up_kafka,
            orphan_seconds=settings.driver_orphan_seconds,
            stop_seconds=settings.stop_grace_seconds,
            shared={"LEATSTREAM_DRIVER_MEMORY": settings.shared_memory},
            inherited=settings.driver_environment,
            dedicated=_dedicated(settings),
            launcher=settings.launcher,
            account=account,
        )
    )


def driver_account(settings: Settings) -> DriverAccount | None:
    """The account that drivers run as; None = the server's own.

    Raises:
        StackError: ``part-failed``, there is no such account, or other settings do not fit.
    """
    if not settings.driver_user:
        return None
    faults = []
    if settings.launcher != "local":
        faults.append(f"it is for the launcher local, and this one is {settings.launcher}")
    if settings.catalog.startswith("sqlite"):
        faults.append(
            "the catalog must be in PostgreSQL, as the files of SQLite's views would be the drivers'"
        )
    if "://" in settings.checkpoints:
        faults.append("the checkpoints must be in a directory")
    if faults:
        detail = f"LEATSTREAM_DRIVER_USER cannot be used: {'; '.join(faults)}"
        raise StackError("part-failed", sentence(detail), hint="See docs/deploy.md.")
    return find_account(settings.driver_user)


def _dedicated(settings: Settings) -> dict[str, str]:
    """More environment for drivers of one query each."""
    return {
        "LEATSTREAM_DRIVER_JVM_OPTIONS": settings.driver_jvm_options or BUSY_JVM,
        "LEATSTREAM_JSON_WORKERS": "1" if settings.json_workers else "0",
    }


def heaps(settings: Settings) -> Callable[[str], int] | None:
    """Bytes of a driver's heap and workers by its role; None where drivers take no memory of this machine."""
    if settings.launcher == "kubernetes":
        return None
    own = size(settings.driver_memory)
    workers = _WORKERS if settings.json_workers else 0
    sizes = {"shared": size(settings.shared_memory), "dedicated": own + workers}
    return lambda role: sizes.get(role, own)


def slots(settings: Settings) -> int:
    """Tasks at once of one query."""
    cluster = _cluster(settings)
    return cluster.slots if cluster is not None else settings.driver_slots


def _cluster(settings: Settings) -> Cluster | None:
    """Where executors run; None = in the drivers."""
    if settings.launcher in ("local", "kubernetes"):
        return None
    return Cluster(
        kind="yarn" if settings.launcher == "yarn" else "standalone",
        master=settings.spark_master,
        executors=settings.executors,
        executor_cores=settings.executor_cores,
        executor_memory=settings.executor_memory,
        driver_host=settings.driver_host,
        conf=settings.spark_conf,
        hadoop_conf=os.environ.get("HADOOP_CONF_DIR") or os.environ.get("YARN_CONF_DIR", ""),
        yarn_queue=settings.yarn_queue,
        yarn_principal=settings.yarn_principal,
        yarn_keytab=settings.yarn_keytab,
    )


def _unfit_for_own_checkpoints(settings: Settings, template: Mapping[str, Any]) -> list[str]:
    """Why a pod cannot mount the checkpoints of its query alone."""
    setting, root = "LEATSTREAM_KUBERNETES_OWN_CHECKPOINTS", settings.checkpoints
    if "://" in root:
        return [f"{setting} is for checkpoints on a volume, and these are under {root}"]
    faults = []
    if not mounts_checkpoints(template, root):
        faults.append(f"{setting} is set, and the pod template mounts no volume at {root}")
    if settings.warm_drivers:
        faults.append(
            f"{setting} needs LEATSTREAM_WARM_DRIVERS=0: a pod that runs already can mount nothing more"
        )
    return faults


def _pods(settings: Settings, server: str, log_dir: Path, environment: Mapping[str, str]) -> PodLauncher:
    faults = []
    if settings.catalog.startswith("sqlite"):
        faults.append("the catalog is SQLite, and pods cannot reach the files of its materialized views")
    if not settings.kubernetes_image:
        faults.append("LEATSTREAM_KUBERNETES_IMAGE is not set")
    if not settings.driver_api_url:
        faults.append("LEATSTREAM_DRIVER_API_URL is not set, so drivers would not find this server")
    template = read_template(settings.kubernetes_pod_template)
    if settings.kubernetes_own_checkpoints:
        faults += _unfit_for_own_checkpoints(settings, template)
    if faults:
        raise StackError(
            "part-failed",
            sentence("; ".join(faults)),
            hint="See docs/deploy.md for what each launcher needs.",
        )
    plan = PodPlan(
        image=settings.kubernetes_image,
        service_account=settings.kubernetes_service_account,
        environment=environment,
        slots=settings.driver_slots,
        cpu=settings.kubernetes_cpu,
        memory=settings.kubernetes_memory,
        shared={"LEATSTREAM_DRIVER_MEMORY": settings.shared_memory},
        shared_memory=settings.kubernetes_shared_memory,
        dedicated=_dedicated(settings),
        orphan_seconds=settings.driver_orphan_seconds,
        stop_seconds=settings.stop_grace_seconds,
        warm_up_kafka=settings.warm_up_kafka,
        checkpoints=settings.checkpoints if settings.kubernetes_own_checkpoints else "",
        template=template,
    )
    address = find_address(
        settings.kubernetes_url,
        settings.kubernetes_namespace,
        settings.kubernetes_token_file,
        settings.kubernetes_ca_file,
    )
    launcher = PodLauncher(KubernetesApi(address), plan, server, settings.driver_api_url, log_dir)
    launcher.check()
    return launcher

"""Drivers as pods of a Kubernetes cluster (a ``ports.Launcher``)."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from leatstream.engine.kubernetes_api import KubernetesApi
from leatstream.engine.memory import heap_of
from leatstream.engine.pod_manifests import (
    CONTAINER,
    DRIVER_LABEL,
    PodPlan,
    folder_of,
    pod_manifest,
    pod_name,
    secret_manifest,
)
from leatstream.engine.processes import forget_logs, read_log
from leatstream.errors import EngineError, StackError, sentence

_log = logging.getLogger(__name__)
_FRESH = 1.0  # seconds that a list of pods is believed
_KILL_GRACE = 1  # of 0 the API would forget the pod before the node has ended it
_UNTIL_GONE = 30.0
_LEFTOVER = 600.0
_OVER = ("Succeeded", "Failed")


@dataclass(slots=True)
class _Seen:
    """The pods of all servers by name, as of a moment."""

    pods: dict[str, dict[str, Any]]
    at: float


class PodLauncher:
    """Makes a pod for each driver, with a Secret that holds its token and is deleted with it.

    Args:
        api: of the cluster.
        plan: what pods are like.
        server: this server's id.
        url: where pods reach this server.
        log_dir: where logs are kept after the pods are deleted.
    """

    def __init__(self, api: KubernetesApi, plan: PodPlan, server: str, url: str, log_dir: Path) -> None:
        self._api = api
        self._plan = plan
        self._server = server
        self._url = url
        self._log_dir = log_dir
        self._lock = threading.Lock()
        self._seen = _Seen({}, float("-inf"))
        self._ending: dict[str, float] = {}
        self._owner: str | None = None

    def check(self) -> None:
        """See that the cluster answers and lets us in; StackError part-failed."""
        try:
            self._owner_uid()
            self._api.list("pods", self._plan.labels())
        except EngineError as error:
            raise StackError("part-failed", error.detail, hint=error.faults[0].hint) from error

    @property
    def for_one_query(self) -> bool:
        """Whether a pod mounts the checkpoints of its query alone."""
        return bool(self._plan.checkpoints)

    def start(self, driver_id: str, role: str, token: str, query_id: str | None = None) -> int:
        """Make the pod, then its Secret, which the pod waits for and owns."""
        name = pod_name(driver_id)
        if self._plan.checkpoints and query_id is not None:
            self._make_folder(query_id)
        manifest = pod_manifest(self._plan, driver_id, role, self._server, self._owner_uid(), query_id)
        pod = self._api.create("pods", manifest) or self._api.find("pods", name)
        if pod is None:
            raise EngineError("engine-unavailable", f"Pod {name} was made and has vanished.")
        secret = secret_manifest(self._plan, driver_id, token, self._url, pod["metadata"]["uid"])
        try:
            self._api.create("secrets", secret)
        except EngineError:
            self._api.delete("pods", name, _KILL_GRACE)
            raise
        with self._lock:
            self._seen.pods[name] = pod
        return 0

    def _make_folder(self, query_id: str) -> None:
        """The folder that the pod mounts: a node would make one that belongs to root."""
        folder = Path(folder_of(self._plan.checkpoints, query_id))
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            detail = f"The folder {folder} of a query's checkpoints cannot be made: {error.strerror}"
            raise EngineError("engine-unavailable", sentence(detail)) from None

    def is_alive(self, driver_id: str, pid: int) -> bool:
        """Whether its pod exists and is not over; what cannot be seen is taken to live."""
        try:
            pod = self._pods().get(pod_name(driver_id))
        except EngineError as error:
            _log.warning("whether driver %s lives cannot be seen: %s", driver_id, error.detail)
            return True
        return pod is not None and pod.get("status", {}).get("phase") not in _OVER

    def place(self, driver_id: str, role: str) -> dict[str, Any]:
        """Its pod."""
        own = self._plan.shared if role == "shared" else {}
        heap = heap_of({**self._plan.environment, **own})
        return {"launcher": "kubernetes", "pod": pod_name(driver_id), "heap_limit_bytes": heap}

    def ask_to_end(self, driver_id: str, pid: int, grace: float) -> None:
        """Delete the pod; its node gives it the time to end in order."""
        try:
            pod = self._api.find("pods", pod_name(driver_id))
            if pod is not None:
                self._keep_log(driver_id, pod)
                self._api.delete("pods", pod_name(driver_id), max(_KILL_GRACE, round(grace)))
        except EngineError as error:
            _log.warning("driver %s could not be ended: %s", driver_id, error.detail)

    def end(self, driver_id: str, pid: int, grace: float) -> None:
        """Delete the pod and wait until the node has ended it; its log is kept.

        One that has been waited for in vain is only looked at the next time.
        """
        name = pod_name(driver_id)
        deadline = self._ending.setdefault(name, time.monotonic() + grace + _UNTIL_GONE)
        pod = self._api.find("pods", name)
        if pod is not None:
            self._keep_log(driver_id, pod)
            over = pod.get("status", {}).get("phase") in _OVER
            self._api.delete("pods", name, 0 if over else max(_KILL_GRACE, round(grace)))
        while pod is not None:
            time.sleep(0.2)
            pod = self._api.find("pods", name)
            if pod is not None:
                self._keep_log(driver_id, pod)
                if time.monotonic() > deadline:
                    raise EngineError(
                        "engine-unavailable",
                        f"Pod {name} has not ended; its node may be out of reach.",
                        hint="Delete the node if it is lost for good; leatstream tries again.",
                    )
        self._ending.pop(name, None)
        with self._lock:
            self._seen.pods.pop(name, None)

    def clear(self, driver_id: str) -> None:
        """Forget the oldest logs; the Secret was deleted with the pod."""
        forget_logs(self._log_dir)

    def end_strangers(self, known: Collection[str]) -> None:
        """Such a pod ends by itself, as nobody answers it, and is removed with the next look at all pods."""

    def bound_log(self, driver_id: str) -> None:
        """The node bounds it."""

    def log(self, driver_id: str) -> str:
        """The pod's log, else what was kept of it."""
        text = self._api.log(pod_name(driver_id), CONTAINER)
        return text if text is not None else read_log(self._log_dir, driver_id)

    def _owner_uid(self) -> str:
        """Uid of the drivers' service account: when it is deleted, as with the release, so are the pods."""
        if self._owner is None:
            account = self._api.find("serviceaccounts", self._plan.service_account)
            if account is None:
                raise EngineError(
                    "engine-unavailable",
                    f"There is no service account {self._plan.service_account} for drivers.",
                    hint="Set LEATSTREAM_KUBERNETES_SERVICE_ACCOUNT to one that exists.",
                )
            self._owner = str(account["metadata"]["uid"])
        return self._owner

    def _pods(self) -> dict[str, dict[str, Any]]:
        with self._lock:
            if time.monotonic() - self._seen.at > _FRESH:
                found = self._api.list("pods", self._plan.labels())
                self._seen = _Seen({pod["metadata"]["name"]: pod for pod in found}, time.monotonic())
                self._remove_leftovers(found)
            return self._seen.pods

    def _remove_leftovers(self, pods: list[dict[str, Any]]) -> None:
        """Pods that nobody else removes: of servers that no longer exist, or that died while they made one.

        Those that a server knows it ends long before: what is over at once, what does not start in minutes.
        """
        for pod in pods:
            if _idle_since(pod) > _LEFTOVER:
                driver_id = pod["metadata"].get("labels", {}).get(DRIVER_LABEL)
                _log.info("the pod of driver %s is left over; it is deleted", driver_id)
                self._api.delete("pods", pod["metadata"]["name"], 0)

    def _keep_log(self, driver_id: str, pod: dict[str, Any]) -> None:
        try:
            text = self._api.log(pod["metadata"]["name"], CONTAINER)
        except EngineError:
            text = None
        text = text if text is not None else why_waiting(pod)
        if text:
            self._log_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
            (self._log_dir / f"{driver_id}.log").write_text(text, encoding="utf-8")


def why_waiting(pod: dict[str, Any]) -> str:
    """Why a pod's containers do not run, such as an image that cannot be had; empty if nothing is said."""
    status = pod.get("status", {})
    containers = [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]
    waiting = [c["state"]["waiting"] for c in containers if (c.get("state") or {}).get("waiting")]
    lines = [f"{w.get('reason', 'waiting')}: {w.get('message', '')}" for w in waiting]
    lines += [
        f"{c.get('reason', c.get('type'))}: {c['message']}"
        for c in status.get("conditions") or []
        if c.get("status") == "False" and c.get("message")
    ]
    return "\n".join(lines)


def _idle_since(pod: dict[str, Any]) -> float:
    """Seconds since a pod's last container ended, or that it waits to begin; 0 for one that runs."""
    if pod.get("status", {}).get("phase") not in (*_OVER, "Pending"):
        return 0.0
    ends = [
        c["state"]["terminated"]["finishedAt"]
        for c in pod["status"].get("containerStatuses") or []
        if (c.get("state") or {}).get("terminated", {}).get("finishedAt")
    ]
    text = max(ends, default=pod["metadata"]["creationTimestamp"])
    return (datetime.now(UTC) - datetime.fromisoformat(text)).total_seconds()

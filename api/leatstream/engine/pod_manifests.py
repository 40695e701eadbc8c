"""What a driver's pod and its Secret look like. Nothing secret is in the pod's manifest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from leatstream.engine.processes import DRIVER_MARK
from leatstream.errors import StackError, sentence

CONTAINER = "driver"
DRIVER_LABEL = "leatstream.io/driver"
SERVER_LABEL = "leatstream.io/server"
_USER = 10001  # of the image
_GIVEN, _RUN, _WORK = "/var/run/leatstream/given", "/var/run/leatstream/own", "/var/lib/leatstream/driver"
# What a pod template may not decide: it would break who the driver is, or what it may do.
_FIXED = ("restartPolicy", "serviceAccountName", "automountServiceAccountToken", "initContainers")


@dataclass(frozen=True, slots=True, kw_only=True)
class PodPlan:
    """What all drivers' pods have in common.

    Attributes:
        image: the server's own image, in the same version.
        service_account: the pods run as this one and are owned by it.
        environment: of the process: Java, jars, JVM options. No secrets.
        cluster: more of it for drivers that run queries.
        shared, dedicated: what the environment of such a driver has instead.
        shared_memory: what the pod of a shared driver asks for; None = the same as any.
        slots: task slots.
        cpu, memory: what a pod asks for; it may not take more memory.
        orphan_seconds: how long a driver continues without the server.
        stop_seconds: how long it may take to end in order.
        warm_up_kafka: broker to warm up against, or None.
        checkpoints: their root, on a volume of the template, if a pod mounts those of its query alone; else
            empty.
        template: a Pod to begin with: volumes, node selectors, tolerations, resources, labels.
    """

    image: str
    service_account: str
    environment: Mapping[str, str]
    slots: int
    cpu: str = "1"
    memory: str = "1536Mi"
    orphan_seconds: float = 120.0
    stop_seconds: float = 0.0
    warm_up_kafka: str | None = None
    cluster: Mapping[str, str] = field(default_factory=dict)
    shared: Mapping[str, str] = field(default_factory=dict)
    dedicated: Mapping[str, str] = field(default_factory=dict)
    shared_memory: str | None = None
    checkpoints: str = ""
    template: Mapping[str, Any] = field(default_factory=dict)

    def labels(self) -> dict[str, str]:
        """By which all drivers of an installation are found."""
        return {
            "app.kubernetes.io/name": "leatstream-driver",
            "app.kubernetes.io/instance": self.service_account,
            "app.kubernetes.io/managed-by": "leatstream",
        }


def read_template(path: str) -> dict[str, Any]:
    """A pod template of a YAML or JSON file; empty for no path.

    Raises:
        StackError: ``part-failed``, it is no Pod, or decides what leatstream does.
    """
    if not path:
        return {}
    import yaml

    try:
        found = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise _bad(path, f"cannot be read: {error}") from None
    template: dict[str, Any] = found if isinstance(found, dict) else {}
    spec = template.get("spec")
    if not isinstance(spec, dict) or template.get("kind", "Pod") != "Pod":
        raise _bad(path, "is no Pod with a spec")
    taken = [f"spec.{name}" for name in _FIXED if name in spec]
    taken += [f"container {c.get('name')}" for c in spec.get("containers", ()) if c.get("name") != CONTAINER]
    if taken:
        raise _bad(path, f"sets {', '.join(taken)}, which leatstream sets itself")
    return template


def _bad(path: str, what: str) -> StackError:
    hint = f"Write a Pod whose only container is called {CONTAINER}; see docs/deploy.md."
    return StackError("part-failed", sentence(f"The pod template {path} {what}"), hint=hint)


def pod_name(driver_id: str) -> str:
    """Of a driver's pod and of its Secret."""
    return f"leat-{driver_id.replace('_', '-').lower()}"


def folder_of(checkpoints: str, query_id: str) -> str:
    """Where the checkpoints of a query lie, below those of all."""
    return f"{checkpoints.rstrip('/')}/queries/{query_id}"


def mounts_checkpoints(template: Mapping[str, Any], checkpoints: str) -> bool:
    """Whether a template mounts a volume that has the checkpoints into the driver."""
    containers = template.get("spec", {}).get("containers") or ()
    mounts = [mount for container in containers for mount in container.get("volumeMounts") or ()]
    return any(_below(mount, checkpoints) is not None for mount in mounts)


def _below(mount: Mapping[str, Any], checkpoints: str) -> str | None:
    """Where the checkpoints lie on the volume of a mount; None if they are elsewhere."""
    place, root = PurePosixPath(mount.get("mountPath", "")), PurePosixPath(checkpoints)
    if not root.is_relative_to(place) or place == PurePosixPath("/"):
        return None
    return str(PurePosixPath(mount.get("subPath", ""), root.relative_to(place)))


def pod_manifest(
    plan: PodPlan, driver_id: str, role: str, server: str, owner_uid: str, query_id: str | None = None
) -> dict[str, Any]:
    """The pod of a driver.

    An init container copies token and address out of the Secret into memory, so that the driver can delete
    the token as soon as it has read it: code of users that runs in it later finds none.

    Args:
        plan: what all pods have in common.
        driver_id: of the driver.
        role: of the driver.
        server: id of the server.
        owner_uid: of the service account that owns the pod.
        query_id: of the query whose checkpoints alone a dedicated driver mounts, if the plan says so.
    """
    memory = plan.shared_memory if role == "shared" and plan.shared_memory else plan.memory
    own = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod_name(driver_id),
            "labels": {**plan.labels(), DRIVER_LABEL: driver_id, SERVER_LABEL: server},
            "ownerReferences": [_owned_by("ServiceAccount", plan.service_account, owner_uid)],
        },
        "spec": {
            "restartPolicy": "Never",
            "serviceAccountName": plan.service_account,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "initContainers": [_token_copier(plan)],
            "containers": [_driver(plan, driver_id, role)],
            "volumes": [
                {"name": "leat-given", "secret": {"secretName": pod_name(driver_id), "defaultMode": 0o440}},
                {"name": "leat-own", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
                {"name": "leat-work", "emptyDir": {}},
                {"name": "leat-tmp", "emptyDir": {}},
            ],
        },
    }
    usual = {
        "spec": {
            "terminationGracePeriodSeconds": 60,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": _USER,
                "runAsGroup": _USER,
                "fsGroup": _USER,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [
                {
                    "name": CONTAINER,
                    "resources": {
                        "requests": {"cpu": plan.cpu, "memory": memory},
                        "limits": {"memory": memory},
                    },
                }
            ],
        }
    }
    found: dict[str, Any] = merged(merged(usual, plan.template), own)
    if plan.checkpoints and role != "shared":
        _narrow(plan, found["spec"], query_id)
    return found


def _narrow(plan: PodPlan, spec: dict[str, Any], query_id: str | None) -> None:
    """Mount the checkpoints of one query in place of all; without a query none."""
    for container in spec["containers"]:
        kept = []
        for mount in container.get("volumeMounts", []):
            below = _below(mount, plan.checkpoints)
            if below is None:
                kept.append(mount)
            elif query_id is not None:
                own = folder_of(below, query_id).removeprefix("./")
                place = folder_of(plan.checkpoints, query_id)
                kept.append({**mount, "mountPath": place, "subPath": own})
        container["volumeMounts"] = kept


def _token_copier(plan: PodPlan) -> dict[str, Any]:
    copy = f"umask 077 && cp {_GIVEN}/token {_GIVEN}/url {_RUN}/"
    return {
        "name": "token",
        "image": plan.image,
        "command": ["sh", "-c", copy],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "64Mi"}},
        "securityContext": _restricted(),
        "volumeMounts": [
            {"name": "leat-given", "mountPath": _GIVEN, "readOnly": True},
            {"name": "leat-own", "mountPath": _RUN},
        ],
    }


def _driver(plan: PodPlan, driver_id: str, role: str) -> dict[str, Any]:
    argv = ["tini", "--", "python", "-m", "leatstream_jobs", "--driver-id", driver_id, "--role", role]
    argv += ["--url-file", f"{_RUN}/url", "--token-file", f"{_RUN}/token", "--slots", str(plan.slots)]
    argv += ["--work-dir", f"{_WORK}/work", "--orphan-seconds", f"{plan.orphan_seconds:g}"]
    argv += ["--stop-seconds", f"{plan.stop_seconds:g}"]
    if plan.warm_up_kafka:
        argv += ["--warm-up-kafka", plan.warm_up_kafka]
    own = {"shared": plan.shared, "dedicated": plan.dedicated}.get(role, {})
    more = {**({} if role == "analyzer" else plan.cluster), **own}
    environment = {**plan.environment, **more, DRIVER_MARK: driver_id}
    return {
        "name": CONTAINER,
        "image": plan.image,
        "command": argv,
        "env": [{"name": key, "value": value} for key, value in sorted(environment.items())],
        "securityContext": _restricted(),
        "volumeMounts": [
            {"name": "leat-own", "mountPath": _RUN},
            {"name": "leat-work", "mountPath": _WORK},
            {"name": "leat-tmp", "mountPath": "/tmp"},  # noqa: S108 - the pod's own
        ],
    }


def _restricted() -> dict[str, Any]:
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def secret_manifest(plan: PodPlan, driver_id: str, token: str, url: str, pod_uid: str) -> dict[str, Any]:
    """The Secret of a driver; Kubernetes deletes it with the pod."""
    name = pod_name(driver_id)
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": name,
            "labels": {**plan.labels(), DRIVER_LABEL: driver_id},
            "ownerReferences": [_owned_by("Pod", name, pod_uid)],
        },
        "immutable": True,
        "type": "Opaque",
        "stringData": {"token": token, "url": url},
    }


def _owned_by(kind: str, name: str, uid: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "name": name, "uid": uid}


def merged(base: Any, more: Any) -> Any:
    """``more`` over ``base``: objects by key, lists of named things by name, other lists appended."""
    if isinstance(base, Mapping) and isinstance(more, Mapping):
        return {
            key: merged(base[key], more[key]) if key in base and key in more else more.get(key, base.get(key))
            for key in [*base, *(k for k in more if k not in base)]
        }
    if isinstance(base, list) and isinstance(more, list):
        names = [item.get("name") for item in base if isinstance(item, Mapping)]
        if not all(names) or len(names) != len(base):
            return [*base, *more]
        by_name = {item["name"]: item for item in base}
        for item in more:
            by_name[item["name"]] = merged(by_name.get(item["name"], {}), item)
        return list(by_name.values())
    return more

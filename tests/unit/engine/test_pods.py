"""What pods are like, and what the launcher makes of a cluster's answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kube_double import faults

from leatstream.engine.pod_manifests import PodPlan, pod_manifest, read_template, secret_manifest
from leatstream.engine.pods import why_waiting
from leatstream.errors import StackError

TEMPLATE = """
metadata: {labels: {team: streams, app.kubernetes.io/name: other}}
spec:
  nodeSelector: {disk: fast}
  terminationGracePeriodSeconds: 20
  volumes: [{name: checkpoints, persistentVolumeClaim: {claimName: checkpoints}}]
  containers:
    - name: driver
      resources: {limits: {memory: 4Gi}}
      env: [{name: AWS_REGION, value: eu-west-1}]
      volumeMounts: [{name: checkpoints, mountPath: /checkpoints}]
"""


def plan(**more: Any) -> PodPlan:
    usual = {
        "image": "leatstream:1",
        "service_account": "drivers",
        "environment": {"LEATSTREAM_DRIVER_MEMORY": "512m"},
        "slots": 4,
    }
    return PodPlan(**{**usual, **more})


def pod(role: str = "dedicated", **more: Any) -> dict[str, Any]:
    return pod_manifest(plan(**more), "drv_1", role, "srv_1", "uid-1")


def test_manifests_are_what_kubernetes_knows() -> None:
    assert faults(pod()) == []
    assert faults(secret_manifest(plan(), "drv_1", "t", "http://a", "uid-2")) == []
    assert faults(pod() | {"spek": {}}) != [], "the check is strict"


def test_a_pod_shows_no_token_and_has_no_rights() -> None:
    secret = secret_manifest(plan(), "drv_1", "the-token", "http://server", "uid-2")
    assert secret["stringData"] == {"token": "the-token", "url": "http://server"}
    assert secret["metadata"]["ownerReferences"][0] | {"name": ""} == {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "",
        "uid": "uid-2",
    }
    found = pod()
    assert found["spec"]["automountServiceAccountToken"] is False
    assert found["spec"]["volumes"][0]["secret"]["secretName"] == found["metadata"]["name"]
    mounts = {m["name"] for m in found["spec"]["containers"][0]["volumeMounts"]}
    assert "leat-given" not in mounts, "only the first container sees the Secret"


def test_nothing_in_a_pod_can_be_written_over() -> None:
    spec = pod()["spec"]
    for container in spec["initContainers"] + spec["containers"]:
        assert container["securityContext"]["readOnlyRootFilesystem"] is True, container["name"]
    kept = {volume["name"] for volume in spec["volumes"] if "emptyDir" in volume}
    writable = {m["mountPath"] for m in spec["containers"][0]["volumeMounts"] if m["name"] in kept}
    command = spec["containers"][0]["command"]
    work = Path(command[command.index("--work-dir") + 1])
    assert "/tmp" in writable
    assert any(work.is_relative_to(place) for place in writable)


def test_only_pods_that_run_queries_are_told_of_a_cluster() -> None:
    cluster = {"LEATSTREAM_SPARK_CONF": "{}"}
    names = {
        role: {e["name"] for e in pod(role, cluster=cluster)["spec"]["containers"][0]["env"]}
        for role in ("analyzer", "dedicated")
    }
    assert "LEATSTREAM_SPARK_CONF" in names["dedicated"]
    assert "LEATSTREAM_SPARK_CONF" not in names["analyzer"]


def test_the_pod_of_a_shared_driver_has_the_memory_of_many() -> None:
    more = {"shared": {"LEATSTREAM_DRIVER_MEMORY": "2g"}, "shared_memory": "3Gi"}
    found = {}
    for role in ("dedicated", "shared"):
        driver = pod(role, **more)["spec"]["containers"][0]
        heap = next(e["value"] for e in driver["env"] if e["name"] == "LEATSTREAM_DRIVER_MEMORY")
        found[role] = heap, driver["resources"]["limits"]["memory"], driver["resources"]["requests"]["memory"]
    assert found == {"dedicated": ("512m", "1536Mi", "1536Mi"), "shared": ("2g", "3Gi", "3Gi")}


def test_a_template_adds_and_may_not_take_away(tmp_path: Path) -> None:
    (tmp_path / "pod.yaml").write_text(TEMPLATE)
    found = pod(template=read_template(str(tmp_path / "pod.yaml")))
    assert faults(found) == []
    spec, driver = found["spec"], found["spec"]["containers"][0]
    assert len(spec["containers"]) == 1
    assert spec["nodeSelector"] == {"disk": "fast"}
    assert spec["terminationGracePeriodSeconds"] == 20
    assert driver["resources"] == {"requests": {"cpu": "1", "memory": "1536Mi"}, "limits": {"memory": "4Gi"}}
    assert {"checkpoints", "leat-given"} < {v["name"] for v in spec["volumes"]}
    assert {"checkpoints", "leat-own"} < {m["name"] for m in driver["volumeMounts"]}
    assert {"AWS_REGION", "LEATSTREAM_DRIVER_MEMORY"} < {e["name"] for e in driver["env"]}
    labels = found["metadata"]["labels"]
    assert (labels["team"], labels["app.kubernetes.io/name"]) == ("streams", "leatstream-driver")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("spec: {restartPolicy: Always}", "spec.restartPolicy"),
        ("spec: {containers: [{name: other}]}", "container other"),
        ("kind: Deployment\nspec: {}", "no Pod"),
        ("[", "cannot be read"),
    ],
)
def test_a_template_that_cannot_be_used_is_refused(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "pod.yaml").write_text(text)
    with pytest.raises(StackError, match=told):
        read_template(str(tmp_path / "pod.yaml"))


def test_why_a_pod_does_not_start_is_told() -> None:
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
    unschedulable = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/3 nodes",
    }
    status = {"initContainerStatuses": [{"state": waiting}], "conditions": [unschedulable]}
    assert why_waiting({"status": status}) == "ImagePullBackOff: no such image\nUnschedulable: 0/3 nodes"
    assert why_waiting({"status": {"phase": "Pending"}}) == ""
    assert json.dumps(status)


def mounted(found: dict[str, Any]) -> list[tuple[str, str | None]]:
    """Where a pod's driver mounts the volume of checkpoints, and which part of it."""
    mounts = found["spec"]["containers"][0]["volumeMounts"]
    return [(m["mountPath"], m.get("subPath")) for m in mounts if m["name"] == "checkpoints"]


def test_a_pod_mounts_the_checkpoints_of_its_query_alone(tmp_path: Path) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text(TEMPLATE)
    own = plan(template=read_template(str(file)), checkpoints="/checkpoints")
    found = pod_manifest(own, "drv_1", "dedicated", "srv_1", "uid-1", "qry_1")
    assert faults(found) == []
    assert mounted(found) == [("/checkpoints/queries/qry_1", "queries/qry_1")]
    assert mounted(pod_manifest(own, "drv_1", "analyzer", "srv_1", "uid-1")) == []
    # No function of a user runs there, and its queries come and go.
    assert mounted(pod_manifest(own, "drv_1", "shared", "srv_1", "uid-1")) == [("/checkpoints", None)]
    file.write_text(TEMPLATE.replace("mountPath: /checkpoints", "mountPath: /checkpoints/, subPath: streams"))
    below = plan(template=read_template(str(file)), checkpoints="/checkpoints")
    found = pod_manifest(below, "drv_1", "dedicated", "srv_1", "uid-1", "qry_1")
    assert mounted(found) == [("/checkpoints/queries/qry_1", "streams/queries/qry_1")]
    deeper = plan(template=read_template(str(file)), checkpoints="/checkpoints/of/all")
    found = pod_manifest(deeper, "drv_1", "dedicated", "srv_1", "uid-1", "qry_1")
    assert mounted(found) == [("/checkpoints/of/all/queries/qry_1", "streams/of/all/queries/qry_1")]
    whole = plan(template=read_template(str(file)))
    assert mounted(pod_manifest(whole, "drv_1", "dedicated", "srv_1", "uid-1", "qry_1")) == [
        ("/checkpoints/", "streams")
    ]

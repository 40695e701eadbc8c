"""The pod launcher and the chart's Role against a real kube-apiserver, by hand: CI has none.

    python tests/manual/real_apiserver.py --etcd PATH --apiserver PATH

Both programs can be built from their Go modules; docs/deploy.md tells how. There is no node: nothing runs in the pods.
The node's part, saying that a pod runs, has ended, or is gone, is played here over the API.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from leatstream.dev.ports import free_ports
from leatstream.engine.kubernetes_api import KubernetesAddress, KubernetesApi
from leatstream.engine.pod_manifests import PodPlan, pod_name
from leatstream.engine.pods import PodLauncher
from leatstream.errors import EngineError

TOP = Path(__file__).resolve().parents[2]
NAMESPACE = "streams"


class Admin:
    """Calls of the cluster's administrator, who also plays the node."""

    def __init__(self, url: str, token: str, ca: Path) -> None:
        self.url, self.token = url, token
        self.context = ssl.create_default_context(cafile=str(ca))

    def call(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
        """One call; its answer."""
        request = urllib.request.Request(
            self.url + path, json.dumps(body).encode() if body is not None else None, method=method
        )
        request.add_header("Authorization", f"Bearer {self.token}")
        request.add_header("Content-Type", kind)
        with urllib.request.urlopen(request, timeout=20, context=self.context) as answer:
            return json.load(answer)

    def phase(self, pod: str, phase: str) -> None:
        """Say what has become of a pod."""
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}/status"
        self.call("PATCH", path, {"status": {"phase": phase}}, "application/merge-patch+json")

    def bind(self, pod: str) -> None:
        """Give a pod to a node, so that its end has to be confirmed by that."""
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod},
            "target": {"name": "node-1"},
        }
        self.call("POST", f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}/binding", body)

    def confirm(self, pod: str) -> None:
        """As the node: wait until the pod is to end, then say that it has."""
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}"
        while "deletionTimestamp" not in self.call("GET", path)["metadata"]:
            time.sleep(0.1)
        time.sleep(1)
        self.call("DELETE", path, {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0})


@contextlib.contextmanager
def cluster(etcd: str, apiserver: str, place: Path) -> Iterator[Admin]:
    """An API server with RBAC and its usual admission."""
    store, peer, port = free_ports(3)
    token = uuid.uuid4().hex
    (place / "tokens.csv").write_text(f"{token},admin,admin,system:masters\n")
    subprocess.run(
        ["openssl", "genrsa", "-out", str(place / "sa.key"), "2048"], check=True, capture_output=True
    )
    here = f"http://127.0.0.1:{store}"
    commands = [
        f"{etcd} --data-dir {place}/etcd --listen-client-urls {here} --advertise-client-urls {here}"
        f" --listen-peer-urls http://127.0.0.1:{peer} --log-level error",
        f"{apiserver} --etcd-servers {here} --secure-port {port} --bind-address 127.0.0.1"
        f" --cert-dir {place}/certs --authorization-mode RBAC --token-auth-file {place}/tokens.csv"
        " --service-cluster-ip-range 10.0.0.0/24 --service-account-issuer https://leatstream.test"
        f" --service-account-key-file {place}/sa.key --service-account-signing-key-file {place}/sa.key",
    ]
    processes = []
    try:
        for i, command in enumerate(commands):
            with (place / f"{i}.log").open("wb") as log:
                processes.append(subprocess.Popen(command.split(), stdout=log, stderr=log))
        deadline = time.monotonic() + 180
        while True:
            assert time.monotonic() < deadline, (place / "1.log").read_text()[-3000:]
            with contextlib.suppress(OSError):
                admin = Admin(f"https://127.0.0.1:{port}", token, place / "certs" / "apiserver.crt")
                admin.context.check_hostname = False
                admin.call("GET", "/api/v1/namespaces/default")
                break
            time.sleep(0.5)
        yield admin
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait()


def install(admin: Admin) -> str:
    """Make the namespace and the chart's accounts and rights; a token of the server's account."""
    level = {"pod-security.kubernetes.io/enforce": "restricted"}
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": level}}
    admin.call("POST", "/api/v1/namespaces", space)
    helm = shutil.which("helm") or str(Path.home() / "go" / "bin" / "helm")
    values = ["--set", "secret.token=t,secret.catalogUrl=postgresql://h/d,launcher=kubernetes"]
    chart = [
        helm,
        "template",
        "streams",
        str(TOP / "deploy" / "helm" / "leatstream"),
        "-n",
        NAMESPACE,
        *values,
    ]
    rendered = subprocess.run(chart, check=True, capture_output=True, text=True).stdout
    paths = {
        "ServiceAccount": f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts",
        "Role": f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/roles",
        "RoleBinding": f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/rolebindings",
        "Deployment": f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments",
        "ConfigMap": f"/api/v1/namespaces/{NAMESPACE}/configmaps",
    }
    made = []
    for document in yaml.safe_load_all(rendered):
        if document and document["kind"] in paths:
            admin.call("POST", paths[document["kind"]], document)
            made.append(f"{document['kind']}/{document['metadata']['name']}")
    print("installed", ", ".join(made))
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    name = next(m.split("/")[1] for m in made if m.startswith("Deployment/"))
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{name}/token"
    return str(admin.call("POST", path, asked)["status"]["token"])


def main() -> int:
    """Run every step; the exit status."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--etcd", required=True)
    parser.add_argument("--apiserver", required=True)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as directory,
        cluster(options.etcd, options.apiserver, Path(directory)) as admin,
    ):
        place = Path(directory)
        (place / "token").write_text(install(admin))
        address = KubernetesAddress(
            url=admin.url,
            namespace=NAMESPACE,
            token_file=place / "token",
            ca_file=place / "certs" / "apiserver.crt",
        )
        plan = PodPlan(
            image="leatstream:test",
            service_account="streams-leatstream-driver",
            environment={"LEATSTREAM_DRIVER_MEMORY": "512m"},
            slots=4,
        )

        def opened() -> PodLauncher:
            return PodLauncher(KubernetesApi(address), plan, "srv_1", "http://10.0.0.9:8585", place / "logs")

        try_out(opened, admin)
    print("all steps passed")
    return 0


def try_out(opened: Any, admin: Admin) -> None:
    """The life of two drivers, as far as an API server without a node goes."""
    launcher = opened()
    launcher.check()
    launcher.start("drv_1", "dedicated", "secret-of-drv-1")
    path = f"/api/v1/namespaces/{NAMESPACE}"
    pod = admin.call("GET", f"{path}/pods/{pod_name('drv_1')}")
    secret = admin.call("GET", f"{path}/secrets/{pod_name('drv_1')}")
    assert "secret-of-drv-1" not in json.dumps(pod)
    assert secret["metadata"]["ownerReferences"][0]["uid"] == pod["metadata"]["uid"]
    assert pod["metadata"]["ownerReferences"][0]["kind"] == "ServiceAccount"
    print("a pod and its Secret were admitted under the level 'restricted'")
    launcher.start("drv_1", "dedicated", "another")
    assert launcher.is_alive("drv_1", 0)
    assert opened().is_alive("drv_1", 0), "found by a server that has restarted"
    assert not launcher.is_alive("drv_none", 0)
    admin.bind(pod_name("drv_1"))
    admin.phase(pod_name("drv_1"), "Running")
    node = threading.Thread(target=admin.confirm, args=(pod_name("drv_1"),))
    node.start()
    began = time.monotonic()
    launcher.end("drv_1", 0, grace=5)
    assert time.monotonic() - began > 0.9, "it has waited for the node's word"
    node.join()
    assert not launcher.is_alive("drv_1", 0)
    print("a pod's end was waited for")
    launcher.start("drv_2", "analyzer", "secret-of-drv-2")
    admin.bind(pod_name("drv_2"))
    admin.phase(pod_name("drv_2"), "Failed")
    assert not opened().is_alive("drv_2", 0)
    launcher.end("drv_2", 0, grace=0)
    launcher.end("drv_2", 0, grace=0)
    print("a dead pod was taken away")
    api = launcher._api
    for kind in ("secrets", "configmaps"):
        with pytest.raises(EngineError, match="403"):
            api.list(kind, {})
    print("the server's account may do no more than it needs: Secrets cannot be read")


if __name__ == "__main__":
    sys.exit(main())

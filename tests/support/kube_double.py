"""A double of a Kubernetes cluster with one node: it checks manifests by Kubernetes' own schemas and runs pods.

A pod's containers are processes of this machine; the paths of its volumes lie below the pod's own directory. What
it answers was compared with a real API server: ``tests/manual/real_apiserver.py``.
"""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jsonschema

SCHEMAS = Path(__file__).parents[1] / "fixtures" / "kubernetes" / "core_v1.json"
KINDS = {"pods": "Pod", "secrets": "Secret", "serviceaccounts": "ServiceAccount"}


def faults(manifest: Mapping[str, Any]) -> list[str]:
    """What Kubernetes' published schema says against a manifest; unknown fields too."""
    schemas = json.loads(SCHEMAS.read_text("utf-8"))
    kind = f"io.k8s.api.core.v1.{manifest['kind']}"
    validator = jsonschema.Draft202012Validator({**schemas, "$ref": f"#/definitions/{kind}"})
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(manifest)]


class KubeDouble:
    """The API server and the node's agent. ``token`` is what callers must show."""

    def __init__(self, place: Path, *accounts: str) -> None:
        self.place = place
        self.token = uuid.uuid4().hex
        self.lock = threading.RLock()
        self.objects: dict[tuple[str, str], dict[str, Any]] = {}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.calls: list[str] = []
        for account in accounts:
            self.create("serviceaccounts", {"kind": "ServiceAccount", "metadata": {"name": account}})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_for(self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        """Of the API server."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        """End all pods and stop serving."""
        for process in self.processes.values():
            process.kill()
            process.wait()
        self._server.shutdown()
        self._server.server_close()

    def create(self, kind: str, manifest: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Make an object, and begin what follows from it."""
        name = manifest["metadata"]["name"]
        with self.lock:
            if (kind, name) in self.objects:
                return 409, _status(409, f'{kind} "{name}" already exists')
            found = json.loads(json.dumps(manifest))
            now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
            found["metadata"] |= {"uid": str(uuid.uuid4()), "creationTimestamp": now}
            if kind == "pods":
                found["status"] = {"phase": "Pending"}
            for key, text in found.pop("stringData", {}).items():
                found.setdefault("data", {})[key] = base64.b64encode(text.encode()).decode()
            self.objects[kind, name] = found
            self._schedule()
            return 201, found

    def delete(self, kind: str, name: str, grace: float) -> tuple[int, dict[str, Any]]:
        """Have an object go; a pod whose process runs goes when that has ended."""
        with self.lock:
            found = self.objects.get((kind, name))
            if found is None:
                return 404, _status(404, f'{kind} "{name}" not found')
            process = self.processes.get(name) if kind == "pods" else None
            if process is None or process.poll() is not None:
                self._remove(kind, name)
                return 200, found
            found["metadata"]["deletionTimestamp"] = datetime.now(UTC).isoformat()
        threading.Thread(target=self._terminate, args=(name, process, grace), daemon=True).start()
        return 200, found

    def _remove(self, kind: str, name: str) -> None:
        gone = self.objects.pop((kind, name), None)
        uid = gone["metadata"]["uid"] if gone else ""
        for key, other in list(self.objects.items()):
            if uid in [owner["uid"] for owner in other["metadata"].get("ownerReferences", [])]:
                self._remove(*key)

    def _terminate(self, name: str, process: subprocess.Popen[bytes], grace: float) -> None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(grace)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        with self.lock:
            self._remove("pods", name)

    def _schedule(self) -> None:
        """Start the pods whose Secrets are there."""
        for (kind, name), pod in list(self.objects.items()):
            wanted = [
                v["secret"]["secretName"] for v in pod.get("spec", {}).get("volumes", []) if "secret" in v
            ]
            if (
                kind != "pods"
                or name in self.processes
                or not all(("secrets", s) in self.objects for s in wanted)
            ):
                continue
            self._start(name, pod)

    def _start(self, name: str, pod: dict[str, Any]) -> None:
        root = self.place / name
        volumes: dict[str, Path] = {}
        for volume in pod["spec"]["volumes"]:
            if "hostPath" in volume:
                volumes[volume["name"]] = Path(volume["hostPath"]["path"])
                continue
            directory = volumes[volume["name"]] = root / volume["name"]
            directory.mkdir(parents=True)
            if "secret" in volume:
                for key, text in self.objects["secrets", volume["secret"]["secretName"]]["data"].items():
                    (directory / key).write_bytes(base64.b64decode(text))
        for first in pod["spec"].get("initContainers", []):
            subprocess.run(_command(first, volumes), check=True, timeout=20)
        container = pod["spec"]["containers"][0]
        kept = {k: v for k, v in os.environ.items() if not k.startswith("LEATSTREAM_")}
        environment = {**kept, **{e["name"]: e["value"] for e in container.get("env", [])}}
        with (root / "log").open("wb") as log:
            self.processes[name] = subprocess.Popen(
                _command(container, volumes), stdout=log, stderr=log, env=environment, start_new_session=True
            )
        threading.Thread(target=self._watch, args=(name, pod), daemon=True).start()

    def _watch(self, name: str, pod: dict[str, Any]) -> None:
        pod["status"]["phase"] = "Running"
        code = self.processes[name].wait()
        now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        ended = {"terminated": {"exitCode": code, "finishedAt": now}}
        pod["status"]["containerStatuses"] = [{"name": "driver", "state": ended}]
        pod["status"]["phase"] = "Succeeded" if code == 0 else "Failed"

    def answer(self, method: str, path: str, query: dict[str, list[str]], body: Any) -> tuple[int, Any]:
        """What the API server says to one call."""
        self.calls.append(f"{method} {path}")
        found = re.fullmatch(r"/api/v1/namespaces/streams/([a-z]+)(?:/([a-z0-9.-]+))?(/log)?", path)
        if found is None or found[1] not in KINDS:
            return 404, _status(404, "the server could not find the requested resource")
        kind, name, log = found[1], found[2], found[3]
        if method == "POST":
            wrong = faults(body)
            return (422, _status(422, "; ".join(wrong))) if wrong else self.create(kind, body)
        if method == "DELETE":
            return self.delete(kind, name, body["gracePeriodSeconds"])
        with self.lock:
            if name is None:
                pairs = [pair.split("=") for pair in query["labelSelector"][0].split(",")]
                items = [o for (k, _), o in self.objects.items() if k == kind and _labelled(o, pairs)]
                return 200, json.loads(json.dumps({"kind": f"{KINDS[kind]}List", "items": items}))
            if (kind, name) not in self.objects:
                return 404, _status(404, f'{kind} "{name}" not found')
            if log:
                file = self.place / name / "log"
                return (200, file.read_text("utf-8")) if file.exists() else (400, _status(400, "is waiting"))
            return 200, json.loads(json.dumps(self.objects[kind, name]))


def _labelled(found: dict[str, Any], pairs: list[list[str]]) -> bool:
    labels = found["metadata"].get("labels", {})
    return all(labels.get(key) == value for key, value in pairs)


def _command(container: dict[str, Any], volumes: dict[str, Path]) -> list[str]:
    """The container's command with the paths of its volumes as they are on this machine."""
    places = {mount["mountPath"]: str(volumes[mount["name"]]) for mount in container["volumeMounts"]}
    # In one pass, the longest first: this machine's paths may begin as the pod's own do, such as with /tmp.
    mounted = re.compile("|".join(map(re.escape, sorted(places, key=len, reverse=True))))
    command = [part for part in container["command"] if part not in ("tini", "--")]
    there = [mounted.sub(lambda found: places[found[0]], part) for part in command]
    return [sys.executable if part == "python" else part for part in there]


def _status(code: int, message: str) -> dict[str, Any]:
    return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code}


def _handler_for(cluster: KubeDouble) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def _do(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            where = urlsplit(self.path)
            if self.headers["Authorization"] == f"Bearer {cluster.token}":
                status, answer = cluster.answer(self.command, where.path, parse_qs(where.query), body)
            else:
                status, answer = 401, _status(401, "Unauthorized")
            data = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_DELETE = _do

        def log_message(self, *_arguments: Any) -> None:
            pass

    return Handler

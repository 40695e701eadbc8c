"""The few calls of the Kubernetes API that drivers in pods need, over plain HTTP."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leatstream.errors import EngineError, StackError, sentence

if TYPE_CHECKING:
    import httpx2

_MOUNTED = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_TIMEOUT = 10.0
_AWAY = 5.0  # seconds that one which has let a call wait in vain is not asked again
_LOG_LINES = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesAddress:
    """Where the API server is and who we are to it.

    Attributes:
        url: of the API server.
        namespace: where pods are made.
        token_file: holds our bearer token; read for every call, as Kubernetes renews it.
        ca_file: the authority that signed the API server's certificate.
    """

    url: str
    namespace: str
    token_file: Path
    ca_file: Path | None


def find_address(url: str, namespace: str, token_file: str, ca_file: str) -> KubernetesAddress:
    """The address as given, else that of the cluster in whose pod this process runs.

    Raises:
        StackError: ``part-failed``, it is unknown.
    """
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    inside = f"https://[{host}]:{port}" if host and ":" in host else f"https://{host}:{port}"
    mounted = _MOUNTED / "namespace"
    namespace = namespace or (mounted.read_text(encoding="utf-8").strip() if mounted.exists() else "")
    if not (url or host) or not namespace:
        raise StackError(
            "part-failed",
            "The launcher kubernetes does not find its cluster: this process runs in no pod.",
            hint="Set LEATSTREAM_KUBERNETES_URL, …_NAMESPACE, …_TOKEN_FILE and …_CA_FILE.",
        )
    authority = Path(ca_file) if ca_file else _MOUNTED / "ca.crt"
    return KubernetesAddress(
        url=url or inside,
        namespace=namespace,
        token_file=Path(token_file) if token_file else _MOUNTED / "token",
        ca_file=authority if ca_file or authority.exists() else None,
    )


class KubernetesApi:
    """Calls in one namespace."""

    def __init__(self, address: KubernetesAddress) -> None:
        self._address = address
        self._lock = threading.Lock()
        self._client: httpx2.Client | None = None
        self._silent_since = float("-inf")

    def create(self, kind: str, manifest: Mapping[str, Any]) -> dict[str, Any] | None:
        """Make an object; None if there is one of its name."""
        return self._call("POST", kind, body=manifest, none=409)

    def find(self, kind: str, name: str) -> dict[str, Any] | None:
        """An object, or None."""
        return self._call("GET", f"{kind}/{name}", none=404)

    def list(self, kind: str, labels: Mapping[str, str]) -> list[dict[str, Any]]:
        """Objects with all of these labels."""
        selector = ",".join(f"{key}={value}" for key, value in labels.items())
        found = self._call("GET", kind, params={"labelSelector": selector}) or {}
        return list(found.get("items") or [])

    def delete(self, kind: str, name: str, grace: int) -> None:
        """Have an object go, its dependents too; nothing happens if it is not there."""
        body = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "gracePeriodSeconds": grace,
            "propagationPolicy": "Background",
        }
        self._call("DELETE", f"{kind}/{name}", body=body, none=404)

    def log(self, pod: str, container: str) -> str | None:
        """The last lines that a container has written; None if they are not to be had."""
        params = {"container": container, "tailLines": str(_LOG_LINES)}
        answer = self._send("GET", f"pods/{pod}/log", params=params)
        return answer.text if answer.status_code == 200 else None

    def _call(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        params: Mapping[str, str] | None = None,
        none: int | None = None,
    ) -> dict[str, Any] | None:
        answer = self._send(method, path, body=body, params=params)
        if answer.status_code == none:
            return None
        if answer.status_code >= 400:
            raise _refused(method, path, answer)
        found: dict[str, Any] = answer.json()
        return found

    def _send(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        params: Mapping[str, str] | None = None,
    ) -> httpx2.Response:
        import httpx2

        address = self._address
        if time.monotonic() - self._silent_since < _AWAY:
            # Starting or ending many drivers would wait for each of them, and block everything else.
            raise _unreachable(address.url, "it has not answered in time")
        url = f"{address.url.rstrip('/')}/api/v1/namespaces/{address.namespace}/{path}"
        try:
            token = address.token_file.read_text(encoding="utf-8").strip()
            headers = {"Authorization": f"Bearer {token}"}
            return self._http().request(method, url, json=body, params=params, headers=headers)
        except OSError as error:
            what = error.strerror or type(error).__name__
        except httpx2.HTTPError as error:
            what = type(error).__name__
            if isinstance(error, httpx2.TimeoutException):
                self._silent_since = time.monotonic()
        raise _unreachable(address.url, what)

    def _http(self) -> httpx2.Client:
        import ssl

        import httpx2

        with self._lock:
            if self._client is None:
                ca_file = self._address.ca_file
                verify = ssl.create_default_context(cafile=str(ca_file)) if ca_file is not None else True
                self._client = httpx2.Client(timeout=_TIMEOUT, verify=verify, trust_env=False)
            return self._client


def _unreachable(url: str, why: str) -> EngineError:
    return EngineError(
        "engine-unavailable",
        sentence(f"The Kubernetes API at {url} cannot be reached: {why}"),
        hint="Check the address and the network; leatstream tries again, and running drivers continue.",
    )


def _refused(method: str, path: str, answer: httpx2.Response) -> EngineError:
    try:
        said = str(answer.json().get("message", ""))
    except ValueError:
        said = "it gives no reason"
    hint = None
    if answer.status_code in (401, 403):
        hint = "Give the server's service account the rights of the chart's Role (deploy/helm/leatstream)."
    return EngineError(
        "engine-unavailable",
        sentence(f"Kubernetes answered {answer.status_code} to {method} {path}: {said[:500]}"),
        hint=hint,
    )

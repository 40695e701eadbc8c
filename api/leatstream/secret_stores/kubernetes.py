"""Secrets of a Kubernetes cluster, with the token of the server's service account."""

from __future__ import annotations

import base64
import binascii
import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

from leatstream.model.outside_secrets import OutsideReference
from leatstream.secret_stores.calls import Calls
from leatstream.secret_stores.settings import Kubernetes, permits
from leatstream.secret_stores.values import credential, decoded, filled, missing, refused

_POD_AUTHORITY = Path("/var/run/secrets/kubernetes.io/serviceaccount/ca.crt")


class KubernetesSecrets:
    """Values of Secrets (``ports.SecretProvider``)."""

    def __init__(self, settings: Kubernetes) -> None:
        """Call nothing yet."""
        self._settings = settings
        authority = settings.ca_file or (_POD_AUTHORITY if _POD_AUTHORITY.exists() else None)
        url = settings.url or _of_pod()
        self._calls = Calls("Kubernetes", url, authority) if url else None

    def permits(self, reference: OutsideReference) -> str | None:
        """None if the namespace and the name are permitted."""
        namespace = reference.path.partition("/")[0]
        # A pattern that ends within a namespace would permit namespaces with similar names too.
        own = [one for one in self._settings.allow if one.partition("/")[0] == namespace]
        if permits(own, reference.path):
            return None
        allowed = ", ".join(self._settings.allow)
        return f"The Secret {reference.path} of Kubernetes is not permitted, only {allowed}."

    def read(self, reference: OutsideReference) -> str:
        """The value of the reference's key."""
        namespace, _, name = reference.path.partition("/")
        where = f"Kubernetes' Secret {reference.path}"
        if self._calls is None:
            hint = "Set url, token_file and ca_file of k8s in LEATSTREAM_OUTSIDE_SECRETS."
            raise refused("The server does not run in a pod, so it has no address of a Kubernetes API", hint)
        headers = {"Authorization": f"Bearer {credential(self._settings.token_file, 'Kubernetes')}"}
        path = f"/api/v1/namespaces/{quote(namespace)}/secrets/{quote(name)}"
        status, answer = self._calls.send("GET", path, headers)
        if status == 404:
            raise missing(f"{where} does not exist")
        if status != 200:
            said = " ".join(str(answer.get("message") or "").split())[:300]
            hint = "Give the server's service account the right to get this Secret (Role and RoleBinding)."
            raise refused(f"Kubernetes answers {status}: {said or 'it gives no reason'}", hint)
        return _value(answer.get("data"), reference.key or "", where)


def _value(data: Any, key: str, where: str) -> str:
    found = data.get(key) if isinstance(data, dict) else None
    if not isinstance(found, str):
        raise missing(f"{where} has no key {key!r}")
    try:
        raw = base64.b64decode(found, validate=True)
    except binascii.Error:
        raise missing(f"Key {key!r} of {where} is not in base64") from None
    return filled(decoded(raw, f"Key {key!r} of {where}"), f"Key {key!r} of {where}")


def _of_pod() -> str | None:
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        return None
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"

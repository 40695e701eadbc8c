"""HashiCorp Vault and OpenBao: key-value engines of version 1 and 2.

Three calls are needed, so that a client library would be a dependency for little.
"""

from __future__ import annotations

import threading
import time
from typing import Any
from urllib.parse import quote

from leatstream.errors import SecretStoreError
from leatstream.model.outside_secrets import OutsideReference
from leatstream.secret_stores.calls import Calls
from leatstream.secret_stores.settings import Vault, VaultAppRole, VaultToken, permits
from leatstream.secret_stores.values import chosen, credential, missing, refused

_EARLY = 0.8  # share of a token's life after which another one is fetched


class VaultSecrets:
    """Values of key-value engines (``ports.SecretProvider``)."""

    def __init__(self, settings: Vault) -> None:
        """Call nothing yet."""
        self._settings = settings
        self._calls = Calls("Vault", settings.url, settings.ca_file)
        self._lock = threading.Lock()
        self._token, self._token_ends = "", 0.0

    def permits(self, reference: OutsideReference) -> str | None:
        """None if the path is permitted and in an engine that the setting names."""
        if not permits(self._settings.allow, reference.path):
            allowed = ", ".join(self._settings.allow)
            return f"The path {reference.path} of Vault is not permitted, only {allowed}."
        if self._mount(reference) is None:
            mounts = ", ".join(self._settings.mounts)
            return f"The path {reference.path} of Vault is in none of the mounts {mounts}."
        return None

    def read(self, reference: OutsideReference) -> str:
        """The value of the reference's key."""
        mount = self._mount(reference) or ""
        version, rest = self._settings.mounts[mount], reference.path[len(mount) + 1 :]
        place = f"{mount}/data/{rest}" if version == 2 else f"{mount}/{rest}"
        where = f"Vault's {reference.path}"
        status, answer = self._get(f"/v1/{quote(place)}")
        found: Any = answer.get("data")
        if version == 2 and isinstance(found, dict):
            found = found.get("data")
        if status == 404 or (status == 200 and not isinstance(found, dict)):
            raise missing(f"{where} does not exist, or is deleted")
        if status != 200:
            raise _refused(f"the server may not read {reference.path}", status, answer)
        return chosen(found, reference.key or "", where)

    def _mount(self, reference: OutsideReference) -> str | None:
        fitting = [m for m in self._settings.mounts if reference.path.startswith(f"{m}/")]
        return max(fitting, key=len, default=None)

    def _get(self, path: str) -> tuple[int, dict[str, Any]]:
        token, kept = self._login()
        status, answer = self._calls.send("GET", path, self._headers(token))
        if status == 403 and kept:
            # It may have been revoked before its time.
            token, _ = self._login(fresh=True)
            status, answer = self._calls.send("GET", path, self._headers(token))
        return status, answer

    def _login(self, *, fresh: bool = False) -> tuple[str, bool]:
        """A token, and whether it is one from an earlier login."""
        auth = self._settings.auth
        if isinstance(auth, VaultToken):
            return credential(auth.token_file, "Vault"), False
        with self._lock:
            if self._token and not fresh and time.monotonic() < self._token_ends:
                return self._token, True
        if isinstance(auth, VaultAppRole):
            body = {"role_id": auth.role_id, "secret_id": credential(auth.secret_id_file, "Vault")}
        else:
            body = {"role": auth.role, "jwt": credential(auth.token_file, "Vault")}
        path = f"/v1/auth/{quote(auth.mount)}/login"
        status, answer = self._calls.send("POST", path, self._headers(None), body)
        found = answer.get("auth")
        token = found.get("client_token") if isinstance(found, dict) else None
        if status != 200 or not isinstance(found, dict) or not isinstance(token, str):
            raise _refused(f"the login by {auth.method} failed", status, answer)
        lasts = found.get("lease_duration")
        with self._lock:
            self._token = token
            self._token_ends = time.monotonic() + _EARLY * (lasts if isinstance(lasts, int) else 0)
        return token, False

    def _headers(self, token: str | None) -> dict[str, str]:
        headers = {"X-Vault-Request": "true"}
        if token is not None:
            headers["X-Vault-Token"] = token
        if self._settings.namespace is not None:
            headers["X-Vault-Namespace"] = self._settings.namespace
        return headers


def _refused(what: str, status: int, answer: dict[str, Any]) -> SecretStoreError:
    errors = answer.get("errors")
    said = ", ".join(" ".join(str(one).split()) for one in errors)[:300] if isinstance(errors, list) else ""
    hint = "Check the policy of the server's role or token, the mount and the namespace in Vault."
    return refused(f"Vault answers {status}: {what}{f' ({said})' if said else ''}", hint)

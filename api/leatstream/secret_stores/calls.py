"""Calls of the HTTP interfaces of secret stores, within bounds of time and size."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leatstream.secret_stores.values import SECONDS, unreachable

if TYPE_CHECKING:
    import httpx2

_MOST_BYTES = 2_000_000  # Kubernetes keeps 1 MiB of a Secret, in base64 here


class Calls:
    """One server, whose certificate is verified; redirects are not followed and no proxy is asked."""

    def __init__(self, name: str, url: str, ca_file: Path | None) -> None:
        """Call nothing yet.

        Args:
            name: of what is called, for people.
            url: of the server.
            ca_file: authority to trust; None = the machine's.
        """
        self._name, self._url, self._ca_file = name, url, ca_file
        self._client: httpx2.Client | None = None
        self._lock = threading.Lock()

    def send(
        self, method: str, path: str, headers: Mapping[str, str], body: Mapping[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Status and JSON object of the answer; an answer of another form counts as an empty one.

        Args:
            method: GET or POST.
            path: with the first slash, its parts quoted.
            headers: of the request.
            body: that is sent as JSON.

        Raises:
            SecretStoreError: secret-store-unreachable; no header and no body is quoted.
        """
        import httpx2

        try:
            client = self._http()
            with client.stream(method, self._url + path, headers=dict(headers), json=body) as answer:
                text = self._read(answer)
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            why = _why(error)
            raise unreachable(f"{self._name} at {self._url} does not answer: {why}") from None
        if answer.status_code in (408, 412, 429) or answer.status_code >= 500:
            raise unreachable(f"{self._name} at {self._url} answers with status {answer.status_code}")
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = None
        return answer.status_code, found if isinstance(found, dict) else {}

    def _read(self, answer: httpx2.Response) -> bytes:
        text, deadline = b"", time.monotonic() + SECONDS
        for piece in answer.iter_bytes():
            text += piece
            if len(text) > _MOST_BYTES or time.monotonic() > deadline:
                raise unreachable(f"{self._name} at {self._url} sends too much, or too slowly")
        return text

    def _http(self) -> httpx2.Client:
        import httpx2

        with self._lock:
            if self._client is None:
                verify: Any = False
                if self._url.startswith("https:"):  # to read the authorities takes 0.1 s
                    verify = ssl.create_default_context(cafile=str(self._ca_file) if self._ca_file else None)
                self._client = httpx2.Client(timeout=SECONDS, verify=verify, trust_env=False)
            return self._client


def _why(error: Exception) -> str:
    cause = error.strerror if isinstance(error, OSError) else str(error)
    return cause or type(error).__name__

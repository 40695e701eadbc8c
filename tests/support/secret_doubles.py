"""Vault and a Kubernetes API as far as a reader of secrets sees them, with the shapes of their real answers."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class SecretDouble:
    """One server for both.

    Attributes:
        calls: method, path and the headers that matter.
        tokens: of Vault that are accepted.
        logins: body of a login, as JSON, to the token that it gives.
        values: path behind ``/v1/`` to the data of the engine, as its version writes it.
        secrets: ``namespace/name`` to keys and values.
        status: that every answer has instead; 0 = none.
    """

    calls: list[tuple[str, str, str | None]] = field(default_factory=list)
    tokens: set[str] = field(default_factory=set)
    logins: dict[str, str] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    secrets: dict[str, dict[str, str]] = field(default_factory=dict)
    namespace: str | None = None
    status: int = 0
    url: str = ""

    def answer(self, method: str, path: str, headers: Any, body: bytes) -> tuple[int, Any]:
        """What is said to one call."""
        self.calls.append((method, path, headers["X-Vault-Namespace"]))
        if self.status:
            return self.status, {"errors": ["Vault is sealed"]}
        if path.startswith("/api/"):
            return self._cluster(path, headers["Authorization"])
        if path.endswith("/login"):
            return self._login(json.loads(body))
        if headers["X-Vault-Token"] not in self.tokens:
            return 403, {"errors": ["permission denied"]}
        found = self.values.get(path.removeprefix("/v1/"))
        if found is None:
            return 404, {"errors": []}
        return 200, {"request_id": "r", "lease_id": "", "renewable": False, "data": found}

    def _login(self, body: Any) -> tuple[int, Any]:
        token = self.logins.get(json.dumps(body, sort_keys=True))
        if token is None:
            return 400, {"errors": ["invalid role or secret ID"]}
        self.tokens.add(token)
        auth = {"client_token": token, "lease_duration": 3600, "renewable": True, "policies": ["leat"]}
        return 200, {"request_id": "r", "auth": auth, "data": None}

    def _cluster(self, path: str, bearer: str | None) -> tuple[int, Any]:
        _, _, _, _, namespace, _, name = path.split("/")
        if bearer != "Bearer sa-token":
            return 403, {"kind": "Status", "message": f'secrets "{name}" is forbidden', "code": 403}
        found = self.secrets.get(f"{namespace}/{name}")
        if found is None:
            return 404, {"kind": "Status", "message": f'secrets "{name}" not found', "code": 404}
        data = {key: base64.b64encode(value.encode()).decode() for key, value in found.items()}
        return 200, {"kind": "Secret", "apiVersion": "v1", "type": "Opaque", "data": data}


@contextmanager
def secret_double() -> Iterator[SecretDouble]:
    """A server of its own on a free port."""
    double = SecretDouble()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(double))
    server.daemon_threads = True
    double.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield double
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def _handler(double: SecretDouble) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def _do(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, answer = double.answer(self.command, self.path, self.headers, body)
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = _do

        def log_message(self, *_arguments: Any) -> None:
            pass

    return Handler

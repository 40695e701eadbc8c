"""A proxy before a store of a fault run: it passes HTTP requests on, and answers some of them with an error.

An error comes in two forms: the store never got the request (503), or it did what was asked and the answer is
lost (502). The second one is the harder case for a writer.
"""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from leatstream.dev.ports import LOOPBACK

_SECONDS = 60.0  # that the store may take for an answer
_OF_A_CONNECTION = ("connection", "keep-alive", "transfer-encoding", "content-length", "host")
Asked = Callable[[str, str], bool]


class Proxy:
    """A port in front of another one.

    Attributes:
        port: where it listens.
        refused: how many writes, from now on, are answered 503 and not passed on.
        lost: how many are passed on and answered 502.
    """

    def __init__(self, target: int, writes: Asked) -> None:
        """Start it.

        Args:
            target: the port of the store.
            writes: whether a request, by its method and path, is one that may get an error.
        """
        self.refused = self.lost = 0
        self.target, self._writes = target, writes
        self._turn = threading.Lock()
        self._server = ThreadingHTTPServer((LOOPBACK, 0), _Handler)
        self._server.daemon_threads = True
        setattr(self._server, "proxy", self)  # noqa: B010 - the handler looks for it there
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True).start()

    def fate(self, method: str, path: str) -> int:
        """Status of the error that a request gets; 0 for none."""
        with self._turn:
            if not self._writes(method, path):
                return 0
            if self.refused:
                self.refused -= 1
                return 503
            if self.lost:
                self.lost -= 1
                return 502
        return 0

    def close(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one packet for each answer

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        body = self._body()
        proxy: Proxy = getattr(self.server, "proxy")  # noqa: B009
        fate = proxy.fate(self.command, self.path)
        if fate == 503:
            self._reply(fate, {}, b"no healthy upstream")
            return
        headers = {
            name: value for name, value in self.headers.items() if name.lower() not in _OF_A_CONNECTION
        }
        beyond = http.client.HTTPConnection(LOOPBACK, proxy.target, timeout=_SECONDS)
        try:
            beyond.request(self.command, self.path, body, headers)
            answer = beyond.getresponse()
            found = answer.read()
        except (OSError, http.client.HTTPException):
            self._reply(502, {}, b"the store broke the connection")
            return
        finally:
            beyond.close()
        if fate:
            self._reply(fate, {}, b"upstream connect error")
            return
        kept = {name: value for name, value in answer.getheaders() if name.lower() not in _OF_A_CONNECTION}
        self._reply(answer.status, kept, found)

    do_POST = do_PUT = do_DELETE = do_HEAD = do_GET

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _reply(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

"""The loopback address that the browser is sent to when a person has signed in."""

from __future__ import annotations

import hmac
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlsplit

from leatstream.errors import AccessError, StackError

_PATH = "/callback"
_LOOK = 0.1  # seconds between looks for an answer
_SECONDS = 10.0  # that a browser may take for its request


class Redirect:
    """Listens on a loopback port for one redirect."""

    def __init__(self, port: int, issuer: str) -> None:
        """Begin to listen.

        Args:
            port: 0 picks a free one.
            issuer: that the redirect must come from, if it names one.

        Raises:
            StackError: port-taken.
        """
        self._issuer = issuer
        self._answers: list[dict[str, str]] = []
        self._state = ""
        try:
            # Browsers open connections that they do not use: each has a thread, and none is waited for.
            self._server = ThreadingHTTPServer(("127.0.0.1", port), _handler(self))
        except OSError as error:
            raise StackError(
                "port-taken",
                f"Port {port} cannot be used for the redirect: {error.strerror}.",
                hint="Name another port that the provider permits, or use leat login --device.",
            ) from error
        self._server.timeout = _LOOK
        self.uri = f"http://127.0.0.1:{self._server.server_address[1]}{_PATH}"

    def __enter__(self) -> Redirect:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.server_close()

    def wait(self, state: str, seconds: float) -> str:
        """The code of the redirect.

        Args:
            state: that it must carry; others are answered and passed over.
            seconds: how long to wait.

        Raises:
            AccessError: unauthenticated, the provider refused, or nothing came in time.
        """
        self._state, deadline = state, time.monotonic() + seconds
        while not self._answers:
            if time.monotonic() > deadline:
                raise _failed("Nobody signed in before the time was over.")
            self._server.handle_request()
        answer = self._answers[0]
        if answer.get("iss", self._issuer) != self._issuer:
            raise _failed("The redirect came from another issuer.")
        if "code" not in answer:
            reason = (answer.get("error_description") or answer.get("error") or "it gave no code")[:300]
            raise _failed(f"The identity provider refused the sign-in: {reason.rstrip('.')}.")
        return answer["code"]

    def take(self, query: str) -> bool:
        """Note a redirect; whether it is the one that is waited for."""
        found = {name: values[0] for name, values in parse_qs(query).items()}
        fits = hmac.compare_digest(found.get("state", "").encode(), self._state.encode())
        if fits:
            self._answers.append(found)
        return fits


def _failed(detail: str) -> AccessError:
    return AccessError("unauthenticated", detail, hint="Run leat login again, or leat login --device.")


def _handler(redirect: Redirect) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = _SECONDS

        def do_GET(self) -> None:
            url = urlsplit(self.path)
            fits = url.path == _PATH and redirect.take(url.query)
            text = "You can close this window and return to leat." if fits else "This is not the sign-in."
            self.send_response(200 if fits else 400)
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: the code stands in the request line."""

    return Handler

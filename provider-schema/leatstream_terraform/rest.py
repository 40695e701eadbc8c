"""The REST client: keep-alive, retries that are safe, problem documents as exceptions."""

from __future__ import annotations

import http.client
import json
import os
import ssl
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from leatstream_terraform import VERSION

#: Longer than the service's longest long poll (60 s) and than a cold driver's first analysis.
SOCKET_TIMEOUT = 90.0
_RETRY_FOR = 30.0
#: A store that is busy answers within this time; one whose address is wrong is reported soon.
STORE_FOR = 12.0
#: Seconds to wait for a service that is unreachable, in place of 30.
PATIENCE = "LEATSTREAM_RETRY_SECONDS"
#: Nothing was done: any request may be sent again.
_UNDONE = ("engine-unavailable", "catalog-busy", "catalog-full", "too-many-requests", "issuer-unreachable")
#: A change that was just being written may have been kept: what may be done twice may be sent again.
_IN_DOUBT = "catalog-unreachable"
#: The service is there, and what it asked is not, for the moment.
STORE_AWAY = ("store-unreachable", "registry-unreachable", "checkpoints-unreachable")
_LONGEST_PAUSE = 4.0
#: Ends of paths whose POST may be sent twice.
_REPEATABLE = (":validate", ":restart")


class ProblemError(Exception):
    """The service answered with an error. ``problem`` is its document, or one made of the status."""

    def __init__(self, status: int, problem: Mapping[str, Any], retry_after: str | None = None) -> None:
        super().__init__(f"{status} {problem.get('code') or problem.get('title') or ''}".strip())
        self.status = status
        self.problem = problem
        #: Seconds after which the service wants to be asked again.
        self.retry_after = float(retry_after) if retry_after and retry_after.isdecimal() else 0.0
        #: This try of the request or an earlier one may have been kept, and this be the answer to its effect.
        self.after_doubt = False

    @property
    def code(self) -> str:
        """Stable code of the problem, hyphenated."""
        return str(self.problem.get("code") or "").replace("_", "-")

    @property
    def passing(self) -> bool:
        """Whether it is the service's own weakness of the moment, or that of a proxy before it."""
        if self.code:
            return self.code in (*_UNDONE, _IN_DOUBT)
        return self.status in (408, 502, 503, 504)

    @property
    def store_away(self) -> bool:
        """Whether a store did not answer the service in time."""
        return self.code in STORE_AWAY

    @property
    def in_doubt(self) -> bool:
        """Whether a change may have been kept all the same: what a proxy says says nothing about it."""
        return self.store_away or (self.passing and self.code not in _UNDONE)

    @property
    def gone(self) -> bool:
        """Whether the service itself says that the object does not exist; a proxy's 404 does not count."""
        return self.status == 404 and self.code in ("not-found", "entity-not-found")


class ServiceDown(Exception):
    """The service cannot be reached.

    Attributes:
        in_doubt: the request had been sent, so that a change may have been kept all the same.
        after_doubt: as of a ``ProblemError``.
    """

    def __init__(self, url: str, cause: Exception, in_doubt: bool = False) -> None:
        super().__init__(
            f"The leatstream service at {url} cannot be reached: {_reason(cause)}.\n\n"
            "Start it (`leat dev` runs one on this machine), or set the provider's url, or LEATSTREAM_URL, "
            "to where it listens."
        )
        self.in_doubt = in_doubt
        self.after_doubt = False


class Cancelled(Exception):
    """Terraform asked the provider to stop."""


def _reason(cause: Exception) -> str:
    text = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
    return str(text)


def _may_help(error: ProblemError | ServiceDown, method: str, path: str) -> bool:
    """Whether the same request may be sent again.

    The command line has the same rule (``cli/client.py``), but for a lost connection and a store that is
    unreachable: Terraform has many objects in work, and one that fails fails the run.
    """
    if isinstance(error, ProblemError) and error.code in _UNDONE:
        return True
    repeatable = method in ("GET", "PUT", "DELETE") or path.partition("?")[0].endswith(_REPEATABLE)
    return repeatable and (isinstance(error, ServiceDown) or error.passing or error.store_away)


def retry_for() -> float:
    """Seconds to wait for a service that is unreachable."""
    try:
        return max(0.0, float(os.environ.get(PATIENCE, "")))
    except ValueError:
        return _RETRY_FOR


@dataclass
class Answer:
    """A successful answer."""

    status: int
    body: Any
    headers: Mapping[str, str]


@dataclass
class Client:
    """One service, used by many threads; each thread keeps its own connection open.

    Attributes:
        url: base address, such as ``http://127.0.0.1:8585``.
        token: bearer token, or None.
        stop: set when Terraform wants the provider to end; waits then raise ``Cancelled``.
    """

    url: str
    token: str | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    _local: threading.local = field(default_factory=threading.local, repr=False)

    def __repr__(self) -> str:
        return f"Client({self.url!r})"

    def get(self, path: str) -> Any:
        """GET a JSON document."""
        return self.request("GET", path).body

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        until: float | None = None,
        within: float | None = None,
    ) -> Answer:
        """Send one request; waits and tries again while the service says that a retry may help.

        Args:
            method: of HTTP.
            path: below the base address.
            body: JSON document.
            headers: more headers.
            until: on the monotonic clock: until then an unreachable service is waited for, instead of 30 s
                from the first failure on.
            within: on the monotonic clock: the end of the time that the object has in all.

        Raises:
            ProblemError: the service answered 4xx or 5xx.
            ServiceDown: no connection, or it broke and could not be made again.
            Cancelled: Terraform asked to stop meanwhile.
        """
        end, pause, doubt = until, 0.25, False
        store_end: float | None = None
        while True:
            try:
                return self._once(method, path, body, headers or {})
            except (ProblemError, ServiceDown) as error:
                asked = error.retry_after if isinstance(error, ProblemError) else 0.0
                now = time.monotonic()
                # From the first failure on: an answer that never came took long enough already.
                end = now + retry_for() if end is None else end
                left = min(end, within or end) - now
                if isinstance(error, ProblemError) and error.store_away:
                    store_end = now + STORE_FOR if store_end is None else store_end
                    left = min(left, store_end - now)
                error.after_doubt = doubt = doubt or error.in_doubt
                if left <= 0 or not _may_help(error, method, path):
                    raise
            self.sleep(min(max(pause, asked), left))
            pause = min(pause * 2, _LONGEST_PAUSE)

    def sleep(self, seconds: float) -> None:
        """Wait; raises ``Cancelled`` as soon as Terraform asks to stop."""
        if self.stop.wait(seconds):
            raise Cancelled

    def _once(self, method: str, path: str, body: Any, headers: Mapping[str, str]) -> Answer:
        data = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        sent = {
            "Accept": "application/json, application/problem+json",
            "User-Agent": f"terraform-provider-leatstream/{VERSION}",
            **({"Authorization": f"Bearer {self.token}"} if self.token else {}),
            **({"Content-Type": "application/json"} if data is not None else {}),
            **headers,
        }
        if method != "GET":
            # A kept connection may turn out to be closed; a change must not be sent twice, so it gets a new
            # one.
            self.close()
        fresh = getattr(self._local, "connection", None) is None
        while True:
            connection = self._connection()
            connected = connection.sock is not None
            try:
                if not connected:
                    connection.connect()
                    connected = True
                connection.request(method, self._base() + path, body=data, headers=sent)
                response = connection.getresponse()
                content = response.read()
                break
            except (OSError, http.client.HTTPException) as problem:
                self.close()
                # A kept connection may have been closed by the other side meanwhile: one new try.
                if fresh or isinstance(problem, TimeoutError):
                    raise ServiceDown(self.url, problem, in_doubt=connected) from problem
                fresh = True
        if response.will_close:
            self.close()
        return self._answer(response, content)

    def _answer(self, response: http.client.HTTPResponse, content: bytes) -> Answer:
        kind = (response.getheader("Content-Type") or "").split(";")[0].strip()
        document: Any = None
        if content and kind.endswith("json"):
            try:
                document = json.loads(content)
            except ValueError:
                document = None
        if response.status < 300:
            return Answer(response.status, document, {k.lower(): v for k, v in response.getheaders()})
        later = response.getheader("Retry-After")
        if isinstance(document, dict) and kind == "application/problem+json":
            raise ProblemError(response.status, document, later)
        raise ProblemError(
            response.status,
            {
                "status": response.status,
                "title": response.reason,
                "detail": f"{self.url} answered {response.status} {response.reason} without a problem "
                "document; is this the address of a leatstream service?",
            },
            later,
        )

    def _base(self) -> str:
        return urlsplit(self.url).path.rstrip("/")

    def _connection(self) -> http.client.HTTPConnection:
        kept: http.client.HTTPConnection | None = getattr(self._local, "connection", None)
        if kept is None:
            parts = urlsplit(self.url)
            host = parts.hostname or ""
            if parts.scheme == "https":
                context = ssl.create_default_context()
                kept = http.client.HTTPSConnection(host, parts.port, timeout=SOCKET_TIMEOUT, context=context)
            else:
                kept = http.client.HTTPConnection(host, parts.port, timeout=SOCKET_TIMEOUT)
            self._local.connection = kept
        return kept

    def close(self) -> None:
        """Close this thread's connection."""
        kept = getattr(self._local, "connection", None)
        if kept is not None:
            kept.close()
        self._local.connection = None


def check_token(token: str) -> str | None:
    """Say what is wrong with a token, without a part of it, or None."""
    if token.isascii() and token.isprintable() and " " not in token:
        return None
    return "the token has blanks, line ends or letters beyond ASCII in it; give all of it, and nothing else"


def check_url(url: str) -> str | None:
    """Say what is wrong with a base address, or None; one that may hold a password is not repeated."""
    shown = "this" if "@" in url else repr(url)
    wrong = f"{shown} is not an address such as http://127.0.0.1:8585 or https://leatstream.example.com"
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return wrong
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return wrong
    if parts.query or parts.fragment or "@" in parts.netloc:
        return "the address takes no user name, query or fragment; the token has its own argument"
    return None

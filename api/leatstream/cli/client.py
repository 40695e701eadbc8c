"""Calls the REST service; answers that are problems become exceptions that carry the document."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote, urlsplit

import httpx2

from leatstream.cli.connection import Connection

TIMEOUT = 90.0  # seconds; longer than the service's longest long poll
_RETRY_FOR = 30.0  # seconds
_LONGEST_PAUSE = 4.0
_UNDONE = ("engine-unavailable", "catalog-busy", "catalog-full", "too-many-requests", "issuer-unreachable")
_IN_DOUBT = "catalog-unreachable"
_sleep = time.sleep
_LOOPBACK = {"127.0.0.1", "localhost", "::1"}


class ProblemAnswer(Exception):
    """The service said no.

    Attributes:
        problem: the problem document as it came.
        sql: the text it speaks of, where the request carried one.
    """

    def __init__(self, problem: dict[str, Any]) -> None:
        super().__init__(problem.get("detail") or problem.get("title") or "the server refused the request")
        self.problem = problem
        self.sql: str | None = None


class StreamEnded(ProblemAnswer):
    """The service said no in the midst of an answer."""


class Unreachable(Exception):
    """No answer came."""


def segment(name: str) -> str:
    """A name as one path segment."""
    return quote(name, safe="")


class Client:
    """One server, one token."""

    def __init__(
        self,
        connection: Connection,
        transport: httpx2.BaseTransport | None = None,
        *,
        timeout: float = TIMEOUT,
    ) -> None:
        """Prepare; nothing is sent yet.

        Args:
            connection: the server, and the token for it.
            transport: for tests.
            timeout: seconds for an answer, and no longer is a refused request sent again.
        """
        self.connection = connection
        self._retry_for = min(_RETRY_FOR, timeout)
        headers = {"Authorization": f"Bearer {connection.token}"} if connection.token else {}
        parts = urlsplit(connection.url)
        local = parts.hostname in _LOOPBACK
        self._http = httpx2.Client(
            base_url=connection.url,
            headers=headers,
            auth=_Renewing(connection.renew) if connection.renew is not None else None,
            timeout=httpx2.Timeout(timeout, connect=min(5.0, timeout)),
            transport=transport,
            # A proxy for the world must not get the requests to this very machine.
            trust_env=not local,
            # To read the authorities takes 0.1 s, and without TLS there is no certificate to verify.
            verify=parts.scheme != "http",
        )

    def call(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Send a request and return the answer's JSON; None for an empty answer.

        It is sent again, for half a minute, while the service says that nothing was done, or that it does not
        know, and it may be done twice.

        Args:
            method: of HTTP.
            path: below the server's URL.
            params: of the query; those that are None are left out.
            body: sent as JSON.
            content_type: of the body.
            headers: besides those of every request.

        Raises:
            ProblemAnswer: a status of 400 or above.
            Unreachable: no answer.
        """
        sent = {**(headers or {}), **({"Content-Type": content_type} if body is not None else {})}
        end, pause, doubt = time.monotonic() + self._retry_for, 0.25, False
        while True:
            with self._failures():
                answer = self._http.request(method, path, params=_given(params), json=body, headers=sent)
            try:
                _refuse_problem(answer)
                return answer.json() if answer.content else None
            except ProblemAnswer as refusal:
                code, left = refusal.problem.get("code"), end - time.monotonic()
                if doubt and method == "DELETE" and answer.status_code == 404 and code == "not-found":
                    return None  # by an earlier try
                # An earlier try may have created it: the next one would find its own object in the way.
                creates = "If-None-Match" in sent and code == _IN_DOUBT
                if left <= 0 or creates or not _may_help(code, method, path):
                    raise
                doubt = doubt or code == _IN_DOUBT
            _sleep(min(max(pause, _asked(answer)), left))
            pause = min(pause * 2, _LONGEST_PAUSE)

    def items(self, path: str, params: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """Every item of a list, page after page."""
        found: list[dict[str, Any]] = []
        token: str | None = None
        while True:
            page = self.call("GET", path, params={**(params or {}), "page_size": 1000, "page_token": token})
            found.extend(page["items"])
            token = page.get("next_page_token")
            if not token:
                return found

    def records(
        self,
        entity: str,
        params: Mapping[str, Any] | None = None,
        *,
        opened: Callable[[Mapping[str, str]], None] | None = None,
    ) -> Iterator[str]:
        """Records of an entity as NDJSON lines, as they come; without a time limit between them.

        Args:
            entity: its REST path.
            params: from, limit, timeout.
            opened: gets the headers of the answer before its first line.

        Raises:
            ProblemAnswer: at once.
            StreamEnded: in the midst, when the store fails or the token ends.
        """
        for line in self._lines(entity + "/records", params, opened):
            if line.startswith('{"error"'):  # the status had been sent already
                raise StreamEnded(json.loads(line)["error"])
            yield line

    def rows(self, path: str, *, waits: bool = False) -> Generator[str]:
        """Rows of a SELECT as NDJSON lines, as they come; the last one reports the end.

        Args:
            path: where they come.
            waits: whether lines between them say what is waited for.

        Raises:
            ProblemAnswer: at once.
            StreamEnded: in the midst, when the job fails or the token ends.
        """
        for line in self._lines(path, {"waits": "true"} if waits else None):
            if line.startswith('{"error"'):
                raise StreamEnded(json.loads(line)["error"])
            yield line

    def changes(self, params: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Changes of the catalog as they come, with resets and positions between them.

        Args:
            params: after, tail, follow, kind, name.

        Raises:
            ProblemAnswer: at once.
            StreamEnded: in the midst, when the token ends.
        """
        for line in self._lines("/v1/events", params):
            item = json.loads(line)
            if isinstance(item.get("error"), dict):
                raise StreamEnded(item["error"])
            yield item

    def log_lines(self, query: str, tail: int) -> Iterator[str | None]:
        """Log lines of a query's job as they come, until the query is deleted; None behind the existing ones.

        Args:
            query: its REST path.
            tail: how many of the existing ones.

        Raises:
            ProblemAnswer: at once, as there is no such query.
            StreamEnded: in the midst, when the token ends.
        """
        for line in self._lines(query + "/logs:follow", {"tail": tail}):
            if line == "event: live":
                yield None
            elif line.startswith("data: {") and (event := json.loads(line.removeprefix("data: "))):
                if "error" in event:
                    raise StreamEnded(event["error"])
                yield event["line"]

    def _lines(
        self,
        path: str,
        params: Mapping[str, Any] | None,
        opened: Callable[[Mapping[str, str]], None] | None = None,
    ) -> Iterator[str]:
        accept = {"Accept": "application/x-ndjson"}
        request = self._http.build_request("GET", path, params=_given(params), headers=accept)
        request.extensions["timeout"] = {"connect": 5.0, "read": None, "write": 30.0, "pool": 5.0}
        with self._failures():
            answer = self._opened(request)
            try:
                if opened is not None:
                    opened(answer.headers)
                yield from (line for line in answer.iter_lines() if line.strip())
            finally:
                answer.close()

    def _opened(self, request: httpx2.Request) -> httpx2.Response:
        """The answer to a request for lines, sent again as ``call`` does."""
        end, pause = time.monotonic() + self._retry_for, 0.25
        while True:
            answer = self._http.send(request, stream=True)
            if answer.status_code < 400:
                return answer
            try:
                answer.read()
                _refuse_problem(answer)
            except ProblemAnswer as refusal:
                left = end - time.monotonic()
                if left <= 0 or refusal.problem.get("code") not in _UNDONE:
                    raise
            finally:
                answer.close()
            _sleep(min(max(pause, _asked(answer)), left))
            pause = min(pause * 2, _LONGEST_PAUSE)

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except httpx2.TransportError as error:
            what = re.sub(r"^\[Errno -?\d+\] ", "", str(error)) or type(error).__name__
            said = f"No answer from {self.connection.url} ({self.connection.origin}): {what}"
            if isinstance(error, httpx2.ConnectError):
                said += ". Check the address, and that the server runs (leat dev, leat serve)."
            raise Unreachable(said) from error


class _Renewing(httpx2.Auth):
    """The token of ``leat login``; a refused one is renewed once, as the server's clock counts."""

    def __init__(self, renew: Callable[[str], str]) -> None:
        self._renew = renew

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response]:
        token = self._renew("")
        request.headers["Authorization"] = f"Bearer {token}"
        answer = yield request
        if answer.status_code == 401:
            request.headers["Authorization"] = f"Bearer {self._renew(token)}"
            yield request


def _may_help(code: str | None, method: str, path: str) -> bool:
    """Whether the same request may be sent again; the provider has the same rule (its ``rest.py``)."""
    again = method in ("GET", "PUT", "DELETE") or path.endswith(":validate")
    return code in _UNDONE or (again and code == _IN_DOUBT)


def _asked(answer: httpx2.Response) -> float:
    """Seconds that the service asks to wait."""
    asked = answer.headers.get("Retry-After", "")
    return float(asked) if asked.isdecimal() else 0.0


def _given(params: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in (params or {}).items() if value is not None}


def _refuse_problem(answer: httpx2.Response) -> None:
    if answer.status_code < 400:
        return
    try:
        problem = answer.json()
    except ValueError:
        problem = None
    if not isinstance(problem, dict):  # something between us and the service answered
        problem = {"title": answer.reason_phrase or "Request refused", "detail": answer.text[:500] or None}
    raise ProblemAnswer({"status": answer.status_code, **problem})

"""The driver's side of the pull protocol: small JSON calls over one kept-alive HTTP connection."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote, urlsplit

from leatstream.errors import JobError, SecretStoreError

POLL_TIMEOUT = 30.0  # seconds; the API answers within 20
CALL_TIMEOUT = 10.0
_LEAST_PATIENCE = 1.0
STAY = "stay"  # the answer to a query's end if the driver is to wait for another one
_FINAL = ("secret-unreadable",)
EXIT_DONE, EXIT_FAILED, EXIT_FENCED = 0, 1, 3  # what a driver process ends with


class ApiUnreachable(Exception):
    """No answer, or an answer that only time can cure (5xx)."""


class TooLarge(ApiUnreachable):
    """The body is larger than the API takes: as good as no answer, but for who can send less or give up."""


class NotKnown(Exception):
    """The API no longer knows this driver: it has to end."""


class Fenced(Exception):
    """A newer attempt has taken over, or the query is deleted: no more writes."""


class EndsWithProcess(Exception):
    """The process ends as a whole, which the API sees: an attempt in it has nothing to tell."""


class Transport(Protocol):
    """Sends one request. Raises OSError or http.client.HTTPException when there is no answer."""

    def send(self, method: str, path: str, body: bytes, timeout: float) -> tuple[int, bytes]:
        """Status and body of the answer."""

    def another(self) -> Transport:
        """One with a connection of its own, for another thread."""

    def close(self) -> None:
        """Drop the connection."""


class HttpTransport:
    """One connection that is kept open; each reconnect reads the API's address again."""

    def __init__(self, url_file: Path, token: str) -> None:
        self._url_file = url_file
        self._token = token
        self._connection: http.client.HTTPConnection | None = None
        self._prefix = ""

    def send(self, method: str, path: str, body: bytes, timeout: float) -> tuple[int, bytes]:
        """Send over the open connection; once over a new one if the server had closed it meanwhile."""
        reused = self._connection is not None
        try:
            return self._try(method, path, body, timeout)
        except TimeoutError:
            self.close()
            raise
        except (OSError, http.client.HTTPException):
            self.close()
            if not reused:
                raise
        try:
            return self._try(method, path, body, timeout)
        except (OSError, http.client.HTTPException):
            self.close()
            raise

    def another(self) -> HttpTransport:
        """One with a connection of its own, for another thread."""
        return HttpTransport(self._url_file, self._token)

    def close(self) -> None:
        """Drop the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _try(self, method: str, path: str, body: bytes, timeout: float) -> tuple[int, bytes]:
        connection = self._connect(timeout)
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        connection.request(method, self._prefix + path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()

    def _connect(self, timeout: float) -> http.client.HTTPConnection:
        if self._connection is None:
            url = urlsplit(self._url_file.read_text(encoding="utf-8").strip())
            kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
            self._connection = kind(url.hostname or "", url.port, timeout=timeout)
            self._prefix = url.path.rstrip("/")
        if self._connection.sock is not None:
            self._connection.sock.settimeout(timeout)
        else:
            self._connection.timeout = timeout
        return self._connection


class Contact:
    """How long the API has not answered.

    Attributes:
        limit: seconds after which who is not answered ends by itself, as others may take its place.
    """

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self._heard = time.monotonic()

    def heard(self) -> None:
        """Note that the API has answered."""
        self._heard = time.monotonic()

    def left(self) -> float:
        """Seconds until it counts as lost."""
        return self._heard + self.limit - time.monotonic()

    def is_lost(self) -> bool:
        """Whether the API has been silent for too long."""
        return self.left() < 0


class Client:
    """The calls of the protocol.

    Every call raises ApiUnreachable, NotKnown or Fenced as the answer demands.

    Args:
        transport: to the API.
        driver_id: of this driver.
        contact: notified of every answer.
        query_id: of a shared driver's query whose calls these are.

    Attributes:
        query_name: what the query is called now, by the answer to its last heartbeat.
    """

    def __init__(
        self, transport: Transport, driver_id: str, contact: Contact, query_id: str | None = None
    ) -> None:
        self._transport = transport
        self.contact = contact
        self._for = {"query_id": query_id} if query_id is not None else {}
        self._driver_id = driver_id
        self.query_name: str | None = None
        self._base = f"/v1/drivers/{quote(driver_id, safe='')}"

    def another(self, query_id: str) -> Client:
        """The same driver's calls over a connection of their own, for the thread of one of its queries.

        Its contact is its own too: a query whose heartbeats are refused is lost, though polls are answered.
        """
        return Client(self._transport.another(), self._driver_id, Contact(self.contact.limit), query_id)

    def close(self) -> None:
        """Drop the connection."""
        self._transport.close()

    def poll(self, body: Mapping[str, Any]) -> dict[str, Any] | None:
        """Ask for work; returns None when there is none yet."""
        work = self._call("/poll", body, POLL_TIMEOUT).get("work")
        return work if isinstance(work, dict) else None

    def heartbeat(self, body: Mapping[str, Any]) -> str:
        """Report a query's state; the answer is ``continue``, ``stop`` or, to its end, ``stay``."""
        # Who is about to be lost has no time to wait for an answer.
        patience = min(CALL_TIMEOUT, max(_LEAST_PATIENCE, self.contact.left()))
        answer = self._call("/heartbeat", body, patience)
        self.query_name = answer.get("query_name") or self.query_name
        # Of the present server: by it others know when they may take the query over.
        self.contact.limit = float(answer.get("orphan_seconds") or self.contact.limit)
        return str(answer.get("directive", "continue"))

    def send_analysis(self, request_id: str, body: Mapping[str, Any]) -> None:
        """Hand over what the analyzer said."""
        self._call(f"/analysis/{quote(request_id, safe='')}", body, CALL_TIMEOUT)

    def send_rows(self, body: Mapping[str, Any]) -> tuple[bool, str]:
        """Hand over rows of a SELECT: whether they were taken, and ``continue`` or ``stop``."""
        answer = self._call("/rows", body, CALL_TIMEOUT)
        return bool(answer.get("accepted")), str(answer.get("directive", "continue"))

    def resolve_secrets(self, references: Sequence[str]) -> dict[str, str]:
        """The values of secret references; only those of the driver's own queries are given.

        Raises:
            JobError: job-rejected, one cannot be opened.
            SecretStoreError: a secret store outside the catalog does not give one.
        """
        if not references:
            return {}
        body = {**self._for, "references": list(references)}
        values = self._call("/secrets", body, CALL_TIMEOUT).get("values", {})
        return {str(k): str(v) for k, v in values.items()}

    def function_sources(self, digests: Sequence[str]) -> dict[str, str]:
        """The texts of function sources by digest; only those of the driver's own queries are given."""
        if not digests:
            return {}
        body = {**self._for, "digests": list(digests)}
        found = self._call("/function-sources", body, CALL_TIMEOUT).get("sources", {})
        return {str(k): str(v) for k, v in found.items()}

    def _call(self, path: str, body: Mapping[str, Any], timeout: float) -> dict[str, Any]:
        data = as_sent(body)
        try:
            status, answer = self._transport.send("POST", self._base + path, data, timeout)
        except (OSError, http.client.HTTPException) as error:
            raise ApiUnreachable(f"{type(error).__name__}: {error}") from None
        if status in (401, 403, 404, 410):
            raise NotKnown(f"the API answered {status}")
        if status == 409:
            raise Fenced("the API answered 409")
        if status == 413:
            raise TooLarge("the API answered 413")
        if status >= 400:
            _refuse_for_good(answer)
            raise ApiUnreachable(f"the API answered {status}")
        try:
            parsed = json.loads(answer or b"{}")
        except ValueError:
            raise ApiUnreachable("the API's answer is not JSON") from None
        self.contact.heard()
        return parsed if isinstance(parsed, dict) else {}


def as_sent(value: Any) -> bytes:
    """What a call's body holds of a value: JSON in UTF-8, where ASCII escapes would double most scripts."""
    # Lone surrogates, which UTF-8 cannot hold, become what JSON writes for them.
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace")


def _refuse_for_good(answer: bytes) -> None:
    """JobError or SecretStoreError for what the API's answer explains, such as a secret whose key is lost."""
    try:
        problem = json.loads(answer or b"{}")
    except ValueError:
        return
    code = problem.get("code") if isinstance(problem, dict) else None
    if code in _FINAL:
        raise JobError("job-rejected", str(problem.get("detail")), condition=code)
    if code in SecretStoreError.kinds:
        raise SecretStoreError(code, str(problem.get("detail")))

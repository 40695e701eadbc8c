"""A client of Confluent's schema-registry API, which Confluent Cloud and Apicurio (``ccompat``) speak too."""

from __future__ import annotations

import base64
import json
import time
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import quote

from leatstream.errors import StoreError, sentence
from leatstream.model.certificates import trust_of

TIMEOUT = 5.0  # seconds of one call, over all addresses
_TYPE = "application/vnd.schemaregistry.v1+json"
_MOST_BYTES = 4_000_000
_MOST_REFERENCES = 100
_NOT_THERE = (40401, 40402, 40403)
APICURIO_PATH = "/apis/ccompat/v7"


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema as a registry holds it.

    Attributes:
        type: ``AVRO``, ``PROTOBUF`` or ``JSON``.
        text: in the type's own language.
        references: name under which the text speaks of it, and the schema; those that others need come first.
        id: the registry's; None of one that is not registered.
        version: in its subject, where it was asked for by subject.
    """

    type: str
    text: str
    references: tuple[tuple[str, Schema], ...] = ()
    id: int | None = None
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a subject, as the registry shows it.

    Attributes:
        references: names that the text uses, each with the subject and the version that it stands for.
    """

    subject: str
    version: int
    id: int | None
    type: str
    text: str
    references: tuple[tuple[str, str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class RegistryAddress:
    """How a registry is reached; plain data, so that it can be sent to Spark's Python workers.

    Attributes:
        name: in the catalog, for messages.
        uris: addresses, tried in order.
        ca_certificate: PEM of the authority that signed the registry's certificate; None = the system's.
    """

    name: str
    kind: str
    uris: tuple[str, ...]
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    ca_certificate: str | None = None

    @classmethod
    def of(
        cls,
        name: str,
        kind: str,
        uris: str,
        username: str | None,
        password: str | None,
        ca_certificate: str | None,
    ) -> Self:
        """From what the catalog holds; of Apicurio the path of its Confluent API is filled in."""
        parts = [part.rstrip("/") for part in uris.split(",") if part]
        if kind == "apicurio":
            parts = [p if "/" in p.split("://", 1)[-1] else p + APICURIO_PATH for p in parts]
        return cls(name, kind, tuple(parts), username, password, ca_certificate)


class RegistryClient:
    """One registry. Every call ends within ``timeout`` seconds; errors name the registry and no secret."""

    def __init__(self, address: RegistryAddress, timeout: float = TIMEOUT) -> None:
        self.address = address
        self.timeout = timeout
        self._client: Any = None

    def test(self) -> None:
        """Reach the registry and log in.

        Raises:
            StoreError: registry-unreachable, registry-auth-failed or registry-rejected.
        """
        self._call("GET", "/subjects")

    def schema(self, schema_id: int) -> Schema | None:
        """The schema of an id, or None.

        Raises:
            StoreError: the registry cannot be asked.
        """
        body = self._call("GET", f"/schemas/ids/{schema_id}")
        return None if body is None else self._read(body, schema_id)

    def latest(self, subject: str) -> Schema | None:
        """The newest schema of a subject, or None.

        Raises:
            StoreError: the registry cannot be asked.
        """
        return self._version(subject, "latest")

    def subjects(self) -> list[str]:
        """Names of its subjects, sorted.

        Raises:
            StoreError: the registry cannot be asked.
        """
        return sorted(one for one in self._listed("/subjects") or [] if isinstance(one, str))

    def versions(self, subject: str) -> list[int] | None:
        """Numbers of a subject's versions, the oldest first; None where it has no such subject.

        Raises:
            StoreError: the registry cannot be asked.
        """
        found = self._listed(f"/subjects/{quote(subject, safe='')}/versions")
        return None if found is None else sorted(one for one in found if isinstance(one, int))

    def version(self, subject: str, version: str) -> Version | None:
        """A version of a subject; None where there is none.

        Args:
            subject: its name.
            version: its number, or ``latest``.

        Raises:
            StoreError: the registry cannot be asked.
        """
        body = self._call("GET", f"/subjects/{quote(subject, safe='')}/versions/{version}")
        if body is None:
            return None
        text, number, given = body.get("schema"), body.get("version"), body.get("id")
        if not isinstance(text, str) or not isinstance(number, int):
            raise self._rejected("its answer holds no schema")
        return Version(
            subject,
            number,
            given if isinstance(given, int) else None,
            str(body.get("schemaType") or "AVRO").upper(),
            text,
            tuple(_references(body.get("references"))),
        )

    def incompatibilities(self, subject: str, schema: Schema) -> list[str]:
        """Why the subject would not take a schema, in the registry's own words; empty where it would.

        A subject that does not exist takes any.

        Raises:
            StoreError: the registry cannot be asked.
        """
        path = f"/compatibility/subjects/{quote(subject, safe='')}/versions/latest?verbose=true"
        body = self._call("POST", path, _document(schema))
        if body is None or body.get("is_compatible", True):
            return []
        return [_sentence(str(m)) for m in body.get("messages") or []] or ["it says no more"]

    def register(self, subject: str, schema: Schema) -> int:
        """Register a schema under a subject, unless it is there already, and give its id.

        Raises:
            StoreError: schema-conflict where the subject does not take it; else as above.
        """
        body = self._call("POST", f"/subjects/{quote(subject, safe='')}/versions", _document(schema))
        if body is None or not isinstance(body.get("id"), int):
            raise self._rejected("it gave no id for a schema that it was asked to register")
        return int(body["id"])

    def close(self) -> None:
        """Close its connections."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _version(self, subject: str, version: str, depth: int = 0) -> Schema | None:
        body = self._call("GET", f"/subjects/{quote(subject, safe='')}/versions/{version}")
        return None if body is None else self._read(body, body.get("id"), depth)

    def _read(self, body: Mapping[str, Any], schema_id: Any, depth: int = 0) -> Schema:
        text = body.get("schema")
        if not isinstance(text, str):
            raise self._rejected("its answer holds no schema")
        found: dict[str, Schema] = {}
        for item in body.get("references") or []:
            if depth > 16 or len(found) > _MOST_REFERENCES:
                raise self._rejected("a schema refers to too many others")
            other = self._version(str(item["subject"]), str(item["version"]), depth + 1)
            if other is None:
                raise self._rejected(f"a schema refers to {item['subject']}, which it does not have")
            found.update(dict(other.references))
            found[str(item["name"])] = other
        version = body.get("version")
        return Schema(
            type=str(body.get("schemaType") or "AVRO").upper(),
            text=text,
            references=tuple(found.items()),
            id=schema_id if isinstance(schema_id, int) else None,
            version=version if isinstance(version, int) else None,
        )

    def _call(self, method: str, path: str, body: Any = None) -> dict[str, Any] | None:
        """The answer's object (of a list an empty one); None for what the registry does not have."""
        document = self._asked(method, path, body)
        return {} if document is not None and not isinstance(document, dict) else document

    def _listed(self, path: str) -> list[Any] | None:
        """The answer's list; None for what the registry does not have."""
        found = self._asked("GET", path)
        if found is not None and not isinstance(found, list):
            raise self._rejected("its answer is not a list")
        return found

    def _asked(self, method: str, path: str, body: Any = None) -> Any:
        """The answer's JSON; None for what the registry does not have."""
        import httpx2

        deadline = time.monotonic() + self.timeout
        last: StoreError | None = None
        for number, uri in enumerate(self.address.uris):
            left = (deadline - time.monotonic()) / (len(self.address.uris) - number)
            try:
                return self._answer(*self._send(method, uri + path, body, max(left, 0.2)))
            except httpx2.HTTPError as error:
                last = self._unreachable(uri, error)
        assert last is not None, "a registry has an address"  # noqa: S101 - the catalog checks it
        raise last

    def _send(self, method: str, url: str, body: Any, timeout: float) -> tuple[int, bytes]:
        import httpx2

        headers = {"Accept": f"{_TYPE}, application/json"}
        if body is not None:
            headers["Content-Type"] = _TYPE
        if self.address.username is not None:
            pair = f"{self.address.username}:{self.address.password or ''}".encode()
            headers["Authorization"] = "Basic " + base64.b64encode(pair).decode()
        if self._client is None:
            # Without TLS there is no certificate to verify, and to read the authorities takes 0.1 s.
            plain = all(uri.lower().startswith("http:") for uri in self.address.uris)
            verify = not plain and trust_of(self.address.ca_certificate)
            self._client = httpx2.Client(verify=verify, follow_redirects=False)
            # A plan opens one and has no end of its own: the connection closes with the client's owner.
            weakref.finalize(self, self._client.close)
        content = None if body is None else json.dumps(body).encode()
        end = time.monotonic() + timeout
        with self._client.stream(method, url, content=content, headers=headers, timeout=timeout) as answer:
            data = b""
            for chunk in answer.iter_bytes():
                data += chunk
                if len(data) > _MOST_BYTES:
                    raise self._rejected("its answer is larger than 4 MB")
                if time.monotonic() > end:
                    raise httpx2.ReadTimeout("the answer takes too long")
            return answer.status_code, data

    def _answer(self, status: int, data: bytes) -> Any:
        try:
            document = json.loads(data) if data else {}
        except (ValueError, RecursionError):
            document = None
        known = document if isinstance(document, dict) else {}
        if 200 <= status < 300:
            if document is None:
                raise self._rejected("its answer is not JSON: is this the address of a schema registry?")
            return document
        said = _sentence(str(known.get("message") or "")) or f"HTTP status {status}"
        if status in (401, 403):
            raise StoreError(
                "registry-auth-failed",
                f"Schema registry {self.address.name} refused the credentials (HTTP status {status}).",
                hint="Check user and password, and what the user may do in the registry.",
            )
        if status == 404 and known.get("error_code") in _NOT_THERE:
            return None
        if status == 409:
            raise StoreError("schema-conflict", sentence(f"Schema registry {self.address.name} says: {said}"))
        if status >= 500 or status == 429:
            raise StoreError(
                "registry-unreachable",
                sentence(f"Schema registry {self.address.name} cannot answer now: {said}"),
            )
        raise self._rejected(said)

    def _rejected(self, why: str) -> StoreError:
        return StoreError(
            "registry-rejected", f"Schema registry {self.address.name} did not do what it was asked: {why}."
        )

    def _unreachable(self, uri: str, error: Exception) -> StoreError:
        causes = [error, error.__cause__, error.__context__]
        untrusted = any("CERTIFICATE_VERIFY_FAILED" in str(cause) for cause in causes)
        detail = f"Schema registry {self.address.name} does not answer at {uri} ({_kind(error)})."
        advice = "Its certificate is not trusted: give the authority's as the registry's ca_certificate."
        hint = advice if untrusted else None
        return StoreError("registry-unreachable", detail, hint=hint)


def _kind(error: Exception) -> str:
    return {
        "ConnectError": "the connection was refused or could not be made",
        "ConnectTimeout": "no connection in time",
        "ReadTimeout": "no answer in time",
        "UnsupportedProtocol": "its address cannot be used",
    }.get(type(error).__name__, type(error).__name__)


def _references(found: Any) -> Iterator[tuple[str, str, int]]:
    """Name, subject and version of each; what is not a reference is left out."""
    for one in found if isinstance(found, list) else ():
        if isinstance(one, dict) and isinstance(one.get("version"), int):
            yield str(one.get("name")), str(one.get("subject")), one["version"]


def _document(schema: Schema) -> dict[str, Any]:
    body: dict[str, Any] = {"schema": schema.text}
    return body if schema.type == "AVRO" else body | {"schemaType": schema.type}


def _sentence(text: str, limit: int = 600) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= limit else plain[: limit - 1] + "…"


def texts_of(schema: Schema) -> Iterator[str]:
    """The texts a schema is made of: those it refers to, then its own."""
    for _, other in schema.references:
        yield other.text
    yield schema.text

"""The client against a double of a registry: what goes wrong with one on the way. (A real one: tests/e2e.)"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx2
import pytest

from leatstream.errors import StoreError
from leatstream.formats.registry_client import RegistryAddress, RegistryClient, Schema, Version

PASSWORD = "hunter2-never-shown"


class RegistryDouble:
    """Answers each path with a status and a body, and notes what it was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, Any]] = {}
        self.seen: list[tuple[str, str, dict[str, str], Any]] = []
        self.hold = threading.Event()
        self.hold.set()
        double = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else None
                double.seen.append((self.command, self.path, dict(self.headers), body))
                double.hold.wait(20)
                status, answer = double.answers.get(
                    self.path, (404, {"error_code": 40401, "message": "none"})
                )
                data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                if status in (301, 307):
                    self.send_header("Location", "http://127.0.0.1:1/stolen")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_POST = do_GET

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self.hold.set()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def double() -> Iterator[RegistryDouble]:
    made = RegistryDouble()
    yield made
    made.close()


def client(uris: str, kind: str = "confluent", timeout: float = 5.0) -> RegistryClient:
    return RegistryClient(RegistryAddress.of("sr", kind, uris, "key", PASSWORD, None), timeout)


@pytest.mark.parametrize(
    ("uris", "verified"),
    [
        ("http://127.0.0.1:1", False),
        ("http://127.0.0.1:1,HTTP://127.0.0.1:2", False),
        ("http://127.0.0.1:1,https://127.0.0.1:2", True),
        ("https://127.0.0.1:2", True),
    ],
)
def test_authorities_are_read_for_tls_alone(
    monkeypatch: pytest.MonkeyPatch, uris: str, verified: bool
) -> None:
    given: list[Any] = []
    whole = httpx2.Client
    monkeypatch.setattr(httpx2, "Client", lambda **more: given.append(more["verify"]) or whole(**more))
    with pytest.raises(StoreError):
        client(uris, timeout=0.5).test()
    assert given == [verified]


def test_credentials_and_paths(double: RegistryDouble) -> None:
    double.answers["/apis/ccompat/v7/subjects"] = (200, [])
    client(double.url, "apicurio").test()
    double.answers["/schemas/ids/7"] = (200, {"schema": '"int"'})
    double.answers["/subjects/a%2Fb-value/versions/latest"] = (
        200,
        {"id": 3, "version": 2, "schema": '"int"'},
    )
    sr = client(double.url + "/")
    assert sr.schema(7) == Schema("AVRO", '"int"', id=7)
    assert sr.latest("a/b-value") == Schema("AVRO", '"int"', id=3, version=2)
    assert sr.schema(8) is None
    assert sr.latest("none") is None
    expected = "Basic " + base64.b64encode(f"key:{PASSWORD}".encode()).decode()
    assert {headers["Authorization"] for _, _, headers, _ in double.seen} == {expected}
    assert PASSWORD not in repr(sr.address)


def test_references_come_with_a_schema(double: RegistryDouble) -> None:
    one = {"name": "b.B", "subject": "b", "version": 4}
    double.answers["/schemas/ids/1"] = (200, {"schema": "A", "schemaType": "PROTOBUF", "references": [one]})
    double.answers["/subjects/b/versions/4"] = (
        200,
        {"id": 2, "version": 4, "schema": "B", "schemaType": "PROTOBUF"},
    )
    found = client(double.url).schema(1)
    assert found is not None
    assert [(name, schema.text) for name, schema in found.references] == [("b.B", "B")]
    double.answers["/subjects/b/versions/4"] = (200, {"schema": "B", "references": [one]})
    with pytest.raises(StoreError, match="too many others"):
        client(double.url).schema(1)


def test_what_it_holds_is_shown(double: RegistryDouble) -> None:
    registry, path = client(double.url), "/subjects/a%2Fb/versions"
    double.answers["/subjects"] = (200, ["b", "a/b"])
    double.answers[path] = (200, [2, 1])
    one = {"name": "x.avsc", "subject": "x", "version": 3}
    double.answers[f"{path}/latest"] = (
        200,
        {"schema": '"long"', "version": 2, "id": 7, "references": [one, {"version": "no"}, 1]},
    )
    assert (registry.subjects(), registry.versions("a/b")) == (["a/b", "b"], [1, 2])
    found = Version("a/b", 2, 7, "AVRO", '"long"', (("x.avsc", "x", 3),))
    assert registry.version("a/b", "latest") == found
    assert (registry.versions("c"), registry.version("c", "1")) == (None, None)


@pytest.mark.parametrize("body", [5, {"a": 1}, "a"])
def test_an_answer_that_is_no_list(double: RegistryDouble, body: Any) -> None:
    double.answers["/subjects"] = double.answers["/subjects/a/versions"] = (200, body)
    for ask in (lambda one: one.subjects(), lambda one: one.versions("a")):
        with pytest.raises(StoreError, match="is not a list") as caught:
            ask(client(double.url))
        assert caught.value.code == "registry-rejected"


def test_what_it_would_not_take(double: RegistryDouble) -> None:
    path = "/compatibility/subjects/t-value/versions/latest?verbose=true"
    double.answers[path] = (200, {"is_compatible": False, "messages": ["field x is gone", "and y"]})
    schema = Schema("PROTOBUF", "message A {}")
    assert client(double.url).incompatibilities("t-value", schema) == ["field x is gone", "and y"]
    assert double.seen[-1][3] == {"schema": "message A {}", "schemaType": "PROTOBUF"}
    double.answers[path] = (200, {"is_compatible": True})
    assert client(double.url).incompatibilities("t-value", schema) == []
    double.answers["/subjects/t-value/versions"] = (409, {"error_code": 409, "message": "x is gone"})
    with pytest.raises(StoreError, match="x is gone") as caught:
        client(double.url).register("t-value", schema)
    assert caught.value.code == "schema-conflict"


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (401, {"error_code": 401, "message": f"bad {PASSWORD}"}, "registry-auth-failed"),
        (403, {}, "registry-auth-failed"),
        (404, b"<html>not here</html>", "registry-rejected"),
        (200, b"<html>a web site</html>", "registry-rejected"),
        (200, b"[" * 100_000, "registry-rejected"),
        (307, {}, "registry-rejected"),
        (422, {"message": "no such schema"}, "registry-rejected"),
        (500, {"message": "broken"}, "registry-unreachable"),
        (429, {}, "registry-unreachable"),
        (200, b"x" * 5_000_000, "registry-rejected"),
    ],
)
def test_what_goes_wrong_is_named(double: RegistryDouble, status: int, body: Any, code: str) -> None:
    double.answers["/subjects"] = (status, body)
    with pytest.raises(StoreError) as caught:
        client(double.url).test()
    assert caught.value.code == code
    assert "sr" in caught.value.detail
    assert PASSWORD not in caught.value.detail
    assert len(double.seen) == 1, "a redirect is not followed: the credentials would go along"


def test_a_registry_that_is_silent_ends_in_time(double: RegistryDouble) -> None:
    double.hold.clear()
    with pytest.raises(StoreError) as caught:
        client(double.url, timeout=0.3).test()
    assert (caught.value.code, caught.value.retryable) == ("registry-unreachable", True)
    assert "no answer in time" in caught.value.detail


def test_the_next_address_is_tried(double: RegistryDouble) -> None:
    double.answers["/subjects"] = (200, [])
    client(f"http://127.0.0.1:1,{double.url}").test()


def test_a_client_that_nobody_holds_has_no_connection(double: RegistryDouble) -> None:
    double.answers["/apis/ccompat/v7/subjects"] = (200, [])
    registry = client(double.url, "apicurio")
    registry.test()
    inner = registry._client
    del registry
    assert inner.is_closed

"""What a schema registry holds, read through the service; and who may read it."""

from __future__ import annotations

from typing import Any

import fakes
import pytest
from starlette.testclient import TestClient

from leatstream.errors import StoreError
from leatstream.formats.registry_client import Version

BASE = "/v1/schema-registries/sr"


class Registry:
    """Two subjects; ``fault`` is what it answers instead."""

    def __init__(self) -> None:
        self.fault: StoreError | None = None
        self.held = {"orders-value": [1, 2], "a/b c-key": [7]}

    def open(self, address: Any, timeout: float) -> Any:
        return self

    def subjects(self) -> list[str]:
        if self.fault is not None:
            raise self.fault
        return sorted(self.held)

    def versions(self, subject: str) -> list[int] | None:
        return self.held.get(subject)

    def version(self, subject: str, version: str) -> Version | None:
        known = self.held.get(subject, [])
        number = known[-1] if version == "latest" and known else int(version if version.isdigit() else 0)
        return (
            Version(subject, number, 40 + number, "AVRO", '"long"', (("x", "y", 3),))
            if number in known
            else None
        )

    def close(self) -> None:
        pass


@pytest.fixture
def registry(client: TestClient, fresh: Any) -> Registry:
    made = Registry()
    fresh.env.open_registry = made.open
    body = {"type": "confluent", "uris": "http://h:8081"}
    assert client.put(BASE, json=body).status_code == 201
    return made


def test_subjects_are_listed_in_pages(client: TestClient, registry: Registry) -> None:
    first = client.get(f"{BASE}/subjects", params={"page_size": 1}).json()
    assert first["items"] == [{"name": "a/b c-key"}]
    token = first["next_page_token"]
    rest = client.get(f"{BASE}/subjects", params={"page_size": 1, "page_token": token}).json()
    assert (rest["items"], rest.get("next_page_token")) == ([{"name": "orders-value"}], None)
    assert client.get(f"{BASE}/subjects", params={"q": "ORD"}).json()["items"] == rest["items"]


def test_versions_and_a_schema(client: TestClient, registry: Registry) -> None:
    found = client.get(f"{BASE}/subjects/orders-value/versions", params={"page_size": 1}).json()
    assert found["items"] == [{"version": 1}]
    token = found["next_page_token"]
    rest = client.get(f"{BASE}/subjects/orders-value/versions", params={"page_token": token}).json()
    assert rest["items"] == [{"version": 2}]
    one = client.get(f"{BASE}/subjects/orders-value/versions/latest").json()
    reference = {"name": "x", "subject": "y", "version": 3}
    assert one == {
        "subject": "orders-value",
        "version": 2,
        "id": 42,
        "type": "AVRO",
        "text": '"long"',
        "references": [reference],
    }
    assert client.get(f"{BASE}/subjects/a%2Fb%20c-key/versions/7").json()["subject"] == "a/b c-key"


@pytest.mark.parametrize(
    ("path", "status", "detail"),
    [
        (f"{BASE}/subjects/no/versions", 404, "Subject 'no' of schema registry sr does not exist."),
        (f"{BASE}/subjects/no/versions/latest", 404, "Subject 'no' of schema registry sr does not exist."),
        (
            f"{BASE}/subjects/orders-value/versions/9",
            404,
            "Version 9 of subject 'orders-value' of schema registry sr does not exist.",
        ),
        ("/v1/schema-registries/other/subjects", 404, "Schema registry other does not exist."),
        (f"{BASE}/subjects/orders-value/versions/first", 422, None),
    ],
)
def test_what_does_not_exist(
    client: TestClient, registry: Registry, path: str, status: int, detail: str | None
) -> None:
    answer = client.get(path)
    assert answer.status_code == status, answer.text
    assert detail is None or answer.json()["detail"] == detail


@pytest.mark.parametrize(("code", "status"), [("registry-unreachable", 503), ("registry-auth-failed", 502)])
def test_a_registry_that_cannot_be_asked(
    client: TestClient, registry: Registry, code: str, status: int
) -> None:
    registry.fault = StoreError(code, "Schema registry sr says no.")
    answer = client.get(f"{BASE}/subjects")
    assert (answer.status_code, answer.json()["code"]) == (status, code)


@pytest.mark.parametrize(
    "path", ["subjects", "subjects/orders-value/versions", "subjects/orders-value/versions/1"]
)
def test_usage_of_the_registry_is_needed(
    client: TestClient, fresh: Any, registry: Registry, path: str
) -> None:
    """A role that may only change it does not see what it holds."""
    admin = {"Authorization": f"Bearer {fakes.administrator(fresh)}"}

    def asked(privilege: str | None) -> int:
        grants = [{"privilege": privilege, "on": "schema_registry", "name": "sr"}] if privilege else []
        assert client.put("/v1/roles/r", json={"grants": grants}, headers=admin).status_code in (200, 201)
        client.put("/v1/service-accounts/a", json={"roles": ["r"]}, headers=admin)
        body = {"account": "a", "scope": "read"}
        made = client.post(f"/v1/tokens/t{privilege}", json=body, headers=admin).json()
        head = {"Authorization": f"Bearer {made['value']}"}
        return client.get(f"{BASE}/{path}", headers=head).status_code

    assert [asked(one) for one in (None, "modify", "usage")] == [404, 403, 200]

"""How many requests an account may send: 429 with the pause, and what is not counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import fakes
import pytest
from account_clients import account_client
from starlette.testclient import TestClient

from leatstream.rest import gate
from leatstream.rest.app import create_app
from leatstream.rest.rates import Rates

SEE = {"privilege": "monitor", "on": "organization"}


@pytest.fixture
def admin(fresh: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    """The administrator's client of a server that lets an account send 20 requests, and no further one."""
    monkeypatch.setattr(gate, "Rates", lambda rate: Rates(rate, lambda: 0.0))
    fresh.env.settings = replace(fresh.env.settings, requests_per_second=2.0)
    headers = {"Authorization": f"Bearer {fakes.administrator(fresh)}"}
    with TestClient(create_app(fresh.env), headers=headers, raise_server_exceptions=False) as client:
        yield client


def sent(client: TestClient, most: int = 100) -> tuple[int, Any]:
    """How many requests pass, and the answer to the first that does not."""
    for count in range(most):
        answer = client.get("/v1/me")
        if answer.status_code != 200:
            return count, answer
    return most, None


def test_the_account_is_told_when_to_come_back(admin: TestClient) -> None:
    count, answer = sent(admin)
    assert (count, answer.status_code, answer.json()["code"]) == (20, 429, "too-many-requests")
    assert answer.headers["Retry-After"] == "1"
    assert "LEATSTREAM_REQUESTS_PER_SECOND" in answer.json()["errors"][0]["hint"]


def test_all_tokens_of_an_account_count_together_and_others_do_not(admin: TestClient) -> None:
    one = account_client(admin, "team", SEE)
    made = admin.post("/v1/tokens/second", json={"account": "team"}).raise_for_status().json()
    two = TestClient(admin.app, headers={"Authorization": f"Bearer {made['value']}"})
    assert sent(one, 15) == (15, None)
    assert sent(two)[0] == 5
    assert admin.get("/v1/me").status_code == 200


def test_a_refused_request_has_no_effect(admin: TestClient) -> None:
    sent(admin)
    assert admin.put("/v1/databases/late", json={}).status_code == 429
    other = TestClient(create_app(admin.app.state.env), headers=admin.headers)
    assert other.get("/v1/databases/late").status_code == 404


def test_probes_and_drivers_are_not_counted(admin: TestClient, fresh: Any) -> None:
    sent(admin)
    assert admin.get("/healthz").status_code == 200
    assert admin.get("/readyz").status_code in (200, 503)
    fresh.drivers.tokens["d1"] = "t1"
    for _ in range(50):
        answer = admin.post("/v1/drivers/d1/heartbeat", json={}, headers={"Authorization": "Bearer t1"})
        assert answer.status_code != 429


def test_zero_is_no_bound(fresh: Any) -> None:
    with TestClient(create_app(fresh.env), headers=fresh.headers) as client:
        assert sent(client, 300) == (300, None)

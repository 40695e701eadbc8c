"""A store is tried before it is created or changed, and nothing of the trial is kept."""

from __future__ import annotations

from typing import Any

import fakes
import pytest
from starlette.testclient import TestClient

SASL = {"mechanism": "plain", "username": "leat", "password": "hunter2"}
BODY = {"kafka": {"bootstrap_servers": "broker:9092", "security_protocol": "sasl_plaintext", "sasl": SASL}}
TRY = {"dry_run": "true"}


def test_a_new_store_is_tried_and_nothing_is_kept(client: TestClient, fresh: Any) -> None:
    with fresh.units(write=False) as unit:
        before = len(unit.audit.page(limit=1000))
    answer = client.put("/v1/stores/k", json=BODY, params=TRY)
    assert (answer.status_code, answer.json()["status"]["state"]) == (200, "ready"), answer.text
    assert "etag" not in answer.headers
    fresh.cluster.up = False
    away = client.put("/v1/stores/k", json=BODY, params=TRY)
    status = away.json()["status"]
    assert (away.status_code, status["state"]) == (200, "errored")
    assert status["error"] == {"code": "store-unreachable", "detail": "Store k does not answer."}
    assert "hunter2" not in answer.text + away.text
    assert client.get("/v1/stores").json()["items"] == []
    with fresh.units(write=False) as unit:
        assert len(unit.audit.page(limit=1000)) == before
    fresh.cluster.up = True
    made = client.put("/v1/stores/k", json=BODY, headers={"If-None-Match": "*"})
    assert (made.status_code, made.json()["generation"]) == (201, 1), "the trial took no name"
    taken = client.put("/v1/stores/k", json=BODY, params=TRY, headers={"If-None-Match": "*"})
    assert (taken.status_code, taken.json()["code"]) == (409, "already-exists")


def test_a_changed_store_is_tried_with_the_secret_that_is_stored(
    client: TestClient, fresh: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.put("/v1/stores/k", json=BODY)
    seen = list[Any]()

    def test(connector: Any, timeout: float) -> None:
        seen.append((connector.config.sasl.username, connector.config.sasl.password.get_secret_value()))

    monkeypatch.setattr(fakes.MemoryConnector, "test", test)
    kept = {name: value for name, value in SASL.items() if name != "password"}

    def tried(**sasl: str) -> Any:
        body = {"kafka": {**BODY["kafka"], "sasl": {**kept, **sasl}}}
        answer = client.put("/v1/stores/k", json=body, params=TRY)
        assert (answer.status_code, answer.json()["status"]["state"]) == (200, "ready"), answer.text
        return seen[-1]

    assert tried() == ("leat", "hunter2"), "unchanged, and asked all the same"
    assert tried(username="other") == ("other", "hunter2")
    assert tried(password="hunter3") == ("leat", "hunter3")
    assert len(seen) == 3
    found = client.get("/v1/stores/k").json()
    assert (found["generation"], found["kafka"]["sasl"]["username"]) == (1, "leat")
    moved = {"kafka": {**BODY["kafka"], "bootstrap_servers": "elsewhere:9092", "sasl": kept}}
    refused = client.put("/v1/stores/k", json=moved, params=TRY)
    assert refused.status_code == 422
    assert "must be given again" in refused.text
    assert len(seen) == 3, "the secret was sent nowhere"


def test_a_trial_needs_the_rights_of_the_store(client: TestClient, fresh: Any) -> None:
    admin = {"Authorization": f"Bearer {fakes.administrator(fresh)}"}
    for name, scope, privilege in (("maker", "write", "create_store"), ("reader2", "read", "create_store")):
        grants = [{"privilege": privilege, "on": "organization"}]
        client.put(f"/v1/roles/{name}", json={"grants": grants}, headers=admin)
        client.put(f"/v1/service-accounts/{name}", json={"roles": [name]}, headers=admin)
        made = client.post(f"/v1/tokens/{name}", json={"account": name, "scope": scope}, headers=admin)
        token = {"Authorization": f"Bearer {made.json()['value']}"}
        answer = client.put("/v1/stores/k", json=BODY, params=TRY, headers=token)
        assert answer.status_code == (200 if scope == "write" else 403), answer.text

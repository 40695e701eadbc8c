"""What a store's status tells."""

from __future__ import annotations

from typing import Any

import fakes
import pytest
from starlette.testclient import TestClient

from leatstream.errors import StoreError

STREAM = {"columns": [{"name": "n", "type": "BIGINT"}], "store": "k", "value_format": "json"}


def test_a_store_that_refuses_the_login_is_kept(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong credentials are its status, with the cause; the right ones heal it."""

    def test(self: Any, timeout: float) -> None:
        if self.config.sasl.password.get_secret_value() != "right-one":
            raise StoreError("store-auth-failed", f"Store {self.name} refuses the user u.")

    monkeypatch.setattr(fakes.MemoryConnector, "test", test)
    sasl = {"mechanism": "plain", "username": "u", "password": "wrong-one"}
    kafka = {"bootstrap_servers": "localhost:9092", "security_protocol": "sasl_plaintext", "sasl": sasl}
    made = client.put("/v1/stores/k", json={"kafka": kafka})
    assert made.status_code == 201, made.text
    status = made.json()["status"]
    assert (status["state"], status["error"]["code"]) == ("errored", "store-auth-failed")
    assert status["message"] == "Store k refuses the user u."
    assert client.get("/v1/stores/k").json()["status"] == status
    assert "wrong-one" not in made.text + client.get("/v1/stores").text
    assert client.get("/v1/stores/k/entities").json()["code"] == "store-auth-failed"
    assert client.put("/v1/databases/demo", json={}).status_code == 201
    stream = client.put("/v1/relations/demo.public.pageviews", json=STREAM)
    assert stream.json()["code"] == "store-auth-failed"
    sasl["password"] = "right-one"
    healed = client.put("/v1/stores/k", json={"kafka": kafka})
    assert (healed.status_code, healed.json()["status"]["state"]) == (200, "ready")


def test_a_precondition_counts_before_the_settings(client: TestClient) -> None:
    """What is wrong with them may follow from what somebody else has changed."""
    sasl = {"mechanism": "plain", "username": "u", "password": "a-secret"}
    kafka = {"bootstrap_servers": "localhost:9092", "security_protocol": "sasl_plaintext"}
    assert client.put("/v1/stores/k", json={"kafka": {**kafka, "sasl": sasl}}).status_code == 201
    assert (
        client.put("/v1/stores/k", json={"kafka": {"bootstrap_servers": "localhost:9092"}}).status_code == 200
    )
    # The secret is no longer stored, so this body would lack its password.
    without = {"kafka": {**kafka, "sasl": {"mechanism": "plain", "username": "u"}}}
    late = client.put("/v1/stores/k", json=without, headers={"If-Match": '"1"'})
    assert (late.status_code, late.json()["code"]) == (412, "stale")
    other = {"postgres": {"host": "localhost", "database": "d", "username": "u"}}
    taken = client.put("/v1/stores/k", json=other, headers={"If-None-Match": "*"})
    assert (taken.status_code, taken.json()["code"]) == (409, "already-exists")


def test_every_question_to_a_store_that_a_plan_waits_for_has_a_bound(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that is away takes a plan less than five seconds, the service's own work included."""
    asked: list[tuple[str, float]] = []
    for name in ("test", "find_entity", "property_limits", "list_entities"):
        plain = getattr(fakes.MemoryConnector, name)

        def bounded(self: Any, *args: Any, name: str = name, plain: Any = plain, **more: Any) -> Any:
            if not (name == "test" and asked and asked[-1][0] != "test"):  # the fake's own call
                asked.append((name, more.get("timeout", args[-1] if args else None)))
            return plain(self, *args, **more)

        monkeypatch.setattr(fakes.MemoryConnector, name, bounded)
    client.put("/v1/databases/demo", json={})
    client.put("/v1/stores/k", json={"kafka": {"bootstrap_servers": "localhost:9092"}})
    client.put("/v1/stores/k/entities/pageviews", json={"kafka": {"partitions": 3, "replicas": 1}})
    client.put("/v1/relations/demo.public.pageviews", json=STREAM)
    body = {"sql": "CREATE STREAM o AS SELECT n FROM pageviews", "database": "demo", "store": "k"}
    assert client.post("/v1/statements:validate", json=body).json()["valid"] is True
    assert client.get("/v1/stores/k/entities").status_code == 200
    assert {name for name, _ in asked} == {"test", "find_entity", "property_limits", "list_entities"}
    assert {bound for _, bound in asked} == {4.0}

"""What a store's status tells."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from leatstream.errors import StoreError

STREAM = {"columns": [{"name": "n", "type": "BIGINT"}], "store": "k", "value_format": "json"}


def test_a_store_that_refuses_the_login_is_kept(
    client: TestClient, fakes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
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

"""Secrets that refer to secret stores outside the catalog: read when needed, stored and shown nowhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fakes
import pytest
from account_clients import account_client
from starlette.testclient import TestClient

from leatstream.rest.app import create_app
from leatstream.secret_stores import open_providers
from leatstream.secret_stores.settings import OutsideSecretsSettings
from leatstream.services.environment.outside_secrets import OutsideSecrets
from leatstream.services.nouns.stores import resolve_store_secrets

CANARY = "CANARY-7d1f-value"
KAFKA = {
    "bootstrap_servers": "b:9093",
    "security_protocol": "sasl_ssl",
    "sasl": {"mechanism": "plain", "username": "u", "password_secret": "s"},
}
SQL = "CREATE SECRET s WITH ('type' = generic_string, 'reference' = '{}')"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A file with a value, under the root that is permitted."""
    file = tmp_path / "roots" / "kafka"
    file.parent.mkdir()
    file.write_text(f"{CANARY}\n")
    return file


@pytest.fixture
def open_to(fresh: Any, place: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The world, with variables and files turned on."""
    monkeypatch.setenv("LEAT_SECRET_KAFKA", json.dumps({"password": CANARY}))
    settings = {"env": {"allow": ["LEAT_SECRET_*"]}, "file": {"roots": [str(place.parent)]}}
    providers = open_providers(OutsideSecretsSettings.model_validate(settings), ())
    fresh.env.outside = OutsideSecrets(providers)
    return fresh


@pytest.fixture
def leat(open_to: Any, client: TestClient) -> TestClient:
    return client


def test_a_reference_is_shown_and_its_value_is_not(leat: TestClient, place: Path) -> None:
    reference = f"secret://file{place}"
    made = leat.put("/v1/secrets/s", json={"reference": reference})
    assert made.status_code == 201, made.text
    shown = leat.get("/v1/secrets/s").json()
    assert (shown["reference"], shown["provider"], shown["resolve_error"]) == (reference, "file", None)
    assert shown["resolved_at"] is not None
    answers = [
        leat.post("/v1/statements", json={"sql": "DESCRIBE SECRET s"}),
        leat.get("/v1/secrets"),
        leat.get("/v1/catalog:export?format=sql"),
        leat.get("/v1/catalog:export?format=hcl"),
    ]
    assert all(reference in one.text for one in answers), [one.text for one in answers]
    assert not any(CANARY in one.text for one in [made, *answers])


def test_a_store_connects_with_it_and_keeps_it_nowhere(leat: TestClient, open_to: Any, place: Path) -> None:
    reference = "secret://env/LEAT_SECRET_KAFKA#password"
    assert leat.put("/v1/secrets/s", json={"reference": reference}).status_code == 201
    assert leat.put("/v1/stores/k", json={"kafka": KAFKA}).status_code == 201
    with open_to.env.open_unit(write=False) as unit:
        store, secret = unit.stores.find("k"), unit.named_secrets.find("s")
        assert resolve_store_secrets(open_to.env, unit, store) == {"sasl.password": CANARY}
        assert unit.secrets.find(secret.reference) is None
    again = leat.put("/v1/stores/k", json={"kafka": KAFKA})
    assert (again.status_code, again.json()["generation"]) == (200, 1)


def test_statements_and_their_dry_run(leat: TestClient, place: Path) -> None:
    good, gone = SQL.format(f"secret://file{place}"), SQL.format(f"secret://file{place}x")
    for path in ("/v1/statements", "/v1/statements:validate"):
        missing = leat.post(path, json={"sql": gone})
        assert "secret-missing" in missing.text, path
        assert f"File {place}x does not exist." in missing.text
    checked = leat.post("/v1/statements:validate", json={"sql": good}).json()
    assert checked["statements"][0]["problems"] == []
    assert leat.post("/v1/statements", json={"sql": good}).status_code == 200
    note = "UPDATE SECRET s WITH ('description' = 'ours')"
    assert leat.post("/v1/statements", json={"sql": note}).status_code == 200
    found = leat.get("/v1/secrets/s").json()
    assert (found["reference"], found["comment"], found["version"]) == (f"secret://file{place}", "ours", 1)
    value = "UPDATE SECRET s WITH ('secret_string' = 'own')"
    assert leat.post("/v1/statements", json={"sql": value}).status_code == 200
    found = leat.get("/v1/secrets/s").json()
    assert (found["reference"], found["version"]) == (None, 2)


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"reference": "secret://env/HOME"}, 422, "only LEAT_SECRET_*."),
        ({"reference": "secret://env/LEATSTREAM_BOOTSTRAP_TOKEN"}, 422, "not permitted"),
        ({"reference": "secret://file/etc/passwd"}, 422, "not permitted"),
        ({"reference": "secret://vault/kv/leat#a"}, 422, "References to vault are off."),
        ({"reference": "secret://magic/kv"}, 422, "one of env, file"),
        ({"reference": "secret://env/LEAT_SECRET_NONE"}, 502, "no variable LEAT_SECRET_NONE"),
        ({"reference": "secret://env/LEAT_SECRET_KAFKA#no"}, 502, "has no key 'no'"),
        ({"reference": "secret://env/LEAT_SECRET_KAFKA", "value": "x"}, 422, "not both"),
        ({}, 422, "needs a value, or a reference"),
    ],
)
def test_what_is_refused(leat: TestClient, body: dict[str, str], status: int, said: str) -> None:
    answer = leat.put("/v1/secrets/s", json=body)
    assert (answer.status_code, said in answer.text) == (status, True), answer.text
    assert CANARY not in answer.text
    assert leat.get("/v1/secrets/s").status_code == 404


def test_a_reference_needs_the_privilege_of_the_machine(open_to: Any) -> None:
    app = create_app(open_to.env)
    admin = TestClient(app, headers={"Authorization": f"Bearer {fakes.administrator(open_to)}"})
    clients = {}
    for name, more in (("plain", []), ("trusted", ["use_machine_credentials"])):
        grants = [{"privilege": one, "on": "organization"} for one in ("create_secret", *more)]
        clients[name] = account_client(admin, name, *grants)
    body = {"reference": "secret://env/LEAT_SECRET_KAFKA#password"}
    refused = clients["plain"].put("/v1/secrets/s", json=body)
    assert (refused.status_code, refused.json()["code"]) == (403, "permission-denied")
    checked = clients["plain"].post("/v1/statements:validate", json={"sql": SQL.format(body["reference"])})
    assert "USE_MACHINE_CREDENTIALS" in checked.text
    assert clients["trusted"].put("/v1/secrets/s", json=body).status_code == 201
    grant = {"grants": [{"privilege": "modify", "on": "secret", "name": "s"}]}
    admin.post("/v1/roles/plain:grant", json=grant).raise_for_status()
    note = SQL.format(body["reference"]).replace("CREATE SECRET s", "UPDATE SECRET s")
    assert clients["plain"].post("/v1/statements:validate", json={"sql": note}).json()["valid"], "it has it"
    other = clients["plain"].put("/v1/secrets/s", json={"reference": "secret://env/LEAT_SECRET_KAFKA"})
    assert other.status_code == 403


def test_a_registry_whose_password_cannot_be_read(leat: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = {"reference": "secret://env/LEAT_SECRET_KAFKA#password"}
    assert leat.put("/v1/secrets/s", json=secret).status_code == 201
    registry = {"type": "confluent", "uris": "http://h:8081", "username": "u", "password_secret": "s"}
    assert leat.put("/v1/schema-registries/sr", json=registry).status_code == 201
    monkeypatch.delenv("LEAT_SECRET_KAFKA")
    leat.post("/v1/secrets/s:apply")  # reads it again, and forgets the value
    tested = leat.post("/v1/schema-registries/sr:test")
    assert (tested.status_code, tested.json()["error_code"]) == (200, "secret-missing"), tested.text
    listed = leat.get("/v1/schema-registries/sr/subjects")
    assert (listed.status_code, listed.json()["code"]) == (502, "secret-missing")


def test_a_reference_is_refused_at_its_place(leat: TestClient, place: Path) -> None:
    assert leat.post("/v1/statements", json={"sql": SQL.format(f"secret://file{place}")}).status_code == 200
    for verb in ("CREATE OR REPLACE", "UPDATE"):
        sql = SQL.replace("CREATE", verb).format("secret://env/HOME")
        fault = leat.post("/v1/statements", json={"sql": sql}).json()["errors"][0]
        assert sql[fault["position"]["offset"] :].startswith("'secret://env/HOME'"), fault

"""Stores without credentials of their own use those of the server's machine: a privilege of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import fakes
import pytest
from scratch import memory_directory
from starlette.testclient import TestClient

from leatstream.connectors.iceberg.connector import IcebergGlueConnector, IcebergRestConnector
from leatstream.connectors.kafka.connector import KafkaConnector
from leatstream.connectors.kinesis.connector import KinesisConnector
from leatstream.connectors.s3.connector import S3Connector
from leatstream.rest.app import create_app

KEYS = {"access_key_id": "AKIA1", "secret_access_key": "s3cret"}
ROLE = "arn:aws:iam::123456789012:role/leat"
KINESIS = {"region": "eu-west-1"}
S3 = {"region": "eu-west-1", "bucket": "acme-events"}
GLUE = {"region": "eu-west-1", "warehouse_path": "s3://acme-lake/w"}
MSK = {
    "bootstrap_servers": "b:9098",
    "security_protocol": "sasl_ssl",
    "sasl": {"mechanism": "aws_msk_iam", "aws": {"region": "eu-west-1"}},
}
REST = {"uri": "https://catalog.example.com", "s3": {"region": "eu-west-1"}}
USE = {"privilege": "use_machine_credentials", "on": "organization"}
CREATE = {"privilege": "create_store", "on": "organization"}
SQL = "CREATE STORE {} WITH ('type' = S3, 'uris' = 'https://acme-events.s3.eu-west-1.amazonaws.com/'{})"

Login = Callable[..., TestClient]


class _Silent:
    """Nobody is asked."""

    def test(self, timeout: float) -> None:
        return None

    def about(self, timeout: float) -> dict[str, str]:
        return {}


@pytest.fixture(scope="module")
def login() -> Iterator[Login]:
    """Clients of roles with these grants, of a server that knows the kinds which use AWS."""
    with ExitStack() as clients:
        fresh = fakes.make_world(Path(clients.enter_context(memory_directory())))
        clients.callback(fresh.units.close)
        yield _logins(fresh, clients)


def _logins(fresh: Any, clients: ExitStack) -> Login:
    real: list[Any] = [
        IcebergGlueConnector,
        IcebergRestConnector,
        KafkaConnector,
        KinesisConnector,
        S3Connector,
    ]
    kinds = {one.kind: one for one in real}
    silent: Any = _Silent()
    app = create_app(replace(fresh.with_real(**kinds), connect=lambda _: silent))

    def bearing(token: str) -> TestClient:
        headers = {"Authorization": f"Bearer {token}"}
        return clients.enter_context(TestClient(app, headers=headers, raise_server_exceptions=False))

    admin = bearing(fakes.administrator(fresh))
    known: dict[str, TestClient] = {}

    def opened(name: str, *grants: dict[str, str]) -> TestClient:
        if name not in known:
            role = admin.put(f"/v1/roles/{name}", json={"grants": list(grants)})
            assert role.status_code == 201, role.text
            admin.put(f"/v1/service-accounts/{name}", json={"roles": [name]}).raise_for_status()
            made = admin.post(f"/v1/tokens/{name}", json={"account": name, "scope": "write"}).json()
            known[name] = bearing(made["value"])
        return known[name]

    return opened


@pytest.mark.parametrize(
    ("kind", "config"),
    [("kinesis", KINESIS), ("s3", S3), ("iceberg_glue", GLUE), ("kafka", MSK), ("iceberg_rest", REST)],
)
def test_a_store_without_keys_needs_the_privilege(login: Login, kind: str, config: dict[str, Any]) -> None:
    plain, trusted = login("plain", CREATE), login("trusted", CREATE, USE)
    answer = plain.put(f"/v1/stores/{kind}", json={kind: config})
    assert (answer.status_code, answer.json()["code"]) == (403, "permission-denied")
    assert "lacks USE_MACHINE_CREDENTIALS on the organization" in answer.text
    assert "GRANT USE_MACHINE_CREDENTIALS ON ORGANIZATION TO ROLE plain" in answer.text
    assert trusted.put(f"/v1/stores/{kind}", json={kind: config}).status_code == 201


def test_a_store_with_keys_needs_it_not(login: Login) -> None:
    plain = login("plain", CREATE)
    assert plain.put("/v1/stores/a", json={"kinesis": KINESIS | KEYS}).status_code == 201
    assert plain.put("/v1/stores/b", json={"kafka": {"bootstrap_servers": "b:1"}}).status_code == 201
    without = plain.put("/v1/stores/a", json={"kinesis": KINESIS})
    assert without.status_code == 403, "the keys are taken away"


def test_a_change_needs_it_and_a_comment_does_not(login: Login) -> None:
    trusted = login("trusted", CREATE, USE)
    trusted.put("/v1/stores/c", json={"s3": S3}).raise_for_status()
    modify = {"privilege": "modify", "on": "store", "name": "c"}
    keeper = login("keeper", modify, modify | {"privilege": "usage"})
    assert keeper.put("/v1/stores/c", json={"s3": S3 | {"bucket": "another"}}).status_code == 403
    assert keeper.put("/v1/stores/c", json={"s3": S3, "comment": "ours"}).status_code == 200


def test_statements_and_their_dry_runs_need_it(login: Login) -> None:
    plain, trusted = login("plain", CREATE), login("trusted", CREATE, USE)
    keys = ", 'aws.access_key_id' = 'AKIA1', 'aws.secret_access_key' = 's3cret'"
    for path in ("/v1/statements:validate", "/v1/statements"):
        refused = plain.post(path, json={"sql": SQL.format("d", "")})
        assert "USE_MACHINE_CREDENTIALS" in refused.text, refused.text
        assert plain.post(path, json={"sql": SQL.format("e", keys)}).status_code == 200
        assert trusted.post(path, json={"sql": SQL.format("d", "")}).status_code == 200


def placed(kind: str, **more: str) -> dict[str, Any]:
    """The settings of a store of a kind that assumes a role, with more beside the role."""
    aws = {"region": "eu-west-1", "role_arn": ROLE, **more}
    if kind == "kafka":
        return MSK | {"sasl": {"mechanism": "aws_msk_iam", "aws": aws}}
    return (S3 if kind == "s3" else KINESIS) | aws


def shown(answer: Any, kind: str) -> Any:
    assert answer.status_code in (200, 201), answer.text
    found = answer.json()[kind]
    return (found["sasl"]["aws"] if kind == "kafka" else found)["external_id"]


@pytest.mark.parametrize("kind", ["kinesis", "s3", "kafka"])
def test_the_server_generates_external_ids(login: Login, kind: str) -> None:
    trusted, path = login("trusted", CREATE, USE), f"/v1/stores/{kind}_role"
    chosen = trusted.put(path, json={kind: placed(kind, external_id="of-another")})
    assert chosen.status_code == 422
    assert chosen.json()["errors"][0]["pointer"].endswith("/external_id")
    made = shown(trusted.put(path, json={kind: placed(kind)}), kind)
    assert len(made) == len("leatstream:") + 32
    # It stays, may be repeated, and is another one for another store.
    assert shown(trusted.put(path, json={kind: placed(kind), "comment": "c"}), kind) == made
    assert shown(trusted.put(path, json={kind: placed(kind, external_id=made)}), kind) == made
    assert trusted.put(path, json={kind: placed(kind, external_id="of-another")}).status_code == 422
    assert shown(trusted.put(f"{path}2", json={kind: placed(kind)}), kind) != made


def test_keys_of_ones_own_go_with_an_id_of_ones_own_and_do_not_pass_it_on(login: Login) -> None:
    trusted, path = login("trusted", CREATE, USE), "/v1/stores/own"
    assert shown(trusted.put(path, json={"s3": placed("s3", external_id="agreed", **KEYS)}), "s3") == "agreed"
    assert trusted.put(path, json={"s3": placed("s3", external_id="agreed")}).status_code == 422
    assert shown(trusted.put(path, json={"s3": placed("s3")}), "s3").startswith("leatstream:")


def test_external_ids_in_statements_and_exports(login: Login) -> None:
    trusted, role = login("trusted", CREATE, USE), f", 'aws.iam_role_arn' = '{ROLE}'"
    chosen = {"sql": SQL.format("f", f"{role}, 'aws.iam_external_id' = 'of-another'")}
    for path in ("/v1/statements:validate", "/v1/statements"):
        assert "the server generates it" in trusted.post(path, json=chosen).text
    assert trusted.post("/v1/statements", json={"sql": SQL.format("f", role)}).status_code == 200
    made = shown(trusted.get("/v1/stores/f"), "s3")
    update = {"sql": "UPDATE STORE f WITH ('uris' = 'https://other-events.s3.eu-west-1.amazonaws.com/')"}
    for path in ("/v1/statements:validate", "/v1/statements"):
        assert trusted.post(path, json=update).status_code == 200
    assert shown(trusted.get("/v1/stores/f"), "s3") == made
    assert made in trusted.post("/v1/statements", json={"sql": "DESCRIBE STORE f"}).text
    # What an export makes in another server gets an id of its own.
    for form in ("sql", "hcl"):
        text = trusted.get("/v1/catalog:export", params={"format": form, "name": "store:f"}).text
        assert "iam::123456789012" in text, text
        assert made not in text

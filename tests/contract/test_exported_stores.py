"""Stores of every kind as code: SQL and CDKTF that make the same store, with every setting that it can have."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import fakes
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from scratch import memory_directory
from starlette.testclient import TestClient

from leatstream.connectors.kafka.settings import KafkaConfig
from leatstream.connectors.registry import connector_classes
from leatstream.rest.app import create_app

SECRET = "hunter2"
KEYS = {"access_key_id": "AKIAEXAMPLE", "secret_access_key": SECRET}
ROLE = {"role_arn": "arn:aws:iam::123456789012:role/leat", "external_id": "ours"}


def private_key() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    form, plain = serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(SECRET.encode())
    return key.private_bytes(serialization.Encoding.PEM, form, plain).decode()


def without_secrets(given: dict[str, Any]) -> dict[str, Any]:
    """The settings without values and versions of secrets."""
    secrets = ("password", "token", "client_secret", "secret_access_key", "private_key")
    found = {key: without_secrets(one) if isinstance(one, dict) else one for key, one in given.items()}
    return {key: one for key, one in found.items() if key in ("token_uri",) or not key.startswith(secrets)}


def stores() -> dict[str, tuple[str, dict[str, Any]]]:
    """Name to kind and settings."""
    key = private_key()
    house = {"host": "ch.example.com", "port": 8443, "secure": True, "username": "leat", "password": SECRET}
    erp = {
        "host": "db.example.com",
        "port": 1521,
        "tls": False,
        "service": "shop",
        "username": "leat",
        "password": SECRET,
    }
    lake = {"uri": "https://catalog.example.com/api", "warehouse": "lake's"}
    bricks = {"host": "https://dbc-1.cloud.databricks.com", "warehouse_id": "abc"}
    flake = {"account": "acme-x1", "username": "LEAT", "warehouse": "W"}
    return {
        "house": ("clickhouse", house),
        "house_plain": ("clickhouse", house | {"secure": False, "port": 9123, "database": "a b/ü"}),
        "erp": ("oracle", erp),
        "erp_tls": ("oracle", erp | {"tls": True, "port": 2484}),
        "lake": (
            "iceberg_rest",
            lake
            | {"client_id": "leat", "client_secret": SECRET, "scope": "ALL"}
            | {"token_uri": "https://login.example.com/token"}
            | {"s3": {"endpoint_url": "https://s3.example.com", "region": "eu-west-1", **KEYS}},
        ),
        "lake_token": ("iceberg_rest", {"uri": lake["uri"], "token": SECRET}),
        "glue": (
            "iceberg_glue",
            {
                "region": "eu-west-1",
                "catalog_id": "123456789012",
                "warehouse_path": "s3://acme-lake/w",
                **KEYS,
                **ROLE,
            }
            | {"endpoint_url": "https://glue.example.com", "s3_endpoint_url": "https://s3.example.com"},
        ),
        "glue_machine": ("iceberg_glue", {"region": "eu-west-1"}),
        "flake": (
            "snowflake",
            flake | {"role": "R", "database": "D", "private_key": key, "private_key_passphrase": SECRET},
        ),
        "flake_link": (
            "snowflake",
            flake | {"host": "acme.private.example.com:8443", "login": "password", "password": SECRET},
        ),
        "flake_both": (
            "snowflake",
            flake
            | {"login": "password", "password": SECRET, "private_key": key, "private_key_passphrase": SECRET},
        ),
        "flake_key": (
            "snowflake",
            flake | {"password": SECRET, "private_key": key, "private_key_passphrase": SECRET},
        ),
        "bricks": (
            "databricks",
            bricks | {"catalog": "other", "token": SECRET, "volume": "/Volumes/main/default/s"},
        ),
        "bricks_principal": (
            "databricks",
            bricks
            | {"client_id": "leat", "client_secret": SECRET}
            | {"s3": {"bucket": "acme-lake", "prefix": "p", "region": "eu-west-1", **KEYS, **ROLE}},
        ),
    }


STORES = stores()


@contextmanager
def world(directory: Path) -> Iterator[TestClient]:
    """A client of an empty world with the real settings of all kinds; nothing is connected to."""
    made = fakes.make_world(directory)
    kafka = KafkaConfig(bootstrap_servers="localhost:9092")
    connect = lambda store: fakes.MemoryConnector(store.name, kafka, made.cluster)  # noqa: E731
    env = replace(made.env, connector_classes=connector_classes(), connect=connect)
    with TestClient(create_app(env), headers=made.headers, raise_server_exceptions=False) as opened:
        yield opened
    made.units.close()


@pytest.fixture(scope="module")
def full() -> Iterator[TestClient]:
    with memory_directory() as directory, world(Path(directory)) as opened:
        for name, (kind, given) in STORES.items():
            answer = opened.put(f"/v1/stores/{name}", json={kind: given})
            assert answer.status_code == 201, f"{name}: {answer.text}"
        yield opened


def settings(client: TestClient) -> dict[str, Any]:
    own = {"id", "generation", "created_at", "updated_at", "created_by", "status"}
    items = client.get("/v1/stores").json()["items"]
    return {one["name"]: {k: v for k, v in one.items() if k not in own} for one in items}


def exported(client: TestClient, form: str, *names: str) -> Any:
    answer = client.get(
        "/v1/catalog:export", params={"format": form, "name": [f"store:{name}" for name in names]}
    )
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_the_kinds_are_all_those_that_hold_tables() -> None:
    """Topics, streams and files have tests of their own, beside the other objects of the catalog."""
    others = {"kafka", "kinesis", "postgres", "s3"}
    assert {kind for kind, _ in STORES.values()} == set(connector_classes()) - others


@pytest.mark.parametrize("name", STORES)
def test_sql_makes_the_same_store_again(full: TestClient, name: str) -> None:
    """Every variable is replaced, in comments too: that is what ``envsubst`` does."""
    _, given = STORES[name]
    export = exported(full, "sql", name)
    text = export["files"][0]["content"]
    for variable in export["variables"]:
        value = given["private_key"] if variable.endswith("private_key") else SECRET
        text = text.replace(f"${{{variable}}}", value)
    with memory_directory() as directory, world(Path(directory)) as empty:
        answer = empty.post("/v1/statements", json={"sql": text})
        assert answer.status_code == 200, answer.text
        assert settings(empty)[name] == settings(full)[name]


def test_a_secret_that_sql_cannot_keep_is_noted(full: TestClient) -> None:
    notes = exported(full, "sql", "flake_both")["notes"]
    assert notes == [
        f"SQL cannot keep the {secret} of store flake_both, which is not used."
        for secret in ("private_key", "private_key_passphrase")
    ]
    assert exported(full, "sql", "flake_key")["notes"] == [
        "SQL cannot keep the password of store flake_key, which is not used."
    ]


def test_cdktf_declares_the_same_stores(full: TestClient, tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(exported(full, "cdktf")["files"][0]["content"])
    done = subprocess.run(
        [sys.executable, "main.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    made = json.loads((tmp_path / "cdktf.out/stacks/leatstream/cdk.tf.json").read_text())
    declared = {one["name"]: one for one in made["resource"]["leatstream_store"].values()}
    for name, (kind, given) in STORES.items():
        assert without_secrets(declared[name][kind]) == without_secrets(given), name

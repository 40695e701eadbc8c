"""A store's settings as CREATE STORE: what reads them back gives the same store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from leatstream.connectors.registry import connector_classes
from leatstream.connectors.settings import secret_owners, settings_of
from leatstream.services.export.ddl import pairs
from leatstream.sql.parser import parse
from leatstream.sql.statements import CreateStore
from leatstream.sql.store_properties import (
    read_store_properties,
    secret_properties,
    unused_secrets,
    written_store,
)

PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
KAFKA = {"bootstrap_servers": "a:9092,b:9092"}
POSTGRES = {"host": "::1", "port": 6432, "database": "my shop", "username": "leat"}
STORES: list[tuple[str, dict[str, Any]]] = [
    *((kind, dict(found.Config.example)) for kind, found in connector_classes().items()),
    (
        "kafka",
        {**KAFKA, "security_protocol": "ssl", "tls": {"ca_certificate": PEM, "verify_hostname": False}},
    ),
    (
        "kafka",
        {**KAFKA, "security_protocol": "sasl_ssl", "sasl": {"mechanism": "scram_sha_512", "username": "l"}},
    ),
    ("postgres", {**POSTGRES, "ssl_mode": "verify_ca", "ca_certificate": PEM, "application_name": "a&b"}),
    *(
        ("postgres", {**POSTGRES, "ssl_mode": mode})
        for mode in ("disable", "prefer", "require", "verify_full")
    ),
    ("clickhouse", {"host": "c", "port": 1234, "secure": False, "username": "l", "database": "a b"}),
    (
        "oracle",
        {"host": "o", "port": 2484, "service": "shop", "username": "l", "tls": True, "ca_certificate": PEM},
    ),
    ("s3", {"bucket": "acme-events", "prefix": "team/raw", "region": "eu-west-1"}),
    ("kinesis", {"region": "eu-west-1", "endpoint_url": "http://localhost:4566"}),
]


def meant(kind: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """Every setting with its value or default; secrets and what names them left out."""
    model = connector_classes()[kind].Config
    hidden = set(secret_owners(model))
    found = {}
    for one in settings_of(model):
        place: Any = config
        for part in one.path[:-1]:
            place = place.get(part) or {}
        default = None if one.field.is_required() else one.field.default
        if one.dotted not in hidden:
            found[one.dotted] = place.get(one.path[-1], default)
    return found


def _secrets(kind: str, config: Mapping[str, Any]) -> dict[str, str]:
    """Values of the secrets that belong to a setting that is there."""
    owners, keys = secret_owners(connector_classes()[kind].Config), secret_properties(kind)
    found = {}
    for path, owner in owners.items():
        place: Any = config
        for part in path.split(".")[:-1]:
            place = place.get(part) or {}
        if owner in place and path in keys:
            found[keys[path]] = PEM if path == "private_key" else "sesame"
    unused = unused_secrets(kind, config, owners)
    return {key: value for key, value in found.items() if key not in {keys[path] for path in unused}}


@pytest.mark.parametrize(("kind", "config"), STORES)
def test_a_written_store_reads_back_as_itself(kind: str, config: dict[str, Any]) -> None:
    written = written_store(kind, config) | _secrets(kind, config)
    (statement,) = parse(f"CREATE STORE s WITH ({pairs(written)});")
    assert isinstance(statement, CreateStore)
    found, again = read_store_properties(statement.properties)
    first = meant(kind, config)
    # A port is the scheme's own where it is left out, and SQL spells it out.
    assert {k: v for k, v in meant(found, again).items() if k != "port" or first[k]} == {
        k: v for k, v in first.items() if k != "port" or v
    }

"""WITH of PostgreSQL stores."""

from __future__ import annotations

from typing import Any

import pytest

from leatstream.connectors.postgres.settings import PostgresConfig
from leatstream.errors import RequestError
from leatstream.model.registered import SecretName
from leatstream.sql.parser import parse
from leatstream.sql.statements import CreateStore
from leatstream.sql.store_properties import read_store_properties, read_store_update

PEM = "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----"
PG = "'type'=POSTGRESQL, 'uris'='postgresql://db:5433/shop', 'postgres.username'='leat', 'postgres.password'='s3cret'"
BASE = {"host": "db", "port": 5433, "database": "shop", "username": "leat", "password": "s3cret"}


def written(text: str) -> Any:
    (statement,) = parse(f"CREATE STORE pg WITH ({text});")
    assert isinstance(statement, CreateStore)
    return statement.properties


@pytest.mark.parametrize(
    ("text", "config"),
    [
        (PG, {"ssl_mode": "verify_full"}),
        (PG + ", 'tls.disabled'=TRUE", {"ssl_mode": "disable"}),
        (PG + ", 'tls.verify_server_hostname'=FALSE", {"ssl_mode": "require"}),
        (PG + f", 'tls.ca_cert_file'='{PEM}'", {"ssl_mode": "verify_full", "ca_certificate": PEM}),
        (
            PG + f", 'tls.ca_cert_file'='{PEM}', 'tls.verify_server_hostname'=FALSE",
            {"ssl_mode": "verify_ca", "ca_certificate": PEM},
        ),
        (PG.replace("/shop", "/shop?sslmode=prefer"), {"ssl_mode": "prefer"}),
        (
            PG.replace("/shop", "/shop?sslmode=disable&application_name=mine"),
            {"ssl_mode": "disable", "application_name": "mine"},
        ),
        (
            PG.replace("postgresql://db:5433", "postgres://[::1]"),
            {"host": "::1", "port": 5432, "ssl_mode": "verify_full"},
        ),
        (
            PG.replace("'s3cret'", '"pg password"'),
            {"password": SecretName("pg password"), "ssl_mode": "verify_full"},
        ),
    ],
)
def test_stores(text: str, config: dict[str, Any]) -> None:
    kind, found = read_store_properties(written(text))
    assert (kind, found) == ("postgres", BASE | config)
    PostgresConfig.model_validate({k: v for k, v in found.items() if not isinstance(v, SecretName)})


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("'type'=POSTGRESQL", ["invalid-property"] * 2),
        (PG.replace("postgresql://", "http://"), ["invalid-property"]),
        (PG.replace("postgresql://", ""), ["invalid-property"]),
        (PG.replace("/shop", ""), ["invalid-property"]),
        (PG.replace("db:5433", "db:99999"), ["invalid-property"]),
        (PG.replace("db:", "leat:s3cret@db:"), ["invalid-property"]),
        (
            PG.replace("/shop", "/shop?sslmode=maybe&passfile=/etc/s3cret&options=-c"),
            ["invalid-property"] * 3,
        ),
        (PG + ", 'tls.disabled'=TRUE, 'tls.verify_server_hostname'=TRUE", ["invalid-property"]),
        (PG + ", 'tls.ca_cert_file'='@/etc/x.pem'", ["invalid-property"]),
        (PG + ", 'tls.client.key_file'='@x', 'kafka.sasl.username'='x'", ["unsupported", "invalid-property"]),
    ],
)
def test_faults(text: str, codes: list[str]) -> None:
    with pytest.raises(RequestError) as caught:
        read_store_properties(written(text))
    assert [fault.code for fault in caught.value.faults] == codes
    assert "s3cret" not in str(caught.value.faults)


@pytest.mark.parametrize(
    ("text", "present", "config"),
    [
        ("'postgres.username'='other'", {}, {"username": "other"}),
        (
            "'postgres.password'='new'",
            {"ssl_mode": "verify_full"},
            {"password": "new", "ssl_mode": "verify_full"},
        ),
        (
            "'uris'='postgresql://two/shop'",
            {"ssl_mode": "require"},
            {"host": "two", "port": 5432, "ssl_mode": "require"},
        ),
        (
            "'uris'='postgresql://db:5433/shop?sslmode=disable'",
            {"ssl_mode": "require"},
            {"ssl_mode": "disable"},
        ),
        ("'tls.disabled'=TRUE", {"ssl_mode": "verify_full", "ca_certificate": PEM}, {"ssl_mode": "disable"}),
        (
            "'tls.verify_server_hostname'=FALSE",
            {"ssl_mode": "verify_full", "ca_certificate": PEM},
            {"ssl_mode": "verify_ca", "ca_certificate": PEM},
        ),
        (
            "'postgres.username'='o'",
            {"application_name": "mine"},
            {"username": "o", "application_name": "mine"},
        ),
    ],
)
def test_updates(text: str, present: dict[str, Any], config: dict[str, Any]) -> None:
    base = {k: v for k, v in BASE.items() if k != "password"}
    found = read_store_update(written(text), "postgres", base | present)
    assert found == base | {"password": None} | config


def test_a_named_password_stays_named() -> None:
    base = {k: v for k, v in BASE.items() if k != "password"}
    found = read_store_update(written("'postgres.username'='o'"), "postgres", base, {"password": "pw"})
    assert found["password"] == SecretName("pw")


@pytest.mark.parametrize(
    "config",
    [
        {"host": "db:5432"},
        {"host": "/var/run/postgresql"},
        {"host": "a,b"},
        {"host": "db sslmode=disable"},
        {"database": ""},
        {"database": "x" * 64},
        {"username": "a\nb"},
        {"password": "a\x00b"},
        {"ssl_mode": "verify_ca"},
        {"ca_certificate": PEM},
        {"ssl_mode": "verify_full", "ca_certificate": "@/etc/passwd"},
        {"options": "-c log_statement=all"},
    ],
)
def test_settings_that_are_refused(config: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        PostgresConfig.model_validate(BASE | config)
    assert "s3cret" not in str(caught.value)

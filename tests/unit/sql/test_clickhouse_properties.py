"""WITH of ClickHouse stores."""

from __future__ import annotations

from typing import Any

import pytest

from leatstream.connectors.clickhouse.settings import ClickHouseConfig
from leatstream.errors import RequestError
from leatstream.model.registered import SecretName
from leatstream.sql.parser import parse
from leatstream.sql.statements import CreateStore
from leatstream.sql.store_properties import read_store_properties, read_store_update

PEM = "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----"
CH = "'type'=CLICKHOUSE, 'uris'='https://ch:8443', 'clickhouse.username'='leat', 'clickhouse.password'='s3cret'"
BASE = {"host": "ch", "port": 8443, "secure": True, "username": "leat", "password": "s3cret"}
PLAIN = {"port": 8123, "secure": False}


def written(text: str) -> Any:
    (statement,) = parse(f"CREATE STORE ch WITH ({text});")
    assert isinstance(statement, CreateStore)
    return statement.properties


@pytest.mark.parametrize(
    ("text", "config"),
    [
        (CH, {}),
        (CH.replace("https://ch:8443", "https://ch"), {}),
        (CH.replace("https://ch:8443", "http://ch:8123"), PLAIN),
        (CH.replace("https://ch:8443", "http://ch/"), PLAIN),
        (CH.replace("https://ch:8443", "jdbc:clickhouse://ch:8443"), {}),
        (CH.replace("https://ch:8443", "jdbc:clickhouse:https://ch:8443"), {}),
        (
            CH.replace("https://ch:8443", "jdbc:ch://ch:8123/shop") + ", 'tls.disabled'=TRUE",
            PLAIN | {"database": "shop"},
        ),
        (
            CH.replace("https://ch:8443", "https://[::1]:9443/a%20b"),
            {"host": "::1", "port": 9443, "database": "a b"},
        ),
        (CH + ", 'tls.disabled'=FALSE, 'tls.verify_server_hostname'=TRUE", {}),
        (CH + f", 'tls.ca_cert_file'='{PEM}'", {"ca_certificate": PEM}),
        (CH.replace("'s3cret'", '"ch password"'), {"password": SecretName("ch password")}),
    ],
)
def test_stores(text: str, config: dict[str, Any]) -> None:
    kind, found = read_store_properties(written(text))
    assert (kind, found) == ("clickhouse", BASE | config)
    ClickHouseConfig.model_validate({k: v for k, v in found.items() if not isinstance(v, SecretName)})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("'type'=CLICKHOUSE, 'clickhouse.username'='leat'", "needs 'uris'"),
        ("'type'=CLICKHOUSE, 'uris'='https://ch:8443'", "clickhouse.username"),
        (CH.replace("https://ch:8443", "ch:9000"), "is one address"),
        (CH.replace("https://ch:8443", "tcp://ch:9000"), "is one address"),
        (CH.replace("https://ch:8443", "https://ch:8443/a/b"), "is one address"),
        (CH.replace("https://ch:8443", "https://leat:sesame@ch:8443"), "no user and no password"),
        (CH.replace("https://ch:8443", "jdbc:clickhouse://ch:8443?password=sesame"), "no parameters"),
        (CH + ", 'tls.disabled'=TRUE", "contradicts 'uris'"),
        (CH + ", 'tls.verify_server_hostname'=FALSE", "always checked"),
        (CH.replace("https://ch:8443", "http://ch") + f", 'tls.ca_cert_file'='{PEM}'", "without encryption"),
        (CH + ", 'tls.client.cert_file'='x'", "log in with a password"),
        (CH + ", 'access_region'='x'", "reached directly"),
    ],
)
def test_faults(text: str, words: str) -> None:
    with pytest.raises(RequestError) as caught:
        read_store_properties(written(text))
    said = " ".join(f"{fault.detail} {fault.hint or ''}" for fault in caught.value.faults)
    assert words in said
    assert "sesame" not in said


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("'clickhouse.username'='other'", {"username": "other"}),
        ("'uris'='http://new:8124/shop'", {"host": "new", "port": 8124, "secure": False, "database": "shop"}),
        ("'tls.disabled'=TRUE", {"secure": False}),
        (f"'tls.ca_cert_file'='{PEM}'", {"ca_certificate": PEM}),
    ],
)
def test_updates(text: str, change: dict[str, Any]) -> None:
    present = {"host": "ch", "port": 8443, "secure": True, "username": "leat"}
    found = read_store_update(written(text), "clickhouse", present)
    assert found == present | {"password": None} | change

"""An Oracle store's settings, its words in SQL, names, and what Oracle's errors become."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from pydantic import ValidationError

from leatstream.connectors.oracle.connector import OracleConnector
from leatstream.connectors.oracle.errors import Place, store_error
from leatstream.connectors.oracle.names import entity_name, name_fault, table_of
from leatstream.connectors.oracle.settings import OracleConfig
from leatstream.connectors.registry import open_connector
from leatstream.errors import RequestError, StoreError
from leatstream.model.extras import install_extra
from leatstream.sql.parser import parse
from leatstream.sql.statements import CreateStore
from leatstream.sql.store_properties import read_store_properties, read_store_update

BASE = {"host": "db.example.com", "service": "shop", "username": "leat"}
PEM = "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----"
ORA = "'type'=ORACLE, 'uris'='db:1522/shop', 'oracle.username'='leat', 'oracle.password'='s3cret'"
READ = {"host": "db", "port": 1522, "service": "shop", "username": "leat", "password": "s3cret", "tls": False}


@pytest.mark.parametrize(
    ("uris", "host", "tls"),
    [("//db:1521/shop", "db", False), ("db:1521/shop", "db", False), ("tcps://db:1521/shop", "db", True)],
)
def test_an_address_of_jdbc_says_the_same(uris: str, host: str, tls: bool) -> None:
    text = f"'type'=ORACLE, 'uris'='jdbc:oracle:thin:@{uris}', 'oracle.username'='leat'"
    _, found = read_store_properties(written(text))
    assert found == {"host": host, "port": 1521, "service": "shop", "username": "leat", "tls": tls}


def written(text: str) -> Any:
    (statement,) = parse(f"CREATE STORE o WITH ({text});")
    assert isinstance(statement, CreateStore)
    return statement.properties


@pytest.mark.parametrize(
    "wrong",
    [
        {"host": "oracle://db"},
        {"host": "db:1521"},
        {"port": 0},
        {"service": "a/b"},
        {"username": 'a"b'},
        {"username": "proxy[user]"},
        {"ca_certificate": PEM},
        {"tls": True, "ca_certificate": "no pem"},
        {"password": ""},
        {"sid": "x"},
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        OracleConfig.model_validate(BASE | wrong)


def test_the_secret_is_not_shown() -> None:
    store = open_connector("oracle", "s", BASE, {"password": "s3cret"})
    assert isinstance(store, OracleConnector)
    assert "s3cret" not in repr(store.config)
    assert OracleConnector.secret_fields() == ("password",)
    assert set(OracleConnector.secret_addresses()) == {"host", "port", "service", "tls", "ca_certificate"}
    assert store.settings.where == "db.example.com:1521/shop"


@pytest.mark.parametrize(
    ("text", "config"),
    [
        (ORA, {}),
        (ORA.replace("db:1522", "oracle://db:1522"), {}),
        (ORA.replace("db:1522", "//db"), {"port": 1521}),
        (ORA.replace("db:1522", "tcps://[::1]"), {"host": "::1", "port": 2484, "tls": True}),
        (ORA + ", 'tls.disabled'=FALSE", {"tls": True}),
        (
            ORA.replace("db:", "tcps://db:") + f", 'tls.ca_cert_file'='{PEM}'",
            {"tls": True, "ca_certificate": PEM},
        ),
    ],
)
def test_stores(text: str, config: dict[str, Any]) -> None:
    kind, found = read_store_properties(written(text))
    assert (kind, found) == ("oracle", READ | config)
    OracleConfig.model_validate(found)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (ORA.replace("db:1522/shop", "db:1522:SID"), "one address"),
        (ORA.replace("db:1522/shop", "leat:s3cret@db/shop"), "no user"),
        (ORA.replace("'uris'='db:1522/shop', ", ""), "needs 'uris'"),
        (ORA.replace("db:", "tcps://db:") + ", 'tls.disabled'=TRUE", "contradicts"),
        (ORA + f", 'tls.ca_cert_file'='{PEM}'", "without TLS"),
        (ORA + ", 'oracle.sid'='X'", "service"),
        (ORA + ", 'tls.client.key_file'='x'", "password"),
    ],
)
def test_wrong_stores(text: str, word: str) -> None:
    with pytest.raises(RequestError) as caught:
        read_store_properties(written(text))
    assert any(word in f"{fault.detail} {fault.hint}" for fault in caught.value.faults)
    assert "s3cret" not in str(caught.value)


def test_updates_keep_what_they_do_not_name() -> None:
    present = {k: v for k, v in READ.items() if k != "password"} | {"tls": True, "ca_certificate": PEM}

    def update(text: str) -> dict[str, Any]:
        return dict(read_store_update(written(text), "oracle", present))

    found = update("'oracle.username'='other'")
    assert found == present | {"username": "other", "password": None}
    assert update("'tls.disabled'=TRUE").get("ca_certificate") is None
    assert update("'uris'='db2/x'")["tls"] is False


def test_tables_and_entities() -> None:
    config = OracleConfig.model_validate(BASE)
    for entity, table in (("orders", ("LEAT", "ORDERS")), ("sales.a.b", ("SALES", "a.b"))):
        assert table_of(config, entity) == table
        assert entity_name(config, *table) == entity
    assert entity_name(config, "LEAT", "a.b") == "leat.a.b"
    for wrong in ("", "a.", ".b", 'a"b', "x" * 129, "leatstream_batches", "leat.leat_staged_1"):
        assert name_fault(wrong)


def test_a_relations_table() -> None:
    store = open_connector("oracle", "s", BASE)
    schema, table = store.table_names
    assert store.named_entity({}, "orders") == ("orders", [])
    assert store.named_entity({schema: "leat", table: "t"}, "orders") == ("t", [])
    assert store.named_entity({schema: "sales"}, "orders") == ("sales.orders", [])
    assert store.named_entity({schema: "a.b"}, "orders")[1]


@pytest.mark.parametrize(
    ("code", "text", "table", "told", "word"),
    [
        ("ORA-01017", "invalid username/password", None, "store-auth-failed", "refused the login"),
        ("ORA-01031", "insufficient privileges", None, "store-auth-failed", "may not do this"),
        ("DPY-6001", 'Service "x" is not registered', None, "store-rejected", "no service shop"),
        ("DPY-6005", "cannot connect", None, "store-unreachable", "did not finish"),
        ("ORA-00060", "deadlock detected", "t", "store-unreachable", "another transaction"),
        ("ORA-00942", "table does not exist", None, "entity-not-found", "no such table"),
        ("ORA-00942", "table does not exist", "t", "store-rejected", "no such table"),
        ("ORA-01918", "user 'X' does not exist", None, "store-rejected", "no schema"),
        ("ORA-00922", "ORA-00922: missing option\nHelp: …", None, "store-rejected", "missing option (ORA"),
        (
            "ORA-01400",
            'cannot insert NULL into ("S"."T"."ID")',
            "t",
            "store-rejected",
            "column id: it is NULL",
        ),
        (
            "ORA-00001",
            "unique constraint (S.T_PK) violated\nORA-03301: row with column values (A:sesame)",
            "t",
            "store-rejected",
            "constraint S.T_PK: another row has it",
        ),
        ("ORA-01722", 'unable to convert string value "sesame"', "t", "store-rejected", "no number"),
        ("ORA-17999", "something about sesame", "t", "store-rejected", "does not fit"),
    ],
)
def test_what_oracle_says_is_told_without_values(
    code: str, text: str, table: str | None, told: str, word: str
) -> None:
    error = store_error(Place("s", "h:1521/shop", "trying"), code, text, 5.0, table)
    assert error.code == told
    assert word in error.detail
    assert "sesame" not in str(error)


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "oracledb", None)
    with pytest.raises(StoreError, match="oracledb") as caught:
        open_connector("oracle", "s", BASE).test(1)
    assert caught.value.faults[0].hint == install_extra("oracle")


def test_nothing_is_read_from_it_as_a_stream() -> None:
    assert not OracleConnector.capabilities.source
    assert not OracleConnector.capabilities.cdc

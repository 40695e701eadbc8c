"""Settings of a Snowflake store, its WITH, and the names of its tables."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError
from snowflake_server import new_key, pem

from leatstream.connectors.registry import open_connector
from leatstream.connectors.snowflake.connector import BUFFER, SnowflakeConnector
from leatstream.connectors.snowflake.entity import Place, entity_name, place_of
from leatstream.connectors.snowflake.settings import SnowflakeConfig, key_bytes
from leatstream.errors import RequestError
from leatstream.sql.parser import parse
from leatstream.sql.statements import CreateStore
from leatstream.sql.store_properties import read_store_properties, read_store_update

KEY = new_key()
BASE = {"account": "acme-x1", "username": "LEAT", "warehouse": "LOADING"}
USER = "'type'=SNOWFLAKE, 'snowflake.username'='LEAT', 'snowflake.warehouse_name'='LOADING'"
URIS = "'uris'='https://acme-x1.snowflakecomputing.com'"
PEM = "-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----"


def written(text: str) -> Any:
    (statement,) = parse(f"CREATE STORE sf WITH ({text});")
    assert isinstance(statement, CreateStore)
    return statement.properties


@pytest.mark.parametrize(
    ("text", "config"),
    [
        (URIS, {}),
        ("'snowflake.account_id'='acme-x1'", {}),
        (URIS + ", 'snowflake.account_id'='acme-x1', 'snowflake.cloud.region'='AWS us-east-1'", {}),
        ("'uris'='https://acme-x1.snowflakecomputing.com:443/'", {}),
        (
            "'uris'='https://p.example.com:8443', 'snowflake.account_id'='acme-x1'",
            {"host": "p.example.com:8443"},
        ),
        ("'uris'='http://127.0.0.1:99', 'snowflake.account_id'='acme-x1'", {"host": "http://127.0.0.1:99"}),
        (
            URIS + ", 'snowflake.role_name'='LOADER', 'snowflake.database'='shop'",
            {"role": "LOADER", "database": "shop"},
        ),
        (
            URIS + f", 'snowflake.client.key_file'='{PEM}', 'snowflake.client.key_passphrase'='p'",
            {"private_key": PEM, "private_key_passphrase": "p"},
        ),
        (URIS + ", 'snowflake.password'='s3cret'", {"password": "s3cret", "login": "password"}),
    ],
)
def test_stores(text: str, config: dict[str, Any]) -> None:
    kind, found = read_store_properties(written(f"{USER}, {text}"))
    assert (kind, found) == ("snowflake", BASE | config)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (USER, "needs its account"),
        (f"{USER}, 'uris'='https://p.example.com'", "does not name the account"),
        (f"{USER}, 'uris'='https://u:sesame@acme-x1.snowflakecomputing.com'", "is one address"),
        (f"{USER}, 'uris'='jdbc:snowflake://acme'", "is one address"),
        (f"{USER}, {URIS}, 'snowflake.client.key_file'='/home/me/sesame.p8'", "PEM"),
        (f"{USER}, {URIS}, 'snowflake.client.key_passphrase'='sesame'", "needs 'snowflake.client.key_file'"),
        (f"{USER}, {URIS}, 'snowflake.client.key_file'='{PEM}', 'snowflake.password'='sesame'", "no meaning"),
        (f"{USER}, {URIS}, 'tls.disabled'=TRUE", "TLS only"),
        ("'type'=SNOWFLAKE, " + URIS, "snowflake.warehouse_name"),
    ],
)
def test_refused(text: str, word: str) -> None:
    with pytest.raises(RequestError) as caught:
        read_store_properties(written(text))
    told = str([(fault.detail, fault.hint) for fault in caught.value.faults])
    assert word in told
    assert "sesame" not in told


def update(text: str, present: dict[str, Any]) -> dict[str, Any]:
    return read_store_update(written(text), "snowflake", present)


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("'snowflake.warehouse_name'='OTHER'", {"warehouse": "OTHER"}),
        ("'uris'='https://acme-y2.snowflakecomputing.com'", {"account": "acme-y2", "host": None}),
        ("'snowflake.account_id'='acme-y2'", {"account": "acme-y2", "host": None}),
    ],
)
def test_an_update_keeps_what_it_does_not_name(text: str, change: dict[str, Any]) -> None:
    present = BASE | {"role": "LOADER", "host": "p.example.com"}
    found = update(text, present)
    secrets = ("private_key", "private_key_passphrase", "password")
    assert {k: v for k, v in found.items() if k not in secrets} == {
        k: v for k, v in (present | change).items() if v is not None
    }
    assert {k: found[k] for k in secrets} == dict.fromkeys(secrets)


def test_another_login_replaces_the_former_one() -> None:
    assert update("'snowflake.password'='s'", BASE) == BASE | {"password": "s", "login": "password"}
    by_password = BASE | {"login": "password"}
    assert update(f"'snowflake.client.key_file'='{PEM}'", by_password) == BASE | {"private_key": PEM}
    assert update("'snowflake.role_name'='R'", by_password)["login"] == "password"


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"account": "acme-x1.snowflakecomputing.com"}, "account identifier"),
        ({"account": "a b"}, "account identifier"),
        ({"host": "http://example.com"}, "this machine only"),
        ({"host": "https://example.com/path"}, "one host name"),
        ({"host": "example.com:99999"}, "one host name"),
        ({"warehouse": ""}, "1 to 255"),
        ({"password": " "}, "not empty"),
        ({"private_key": pem(KEY, "sesame")}, "is encrypted"),
        ({"private_key": pem(KEY, "sesame"), "private_key_passphrase": "other"}, "does not open"),
        ({"private_key": pem(KEY), "private_key_passphrase": "sesame"}, "is not encrypted"),
        ({"private_key": PEM}, "cannot be read"),
    ],
)
def test_settings_are_checked(settings: dict[str, Any], word: str) -> None:
    with pytest.raises(ValidationError) as caught:
        SnowflakeConfig.model_validate(BASE | settings)
    told = str([error["msg"] for error in caught.value.errors(include_input=False)])
    assert word in told
    assert "sesame" not in told


def test_a_key_is_opened_with_its_passphrase() -> None:
    plain = SnowflakeConfig.model_validate(BASE | {"private_key": pem(KEY)})
    locked = SnowflakeConfig.model_validate(
        BASE | {"private_key": pem(KEY, "p"), "private_key_passphrase": "p"}
    )
    keys = {
        key_bytes(one.private_key, one.private_key_passphrase)
        for one in (plain, locked)
        if one.private_key is not None
    }
    assert len(keys) == 1
    assert "PRIVATE" not in repr(locked)


def test_the_address_follows_from_the_account() -> None:
    found = SnowflakeConfig.model_validate(BASE | {"account": "Acme-My_Account"})
    assert found.address == ("https", "acme-my-account.snowflakecomputing.com", 443)
    assert SnowflakeConfig.model_validate(BASE | {"host": "p.example.com:8443"}).address[1:] == (
        "p.example.com",
        8443,
    )


@pytest.mark.parametrize(
    ("name", "database", "place", "back"),
    [
        ("orders", "shop", ("shop", "public", "orders"), "orders"),
        ("SHOP.PUBLIC.ORDERS", "shop", ("shop", "public", "orders"), "orders"),
        ("sales.orders", "SHOP", ("shop", "sales", "orders"), "sales.orders"),
        ("other.public.orders", "shop", ("other", "public", "orders"), "other.public.orders"),
        ("shop.sales.Orders", None, ("shop", "sales", "Orders"), "shop.sales.Orders"),
    ],
)
def test_names_of_tables(name: str, database: str | None, place: tuple[str, str, str], back: str) -> None:
    found = place_of(name, database)
    assert found == Place(*place)
    assert entity_name(found, database) == back
    assert place_of(back, database) == found
    assert found.statement.count(".") == 2


def test_properties_of_a_relation() -> None:
    connector = open_connector("snowflake", "sf", BASE | {"database": "shop"})
    assert isinstance(connector, SnowflakeConnector)
    named = {"snowflake.db.name": "LAKE", "snowflake.schema.name": "RAW", "snowflake.table.name": "T"}
    entity, faults = connector.named_entity(named, "o")
    assert (connector.canonical_entity(entity), faults) == ("lake.raw.t", [])
    assert connector.canonical_entity(connector.named_entity({}, "o")[0]) == "o"
    _, (fault,) = connector.named_entity({"snowflake.schema.name": "a.b"}, "o")
    assert fault.name == "snowflake.schema.name"


def test_how_often_batches_are_written() -> None:
    check = SnowflakeConnector.relation_options
    assert SnowflakeConnector.trigger_interval_ms({}) == 10_000
    found, faults = check({BUFFER: 5000, "snowflake.table.name": "t"}, ["a"], "json")
    assert (found, faults) == ({BUFFER: "5000"}, [])
    assert SnowflakeConnector.trigger_interval_ms(found) == 5000
    for wrong in (0, "soon", 10**7, 2.5):
        assert [fault.name for fault in check({BUFFER: wrong}, ["a"], "json")[1]] == [BUFFER]
    assert [fault.name for fault in check({"snowflake.other": 1}, ["a"], "json")[1]] == ["snowflake.other"]

"""A Databricks store's settings, its words in SQL, names and types."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from pydantic import ValidationError

from leatstream.connectors.databricks.connector import DatabricksConnector
from leatstream.connectors.databricks.errors import _file_error
from leatstream.connectors.databricks.names import entity_name, full_name, name_fault
from leatstream.connectors.databricks.records import _json
from leatstream.connectors.databricks.settings import DatabricksConfig
from leatstream.connectors.databricks.types import column_type, fits, read_type
from leatstream.connectors.registry import open_connector
from leatstream.errors import RequestError, StoreError
from leatstream.model.extras import install_extra
from leatstream.model.types import known_types, parse_type
from leatstream.sql.parser import parse
from leatstream.sql.statements import CreateStore
from leatstream.sql.store_properties import read_store_properties, read_store_update

HOST = "https://dbc-1.cloud.databricks.com"
BASE: dict[str, Any] = {"host": HOST, "warehouse_id": "abc123"}
FILES = {"bucket": "acme-lake", "region": "eu-west-1"}
SQL = (
    f"'type'=DATABRICKS, 'uris'='{HOST}', 'databricks.warehouse_id'='abc123', 'databricks.app_token'='s3cret',"
    " 'databricks.warehouse_port'=443, 'databricks.cloud.s3.bucket'='acme-lake',"
    " 'databricks.cloud.region'='AWS eu-west-1', 'aws.access_key_id'='AKIA', 'aws.secret_access_key'='t0p'"
)


def written(text: str) -> Any:
    (statement,) = parse(f"CREATE STORE d WITH ({text});")
    assert isinstance(statement, CreateStore)
    return statement.properties


@pytest.mark.parametrize(
    "wrong",
    [
        {"host": "http://dbc-1.cloud.databricks.com"},
        {"host": "ftp://x"},
        {"host": "a b"},
        {"warehouse_id": "a/b"},
        {"catalog": "a.b"},
        {"token": "x", "client_id": "y", "client_secret": "z"},
        {"s3": {"bucket": "acme-lake"}},
        {"s3": FILES | {"bucket": "Acme"}},
        {"s3": FILES | {"prefix": "../up"}},
        {"s3": FILES | {"access_key_id": "AKIA"}},
        {"volume": "/Volumes/main/default"},
        {"volume": "s3://acme-lake/staging"},
        {"volume": "/Volumes/main/default/staging/../other"},
        {"volume": "/Volumes/main/default/it's"},
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        DatabricksConfig.model_validate(BASE | wrong)


def test_the_address_is_written_with_or_without_its_scheme() -> None:
    for host in ("dbc-1.cloud.databricks.com", HOST, f"{HOST}/"):
        assert DatabricksConfig.model_validate(BASE | {"host": host}).host == HOST
    assert (
        DatabricksConfig.model_validate(BASE | {"host": "http://127.0.0.1:80"}).host == "http://127.0.0.1:80"
    )


def test_no_secret_is_shown() -> None:
    secrets = {"token": "s3cret", "s3.secret_access_key": "t0p"}
    files = FILES | {"access_key_id": "AKIA"}
    store = open_connector("databricks", "s", BASE | {"s3": files}, secrets)
    assert not {"s3cret", "t0p"} & set(repr(store.config))
    assert "s3cret" not in repr(store.config)
    assert "t0p" not in repr(store.config)
    assert set(DatabricksConnector.secret_fields()) == {"token", "client_secret", "s3.secret_access_key"}


def test_stores_in_the_reference_products_words() -> None:
    kind, found = read_store_properties(written(SQL))
    files = FILES | {"access_key_id": "AKIA", "secret_access_key": "t0p"}
    assert (kind, found) == ("databricks", BASE | {"token": "s3cret", "s3": files})
    DatabricksConfig.model_validate(found)


def test_a_store_without_a_bucket() -> None:
    text = SQL.partition(" 'databricks.warehouse_port'")[0].rstrip(",")
    assert read_store_properties(written(text))[1] == BASE | {"token": "s3cret"}


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (SQL.replace("'databricks.cloud.s3.bucket'='acme-lake',", ""), "bucket"),
        (SQL.replace("'databricks.cloud.region'='AWS eu-west-1',", ""), "AWS region"),
        (SQL.replace("443", "444"), "is 443"),
        (SQL.replace("'databricks.warehouse_id'='abc123',", ""), "needs 'databricks.warehouse_id'"),
    ],
)
def test_wrong_stores(text: str, word: str) -> None:
    with pytest.raises(RequestError) as caught:
        read_store_properties(written(text))
    assert any(word in f"{fault.detail} {fault.hint}" for fault in caught.value.faults)
    assert "s3cret" not in str(caught.value)


def test_a_store_of_managed_tables() -> None:
    text = SQL.partition(" 'databricks.warehouse_port'")[0] + " 'databricks.volume'='/Volumes/a/b/c/d/'"
    _, found = read_store_properties(written(text))
    assert DatabricksConfig.model_validate(found).volume == "/Volumes/a/b/c/d"
    assert "s3" not in found


def test_updates_keep_what_they_do_not_name() -> None:
    present = BASE | {"s3": FILES}
    found = read_store_update(written("'databricks.catalog'='other'"), "databricks", present)
    assert found["catalog"] == "other"
    assert found["host"] == HOST
    assert found["s3"]["bucket"] == "acme-lake"


def test_tables_and_entities() -> None:
    for entity, full in (
        ("orders", "main.default.orders"),
        ("sales.orders", "main.sales.orders"),
        ("other.sales.orders", "other.sales.orders"),
    ):
        assert full_name("main", entity) == full
        assert entity_name("main", full) == entity
    assert DatabricksConnector.canonical_entity("default.Orders") == "orders"
    assert all(name_fault(wrong) for wrong in ("", "a b", "a.b.c.d", "a/b"))


def test_a_relations_table() -> None:
    store = open_connector("databricks", "s", BASE)
    catalog, schema, table = store.table_names
    assert store.named_entity({}, "o") == ("default.o", [])
    assert store.named_entity({catalog: "MAIN", schema: "s", table: "t"}, "o") == ("s.t", [])
    assert store.named_entity({catalog: "other", schema: "s"}, "o") == ("other.s.o", [])
    assert store.named_entity({schema: "a.b"}, "o")[1]
    _, faults = store.relation_options({"table.data.file.location": "s3://x/y"}, [], "json")
    assert "bucket of the store" in faults[0].detail


SAMPLES = {
    "ARRAY": "ARRAY<BIGINT>",
    "MAP": "MAP<VARCHAR, BIGINT>",
    "STRUCT": "STRUCT<A BIGINT, b ARRAY<INTEGER>>",
    "DECIMAL": "DECIMAL(9, 2)",
}


@pytest.mark.parametrize("kind", known_types())
def test_a_made_column_takes_what_it_was_made_for(kind: str) -> None:
    parsed = parse_type(SAMPLES.get(kind, kind))
    assert fits(parsed, column_type(parsed))
    if kind not in ("TIME", "VARBINARY"):
        assert read_type(column_type(parsed)) == parsed


@pytest.mark.parametrize(
    ("kind", "native", "answer"),
    [
        ("SMALLINT", "bigint", True),
        ("BIGINT", "int", False),
        ("BIGINT", "decimal(19,0)", True),
        ("BIGINT", "double", False),
        ("INTEGER", "double", True),
        ("FLOAT", "double", True),
        ("DECIMAL(10, 2)", "decimal(12,4)", True),
        ("DECIMAL(10, 2)", "decimal(10,1)", False),
        ("VARCHAR", "varchar(9)", False),
        ("VARCHAR(9)", "string", True),
        ("TIMESTAMP", "timestamp", False),
        ("TIMESTAMP_LTZ", "timestamp", True),
        ("STRUCT<a BIGINT>", "struct<a:bigint>", True),
        ("ARRAY<BIGINT>", "array<int>", False),
    ],
)
def test_fits(kind: str, native: str, answer: bool) -> None:
    assert fits(parse_type(kind), native) is answer


def test_what_has_no_counterpart_is_a_text() -> None:
    assert str(read_type("interval day to second")) == "VARCHAR"
    assert str(read_type("variant")) == "VARCHAR"


def test_rows_are_shown_as_json() -> None:
    row = {"m": [("k", 1)], "f": float("nan"), "l": [float("-inf"), None], "s": {"t": "x"}, "e": []}
    assert _json(row) == b'{"m":{"k":1},"f":"NaN","l":["-Infinity",null],"s":{"t":"x"},"e":[]}'


@pytest.mark.parametrize(
    ("text", "code", "word"),
    [
        (
            "Generic S3 error: Client error with status 403 Forbidden: AccessDenied",
            "store-auth-failed",
            "refuses",
        ),
        ("Generic S3 error: 404 Not Found NoSuchBucket", "store-rejected", "does not exist"),
        ("Generic S3 error: Error performing GET http://x", "store-unreachable", "does not answer"),
        ("Invariant violations: sesame", "store-rejected", "does not take a row"),
    ],
)
def test_errors_of_files(text: str, code: str, word: str) -> None:
    error = _file_error("Store s: table t", text)
    assert error.code == code
    assert word in error.detail
    assert "sesame" not in str(error)


def test_missing_libraries_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "databricks.sdk", None)
    with pytest.raises(StoreError, match="databricks-sdk") as caught:
        open_connector("databricks", "s", BASE, {"token": "x"}).test(1)
    assert caught.value.faults[0].hint == install_extra("databricks")


def test_a_store_without_a_login() -> None:
    with pytest.raises(StoreError, match="no usable credentials") as caught:
        open_connector("databricks", "s", BASE).test(1)
    assert caught.value.code == "store-auth-failed"


def test_sinks_are_written_seldom_and_nothing_is_read_as_a_stream() -> None:
    assert DatabricksConnector.trigger_interval_ms({}) == 30_000
    assert not DatabricksConnector.capabilities.source

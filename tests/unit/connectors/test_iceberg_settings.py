"""Settings of the Iceberg kinds, from SQL and from REST, and the names of their tables."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from leatstream.connectors.iceberg import names
from leatstream.connectors.iceberg.connector import IcebergGlueConnector, IcebergRestConnector
from leatstream.connectors.iceberg.options import INTERVAL, SKIP, START, check_options, interval_ms
from leatstream.connectors.iceberg.settings import IcebergGlueConfig, IcebergRestConfig
from leatstream.errors import RequestError
from leatstream.sql.property_values import Given
from leatstream.sql.store_properties import read_store_properties, read_store_update

REST = {
    "type": "ICEBERG_REST",
    "uris": "https://catalog.example.com/api/catalog",
    "iceberg.catalog.id": "lake",
    "iceberg.rest.client_id": "leat",
    "iceberg.rest.client_secret": "sesame",
    "iceberg.rest.client_scope": "PRINCIPAL_ROLE:ALL",
}
GLUE = {
    "type": "ICEBERG_GLUE",
    "aws.region": "eu-west-1",
    "iceberg.warehouse.default_path": "s3://acme-lake/warehouse",
    "iceberg.catalog.id": "123456789012",
    "aws.iam_role_arn": "arn:aws:iam::123456789012:role/leat",
    "aws.iam_external_id": "x1",
}


def given(properties: dict[str, Any]) -> Given:
    return properties


def test_the_reference_products_words_make_a_rest_store() -> None:
    kind, config = read_store_properties(given(REST))
    assert (kind, config) == (
        "iceberg_rest",
        {
            "uri": "https://catalog.example.com/api/catalog",
            "warehouse": "lake",
            "client_id": "leat",
            "client_secret": "sesame",
            "scope": "PRINCIPAL_ROLE:ALL",
        },
    )
    found = IcebergRestConfig.model_validate(config)
    assert "sesame" not in repr(found)


def test_the_reference_products_words_make_a_glue_store() -> None:
    kind, config = read_store_properties(given(GLUE))
    assert (kind, config) == (
        "iceberg_glue",
        {
            "region": "eu-west-1",
            "role_arn": "arn:aws:iam::123456789012:role/leat",
            "external_id": "x1",
            "catalog_id": "123456789012",
            "warehouse_path": "s3://acme-lake/warehouse",
        },
    )
    IcebergGlueConfig.model_validate(config)


@pytest.mark.parametrize(
    ("base", "wrong", "word"),
    [
        (REST, {"uris": "catalog:8181"}, "http:// or https://"),
        (REST, {"iceberg.rest.token": "t"}, "one way to log in"),
        (REST, {"tls.disabled": True}, "scheme"),
        (REST, {"iceberg.rest.secret": "x"}, "iceberg.rest.secret"),
        (GLUE, {"iceberg.warehouse.default_path": "/warehouse"}, "S3 path"),
        (GLUE, {"aws.region": "Europe"}, "AWS region"),
        ({"type": "ICEBERG_REST"}, {}, "'uris'"),
        ({"type": "ICEBERG_GLUE"}, {}, "AWS region"),
    ],
)
def test_faults_are_said_without_values(base: dict[str, Any], wrong: dict[str, Any], word: str) -> None:
    with pytest.raises(RequestError) as caught:
        read_store_properties(given(base | wrong))
    said = " ".join(f"{fault.detail} {fault.hint}" for fault in caught.value.faults)
    assert word in said
    assert "sesame" not in said


def test_an_update_keeps_what_it_does_not_name() -> None:
    _, config = read_store_properties(given(REST))
    config.pop("client_secret")
    changed = read_store_update(given({"iceberg.catalog.id": "other"}), "iceberg_rest", config)
    assert changed == config | {"warehouse": "other", "client_secret": None}
    token = read_store_update(given({"iceberg.rest.token": "t"}), "iceberg_rest", config)
    assert token == {"uri": config["uri"], "warehouse": "lake", "token": "t"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"uri": "ftp://x"},
        {"uri": "https://user:secret@host"},
        {"client_secret": None},
        {"client_id": "a:b"},
        {"token": "t"},
        {"ca_certificate": "no pem"},
        {"s3": {"access_key_id": "a"}},
    ],
)
def test_settings_that_do_not_go_together(wrong: dict[str, Any]) -> None:
    good = {"uri": "https://host/", "client_id": "leat", "client_secret": "s"}
    assert IcebergRestConfig.model_validate(good).uri == "https://host"
    with pytest.raises(ValidationError):
        IcebergRestConfig.model_validate(good | wrong)


def test_secrets_and_who_receives_them() -> None:
    assert set(IcebergRestConnector.secret_fields()) == {"client_secret", "token", "s3.secret_access_key"}
    assert {"uri", "token_uri", "s3.endpoint_url", "ca_certificate"} == set(
        IcebergRestConnector.secret_addresses()
    )
    assert set(IcebergGlueConnector.secret_fields()) == {"secret_access_key"}
    assert {"endpoint_url", "s3_endpoint_url"} == set(IcebergGlueConnector.secret_addresses())


def test_names() -> None:
    assert names.split("a.b.c") == ("a", "b", "c")
    assert names.split("orders") == ("default", "orders")
    assert names.joined(("a", "b.c")) is None
    assert names.rest_fault("a.b.c") is None
    for name in ("a.", "a./b", "a.\x00"):
        assert names.rest_fault(name)
    assert names.glue_fault("shop.orders_2") is None
    for name in ("a.b.c", "shop.Orders", "shop.my-orders"):
        assert names.glue_fault(name)


def test_properties_of_relations() -> None:
    found, faults = check_options({INTERVAL: 5000, SKIP: True, START: "123"})
    assert (found, faults) == ({INTERVAL: "5000", SKIP: "true", START: "123"}, [])
    wrong = {INTERVAL: "soon", SKIP: "perhaps", START: "first"}
    assert [fault.name for fault in check_options(wrong)[1]] == list(wrong)
    assert interval_ms({}, keyed=False) == 10_000
    assert interval_ms({}, keyed=True) == 60_000
    assert interval_ms(found, keyed=True) == 5000

"""A value that a setting may not be is refused at its own property, in the statement's words."""

from __future__ import annotations

import pytest

from leatstream.errors import RequestError
from leatstream.sql.parser import parse
from leatstream.sql.statements import CreateStore
from leatstream.sql.store_properties import read_store_properties, read_store_update

BRICKS = "'type'=DATABRICKS, 'databricks.warehouse_id'='a', 'databricks.app_token'='sesame'"
FLAKE = "'type'=SNOWFLAKE, 'snowflake.username'='A', 'snowflake.warehouse_name'='W'"


def given(text: str) -> CreateStore:
    (statement,) = parse(f"CREATE STORE s WITH ({text})")
    assert isinstance(statement, CreateStore)
    return statement


@pytest.mark.parametrize(
    ("text", "value", "words"),
    [
        (f"{BRICKS}, 'uris'='http://dbc-1.example.com'", "'http:", "'uris': write the workspace's host name"),
        (f"{BRICKS}, 'uris'='https://x', 'databricks.volume'='/tmp'", "'/tmp'", "'databricks.volume':"),
        (
            f"{FLAKE}, 'snowflake.account_id'='a b', 'snowflake.password'='sesame'",
            "'a b'",
            "'snowflake.account_id':",
        ),
        ("'type'=ORACLE, 'uris'='-db:1521/shop', 'oracle.username'='l'", "'-db", "'uris':"),
        (
            "'type'=ICEBERG_REST, 'uris'='https://x', 'iceberg.rest.token'='ses ame'",
            "'ses",
            "'iceberg.rest.token':",
        ),
        (
            "'type'=ICEBERG_GLUE, 'aws.region'='eu-west-1', 'iceberg.catalog.id'='1'",
            "'1'",
            "'iceberg.catalog.id':",
        ),
    ],
)
def test_the_property_is_named_and_pointed_at(text: str, value: str, words: str) -> None:
    statement = given(text)
    with pytest.raises(RequestError) as caught:
        read_store_properties(statement.properties)
    (fault,) = caught.value.faults
    assert fault.detail.startswith(words), fault
    assert "ses" not in fault.detail
    assert fault.position is not None
    assert f"CREATE STORE s WITH ({text})"[fault.position.offset :].startswith(value)


def test_a_secret_that_stays_is_not_judged() -> None:
    present = {"uri": "https://x", "client_id": "leat"}
    update = given("'type'=ICEBERG_REST, 'iceberg.catalog.id'='lake'").properties
    found = read_store_update({k: v for k, v in update.items() if k != "type"}, "iceberg_rest", present)
    assert found == {"uri": "https://x", "warehouse": "lake", "client_id": "leat", "client_secret": None}

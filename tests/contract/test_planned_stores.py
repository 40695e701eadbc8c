"""Stores that are only planned: what is wrong with one names the setting, as a plan shows the sentence alone."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from leatstream.connectors.clickhouse.connector import ClickHouseConnector
from leatstream.connectors.databricks.connector import DatabricksConnector
from leatstream.connectors.iceberg.connector import IcebergRestConnector
from leatstream.rest.app import create_app

LAKE = {"uri": "https://catalog.example.com", "warehouse": "w", "token": "two words"}
BRICKS = {"host": "dbc-1.cloud.databricks.com", "warehouse_id": "abc", "token": "two words"}
HOUSE = {"host": "ch.example.com", "username": "leat", "password": ""}


@pytest.mark.parametrize(
    ("kind", "given", "member"),
    [
        ("iceberg_rest", LAKE, "token"),
        ("databricks", BRICKS, "token"),
        ("clickhouse", HOUSE, "password"),
    ],
)
def test_a_setting_that_is_wrong_is_named(fresh: Any, kind: str, given: dict[str, Any], member: str) -> None:
    kinds: dict[str, Any] = {
        "iceberg_rest": IcebergRestConnector,
        "databricks": DatabricksConnector,
        "clickhouse": ClickHouseConnector,
    }
    env = fresh.with_real(**kinds)
    body = {"sql": "SELECT 1", "assume": {"stores": [{"name": "planned", kind: given}]}}
    with TestClient(create_app(env), headers=fresh.headers) as client:
        answer = client.post("/v1/statements:validate", json=body)
    problem = answer.json()
    assert answer.status_code == 422, problem
    (fault,) = problem["errors"]
    assert fault["detail"].partition(": ")[0].endswith(f".{member}"), problem
    assert "two words" not in answer.text

"""Stores of tables as code: applied, settled, a secret rotated, imported, and their secrets nowhere.

ClickHouse and Glue have servers here. The others have none: such a store is kept and errored, which is a warning.
"""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from aws_server import REGION, aws_server
from clickhouse_server import PASSWORD, ClickHouseServer

pytestmark = pytest.mark.core

STORES = """
variable "password" {
  type      = string
  ephemeral = true
}
variable "token" {
  type      = string
  ephemeral = true
}
resource "leatstream_store" "clickhouse" {
  name = "clickhouse_$tag"
  clickhouse = {
    host                = "127.0.0.1"
    port                = $port
    secure              = false
    database            = "shop"
    username            = "$user"
    password_wo         = var.password
    password_wo_version = $version
  }
}
resource "leatstream_entity" "orders" {
  store = leatstream_store.clickhouse.name
  name  = "orders_$tag"
  clickhouse = {
    columns     = [{ name = "id", type = "BIGINT" }, { name = "item", type = "VARCHAR", not_null = true }]
    primary_key = ["id"]
  }
}
resource "leatstream_store" "glue" {
  name = "glue_$tag"
  iceberg_glue = {
    region                       = "$region"
    endpoint_url                 = "$aws"
    s3_endpoint_url              = "$aws"
    warehouse_path               = "s3://$tag-lake/warehouse"
    access_key_id                = "AKIAEXAMPLE"
    secret_access_key_wo         = var.token
    secret_access_key_wo_version = $version
  }
}
resource "leatstream_store" "rest" {
  name = "rest_$tag"
  iceberg_rest = {
    uri                      = "http://127.0.0.1:1"
    warehouse                = "lake"
    client_id                = "leatstream"
    client_secret_wo         = var.token
    client_secret_wo_version = $version
    s3                       = { region = "$region" }
  }
}
resource "leatstream_store" "snowflake" {
  name = "snowflake_$tag"
  snowflake = {
    account             = "acme-x1"
    host                = "127.0.0.1"
    username            = "LEAT"
    warehouse           = "LOADING"
    login               = "password"
    password_wo         = var.token
    password_wo_version = $version
  }
}
resource "leatstream_store" "databricks" {
  name = "databricks_$tag"
  databricks = {
    host             = "https://127.0.0.1:1"
    warehouse_id     = "abc"
    token_wo         = var.token
    token_wo_version = $version
  }
}
resource "leatstream_store" "oracle" {
  name = "oracle_$tag"
  oracle = {
    host                = "127.0.0.1"
    port                = 1
    service             = "shop"
    username            = "leat"
    password_wo         = var.token
    password_wo_version = $version
  }
}
output "states" {
  value = [leatstream_store.clickhouse.status.state, leatstream_store.glue.status.state]
}
"""
TOKEN = "hunter2-of-tables"
UNREACHABLE = ("rest", "snowflake", "databricks", "oracle")
KINDS = ("clickhouse", "glue", *UNREACHABLE)


def test_stores_of_tables(terraform: Any, clickhouse: ClickHouseServer) -> None:
    tag = uuid.uuid4().hex[:8]
    given = clickhouse.config()

    def write(version: int) -> None:
        words = {
            "tag": tag,
            "port": given["port"],
            "user": given["username"],
            "region": REGION,
            "aws": address,
            "version": version,
        }
        text = STORES
        for name, value in words.items():
            text = text.replace(f"${name}", str(value))
        terraform.write(text)

    with aws_server() as address:
        terraform.extra_env = {"TF_VAR_password": PASSWORD, "TF_VAR_token": TOKEN}
        write(1)
        terraform.init()
        try:
            said = str(terraform.apply())
            terraform.is_settled()
            assert terraform.output("states") == ["ready", "ready"]
            for kind in UNREACHABLE:
                assert f"leatstream_store.{kind}" in said, "a store that does not answer is a warning"
            text = said + terraform.state_text()
            assert PASSWORD not in text
            assert TOKEN not in text
            write(2)
            changed = terraform.plan().actions()
            assert list(changed.values()) == [["update"]] * 6, (
                "each secret is sent again, nothing is replaced"
            )
            terraform.apply()
            terraform.is_settled()
            for kind in KINDS:
                terraform.run("state", "rm", f"leatstream_store.{kind}")
                terraform.run("import", f"leatstream_store.{kind}", f"{kind}_{tag}")
            changed = terraform.plan().actions()
            # An import does not know the version of a secret, so it is sent again.
            assert changed == {f"leatstream_store.{kind}": ["update"] for kind in KINDS}
            terraform.apply()
            terraform.is_settled()
        finally:
            terraform.destroy()

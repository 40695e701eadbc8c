"""Stores of PostgreSQL, S3 and Kafka with client credentials as code: applied, settled, and their secrets nowhere."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from aws_server import REGION, aws_server, bucket
from postgres_server import PASSWORD, PostgresServer

SECRETS = """
variable "password" {
  type      = string
  ephemeral = true
}
"""
POSTGRES = """
resource "leatstream_store" "shop" {
  name = "shop_$tag"
  postgres = {
    host        = "127.0.0.1"
    port        = $port
    database    = "shop"
    username    = "shop"
    password_wo = var.password
  }
}
resource "leatstream_entity" "orders" {
  store = leatstream_store.shop.name
  name  = "orders_$tag"
  postgres = {
    columns     = [{ name = "id", type = "BIGINT" }, { name = "item", type = "VARCHAR", not_null = true }]
    primary_key = ["id"]
  }
}
data "leatstream_store" "shop" {
  name = leatstream_store.shop.name
}
output "state" {
  value = data.leatstream_store.shop.status.state
}
"""
S3 = """
resource "leatstream_store" "lake" {
  name = "lake_$tag"
  s3 = {
    region               = "$region"
    endpoint_url         = "$aws"
    bucket               = "$tag-lake"
    prefix               = "$prefix"
    access_key_id        = "AKIAEXAMPLE"
    secret_access_key_wo = var.password
  }
}
data "leatstream_store" "lake" {
  name = leatstream_store.lake.name
}
output "state" {
  value = data.leatstream_store.lake.status.state
}
"""
OAUTH = """
resource "leatstream_store" "cloud" {
  name = "cloud_$tag"
  kafka = {
    bootstrap_servers = "127.0.0.1:1"
    security_protocol = "sasl_ssl"
    sasl = {
      mechanism = "oauthbearer"
      oauth = {
        token_url        = "https://127.0.0.1:1/token"
        client_id        = "leatstream"
        client_secret_wo = var.password
        scope            = "$scope"
        extensions       = { logicalCluster = "lkc-1" }
      }
    }
  }
}
"""


class Scene:
    """A configuration whose names no other test uses."""

    def __init__(self, terraform: Any) -> None:
        self.terraform = terraform
        self.tag = uuid.uuid4().hex[:8]

    def write(self, text: str, secret: str, **given: Any) -> None:
        """Replace the configuration."""
        for name, value in {"tag": self.tag, **given}.items():
            text = text.replace(f"${name}", str(value))
        self.terraform.extra_env = {"TF_VAR_password": secret}
        self.terraform.write(SECRETS + text)

    def apply(self, secret: str) -> str:
        """Apply, and give what was said; a second plan is empty, and the secret is not in the state."""
        said = str(self.terraform.apply())
        self.terraform.is_settled()
        assert secret not in said + self.terraform.state_text()
        return " ".join(said.split())


@pytest.fixture
def scene(terraform: Any) -> Iterator[Scene]:
    """Whatever happens, nothing stays on the service."""
    found = Scene(terraform)
    yield found
    if (terraform.folder / ".terraform").exists():
        terraform.destroy()


def test_a_postgres_store_and_its_table(scene: Scene, postgres: PostgresServer) -> None:
    scene.write(POSTGRES, PASSWORD, port=postgres.port)
    scene.terraform.init()
    scene.apply(PASSWORD)
    assert scene.terraform.output("state") == "ready"
    with postgres.connect() as connection:
        text = (
            "SELECT column_name, is_nullable FROM information_schema.columns WHERE table_name = %s ORDER BY 1"
        )
        found = connection.execute(text, (f"orders_{scene.tag}",)).fetchall()
    assert found == [("id", "NO"), ("item", "NO")]
    # The service tells of no NOT NULL that the key implies; the table was dropped for that difference.
    said = POSTGRES.replace('type = "BIGINT" }', 'type = "BIGINT", not_null = true }')
    for text in (said, POSTGRES, said):
        scene.write(text, PASSWORD, port=postgres.port)
        scene.terraform.is_settled()
    # An import brings in what a configuration may leave out.
    identity = 'primary_key = ["id"]\n    replica_identity = "default"'
    scene.write(said.replace('primary_key = ["id"]', identity), PASSWORD, port=postgres.port)
    scene.terraform.run("state", "rm", "leatstream_entity.orders")
    scene.terraform.run("import", "leatstream_entity.orders", f"shop_{scene.tag}/orders_{scene.tag}")
    scene.terraform.is_settled()
    scene.write(POSTGRES.replace('"127.0.0.1"', '"localhost"'), PASSWORD, port=postgres.port)
    assert scene.terraform.plan().actions()["leatstream_store.shop"] == ["update"]


def test_an_s3_store(scene: Scene) -> None:
    with aws_server() as address:
        bucket(address, f"{scene.tag}-lake")
        given = {"region": REGION, "aws": address}
        scene.write(S3, "a-secret-of-aws", prefix="team/raw", **given)
        scene.terraform.init()
        scene.apply("a-secret-of-aws")
        assert scene.terraform.output("state") == "ready"
        scene.write(S3, "a-secret-of-aws", prefix="team/clean", **given)
        assert scene.terraform.plan().actions()["leatstream_store.lake"] == ["update"]
        scene.terraform.destroy()


@pytest.mark.long  # test_service.py has a password
def test_a_kafka_store_with_client_credentials(scene: Scene) -> None:
    """Nobody gives tokens there: the store is kept and errored, which is a warning."""
    scene.write(OAUTH, "hunter2-of-oauth", scope="kafka")
    scene.terraform.init()
    said = scene.apply("hunter2-of-oauth")
    assert "token endpoint https://127.0.0.1:1/token does not answer" in said
    scene.write(OAUTH, "hunter2-of-oauth", scope="kafka admin")
    assert scene.terraform.plan().actions() == {"leatstream_store.cloud": ["update"]}

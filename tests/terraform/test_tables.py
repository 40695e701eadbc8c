"""Tables of PostgreSQL under the real Terraform: their columns are known before anything is made."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from postgres_server import PASSWORD, PostgresServer

TEXT = """
resource "leatstream_store" "pg" {
  name     = "pg_$tag"
  postgres = {
    host = "127.0.0.1", port = $port, database = "shop", username = "shop", ssl_mode = "disable"
    password_wo = "$password", password_wo_version = 1
  }
}
resource "leatstream_database" "d" {
  name = "d_$tag"
}
resource "leatstream_table" "prices" {
  database = leatstream_database.d.name
  schema   = "public"
  name     = "prices"
  store    = leatstream_store.pg.name
  topic    = "t_$tag.prices"$more
}
"""


@pytest.fixture
def tag(postgres: PostgresServer) -> Any:
    """A schema of the server's with a table, and what its name ends with."""
    made = uuid.uuid4().hex[:8]
    with postgres.connect() as connection:
        connection.execute(
            f"CREATE SCHEMA t_{made}; CREATE TABLE t_{made}.prices (item text PRIMARY KEY, price numeric(10,2) NOT NULL, n integer);"
            f"GRANT ALL ON SCHEMA t_{made} TO shop; GRANT ALL ON ALL TABLES IN SCHEMA t_{made} TO shop"
        )
    yield made
    with postgres.connect() as connection:
        connection.execute(f"DROP SCHEMA t_{made} CASCADE")


@pytest.mark.core
def test_a_table_is_declared_changed_imported_and_forgotten(
    terraform: Any, terraform_at: Any, leatstream_server: Any, postgres: PostgresServer, tag: str
) -> None:
    def text(more: str = "") -> str:
        return (
            TEXT.replace("$tag", tag)
            .replace("$port", str(postgres.port))
            .replace("$password", PASSWORD)
            .replace("$more", more)
        )

    address = "leatstream_table.prices"
    terraform.write(text())
    terraform.init()
    terraform.apply()
    terraform.is_settled()
    held = terraform.state()[address]
    assert [(c["name"], c["type"], c["not_null"]) for c in held["columns"]] == [
        ("item", "VARCHAR", True),
        ("price", "DECIMAL(10, 2)", True),
        ("n", "INTEGER", False),
    ]
    assert held["primary_key"] == ["item"]
    fewer = '\n  columns = [{ name = "price", type = "DECIMAL(10,2)" }, { name = "item", type = "VARCHAR" }]\n  primary_key = ["item"]'
    terraform.write(text(fewer + '\n  comment = "c"'))
    assert terraform.plan().actions() == {address: ["update"]}
    terraform.apply()
    terraform.is_settled()
    by_command = terraform_at(leatstream_server.url, leatstream_server.token, "by-command")
    by_command.write(text(fewer + '\n  comment = "c"'))
    by_command.init()
    by_command.run("import", address, f"d_{tag}.public.prices")
    assert [one for one in by_command.plan().actions() if one == address] == []
    terraform.destroy()
    with postgres.connect() as connection:
        assert connection.execute(f"SELECT count(*) FROM t_{tag}.prices").fetchone() == (0,)


WITHOUT_FORMAT = (
    TEXT
    + """
resource "leatstream_changelog" "now" {
  database    = leatstream_database.d.name
  schema      = "public"
  name        = "prices_now"
  store       = leatstream_store.pg.name
  topic       = "t_$tag.prices"
  columns     = [{ name = "item", type = "VARCHAR" }]
  primary_key = ["item"]$format
}
resource "leatstream_stream" "changes" {
  database = leatstream_database.d.name
  schema   = "public"
  name     = "price_changes"
  store    = leatstream_store.pg.name
  columns  = [{ name = "op", type = "VARCHAR" }, { name = "ts_ms", type = "BIGINT" }]$format
  properties = {
    "postgresql.schema.name" = "t_$tag"
    "postgresql.table.name"  = "prices"
  }
}
resource "leatstream_query" "kept" {
  name          = "kept_$tag"
  database      = leatstream_database.d.name
  schema        = "public"
  desired_state = "stopped"
  sql           = "CREATE MATERIALIZED VIEW kept AS SELECT * FROM ${leatstream_changelog.now.fqn}"
}
"""
)


ON_A_TOPIC = """
resource "leatstream_store" "kafka" {
  name  = "kafka_$tag"
  kafka = { bootstrap_servers = "127.0.0.1:1" }
}
resource "leatstream_stream" "orders" {
  database = leatstream_database.d.name
  schema   = "public"
  name     = "orders"
  store    = leatstream_store.kafka.name
  columns  = [{ name = "id", type = "BIGINT" }]
}
"""


def test_relations_on_tables_have_no_format_to_be_given(
    terraform: Any, postgres: PostgresServer, tag: str
) -> None:
    """Nor does one that was given before, as it had to be, differ from none; a topic still needs one."""

    def write(form: str = "", more: str = "") -> None:
        words = {
            "$tag": tag,
            "$port": str(postgres.port),
            "$password": PASSWORD,
            "$more": "",
            "$format": form,
        }
        text = WITHOUT_FORMAT
        for word, value in words.items():
            text = text.replace(word, value)
        terraform.write(text + more)

    write()
    terraform.init()
    terraform.apply()
    terraform.is_settled()
    held = terraform.state()
    addresses = ("leatstream_changelog.now", "leatstream_stream.changes")
    assert [held[address]["value_format"] for address in addresses] == ["json", "json"]
    write('\n  value_format = "json"')
    terraform.is_settled()
    write()
    terraform.is_settled()
    write(more=ON_A_TOPIC.replace("$tag", tag))
    assert "'value.format' must be given" in terraform.fails("plan")
    write()
    terraform.destroy()

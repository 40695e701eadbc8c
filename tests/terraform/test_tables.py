"""Tables of PostgreSQL under the real Terraform: their columns are known before anything is made."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from postgres_server import PASSWORD, PostgresServer

pytestmark = pytest.mark.core

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

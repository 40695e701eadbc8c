"""Applications: planned with what does not exist yet, changed statement by statement, imported, ended."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

BASE = """
resource "leatstream_store" "k" {
  name  = "store_$tag"
  kafka = { bootstrap_servers = "$bootstrap" }
}
resource "leatstream_database" "d" {
  name = "db_$tag"
}
resource "leatstream_entity" "views" {
  store = leatstream_store.k.name
  name  = "views_$tag"
  kafka = { partitions = 2, replicas = 1 }
}
resource "leatstream_stream" "views" {
  database     = leatstream_database.d.name
  schema       = "public"
  name         = "views"
  columns      = [{ name = "viewtime", type = "BIGINT" }, { name = "userid", type = "VARCHAR" }]
  store        = leatstream_store.k.name
  topic        = leatstream_entity.views.name
  value_format = "json"
}
"""
APPLICATION = """
resource "leatstream_application" "shop" {
  name     = "shop_$tag"
  database = leatstream_database.d.name
  store    = leatstream_store.k.name
  sql      = <<-SQL
    BEGIN APPLICATION shop_$tag
      CREATE VIRTUAL STREAM virtual.public.late AS
        SELECT * FROM ${leatstream_stream.views.fqn} WHERE viewtime > 5;
$statements
    END APPLICATION;
  SQL
  timeouts = { create = "4m", update = "4m", delete = "2m" }
}
"""
ONE = "      CREATE STREAM one_$tag AS SELECT userid FROM virtual.public.late;\n"
TWO = "      CREATE STREAM two_$tag AS SELECT userid FROM one_$tag WHERE userid <> 'x';\n"
READER = """
resource "leatstream_query" "r" {
  name     = "reader_$tag"
  database = leatstream_database.d.name
  store    = leatstream_store.k.name
  sql      = "CREATE STREAM read_$tag AS SELECT userid FROM ${leatstream_application.shop.sinks[0]}"
  desired_state = "stopped"
}
"""
ADDRESS = "leatstream_application.shop"


class Scene:
    """A working directory whose names no other test uses."""

    def __init__(self, terraform: Any, server: Any) -> None:
        self.terraform = terraform
        self.server = server
        self.tag = uuid.uuid4().hex[:8]

    def text(self, text: str) -> str:
        return text.replace("$tag", self.tag).replace("$bootstrap", self.server.kafka_bootstrap)

    def write(self, *statements: str, extra: str = "", terraform: Any = None) -> None:
        """Replace the configuration."""
        text = BASE + (APPLICATION.replace("$statements", "".join(statements)) if statements else "")
        (terraform or self.terraform).write(self.text(text + extra))

    def get(self, path: str) -> Any:
        """An object of the service."""
        with self.server.client() as client:
            return client.get(self.text(path)).json()


@pytest.fixture
def scene(terraform: Any, leatstream_server: Any) -> Iterator[Scene]:
    """Whatever happens, nothing stays on the service."""
    found = Scene(terraform, leatstream_server)
    found.write()
    terraform.init()
    yield found
    terraform.destroy()


def test_from_plan_to_destroy(scene: Scene, terraform_at: Any) -> None:
    """The whole life of one; every apply is followed by an empty plan."""
    terraform, tag = scene.terraform, scene.tag
    scene.write(ONE, TWO, extra=READER)
    plan = terraform.plan()
    after = plan.change(ADDRESS)["after"]
    assert after["queries"] == [f"one_{tag}", f"two_{tag}"]
    assert after["sinks"] == [f"db_{tag}.public.one_{tag}", f"db_{tag}.public.two_{tag}"]
    assert after["virtual_relations"] == ["virtual.public.late"]
    assert plan.change("leatstream_query.r")["after"]["sources"] == after["sinks"][:1]
    scene.write(ONE, TWO)
    terraform.apply()
    assert terraform.state()[ADDRESS]["status"]["state"] == "running"
    terraform.is_settled()
    made, one = scene.get("/v1/applications/shop_$tag"), scene.get("/v1/queries/one_$tag")
    scene.write(ONE.lower().replace(";", " -- all\n;"), TWO)
    terraform.is_settled()

    # One statement changes: the other's job goes on.
    scene.write(ONE, TWO.replace("'x'", "'y'"))
    said = terraform.run("plan", "-no-color").stdout
    affected = f"query two_{tag}: the running job is affected: restart-from-offsets"
    assert affected in " ".join(said.replace("│", "").split())
    assert terraform.plan().actions() == {ADDRESS: ["update"]}
    terraform.apply()
    terraform.is_settled()
    assert scene.get("/v1/applications/shop_$tag")["generation"] == made["generation"] + 1
    now = scene.get("/v1/queries/one_$tag")
    assert (now["generation"], now["status"]["job"]) == (one["generation"], one["status"]["job"])
    assert "'y'" in scene.get("/v1/queries/two_$tag")["sql"]

    second = terraform_at(scene.server.url, scene.server.token, "second")
    names = {
        "leatstream_store.k": "store_$tag",
        "leatstream_database.d": "db_$tag",
        "leatstream_entity.views": "store_$tag/views_$tag",
        "leatstream_stream.views": "db_$tag.public.views",
        ADDRESS: "shop_$tag",
    }
    blocks = "".join(f'import {{\n  to = {to}\n  id = "{text}"\n}}\n' for to, text in names.items())
    scene.write(ONE, TWO.replace("'x'", "'y'"), extra=blocks, terraform=second)
    second.init()
    second.apply()
    second.is_settled()
    assert scene.get("/v1/applications/shop_$tag")["generation"] == made["generation"] + 1

    # A sink of another kind cannot change in place: the plan says so.
    counted = TWO.replace("STREAM two", "CHANGELOG two").replace("userid FROM", "userid, count(*) AS n FROM")
    scene.write(ONE, counted.replace("WHERE userid <> 'x'", "GROUP BY userid"))
    assert terraform.plan().actions() == {ADDRESS: ["delete", "create"]}
    scene.write()
    terraform.apply()
    assert scene.get("/v1/applications/shop_$tag")["code"] == "not-found"
    assert scene.get("/v1/queries/one_$tag")["code"] == "not-found"
    assert scene.get("/v1/stores/store_$tag/entities/one_$tag")["name"] == f"one_{tag}"


def test_faults_of_every_statement_are_told_at_plan(scene: Scene) -> None:
    """With line and column in the whole text, before anything exists."""
    into = "      INSERT INTO nothing_here SELECT userid FROM virtual.public.late;\n"
    scene.write(ONE.replace("userid FROM", "nope FROM"), TWO, into)
    said = scene.terraform.fails("plan")
    for part in ("unknown-column", "line 4, column", "unknown-relation", "line 6, column", f"with {ADDRESS}"):
        assert part in said
    # What reads a stream whose own statement is wrong says nothing new.
    assert "line 5, column" not in said

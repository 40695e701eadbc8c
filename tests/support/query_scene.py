"""A store, a topic, a stream and a query as Terraform writes them, under names that no other test uses."""

from __future__ import annotations

import uuid
from typing import Any

BASE = """
resource "leatstream_store" "k" {
  name  = "store_$tag"
  kafka = { bootstrap_servers = "$bootstrap" }
}
resource "leatstream_database" "d" {
  name = "db_$tag"
}
resource "leatstream_schema" "s" {
  database = leatstream_database.d.name
  name     = "main"
}
resource "leatstream_entity" "views" {
  store = leatstream_store.k.name
  name  = "views_$tag"
  kafka = { partitions = 4, replicas = 1 }
}
resource "leatstream_stream" "views" {
  database     = leatstream_database.d.name
  schema       = leatstream_schema.s.name
  name         = "views"
  columns      = [{ name = "viewtime", type = "BIGINT" }, { name = "userid", type = "VARCHAR" }]
  store        = leatstream_store.k.name
  topic        = leatstream_entity.views.name
  value_format = "json"
}
"""
QUERY = """
resource "leatstream_query" "q" {
  name     = "query_$tag"
  database = leatstream_database.d.name
  schema   = leatstream_schema.s.name
  store    = leatstream_store.k.name
  sql      = <<-SQL
$sql
  SQL
$more
  timeouts = { create = "4m", update = "4m", delete = "2m" }
}
"""
SELECT = """    CREATE STREAM out_$tag AS
    SELECT userid, viewtime FROM ${leatstream_stream.views.fqn} WHERE viewtime > 5;"""


class Scene:
    """A working directory whose names no other test uses."""

    def __init__(self, terraform: Any, server: Any) -> None:
        self.terraform = terraform
        self.server = server
        self.tag = uuid.uuid4().hex[:8]

    def write(self, sql: str | None = SELECT, more: str = "", extra: str = "", terraform: Any = None) -> None:
        text = BASE + (QUERY.replace("$sql", sql).replace("$more", more) if sql else "") + extra
        text = text.replace("$tag", self.tag).replace("$bootstrap", self.server.kafka_bootstrap)
        (terraform or self.terraform).write(text)

    def query(self) -> Any:
        with self.server.client() as client:
            return client.get(f"/v1/queries/query_{self.tag}").json()

    def has_topic(self) -> bool:
        with self.server.client() as client:
            answer = client.get(f"/v1/stores/store_{self.tag}/entities/out_{self.tag}")
            return bool(answer.status_code == 200)

"""Roles and accounts as code: applied, settled, changed by hand, replaced under a grant, imported."""

from __future__ import annotations

import json
import urllib.request
import uuid
from typing import Any

import pytest

pytestmark = pytest.mark.core

TEAMS = """
resource "leatstream_database" "shop" {
  name    = "shop_$tag"
  comment = "$comment"
}
resource "leatstream_schema" "orders" {
  database = leatstream_database.shop.name
  name     = "orders"
}
locals {
  teams = ["web", "finance", "data"]
}
resource "leatstream_role" "team" {
  for_each = toset(local.teams)
  name     = "${each.key}_$tag"
  grants = [
    { privilege = "usage", on = "database", name = leatstream_database.shop.name },
    { privilege = "usage", on = "schema", name = leatstream_schema.orders.fqn },
    { privilege = "select", on = "relation", in_schema = leatstream_schema.orders.fqn },
  ]
}
resource "leatstream_role" "leads" {
  name     = "leads_$tag"
  comment  = "Everything that the teams have"
  inherits = [for role in leatstream_role.team : role.name]
}
resource "leatstream_service_account" "ci" {
  name  = "ci_$tag"
  roles = [leatstream_role.team["web"].name]
}
resource "leatstream_user" "ann" {
  name         = "ann_$tag@example.com"
  roles        = [leatstream_role.leads.name, leatstream_role.team["data"].name]
  default_role = leatstream_role.leads.name
}
"""


def test_three_teams(terraform: Any, leatstream_server: Any) -> None:
    tag = uuid.uuid4().hex[:8]

    def write(comment: str = "one") -> None:
        terraform.write(TEAMS.replace("$tag", tag).replace("$comment", comment))

    def call(method: str, path: str, body: Any = None) -> Any:
        request = urllib.request.Request(
            f"{leatstream_server.url}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "Authorization": f"Bearer {leatstream_server.token}",
                "Content-Type": "application/json",
            },
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read() or b"null")

    write()
    terraform.init()
    try:
        terraform.apply()
        terraform.is_settled()
        # A grant that somebody revokes by hand is a difference, and comes back.
        lost = {"grants": [{"privilege": "usage", "on": "database", "name": f"shop_{tag}"}]}
        call("POST", f"/v1/roles/web_{tag}:revoke", lost)
        assert terraform.plan().actions() == {'leatstream_role.team["web"]': ["update"]}
        terraform.apply()
        terraform.is_settled()
        # Grants survive the replacement of what they are on.
        terraform.run("taint", "leatstream_schema.orders")
        terraform.apply()
        terraform.is_settled()
        assert len(call("GET", f"/v1/roles/web_{tag}")["grants"]) == 3
        imported = (
            ("leatstream_role.leads", f"leads_{tag}"),
            ("leatstream_user.ann", f'"ann_{tag}@example.com"'),
        )
        for address, name in imported:
            terraform.run("state", "rm", address)
            terraform.run("import", address, name)
        terraform.is_settled()
    finally:
        terraform.destroy()

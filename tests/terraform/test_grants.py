"""Single grants, memberships, owners and tokens as code: applied, changed by hand, imported, refused together."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fakes
import pytest
import uvicorn
from scratch import memory_directory
from starlette.testclient import TestClient

from leatstream.rest.app import create_app

pytestmark = pytest.mark.core

TEAM = """
resource "leatstream_role" "web" {
  name    = "web"
  comment = "$comment"
  $grants
}
resource "leatstream_role" "ops" { name = "ops" }
resource "leatstream_database" "shop" {
  name  = "shop"
  owner = leatstream_role.$owner.name
}
resource "leatstream_schema" "orders" {
  database = leatstream_database.shop.name
  name     = "orders"
}
resource "leatstream_grant" "reads" {
  role      = leatstream_role.web.name
  privilege = "select"
  on        = "relation"
  in_schema = leatstream_schema.orders.fqn
}
resource "leatstream_grant" "creates" {
  role         = leatstream_role.web.name
  privilege    = "create_store"
  on           = "organization"
  grant_option = true
}
resource "leatstream_service_account" "ci" { name = "ci" }
resource "leatstream_role_membership" "ci" {
  for_each    = toset([leatstream_role.web.name, leatstream_role.ops.name])
  role        = each.key
  member_kind = "service_account"
  member      = leatstream_service_account.ci.name
}
resource "leatstream_token" "ci" {
  name        = "ci"
  account     = leatstream_service_account.ci.name
  role        = leatstream_role_membership.ci["web"].role
  rotate_when = "$rotated"
}
"""


@pytest.fixture
def service() -> Iterator[TestClient]:
    """The administrator's client of a server over fakes, which listens at ``base_url``."""
    with memory_directory() as directory:
        world = fakes.make_world(Path(directory))
        app, token = create_app(world.env), fakes.administrator(world)
        server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", timeout_graceful_shutdown=1))
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        while not server.started:
            assert thread.is_alive(), "the server does not start"
            thread.join(0.05)
        url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        headers = {"Authorization": f"Bearer {token}"}
        yield TestClient(app, base_url=url, headers=headers)
        server.should_exit = True
        thread.join(10)
        world.units.close()


def value_of(terraform: Any) -> str:
    """The token's value in the state."""
    resources = json.loads(terraform.state_text())["resources"]
    (token,) = (one for one in resources if one["type"] == "leatstream_token")
    return str(token["instances"][0]["attributes"]["value"])


def test_a_team_by_single_grants(service: TestClient, terraform_at: Any) -> None:
    token = service.headers["Authorization"].removeprefix("Bearer ")
    terraform = terraform_at(str(service.base_url), token)

    def write(comment: str = "one", grants: str = "", owner: str = "web", rotated: str = "1") -> None:
        text = TEAM.replace("$comment", comment).replace("$grants", grants)
        terraform.write(text.replace("$owner", owner).replace("$rotated", rotated))

    write(grants='grants = [{ privilege = "audit", on = "organization" }]')
    terraform.init()
    said = terraform.fails("plan")
    assert "leatstream_grant and the grants of leatstream_role web exclude each other" in said
    assert "leave grants out of leatstream_role" in said

    write()
    terraform.apply()
    terraform.is_settled()
    assert len(service.get("/v1/roles/web").json()["grants"]) == 2
    assert service.get("/v1/service-accounts/ci").json()["roles"] in (["web", "ops"], ["ops", "web"])
    first = value_of(terraform)
    ci = TestClient(service.app, headers={"Authorization": f"Bearer {first}"})
    assert ci.get("/v1/me").json()["role"] == "web"

    # What somebody revokes by hand comes back, beside changes of the role, the owner and the token.
    service.delete("/v1/roles/web/grants/select/relation", params={"in_schema": "shop.orders"})
    service.delete("/v1/roles/ops/members/service_account/ci")
    write(comment="two", owner="ops", rotated="2")
    shown = terraform.apply()
    assert "Plan: 2 to add, 3 to change, 0 to destroy." in shown
    assert service.get("/v1/databases/shop").json()["owner"] == "ops"
    assert len(service.get("/v1/roles/web").json()["grants"]) == 2
    assert value_of(terraform) != first
    assert service.get("/v1/tokens/ci").json()["values"] == 2

    imported = {
        "leatstream_grant.reads": "web/select/relation?in_schema=shop.orders",
        'leatstream_role_membership.ci["web"]': "web/service_account/ci",
        "leatstream_role.web": "web",
        "leatstream_database.shop": "shop",
    }
    terraform.run("state", "rm", *imported)
    blocks = (f'import {{\n  to = {to}\n  id = "{name}"\n}}\n' for to, name in imported.items())
    terraform.write("".join(blocks), "imports.tf")
    shown = terraform.apply()
    assert "4 imported, 0 added, 0 changed, 0 destroyed" in shown
    terraform.destroy()
    assert service.get("/v1/roles/web").status_code == 404


DEPLOY = """
resource "leatstream_role" "deployer" {
  name   = "deployer"
  grants = [{ privilege = "create_database", on = "organization" }]
}
resource "leatstream_service_account" "cd" {
  name  = "cd"
  roles = [leatstream_role.deployer.name]
}
"""
BY_CD = """
ephemeral "leatstream_token" "cd" {
  account = leatstream_service_account.cd.name
  role    = $role
}
provider "leatstream" {
  alias = "cd"
  token = ephemeral.leatstream_token.cd.value
}
resource "leatstream_database" "made" {
  provider = leatstream.cd
  name     = "made"
}
"""


def test_a_token_for_one_run_is_in_no_state(service: TestClient, terraform_at: Any) -> None:
    token = service.headers["Authorization"].removeprefix("Bearer ")
    terraform = terraform_at(str(service.base_url), token)
    terraform.write(DEPLOY)
    terraform.init()
    terraform.apply()
    terraform.write(DEPLOY + BY_CD.replace("$role", "leatstream_role.deployer.name"))
    terraform.apply()
    terraform.is_settled()
    events = service.get("/v1/audit-events", params={"account": "cd"}).json()["items"]
    assert ("create", "database", "made") in {(e["operation"], e["kind"], e["name"]) for e in events}
    left = [one["account"] for one in service.get("/v1/tokens").json()["items"]]
    assert "cd" not in left
    assert "leat_" not in terraform.run("state", "pull").stdout
    terraform.write(DEPLOY + BY_CD.replace("$role", '"orgadmin"'))
    assert "orgadmin" in terraform.fails("plan")
    terraform.write(DEPLOY + BY_CD.replace("$role", "leatstream_role.deployer.name"))
    terraform.destroy()
    assert service.get("/v1/databases/made").status_code == 404

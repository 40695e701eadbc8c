"""Every resource under the real Terraform against the real service, by one table.

All go together, as each command starts Terraform and the provider anew: create, empty plan, update, empty plan,
import by block and by command, empty plan, generated configuration, drift, replace, destroy.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

pytestmark = pytest.mark.core


@dataclass(frozen=True)
class Case:
    """One resource type.

    Attributes:
        type: resource type.
        base: what it stands on.
        body: its arguments, after creation, after an update in place, and such that it must be replaced.
        import_id: id for ``terraform import``.
        path: REST path of the object.
        changed: attribute that the update changes, with its new value.
        drift: body that is PUT behind Terraform's back; None where another way is needed.
        identity: what must stay through an update.
    """

    type: str
    base: str
    body: str
    update: str
    replace: str
    import_id: str
    path: str
    changed: tuple[str, Any]
    drift: dict[str, Any] | None
    identity: tuple[str, ...] = ("id",)

    @property
    def address(self) -> str:
        """Where Terraform has it."""
        return f"{self.type}.it"

    def text(self, body: str) -> str:
        """Its configuration with this body, and what it stands on."""
        return f'{self.base}resource "{self.type}" "it" {{\n  {body}\n}}\n'


STORE = 'resource "leatstream_store" "k" {\n  name = "$kafka"\n  kafka = { bootstrap_servers = "%s" }\n}\n'
PLACE = """
resource "leatstream_database" "d" {
  name = "$db"
}
resource "leatstream_schema" "s" {
  database = leatstream_database.d.name
  name     = "Main Schema"
}
"""
TOPIC = """
resource "leatstream_entity" "t" {
  store = leatstream_store.k.name
  name  = "$topic.Views-1"
  kafka = { partitions = 2, replicas = 1 }
}
"""
COLUMNS = '[{ name = "viewtime", type = "bigint" }, { name = "userid", type = "STRING" }]'
STREAM = (
    """
  database     = leatstream_database.d.name
  schema       = leatstream_schema.s.name
  name         = "Page Views"
  store        = leatstream_store.k.name
  topic        = leatstream_entity.t.name
  value_format = "json"
  columns      = """
    + COLUMNS
)
CHANGELOG = STREAM + '\n  primary_key = ["userid"]'
SQL = (
    'CREATE STREAM ${provider::leatstream::fqn(leatstream_database.d.name, "Main Schema", "%s")} AS '
    "SELECT * FROM ${leatstream_stream.v.fqn} WHERE viewtime > %s;"
)
QUERY = """
  name                 = "$query"
  store                = leatstream_store.k.name
  delete_sink_entity   = true
  sql                  = "%s"
  timeouts             = { create = "4m", update = "4m", delete = "2m" }
"""
# package shop; message Order { string id }
DESCRIPTORS = "Cj8KDHNob3AvYS5wcm90bxIEc2hvcCIpCgVPcmRlchIGCgJpZBgBGgYKBExpbmUaEAoKTm90ZXNFbnRyeToCOAE="

CASES = [
    Case(
        "leatstream_database",
        "",
        'name = "$db"',
        'name = "$db"\n  comment = "Web shop"',
        'name = "$db-2"',
        "$db",
        "/v1/databases/%22$db%22",
        ("comment", "Web shop"),
        {"comment": "changed behind"},
    ),
    Case(
        "leatstream_schema",
        'resource "leatstream_database" "d" {\n  name = "$db"\n}\n',
        'database = leatstream_database.d.name\n  name = "Raw Données"',
        'database = leatstream_database.d.name\n  name = "Raw Données"\n  comment = "x"',
        'database = leatstream_database.d.name\n  name = "raw"',
        '$db."Raw Données"',
        "/v1/databases/%22$db%22/schemas/%22Raw%20Donn%C3%A9es%22",
        ("comment", "x"),
        {"comment": "changed behind"},
    ),
    Case(
        "leatstream_store",
        "",
        'name = "$kafka"\n  kafka = { bootstrap_servers = "%s" }',
        'name = "$kafka"\n  comment = "y"\n'
        '  kafka = { bootstrap_servers = "%s", security_protocol = "plaintext" }',
        'name = "$kafka-2"\n  kafka = { bootstrap_servers = "%s" }',
        "$kafka",
        "/v1/stores/%22$kafka%22",
        ("comment", "y"),
        {"comment": "changed behind", "kafka": {"bootstrap_servers": "%s"}},
    ),
    Case(
        "leatstream_secret",
        "",
        'name = "$secret"\n  value_wo = "never-shown"',
        'name = "$secret"\n  value_wo = "never-shown"\n  comment = "s"\n  properties = { rotation = "monthly" }',
        'name = "$secret-2"\n  value_wo = "never-shown"',
        "$secret",
        "/v1/secrets/%22$secret%22",
        ("comment", "s"),
        {"comment": "changed behind"},
    ),
    Case(
        "leatstream_schema_registry",
        'resource "leatstream_secret" "p" {\n  name = "$secret"\n  value_wo = "never-shown"\n}\n',
        'name = "$registry"\n  type = "confluent"\n  uris = "http://r:8081"\n  username = "u"\n'
        "  password_secret = leatstream_secret.p.name",
        'name = "$registry"\n  type = "confluent"\n  uris = "http://r:8082"\n  username = "u"\n'
        "  password_secret = leatstream_secret.p.name",
        'name = "$registry-2"\n  type = "confluent"\n  uris = "http://r:8081"\n  username = "u"\n'
        "  password_secret = leatstream_secret.p.name",
        "$registry",
        "/v1/schema-registries/%22$registry%22",
        ("uris", "http://r:8082"),
        {"type": "confluent", "uris": "http://r:8083"},
    ),
    Case(
        "leatstream_descriptor_source",
        "",
        f'name = "$source"\n  descriptor_set = "{DESCRIPTORS}"',
        f'name = "$source"\n  comment = "d"\n  descriptor_set = "{DESCRIPTORS}"',
        f'name = "$source-2"\n  descriptor_set = "{DESCRIPTORS}"',
        "$source",
        "/v1/descriptor-sources/%22$source%22",
        ("comment", "d"),
        {"descriptor_set": DESCRIPTORS, "comment": "changed behind"},
    ),
    Case(
        "leatstream_entity",
        STORE,
        'store = leatstream_store.k.name\n  name = "$topic.Views-1"\n'
        "  kafka = { partitions = 2, replicas = 1 }",
        'store = leatstream_store.k.name\n  name = "$topic.Views-1"\n'
        '  kafka = { partitions = 3, replicas = 1, configs = { "retention.ms" = "3600000" } }',
        'store = leatstream_store.k.name\n  name = "$topic.Views-2"\n'
        "  kafka = { partitions = 2, replicas = 1 }",
        '"$kafka"/$topic.Views-1',
        "/v1/stores/%22$kafka%22/entities/$topic.Views-1",
        ("effective.partitions", 3),
        None,
        ("name",),
    ),
    Case(
        "leatstream_stream",
        STORE + PLACE + TOPIC,
        STREAM,
        STREAM + '\n  comment = "z"',
        STREAM.replace("Page Views", "page_views"),
        '"$db"."Main Schema"."Page Views"',
        "/v1/relations/%22$db%22.%22Main%20Schema%22.%22Page%20Views%22",
        ("comment", "z"),
        None,
    ),
    Case(
        "leatstream_changelog",
        STORE + PLACE + TOPIC,
        CHANGELOG,
        CHANGELOG + '\n  comment = "z"',
        CHANGELOG.replace("Page Views", "page_views"),
        '"$db"."Main Schema"."Page Views"',
        "/v1/relations/%22$db%22.%22Main%20Schema%22.%22Page%20Views%22",
        ("comment", "z"),
        None,
    ),
    Case(
        "leatstream_query",
        STORE + PLACE + TOPIC + f'resource "leatstream_stream" "v" {{{STREAM}\n}}\n',
        QUERY % (SQL % ("recent", 5)),
        QUERY % (SQL % ("recent", 6)),
        QUERY % (SQL % ("newest", 6)),
        "$query",
        "/v1/queries/%22$query%22",
        ("status.state", "running"),
        None,
    ),
]


@pytest.fixture
def cases(leatstream_server: Any) -> list[Case]:
    """The cases, for one configuration: each stands on things of its own, with names that no other test uses."""

    def fill(value: Any, tag: str) -> Any:
        if isinstance(value, str):
            for noun in ("db", "kafka", "topic", "query", "secret", "registry", "source"):
                value = value.replace(f"${noun}", f"{noun}-{tag}")
            value = re.sub(r'(resource "leatstream_\w+" ")(\w+)"', rf'\1\2_{tag}"', value)
            value = re.sub(
                r"\b(leatstream_(?:store|database|schema|entity|stream|secret)\.\w+)", rf"\1_{tag}", value
            )
            return value.replace("%s", leatstream_server.kafka_bootstrap)
        if isinstance(value, dict):
            return {key: fill(one, tag) for key, one in value.items()}
        return value

    def named(case: Case) -> Case:
        tag = uuid.uuid4().hex[:8]
        return Case(**{name: fill(getattr(case, name), tag) for name in Case.__dataclass_fields__})

    return [named(case) for case in CASES]


def _at(values: Any, path: str) -> Any:
    for step in path.split("."):
        values = values[step]
    return values


def test_life_of_every_resource(
    cases: list[Case], terraform: Any, terraform_at: Callable[..., Any], leatstream_server: Any
) -> None:
    every = {case.address for case in cases}

    def text(which: str) -> str:
        return "".join(case.text(getattr(case, which)) for case in cases)

    # create
    terraform.write(text("body"))
    terraform.init()
    terraform.apply()
    terraform.is_settled()
    created = terraform.state()
    # update in place
    terraform.write(text("update"))
    assert terraform.plan().actions() == {address: ["update"] for address in every}
    terraform.apply()
    terraform.is_settled()
    updated = terraform.state()
    for case in cases:
        before, now = created[case.address], updated[case.address]
        assert _at(now, case.changed[0]) == case.changed[1], case.address
        assert [now[name] for name in case.identity] == [before[name] for name in case.identity], case.address
    # import by command and by block, each into an empty state
    _imported(terraform_at, leatstream_server, cases, text("update"), updated)
    _generated(terraform_at, leatstream_server, cases, updated)
    # drift: changed behind Terraform's back
    drifting = [case for case in cases if case.drift is not None]
    with leatstream_server.client() as client:
        for case in drifting:
            assert client.put(case.path, json=case.drift).status_code == 200, case.address
    plan = terraform.plan()
    assert plan.actions() == {case.address: ["update"] for case in drifting}
    assert sorted(plan.drifted()) == sorted(case.address for case in drifting)
    terraform.apply()
    terraform.is_settled()
    # replace
    terraform.write(text("replace"))
    assert terraform.plan().actions() == {address: ["delete", "create"] for address in every}
    terraform.apply()
    terraform.is_settled()
    # destroy
    terraform.destroy()
    assert terraform.state() == {}


def _imported(
    terraform_at: Callable[..., Any], server: Any, cases: list[Case], text: str, held: dict[str, Any]
) -> None:
    """``terraform import`` of each: nothing is left to change, and it holds the same."""
    folder = terraform_at(server.url, server.token, "by-command")
    folder.write(text)
    folder.init()
    for case in cases:
        folder.run("import", case.address, case.import_id)
    assert not folder.plan().actions().keys() & {case.address for case in cases}
    _same(folder.state(), held, cases)


def _generated(
    terraform_at: Callable[..., Any], server: Any, cases: list[Case], held: dict[str, Any]
) -> None:
    """Import blocks, and the configuration that Terraform writes for them: it holds the same."""
    folder = terraform_at(server.url, server.token, "generated")
    quoted = {case.address: case.import_id.replace('"', '\\"') for case in cases}
    folder.write("".join(f'import {{\n  to = {to}\n  id = "{one}"\n}}\n' for to, one in quoted.items()))
    folder.init()
    folder.run("plan", "-generate-config-out=generated.tf", "-out=plan.bin")
    folder.run("apply", "plan.bin")
    folder.is_settled()
    _same(folder.state(), held, cases)


def _same(found: dict[str, Any], held: dict[str, Any], cases: list[Case]) -> None:
    for case in cases:
        assert _without_time(found[case.address]) == _without_time(held[case.address]), case.address


def _without_time(values: dict[str, Any]) -> dict[str, Any]:
    """A state without what may differ between two reads of one object, and the spelling of types.

    ``change`` is of the last apply, which an import does not know.
    """
    found = {
        name: value
        for name, value in values.items()
        if name not in ("status", "columns", "kafka", "delete_sink_entity", "change")
    }
    status = values.get("status")
    if isinstance(status, dict) and isinstance(status.get("job"), dict):
        found["attempt"] = status["job"]["attempt"]
    return found

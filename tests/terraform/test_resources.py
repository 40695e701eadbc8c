"""Every resource under the real Terraform against the real service, by one table.

Each case goes: create, empty plan, update, empty plan, import by block and by command, empty plan, generated
configuration, drift, replace, destroy.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest


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
    generated: bool = field(default=True)


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


@pytest.fixture(params=CASES, ids=[case.type for case in CASES])
def case(request: pytest.FixtureRequest, leatstream_server: Any) -> Case:
    """A case with names that no other test uses."""
    found: Case = request.param
    tag = uuid.uuid4().hex[:8]

    def fill(value: Any) -> Any:
        if isinstance(value, str):
            for noun in ("db", "kafka", "topic", "query", "secret", "registry", "source"):
                value = value.replace(f"${noun}", f"{noun}-{tag}")
            return value.replace("%s", leatstream_server.kafka_bootstrap)
        if isinstance(value, dict):
            return {key: fill(one) for key, one in value.items()}
        return value

    return Case(**{name: fill(getattr(found, name)) for name in Case.__dataclass_fields__})


def _at(values: Any, path: str) -> Any:
    for step in path.split("."):
        values = values[step]
    return values


def test_life_of_a_resource(
    case: Case, terraform: Any, terraform_at: Callable[..., Any], leatstream_server: Any
) -> None:
    address = f"{case.type}.it"

    def text(body: str) -> str:
        return case.base + f'resource "{case.type}" "it" {{\n  {body}\n}}\n'

    # create
    terraform.write(text(case.body))
    terraform.init()
    terraform.apply()
    terraform.is_settled()
    created = terraform.state()[address]
    # update in place
    terraform.write(text(case.update))
    assert terraform.plan().actions() == {address: ["update"]}
    terraform.apply()
    terraform.is_settled()
    updated = terraform.state()[address]
    assert _at(updated, case.changed[0]) == case.changed[1]
    assert [updated[name] for name in case.identity] == [created[name] for name in case.identity]
    # import by block and by command, each into an empty state
    _imports(case, address, text(case.update), terraform_at, leatstream_server, updated)
    # drift: changed, and gone
    if case.drift is not None:
        with leatstream_server.client() as client:
            assert client.put(case.path, json=case.drift).status_code == 200
        plan = terraform.plan()
        assert plan.actions() == {address: ["update"]}
        assert plan.drifted() == [address]
        terraform.apply()
        terraform.is_settled()
    # replace
    terraform.write(text(case.replace))
    assert terraform.plan().actions() == {address: ["delete", "create"]}
    terraform.apply()
    terraform.is_settled()
    # destroy
    terraform.destroy()
    assert terraform.state() == {}
    with leatstream_server.client() as client:
        assert client.get(case.path).status_code == 404


def _imports(
    case: Case,
    address: str,
    text: str,
    terraform_at: Callable[..., Any],
    server: Any,
    held: dict[str, Any],
) -> None:
    by_command = terraform_at(server.url, server.token, "by-command")
    by_command.write(text)
    by_command.init()
    by_command.run("import", address, case.import_id)
    assert [one for one in by_command.plan().actions() if one == address] == []
    assert _without_time(by_command.state()[address]) == _without_time(held)
    quoted = case.import_id.replace('"', '\\"')
    block = f'import {{\n  to = {case.type}.it\n  id = "{quoted}"\n}}\n'
    generated = terraform_at(server.url, server.token, "generated")
    generated.write(block)
    generated.init()
    generated.run("plan", "-generate-config-out=generated.tf", "-out=plan.bin")
    generated.run("apply", "plan.bin")
    generated.is_settled()
    assert _without_time(generated.state()[address]) == _without_time(held)


def _without_time(values: dict[str, Any]) -> dict[str, Any]:
    """A state without what may differ between two reads of one object, and the spelling of types."""
    found = {
        name: value
        for name, value in values.items()
        if name not in ("status", "columns", "kafka", "delete_sink_entity")
    }
    status = values.get("status")
    if isinstance(status, dict) and isinstance(status.get("job"), dict):
        found["attempt"] = status["job"]["attempt"]
    return found

"""Against the running service: every data block, an installation without configuration, secrets, drift, time-outs."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

BASE = """
resource "leatstream_store" "k" {
  name  = "store_$tag"
  kafka = { bootstrap_servers = "$bootstrap" }
}
resource "leatstream_database" "d" {
  name    = "db_$tag"
  comment = "Web shop"
}
resource "leatstream_schema" "s" {
  database = leatstream_database.d.name
  name     = "main"
}
resource "leatstream_entity" "views" {
  store = leatstream_store.k.name
  name  = "views_$tag"
  kafka = { partitions = 2, replicas = 1, configs = { "retention.ms" = "3600000" } }
}
resource "leatstream_stream" "views" {
  database     = leatstream_database.d.name
  schema       = leatstream_schema.s.name
  name         = "views"
  comment      = "as planned"
  columns      = [{ name = "viewtime", type = "BIGINT" }, { name = "userid", type = "VARCHAR" }]
  store        = leatstream_store.k.name
  topic        = leatstream_entity.views.name
  value_format = "json"
}
"""
QUERY = """
resource "leatstream_query" "q" {
  name               = "query_$tag"
  database           = leatstream_database.d.name
  schema             = leatstream_schema.s.name
  store              = leatstream_store.k.name
  delete_sink_entity = true
  sql                = "CREATE STREAM out_$tag AS SELECT userid FROM ${leatstream_stream.views.fqn} WHERE viewtime > $least"
  timeouts           = { create = "4m", update = "$update", delete = "2m" }
}
"""
DATA = """
data "leatstream_store" "it" {
  name = leatstream_store.k.name
}
data "leatstream_database" "it" {
  name = leatstream_database.d.name
}
data "leatstream_schema" "it" {
  database = leatstream_schema.s.database
  name     = leatstream_schema.s.name
}
data "leatstream_entity" "it" {
  store = leatstream_entity.views.store
  name  = leatstream_entity.views.name
}
data "leatstream_stream" "it" {
  database = leatstream_stream.views.database
  schema   = leatstream_stream.views.schema
  name     = leatstream_stream.views.name
}
data "leatstream_query" "it" {
  name = leatstream_query.q.name
}
output "read" {
  value = {
    store    = [data.leatstream_store.it.kind, data.leatstream_store.it.status.state]
    brokers  = data.leatstream_store.it.kafka.bootstrap_servers
    database = data.leatstream_database.it.comment
    schema   = data.leatstream_schema.it.fqn
    entity   = data.leatstream_entity.it.effective.partitions
    configs  = data.leatstream_entity.it.effective.configs["retention.ms"]
    stream   = data.leatstream_stream.it.columns[*].name
    query    = [data.leatstream_query.it.status.state, data.leatstream_query.it.sink]
    sources  = data.leatstream_query.it.sources
  }
}
"""


class Scene:
    """A working directory whose names no other test uses."""

    def __init__(self, terraform: Any, server: Any) -> None:
        self.terraform = terraform
        self.server = server
        self.tag = uuid.uuid4().hex[:8]

    def write(self, text: str, least: int = 5, update: str = "4m") -> None:
        """Replace the configuration."""
        given = {"tag": self.tag, "bootstrap": self.server.kafka_bootstrap, "least": least, "update": update}
        for name, value in given.items():
            text = text.replace(f"${name}", str(value))
        self.terraform.write(text)


@pytest.fixture
def scene(terraform: Any, leatstream_server: Any) -> Iterator[Scene]:
    """Whatever happens, nothing stays on the service."""
    found = Scene(terraform, leatstream_server)
    yield found
    if (terraform.folder / ".terraform").exists():
        terraform.destroy()


def test_every_data_block_after_an_installation_without_configuration(scene: Scene) -> None:
    terraform = scene.terraform
    home = terraform.folder.parent / "home"
    home.mkdir()
    keep = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR", "PYTHONPATH") if name in os.environ}
    install = [sys.executable, "-m", "leatstream_terraform", "install"]
    told = subprocess.run(
        install, env=keep | {"HOME": str(home)}, capture_output=True, text=True, timeout=60, check=True
    ).stdout
    assert str(home) in told
    # Empty counts as not set: no CLI configuration at all.
    terraform.extra_env = {"TF_CLI_CONFIG_FILE": ""}
    scene.write(BASE + QUERY + DATA)
    terraform.init()
    terraform.apply()
    assert terraform.output("read") == {
        "store": ["kafka", "ready"],
        "brokers": scene.server.kafka_bootstrap,
        "database": "Web shop",
        "schema": f"db_{scene.tag}.main",
        "entity": 2,
        "configs": "3600000",
        "stream": ["viewtime", "userid"],
        "query": ["running", f"db_{scene.tag}.main.out_{scene.tag}"],
        "sources": [f"db_{scene.tag}.main.views"],
    }
    terraform.is_settled()

    # An update that has no time to wait: the error shows what the job said last, and nothing is lost.
    scene.write(BASE + QUERY + DATA, least=6, update="1ms")
    said = terraform.fails("apply", "-auto-approve")
    assert "is not running after 0.001 s" in said
    assert "Last lines of its log:" in said
    assert "longer timeouts.update" in said
    assert "leatstream_query.q" in terraform.state()
    scene.write(BASE + QUERY + DATA, least=6)
    terraform.apply()
    terraform.is_settled()
    with scene.server.client() as client:
        query = client.get(f"/v1/queries/query_{scene.tag}?wait_for=running,failed&timeout=60s").json()
    assert query["status"]["state"] == "running"
    assert "> 6" in query["sql"]


def test_drift_by_another_writer_is_shown_and_healed(scene: Scene) -> None:
    terraform, tag = scene.terraform, scene.tag
    scene.write(BASE)
    terraform.init()
    terraform.apply()
    topic, relation = f"/v1/stores/store_{tag}/entities/views_{tag}", f"/v1/relations/db_{tag}.main.views"
    configs = {"retention.ms": "7200000"}
    with scene.server.client() as client:
        entity = {"kafka": {"partitions": 2, "replicas": 1, "configs": configs}}
        assert client.put(topic, json=entity).status_code == 200
        stream = {
            "columns": [{"name": "viewtime", "type": "BIGINT"}, {"name": "userid", "type": "VARCHAR"}],
            "store": f"store_{tag}",
            "topic": f"views_{tag}",
            "value_format": "json",
            "comment": "changed behind",
        }
        assert client.put(relation, json=stream).status_code == 200
    plan = terraform.plan()
    wanted = ["leatstream_entity.views", "leatstream_stream.views"]
    assert sorted(plan.drifted()) == wanted
    assert plan.actions() == {address: ["update"] for address in wanted}
    change = plan.change("leatstream_stream.views")
    assert (change["before"]["comment"], change["after"]["comment"]) == ("changed behind", "as planned")
    before = plan.change("leatstream_entity.views")["before"]
    assert before["effective"]["configs"]["retention.ms"] == "7200000"
    terraform.apply()
    terraform.is_settled()
    with scene.server.client() as client:
        assert client.get(topic).json()["effective"]["configs"]["retention.ms"] == "3600000"
        assert client.get(relation).json()["comment"] == "as planned"
        # Gone behind its back, too: the plan makes them again.
        assert client.delete(relation).status_code == 204
        assert client.delete(topic).status_code == 204
    plan = terraform.plan()
    assert plan.actions() == {address: ["create"] for address in wanted}
    terraform.apply()
    terraform.is_settled()


STORE = """
variable "secret" {
  type      = string
  sensitive = true
  ephemeral = true
}
resource "leatstream_store" "secure" {
  name  = "secure_$tag"
  kafka = {
    bootstrap_servers = "127.0.0.1:1"
    security_protocol = "sasl_plaintext"
    sasl = { mechanism = "scram_sha_256", username = "ada", password_wo = var.secret, password_wo_version = $version }
  }
}
"""


@pytest.mark.core
def test_a_password_is_in_no_state_plan_or_log(scene: Scene) -> None:
    terraform = scene.terraform
    # Nobody listens there, so the service has every reason to say something about this store.
    secrets = [f"hunter-{uuid.uuid4().hex}" for _ in range(2)]
    said = ""
    for version, secret in enumerate(secrets, 1):
        terraform.extra_env = {"TF_VAR_secret": secret}
        scene.write(STORE.replace("$version", str(version)))
        if version == 1:
            terraform.init()
        planned = terraform.run("plan", "-no-color", "-out", "plan.bin").stdout
        assert f"leatstream_store secure_{scene.tag} would be errored" in planned
        said += planned + terraform.run("show", "-json", "plan.bin").stdout
        with zipfile.ZipFile(terraform.folder / "plan.bin") as plan:
            assert [name for name in plan.namelist() if secret.encode() in plan.read(name)] == []
        done = terraform.run("apply", "-no-color", "-auto-approve")
        said += done.stdout + done.stderr + terraform.state_text() + terraform.run("show", "-json").stdout
        assert "was saved but is errored" in done.stdout + done.stderr
        terraform.is_settled()
    with scene.server.client() as client:
        said += client.get("/v1/stores").text + client.get(f"/v1/stores/secure_{scene.tag}").text
        said += client.post(f"/v1/stores/secure_{scene.tag}:test").text
    for secret in secrets:
        assert secret not in said
        for file in _written_by(scene.server):
            assert secret.encode() not in file.read_bytes(), file


def _written_by(server: Any) -> list[Path]:
    """Logs and catalog of the service."""
    logs = [path for path in (server.data_dir / "logs").rglob("*") if path.is_file()]
    catalog = [path for path in server.data_dir.glob("catalog.db*") if path.is_file()]
    assert logs
    assert catalog
    return [server.data_dir.parent / "leat-dev.log", *logs, *catalog]


REGISTERED = """
resource "leatstream_schema_registry" "r" {
  name = "sr_$tag"
  type = "confluent"
  uris = "$registry"
}
resource "leatstream_store" "k" {
  name            = "store_$tag"
  kafka           = { bootstrap_servers = "$bootstrap" }
  schema_registry = leatstream_schema_registry.r.name
}
resource "leatstream_database" "d" {
  name = "db_$tag"
}
resource "leatstream_entity" "orders" {
  store = leatstream_store.k.name
  name  = "orders_$tag"
  kafka = { partitions = 1, replicas = 1 }
}
resource "leatstream_stream" "orders" {
  database     = leatstream_database.d.name
  schema       = "public"
  name         = "orders"
  store        = leatstream_store.k.name
  topic        = leatstream_entity.orders.name
  value_format = "avro"
}
"""


def test_columns_from_a_schema_registry(scene: Scene, schema_registry: str) -> None:
    """The plan of a whole new configuration shows them; a second apply changes nothing."""
    import httpx2

    schema = '{"type":"record","name":"O","fields":[{"name":"id","type":"long"},{"name":"Note","type":["null","string"]}]}'
    subject = f"{schema_registry}/subjects/orders_{scene.tag}-value/versions"
    assert httpx2.post(subject, json={"schema": schema}).status_code == 200
    scene.write(REGISTERED.replace("$registry", schema_registry))
    terraform = scene.terraform
    terraform.init()
    after = terraform.plan().change("leatstream_stream.orders")["after"]
    wanted = [("id", "BIGINT"), ("Note", "VARCHAR")]
    assert [(c["name"], c["type"]) for c in after["columns"]] == wanted
    terraform.apply()
    assert [
        (c["name"], c["type"]) for c in terraform.state()["leatstream_stream.orders"]["columns"]
    ] == wanted
    terraform.is_settled()

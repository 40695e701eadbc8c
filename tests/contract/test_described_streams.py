"""Streams whose records a schema describes: what the catalog, the plan and the job say of them."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest
from starlette.testclient import TestClient

from leatstream.connectors.entities import Entity
from leatstream.errors import StoreError
from leatstream.formats.described import Decoder, Description
from leatstream.formats.plain_values import Undecodable
from leatstream.formats.registry_client import RegistryAddress, Schema
from leatstream.plan.logical import AnalyzedColumn
from leatstream.services.driver_calls import build_spec
from leatstream.services.environment import Context, Principal
from leatstream.services.statements.dry_run import validate as dry_run

PASSWORD = "hunter2-never-shown"
ORDER = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"},{"name":"Kind","type":["null","string"]}]}'


class MemoryRegistry:
    """A schema registry in memory; ``refusals`` are its reasons against any schema."""

    def __init__(self) -> None:
        self.subjects: dict[str, Schema] = {}
        self.addresses: list[RegistryAddress] = []
        self.refusals: list[str] = []
        self.up = True

    def open(self, address: RegistryAddress, timeout: float) -> Any:
        self.addresses.append(address)
        self.address = address
        return self

    def test(self) -> None:
        if not self.up:
            raise StoreError("registry-unreachable", "Schema registry sr does not answer.")

    def latest(self, subject: str) -> Schema | None:
        self.test()
        return self.subjects.get(subject)

    def schema(self, number: int) -> Schema | None:
        return next((s for s in self.subjects.values() if s.id == number), None)

    def incompatibilities(self, subject: str, schema: Schema) -> list[str]:
        return self.refusals

    def register(self, subject: str, schema: Schema) -> int:
        number = len(self.subjects) + 1
        self.subjects[subject] = Schema(schema.type, schema.text, id=number)
        return number

    def close(self) -> None:
        pass


@pytest.fixture
def registry(client: TestClient, fresh: Any) -> MemoryRegistry:
    """A store whose registry has one subject."""
    made = MemoryRegistry()
    made.subjects["orders-value"] = Schema("AVRO", ORDER, id=1)
    fresh.env.open_registry = made.open
    fresh.cluster.entities["orders"] = Entity("orders", {"topic.partitions": 2, "topic.replicas": 1})
    answer = run(
        client,
        f"CREATE SECRET sr_pw WITH ('type'=generic_string, 'secret_string'='{PASSWORD}');"
        "CREATE SCHEMA_REGISTRY sr WITH ('type'=CONFLUENT, 'uris'='http://h:8081', 'confluent.username'='u',"
        " 'confluent.password'=\"sr_pw\");"
        "CREATE STORE k WITH ('type'=KAFKA, 'uris'='h:9092', 'tls.disabled'=TRUE, 'kafka.sasl.hash_function'=NONE,"
        " 'schema_registry.name'=\"sr\"); CREATE DATABASE d",
    )
    assert answer.status_code == 200, answer.text
    return made


def run(client: TestClient, sql: str, **more: Any) -> Any:
    context = {"database": "d", "schema": "public", "store": "k"}
    return client.post("/v1/statements", json={"sql": sql, **context, **more})


def validate(client: TestClient, sql: str) -> dict[str, Any]:
    body = {"sql": sql, "database": "d", "schema": "public", "store": "k"}
    answer = client.post("/v1/statements:validate", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()["statements"][-1]
    return found


ORDERS = "CREATE STREAM orders WITH ('value.format'='avro')"


def test_columns_come_from_the_registry(client: TestClient, registry: MemoryRegistry) -> None:
    """By SQL, by REST, and in the dry run; the second PUT changes nothing."""
    planned = validate(client, ORDERS)
    assert [(c["name"], c["type"]) for c in planned["plan"]["columns"]] == [
        ("id", "BIGINT"),
        ("Kind", "VARCHAR"),
    ]
    assert run(client, ORDERS).status_code == 200
    body = {"store": "k", "topic": "orders", "value_format": "avro"}
    first = client.put("/v1/relations/d.public.again", json=body)
    second = client.put("/v1/relations/d.public.again", json=body)
    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json()["columns"] == second.json()["columns"] != []
    assert first.json()["generation"] == second.json()["generation"] == 1
    assert registry.addresses[-1].password == PASSWORD


def test_json_schema_by_its_own_name(client: TestClient, registry: MemoryRegistry, fresh: Any) -> None:
    """Columns from a JSON Schema; the sink's schema is checked and told to the job as one."""
    text = '{"type":"object","properties":{"id":{"type":"integer"},"at":{"type":"string","format":"date"}}}'
    registry.subjects["orders-value"] = Schema("JSON", text, id=1)
    told = "CREATE STREAM orders WITH ('value.format'='json_schema')"
    planned = validate(client, told)
    wanted = [("id", "BIGINT"), ("at", "DATE")]
    assert [(c["name"], c["type"]) for c in planned["plan"]["columns"]] == wanted
    assert "of type JSON, not AVRO" in validate(client, ORDERS)["problems"][0]["detail"]
    assert run(client, told).status_code == 200
    copied = "CREATE STREAM copied AS SELECT * FROM orders"
    registry.subjects["copied-value"] = Schema("JSON", "{}", id=2)
    registry.refusals = ["PROPERTY_REMOVED"]
    problem = validate(client, copied)["problems"][0]
    assert (problem["code"], "PROPERTY_REMOVED" in problem["detail"]) == ("schema-incompatible", True)
    registry.refusals = []
    assert run(client, copied).status_code == 200
    assert run(client, "INSERT INTO orders VALUES (1, DATE '2024-02-29')").status_code == 200
    assert registry.subjects["orders-value"].type == "JSON"
    assert fresh.cluster.records["orders"][-1].value[5:] == b'{"id":1,"at":"2024-02-29"}'


def test_without_a_registry_or_a_schema(client: TestClient, registry: MemoryRegistry) -> None:
    problem = validate(client, "CREATE STREAM x WITH ('topic'='orders', 'value.format'='json')")["problems"][
        0
    ]
    assert "needs at least one column" in problem["detail"]
    registry.subjects.clear()
    problem = validate(client, ORDERS)["problems"][0]
    assert problem["code"] == "validation"
    assert "orders-value" in problem["detail"]
    registry.subjects["orders-value"] = Schema("PROTOBUF", "message A { int32 a = 1; }", id=1)
    assert "type PROTOBUF, not AVRO" in validate(client, ORDERS)["problems"][0]["detail"]
    client.put("/v1/stores/plain", json={"kafka": {"bootstrap_servers": "h:9092"}})
    bare = "CREATE STREAM x (id BIGINT) WITH ('store'='plain', 'topic'='t', 'value.format'='avro', 'topic.partitions'=1, 'topic.replicas'=1)"
    problem = validate(client, bare)["problems"][0]
    assert (problem["code"], "schema_registry.name" in problem["hint"]) == ("property-required", True), (
        problem
    )
    registry.up = False
    answer = run(client, ORDERS)
    assert (answer.status_code, answer.json()["code"]) == (503, "registry-unreachable")


def test_a_job_knows_the_registry_and_no_password(
    client: TestClient, registry: MemoryRegistry, fresh: Any
) -> None:
    assert run(client, ORDERS).status_code == 200
    made = run(
        client, "CREATE STREAM out WITH ('key.format'='avro', 'key.columns'='id') AS SELECT * FROM orders"
    )
    assert made.status_code == 200, made.text
    assert list(registry.subjects) == ["orders-value"], "a plan registers nothing"
    with fresh.env.open_unit(write=False) as unit:
        spec = build_spec(fresh.env, unit, unit.queries.find("out"))
        secret = unit.named_secrets.find("sr_pw").reference
    assert spec.mode.value == "micro_batch"
    for store in (spec.sources[0].store, spec.sink.store):
        assert store.registry is not None
        assert (store.registry.uris, store.registry.username) == ("http://h:8081", "u")
        assert secret in store.references()
    assert PASSWORD not in spec.model_dump_json()
    value, key = json.loads(spec.sink.value_schema or ""), json.loads(spec.sink.key_schema or "")
    assert [f["name"] for f in value["fields"]] == ["id", "Kind"]
    assert [f["name"] for f in key["fields"]] == ["id"]


def test_what_the_registry_would_refuse_is_refused(
    client: TestClient, registry: MemoryRegistry, fresh: Any
) -> None:
    """With every reason of its own, before anything is made."""
    assert run(client, ORDERS).status_code == 200
    registry.subjects["out-value"] = Schema("AVRO", ORDER, id=5)
    registry.refusals = ["field x is gone.", "field y is an int."]
    answer = run(client, "CREATE STREAM out AS SELECT * FROM orders")
    assert (answer.status_code, answer.json()["code"]) == (422, "schema-incompatible")
    assert [f["detail"].rsplit(": ", 1)[1] for f in answer.json()["errors"]] == registry.refusals
    assert "out" not in fresh.cluster.entities
    other = run(client, "CREATE STREAM out WITH ('value.format'='protobuf') AS SELECT * FROM orders")
    assert "holds schemas of type AVRO, not PROTOBUF" in other.json()["detail"]
    run(client, "CREATE STREAM named (\"a b\" BIGINT) WITH ('topic'='orders', 'value.format'='json')")
    odd = run(client, "CREATE STREAM odd WITH ('value.format'='avro') AS SELECT * FROM named")
    assert (odd.json()["code"], "no name for an Avro field" in odd.json()["detail"]) == (
        "type-mismatch",
        True,
    )


def test_values_are_written_by_a_schema_and_printed_as_json(
    client: TestClient, registry: MemoryRegistry, fresh: Any
) -> None:
    assert run(client, ORDERS).status_code == 200
    assert validate(client, "INSERT INTO orders VALUES (1, 'a')")["problems"] == []
    assert registry.subjects["orders-value"].text == ORDER, "a dry run registers nothing"
    done = run(client, "INSERT INTO orders VALUES (1, 'a'), (2, NULL)")
    assert done.status_code == 200, done.text
    raw = fresh.cluster.records["orders"][0].value
    assert raw[0] == 0
    text = "PRINT ENTITY orders WITH ('from_beginning', 'limit'=10)"
    rows = run(client, text).json()["results"][0]["rows"]
    assert [row[4] for row in rows] == ['{"id":1,"Kind":"a"}', '{"id":2,"Kind":null}']
    lines = client.get("/v1/stores/k/entities/orders/records?from=beginning&limit=2").text.splitlines()
    assert json.loads(lines[0])["value"] == {"id": 1, "Kind": "a"}
    registry.subjects.clear()
    assert run(client, text).json()["results"][0]["rows"][0][4].startswith(("base64:", "\0")), (
        "as it lies there"
    )


def test_changelogs_have_keys_of_their_values_format(
    client: TestClient, registry: MemoryRegistry, fresh: Any
) -> None:
    columns = "(id BIGINT, part VARCHAR, n DOUBLE, PRIMARY KEY (id, part))"
    assert (
        run(
            client, f"CREATE CHANGELOG c {columns} WITH ('topic'='orders', 'value.format'='avro')"
        ).status_code
        == 200
    )
    assert client.get("/v1/relations/d.public.c").json()["effective"]["key.format"]["value"] == "avro"
    mixed = (
        f"CREATE CHANGELOG m {columns} WITH ('topic'='orders', 'value.format'='avro', 'key.format'='json')"
    )
    assert validate(client, mixed)["problems"] == []


FORMATS = ("json", "avro", "protobuf", "primitive")


@pytest.mark.parametrize("value", FORMATS)
@pytest.mark.parametrize("key", FORMATS)
def test_statements_write_every_pair_of_formats(
    client: TestClient, registry: MemoryRegistry, fresh: Any, key: str, value: str
) -> None:
    """Key and value each in its own format, with the key's column in the key alone; NULL is no primitive."""
    registry.subjects.clear()
    made = run(
        client,
        "CREATE STREAM s (id BIGINT NOT NULL, v VARCHAR) WITH ('topic'='orders', 'key.columns'='ID',"
        f" 'key.format'='{key}', 'value.format'='{value}', 'value.columns.exclude'='ID')",
    )
    assert made.status_code == 200, made.text
    effective = client.get("/v1/relations/d.public.s").json()["effective"]
    assert effective["value.columns.exclude"]["value"] == "id"
    done = run(client, "INSERT INTO s VALUES (7, 'ü')")
    assert done.status_code == 200, done.text
    (record,) = fresh.cluster.records["orders"]
    for part, raw, plain in (("key", record.key, {"id": 7}), ("value", record.value, {"v": "ü"})):
        form, (name, item) = {"key": key, "value": value}[part], *plain.items()
        if form == "primitive":
            assert raw == {"id": (7).to_bytes(8, "big"), "v": "ü".encode()}[name]
        elif form == "json":
            assert json.loads(raw) == plain
        else:
            kind = "BIGINT" if name == "id" else "VARCHAR"
            description = Description(form, (name,), (kind,), registry=registry.address)
            decoder = Decoder(description, registry)  # type: ignore[arg-type]
            assert decoder.row(raw) == [item]
            for garbage in (b"", b"\x01", raw[:-1], raw + b"\x07", b'{"id": 7}'):
                with pytest.raises(Undecodable):
                    decoder.row(garbage)
    run(client, "INSERT INTO s VALUES (8, NULL)")
    last = fresh.cluster.records["orders"][-1]
    assert (last.value is None) == (value == "primitive")


@pytest.mark.parametrize(
    ("text", "code", "told"),
    [
        ("(a BIGINT, b BIGINT) WITH (", "invalid-property", "exactly one column is in the value, and 2 are"),
        ("(a DATE) WITH (", "type-mismatch", "Column a is DATE; a primitive value is one of VARCHAR,"),
        (
            "(a BIGINT, b DATE) WITH ('key.format'='primitive', 'key.columns'='b', ",
            "type-mismatch",
            "Column b is DATE; a primitive key is one of VARCHAR,",
        ),
        (
            "(a BIGINT, b BIGINT) WITH ('key.format'='json', 'key.columns'='a,b', ",
            "invalid-property",
            "all are in the key",
        ),
        (
            "(a BIGINT, b BIGINT) WITH ('key.format'='json', 'key.columns'='a', 'value.columns.exclude'='b', ",
            "invalid-property",
            "b of 'value.columns.exclude' is no column of the key",
        ),
        ("(a BIGINT) WITH ('value.columns.exclude'='a', ", "invalid-property", "needs 'key.columns'"),
        ("(a BIGINT) WITH ('key.format'='json', 'key.columns'='x', ", "unknown-column", "Key column x"),
    ],
)
def test_what_cannot_be_a_primitive(
    client: TestClient, registry: MemoryRegistry, text: str, code: str, told: str
) -> None:
    found = validate(client, f"CREATE STREAM s {text}'topic'='orders', 'value.format'='primitive')")
    assert [p["code"] for p in found["problems"]][:1] == [code], found
    assert told in found["problems"][0]["detail"]


def test_a_query_keeps_to_a_streams_own_key(client: TestClient, registry: MemoryRegistry, fresh: Any) -> None:
    """What is in the key alone is written under that key, also by INSERT INTO … SELECT."""
    target = (
        "CREATE STREAM t (id BIGINT, \"Kind\" VARCHAR) WITH ('topic'='orders', 'value.format'='primitive', "
    )
    assert run(client, target + "'key.format'='primitive', 'key.columns'='id')").status_code == 200
    assert (
        run(
            client,
            "CREATE STREAM s (id BIGINT, \"Kind\" VARCHAR) WITH ('topic'='s', 'value.format'='json',"
            " 'topic.partitions'=1, 'topic.replicas'=1)",
        ).status_code
        == 200
    )
    other = validate(
        client, "INSERT INTO t WITH ('key.format'='primitive', 'key.columns'='Kind') SELECT * FROM s"
    )
    assert other["problems"][0]["code"] == "invalid-property"
    done = run(client, "INSERT INTO t SELECT * FROM s QUERY WITH ('query.name'='q')")
    assert done.status_code == 200, done.text
    with fresh.env.open_unit(write=False) as unit:
        sink = build_spec(fresh.env, unit, unit.queries.find("q")).sink
    assert (sink.key_columns, sink.key_only) == (["id"], ["id"])
    named = run(client, "CREATE STREAM u WITH ('value.format'='primitive') AS SELECT * FROM s")
    assert "exactly one column is in the value" in named.json()["detail"]


def test_an_insert_may_name_its_key(client: TestClient, registry: MemoryRegistry, fresh: Any) -> None:
    """The target has the key's format; it was asked for, and then refused."""
    for name in ("plain", "keyed"):
        key = "'key.format'='primitive', 'key.columns'='id', " if name == "keyed" else ""
        text = f"CREATE STREAM {name} (id BIGINT, kind VARCHAR) WITH ('value.format'='json', {key}"
        assert run(client, text + "'topic.partitions'=1, 'topic.replicas'=1)").status_code == 200
    text = "INSERT INTO keyed WITH ('key.columns'='{}') SELECT * FROM plain QUERY WITH ('query.name'='q')"
    for columns, told in (("none", "has no column none"), ("id, kind", "exactly one column")):
        assert told in validate(client, text.format(columns))["problems"][0]["detail"]
    other = validate(client, "INSERT INTO plain WITH ('key.columns'='id') SELECT * FROM keyed")
    assert "has no key format" in other["problems"][0]["detail"]
    done = run(client, text.format("kind"))
    assert done.status_code == 200, done.text
    with fresh.env.open_unit(write=False) as unit:
        assert build_spec(fresh.env, unit, unit.queries.find("q")).sink.key_columns == ["kind"]


def test_names_of_properties_in_a_body_may_be_written_large(
    client: TestClient, registry: MemoryRegistry, fresh: Any
) -> None:
    """They were not found in that form, and the column in the key alone was written nowhere."""
    entity = "'topic'='s', 'value.format'='json', 'topic.partitions'=1, 'topic.replicas'=1"
    run(client, f"CREATE STREAM s (id BIGINT, kind VARCHAR) WITH ({entity})").raise_for_status()
    body = {
        "store": "k",
        "kind": "stream",
        "columns": [{"name": "id", "type": "BIGINT"}, {"name": "kind", "type": "VARCHAR"}],
        "topic": "orders",
        "value_format": "json",
        "key_format": "json",
        "properties": {"Key.Columns": "id", "Value.Columns.Exclude": "id"},
    }
    made = client.put("/v1/relations/d.public.t", json=body)
    assert made.status_code == 201, made.text
    assert run(client, "INSERT INTO t SELECT * FROM s QUERY WITH ('query.name'='q')").status_code == 200
    with fresh.env.open_unit(write=False) as unit:
        sink = build_spec(fresh.env, unit, unit.queries.find("q")).sink
    assert (sink.key_columns, sink.key_only) == (["id"], ["id"])


@pytest.mark.parametrize(
    "said", ["'delivery.guarantee'='exactly_once'", "'sink.timestamp.strategy'='event.time'"]
)
def test_what_only_a_query_may_say_is_refused_of_a_stream(
    client: TestClient, registry: MemoryRegistry, said: str
) -> None:
    """It was kept and did nothing: an INSERT into the stream wrote at least once."""
    text = f"CREATE STREAM t (id BIGINT) WITH ('topic'='orders', 'value.format'='json', {said})"
    (problem,) = validate(client, text)["problems"]
    assert problem["code"] == "invalid-property"
    assert "Write it with INSERT" in problem["hint"]


def test_asking_a_registry(client: TestClient, registry: MemoryRegistry) -> None:
    asked = client.post("/v1/schema-registries/sr:test")
    assert asked.json() == {"ready": True, "message": None, "error_code": None}
    registry.up = False
    asked = client.post("/v1/schema-registries/sr:test").json()
    assert (asked["ready"], asked["error_code"]) == (False, "registry-unreachable")
    assert client.post("/v1/schema-registries/none:test").status_code == 404


def test_a_planned_registry_is_asked(client: TestClient, registry: MemoryRegistry) -> None:
    """Terraform plans registry, store and stream at once: the dry run reads the schema all the same."""
    assume = {
        "schema_registries": [
            {
                "name": "new",
                "type": "apicurio",
                "uris": "http://new:8080",
                "username": "n",
                "password": PASSWORD,
            }
        ],
        "stores": [{"name": "nk", "kafka": {"bootstrap_servers": "h:9092"}, "schema_registry": "new"}],
        "relations": [
            {
                "database": "d",
                "schema": "public",
                "name": "planned",
                "store": "nk",
                "topic": "orders",
                "value_format": "avro",
            }
        ],
    }
    body = {
        "sql": "SELECT id FROM planned",
        "database": "d",
        "schema": "public",
        "store": "nk",
        "assume": assume,
    }
    found = client.post("/v1/statements:validate", json=body).json()
    assert found["valid"], found
    assert registry.address.uris == ("http://new:8080/apis/ccompat/v7",)
    assert registry.address.password == PASSWORD
    assert PASSWORD not in json.dumps(found)


@pytest.mark.parametrize("value_format", ["json", "avro", "json_schema"])
def test_keys_of_maps_are_text(
    client: TestClient,
    registry: MemoryRegistry,
    fresh: Any,
    monkeypatch: pytest.MonkeyPatch,
    value_format: str,
) -> None:
    """Declared or selected, also deep inside; the plan says which column, and nothing is made."""
    assert run(client, ORDERS).status_code == 200
    with_format = f"WITH ('value.format'='{value_format}'"
    told = run(
        client, f"CREATE STREAM x (a BIGINT, m ARRAY<MAP<BIGINT, VARCHAR>>) {with_format}, 'topic'='orders')"
    )
    assert told.json()["code"] == "type-mismatch"
    assert told.json()["errors"][0]["detail"] == (
        f"Column m: a map in {value_format} has VARCHAR keys, not BIGINT."
    )
    selected = [AnalyzedColumn("Counts", "struct<c:map<int,string>>", True)]
    monkeypatch.setattr(fresh.env.analyzer, "analyze", lambda *_: selected)
    told = run(client, f"CREATE STREAM out {with_format}) AS SELECT * FROM orders")
    assert (told.status_code, told.json()["code"]) == (422, "type-mismatch")
    (fault,) = told.json()["errors"]
    assert fault["detail"] == f'Column "Counts": a map in {value_format} has VARCHAR keys, not INTEGER.'
    assert fault["position"]["line"] == 1
    assert "out" not in fresh.cluster.entities


def test_a_descriptor_source_describes_bare_messages(
    client: TestClient, registry: MemoryRegistry, fresh: Any
) -> None:
    """Without any registry; the job gets the descriptors, and the source stays while it is used."""
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    from leatstream.formats.proto_text import read_proto

    text = 'syntax = "proto3"; package shop; message Order { string id = 1; int32 n = 2; }'
    files = FileDescriptorSet(file=[read_proto(text, "a.proto")]).SerializeToString()
    body = {"descriptor_set": base64.b64encode(files).decode()}
    assert client.put("/v1/descriptor-sources/shop", json=body).status_code == 201
    client.put("/v1/stores/plain", json={"kafka": {"bootstrap_servers": "h:9092"}})
    described = (
        "'store'='plain', 'topic'='orders', 'value.format'='protobuf', 'value.descriptor.source'='shop'"
    )
    made = run(client, f"CREATE STREAM orders WITH ({described}, 'value.descriptor.name'='shop.Order')")
    assert made.status_code == 200, made.text
    shown = client.get("/v1/relations/d.public.orders").json()["columns"]
    assert [(c["name"], c["type"]) for c in shown] == [("id", "VARCHAR"), ("n", "INTEGER")]
    out = run(
        client, "CREATE STREAM out WITH ('store'='plain', 'value.format'='json') AS SELECT * FROM orders"
    )
    assert out.status_code == 200, out.text
    with fresh.env.open_unit(write=False) as unit:
        spec = build_spec(fresh.env, unit, unit.queries.find("out"))
    assert spec.sources[0].descriptor is not None
    assert spec.sources[0].descriptor.message == "shop.Order"
    assert run(client, "DROP DESCRIPTOR_SOURCE shop").json()["code"] == "has-dependents"
    # A body's keys may be written in any case.
    found = client.get("/v1/relations/d.public.orders").json()
    assert "value.descriptor.source" in found["properties"], found
    written = {key.title(): value for key, value in found["properties"].items()}
    body = {k: found[k] for k in ("store", "topic", "value_format")} | {"properties": written}
    assert client.put("/v1/relations/d.public.orders", json=body).status_code == 200
    assert run(client, "DROP DESCRIPTOR_SOURCE shop").json()["code"] == "has-dependents"
    for text, code in (
        (f"CREATE STREAM x WITH ({described})", "invalid-property"),
        (f"CREATE STREAM x WITH ({described}, 'value.descriptor.name'='shop.None')", "validation"),
        (
            f"CREATE STREAM x WITH ({described}, 'value.descriptor.name'='a')".replace("'shop'", "'gone'"),
            "not-found",
        ),
        ("INSERT INTO orders VALUES ('a', 1)", "unsupported"),
    ):
        assert validate(client, text)["problems"][0]["code"] == code, text


def _planned(client: TestClient, **registry: Any) -> Any:
    item = {"name": "sr", "type": "confluent", "username": "u", **registry}
    relation = {"database": "d", "schema": "public", "name": "planned", "store": "nk", "topic": "orders"}
    assume = {
        "schema_registries": [item],
        "stores": [{"name": "nk", "kafka": {"bootstrap_servers": "h:9092"}, "schema_registry": "sr"}],
        "relations": [{**relation, "value_format": "avro"}],
    }
    body = {"sql": "SELECT id FROM planned", "database": "d", "schema": "public", "store": "nk"}
    return client.post("/v1/statements:validate", json={**body, "assume": assume}).json()["statements"][0]


def test_a_planned_registry_elsewhere_gets_no_stored_password(
    client: TestClient, registry: MemoryRegistry, fresh: Any
) -> None:
    """Who may plan, but does not know the password, could have it sent to himself."""
    assert run(client, ORDERS).status_code == 200
    for moved in ({"uris": "http://evil"}, {"uris": "http://h:8081,http://evil"}):
        _planned(client, **moved)
        assert registry.addresses[-1].password is None, moved
    _planned(client, uris="http://h:8081", comment="the same place")
    assert registry.addresses[-1].password == PASSWORD
    _planned(client, uris="http://new", password_secret="sr_pw")
    assert (registry.addresses[-1].uris, registry.addresses[-1].password) == (("http://new",), PASSWORD)
    asked = len(registry.addresses)
    told = _planned(client, uris="http://evil/#")
    assert (told["problems"][0]["code"], len(registry.addresses)) == ("validation", asked)


def test_a_reader_has_no_place_connected_to(
    client: TestClient, registry: MemoryRegistry, fresh: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dry run connects to what is planned: that takes the right to make it, for SQL as for ``assume``."""
    assert run(client, ORDERS).status_code == 200
    asked, plain, seen = len(registry.addresses), fresh.env.connect, []
    env = replace(fresh.env, connect=lambda store: seen.append(store.name) or plain(store))
    text = (
        "CREATE STORE evil WITH ('type'=KAFKA, 'uris'='evil:9092', 'tls.disabled'=TRUE,"
        " 'kafka.sasl.hash_function'=PLAIN, 'kafka.sasl.username'='x', 'kafka.sasl.password'=\"sr_pw\");"
        "CREATE ENTITY e IN STORE evil"
    )
    for who, code in (("reader", "permission-denied"), ("sysadmin", None)):
        found = dry_run(env, Principal("bob", who), text, Context("d", "public", "k"))
        codes = [p["code"] for s in found.statements for p in s["problems"]]
        assert (code in codes, "evil" in seen) == (code is not None, who == "sysadmin"), codes
    plan = {
        "schema_registries": [{"name": "sr", "type": "confluent", "uris": "http://evil", "username": "u"}]
    }
    dry_run(env, Principal("bob", "reader"), "SELECT id FROM orders", Context("d", "public", "k"), plan)
    text = "CREATE STREAM s2 WITH ('topic'='orders', 'value.format'='avro')"
    found = dry_run(env, Principal("bob", "reader"), text, Context("d", "public", "k"), plan)
    assert [p["code"] for s in found.statements for p in s["problems"]] == ["permission-denied"]
    assert len(registry.addresses) == asked

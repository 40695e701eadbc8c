"""Avro, Protobuf and JSON Schema on a running stack, a real broker and a real schema registry: from a producer's schema to the sink's."""

from __future__ import annotations

import io
import json
from typing import Any

import httpx2
import pytest

pytestmark = [pytest.mark.stack]

FIRST = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["RETAIL", "TRADE"]}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "buyer", "type": ["null", {"type": "record", "name": "Buyer", "fields": [
            {"name": "name", "type": "string"}]}]},
    ],
}  # fmt: skip
SECOND = {
    **FIRST,
    "fields": [{"name": "note", "type": ["null", "string"], "default": None}, *FIRST["fields"]],
}


class Producer:
    """Somebody else's: registers its schema and writes records by it."""

    def __init__(self, registry: str, play: Any, topic: str) -> None:
        self.registry, self.play, self.topic = registry, play, topic

    def send(self, schema: Any, *records: dict[str, Any]) -> int:
        import fastavro

        path = f"{self.registry}/subjects/{self.topic}-value/versions"
        number = int(httpx2.post(path, json={"schema": json.dumps(schema)}, timeout=10).json()["id"])
        parsed = fastavro.parse_schema(json.loads(json.dumps(schema)))
        written = []
        for record in records:
            out = io.BytesIO()
            fastavro.schemaless_writer(out, parsed, record)
            written.append(b"\0" + number.to_bytes(4, "big") + out.getvalue())
        self.play.produce(self.topic, written)
        return number


def order(number: int, kind: str = "RETAIL", **more: Any) -> dict[str, Any]:
    from datetime import UTC, datetime
    from decimal import Decimal

    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    return {"id": number, "kind": kind, "price": Decimal("9.50"), "at": moment, "buyer": None, **more}


def printed(play: Any, topic: str) -> list[Any]:
    text = f"PRINT ENTITY \"{topic}\" WITH ('from_beginning', 'limit'=100)"
    return [json.loads(row[4]) for row in play.sql(text)["results"][0]["rows"]]


def test_from_one_registered_schema_to_another(play: Any, schema_registry: str, eventually: Any) -> None:
    """Columns from the registry, a filter, a sink whose schema is registered; the producer's schema changes."""
    base = schema_registry.removesuffix("/apis/ccompat/v7")
    play.sql(
        f"CREATE SCHEMA_REGISTRY {play.name} WITH ('type'=APICURIO, 'uris'='{base}');"
        f"UPDATE STORE {play.name} WITH ('schema_registry.name'='{play.name}')"
    )
    tested = play.http.post(f"/v1/schema-registries/{play.name}:test")
    assert tested.json() == {"ready": True, "message": None, "error_code": None}
    topic = play.topic("orders")
    producer = Producer(schema_registry, play, topic)
    assert producer.send(FIRST, order(1), order(2, "TRADE", buyer={"name": "ü"})) >= 1

    text = f"CREATE STREAM orders WITH ('topic'='{topic}', 'value.format'='avro')"
    planned = play.http.post("/v1/statements:validate", json={"sql": text, **play.context}).json()
    wanted = [
        ("id", "BIGINT"),
        ("kind", "VARCHAR"),
        ("price", "DECIMAL(8, 2)"),
        ("at", "TIMESTAMP_LTZ"),
        ("buyer", "STRUCT<name VARCHAR>"),
    ]
    assert [(c["name"], c["type"]) for c in planned["statements"][0]["plan"]["columns"]] == wanted
    play.sql(text)
    out = f"{play.name}.trade"
    query = play.run(
        "trade",
        f"CREATE STREAM trade WITH ('topic'='{out}', 'value.format'='protobuf', 'key.format'='json_schema', 'key.columns'='id') AS SELECT id, price * 2 AS price, "
        "at, buyer->name AS buyer FROM orders WITH ('starting.position'='earliest') WHERE kind = 'TRADE'",
    )
    assert query["status"]["state"] == "running", query["status"]
    assert query["plan"]["mode_reason"].startswith("Avro, Protobuf and JSON Schema")
    eventually(lambda: len(printed(play, out)) == 1, what="the first record")
    producer.send(SECOND, {**order(3, "TRADE"), "note": "new"}, order(4) | {"note": None})
    eventually(lambda: len(printed(play, out)) == 2, what="a record of the new schema")
    assert printed(play, out) == [
        {"id": 2, "price": "19.00", "at": "2026-01-02 03:04:05Z", "buyer": "ü"},
        {"id": 3, "price": "19.00", "at": "2026-01-02 03:04:05Z", "buyer": None},
    ]
    subjects = httpx2.get(f"{schema_registry}/subjects").json()
    assert {f"{out}-value", f"{out}-key"} <= set(subjects)
    kinds = {
        p: httpx2.get(f"{schema_registry}/subjects/{out}-{p}/versions/latest").json()
        for p in ("value", "key")
    }
    assert {p: found["schemaType"] for p, found in kinds.items()} == {"value": "PROTOBUF", "key": "JSON"}

    # What the registry would refuse is refused by the plan, and nothing is made.
    httpx2.put(f"{schema_registry}/config/{out}-value", json={"compatibility": "BACKWARD"})
    play.sql(f"CREATE STREAM more (id VARCHAR) WITH ('topic'='{out}', 'value.format'='protobuf')")
    for statement in (
        "INSERT INTO more SELECT CAST(id AS VARCHAR) FROM orders",
        "INSERT INTO more VALUES ('x')",
    ):
        body = play.refused(statement)
        assert (body["code"], body["status_code"]) == ("schema-incompatible", 422), body
        assert f"{out}-value" in body["detail"]
    play.sql("INSERT INTO trade VALUES (9, 1.25, NULL, 'by hand')")
    assert printed(play, out)[2] == {"id": 9, "price": "1.25", "at": None, "buyer": "by hand"}

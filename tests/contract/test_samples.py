"""A sample of a relation: its records as rows, decoded without a driver, with the reason where one is none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from starlette.testclient import TestClient

from leatstream.connectors.entities import Entity, Record
from leatstream.errors import StoreError
from leatstream.formats.avro_writing import record_writer
from leatstream.formats.registry_client import Schema
from leatstream.model.types import parse_type

ORDER = '{"type":"record","name":"O","fields":[{"name":"id","type":"long"},{"name":"note","type":"string"}]}'


def run(client: TestClient, sql: str) -> None:
    body = {"sql": sql, "database": "d", "schema": "public", "store": "k"}
    answer = client.post("/v1/statements", json=body)
    assert answer.status_code == 200, answer.text


@pytest.fixture
def d(client: TestClient, fresh: Any) -> TestClient:
    """The client of a world with a store, a database and an empty topic."""
    run(
        client,
        "CREATE SCHEMA_REGISTRY sr WITH ('type'=CONFLUENT, 'uris'='http://h:8081');"
        "CREATE STORE k WITH ('type'=KAFKA, 'uris'='h:9092', 'tls.disabled'=TRUE,"
        " 'kafka.sasl.hash_function'=NONE, 'schema_registry.name'=sr); CREATE DATABASE d",
    )
    fresh.cluster.entities["t"] = Entity("t", {"topic.partitions": 1, "topic.replicas": 1})
    return client


def put(fresh: Any, *values: bytes | None, keys: tuple[bytes | None, ...] = ()) -> None:
    """The topic's records."""
    fresh.cluster.records["t"] = [
        Record(keys[at] if keys else None, value, 0, at, 1_700_000_000_000 + at)
        for at, value in enumerate(values)
    ]


def sample(client: TestClient, name: str = "d.public.s", **params: Any) -> Any:
    answer = client.get(f"/v1/relations/{name}/sample", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_json_is_decoded_as_a_job_does_it(d: TestClient, fresh: Any) -> None:
    run(
        d,
        "CREATE STREAM s (id BIGINT NOT NULL, price DECIMAL(10,2), big DECIMAL(38,0), at TIMESTAMP, tags"
        " ARRAY<VARCHAR>) WITH ('topic'='t', 'value.format'='json')",
    )
    put(
        fresh,
        b'{"id":9007199254740993,"price":19.9,"big":"12345678901234567890123456789012345678",'
        b'"at":"2026-01-31T13:05:00.5","tags":["a",null]}',
        b'{"id":9223372036854775808}',
        b'{"id":1,"price":"19,90"}',
        b'{"price":1}',
        b"no json",
        None,
    )
    before = dict(fresh.drivers.queries)
    found = sample(d, limit=10)
    assert found["columns"][1] == {"name": "price", "type": "DECIMAL(10, 2)"}
    assert [(r["offset"], r["outcome"]) for r in found["records"]] == [
        (5, "passed_over"),
        (4, "undecodable"),
        (3, "undecodable"),
        (2, "undecodable"),
        (1, "undecodable"),
        (0, "row"),
    ]
    assert found["records"][-1]["row"] == [
        9007199254740993,
        "19.90",
        "12345678901234567890123456789012345678",
        "2026-01-31 13:05:00.5",
        ["a", None],
    ]
    assert [r["reason"] for r in found["records"][1:5]] == [
        "it is not JSON (at character 1 of 7)",
        "column id is NOT NULL, and is missing in the record",
        'column price is DECIMAL(10, 2), the record has the string "19,90"',
        "column id is BIGINT, the record has the number 9223372036854775808 (it is out of range)",
    ]
    assert (found["note"], fresh.drivers.queries) == (None, before)


def test_excerpts_of_values_may_be_off(d: TestClient, fresh: Any) -> None:
    run(d, "CREATE STREAM s (id BIGINT) WITH ('topic'='t', 'value.format'='json')")
    put(fresh, b'{"id":"secretive"}')
    fresh.env.settings = replace(fresh.env.settings, error_excerpts=False)
    (one,) = sample(d)["records"]
    assert one["reason"] == "column id is BIGINT, the record has the string of 9 characters (not shown)"


def test_newest_and_oldest(d: TestClient, fresh: Any) -> None:
    run(d, "CREATE STREAM s (n INTEGER) WITH ('topic'='t', 'value.format'='json')")
    put(fresh, *(b'{"n":%d}' % n for n in range(9)))
    assert [r["row"] for r in sample(d, limit=2)["records"]] == [[8], [7]]
    assert [r["row"] for r in sample(d, limit=2, **{"from": "earliest"})["records"]] == [[0], [1]]
    assert d.get("/v1/relations/d.public.s/sample", params={"limit": 0}).status_code == 422


def test_an_empty_topic_says_so(d: TestClient) -> None:
    run(d, "CREATE STREAM s (n INTEGER) WITH ('topic'='t', 'value.format'='json')")
    found = sample(d)
    assert (found["records"], found["note"]) == ([], "Entity t holds no records now.")


def test_a_plain_value_and_its_key(d: TestClient, fresh: Any) -> None:
    run(
        d,
        "CREATE STREAM s (id INTEGER, level DOUBLE) WITH ('topic'='t', 'value.format'='primitive',"
        " 'key.format'='primitive', 'key.columns'='id')",
    )
    key = (7).to_bytes(4, "big")
    put(fresh, b"\x40\x09\x21\xfb\x54\x44\x2d\x18", b"3.14", b"\0" * 8, keys=(key, key, b"7"))
    rows = sample(d, **{"from": "earliest"})["records"]
    assert rows[0]["row"] == [7, 3.141592653589793]
    assert (rows[0]["key"], rows[1]["reason"]) == ("\0\0\0\7", "its bytes are no DOUBLE")
    assert rows[2]["reason"] == "its key cannot be read: its bytes are no INTEGER"


def test_a_changelogs_record_without_value_takes_a_row_back(d: TestClient, fresh: Any) -> None:
    run(
        d,
        "CREATE CHANGELOG s (id VARCHAR, n INTEGER, PRIMARY KEY (id)) WITH ('topic'='t', 'value.format'='json',"
        " 'key.format'='json')",
    )
    put(fresh, b'{"id":"a","n":1}', None, keys=(b'{"id":"a"}', b'{"id":"a"}'))
    gone, there = sample(d)["records"]
    assert (gone["outcome"], gone["row"]) == ("deletion", ["a", None])
    assert (there["outcome"], there["row"], there["key"]) == ("row", ["a", 1], '{"id":"a"}')


def test_a_time_in_seconds_is_none(d: TestClient, fresh: Any) -> None:
    run(d, "CREATE STREAM s (ts BIGINT) WITH ('topic'='t', 'value.format'='json', 'timestamp'='ts')")
    put(fresh, b'{"ts":1700000000}', b'{"ts":1700000000000}', b'{"ts":null}')
    rows = sample(d, **{"from": "earliest"})["records"]
    assert rows[0]["reason"].startswith("its event time, column ts, looks like seconds")
    assert [r["row"] for r in rows[1:]] == [[1700000000000], [None]]


class Registry:
    """Knows one schema."""

    def __init__(self) -> None:
        self.up = True

    def open(self, address: Any, timeout: float) -> Any:
        return self

    def schema(self, number: int) -> Schema | None:
        if not self.up:
            raise StoreError("registry-unreachable", "Schema registry sr does not answer.")
        return Schema("AVRO", ORDER, id=1) if number == 1 else None

    def latest(self, subject: str) -> Schema | None:
        return self.schema(1)

    def close(self) -> None:
        pass


def test_avro_by_the_schema_that_a_record_names(d: TestClient, fresh: Any) -> None:
    registry = Registry()
    fresh.env.open_registry = registry.open
    run(d, "CREATE STREAM s WITH ('topic'='t', 'value.format'='avro')")
    good = bytearray(b"\0\0\0\0\1")
    record_writer([parse_type("BIGINT"), parse_type("VARCHAR")], (True, True))(good, [9007199254740993, "ü"])
    put(fresh, bytes(good), b'{"id":1}', b"\0\0\0\0\2\2\2", bytes(good[:7]))
    rows = sample(d, **{"from": "earliest"})["records"]
    assert rows[0]["row"] == [9007199254740993, "ü"]
    assert rows[1]["reason"] == "it does not begin with a schema's id, as records of a schema registry do"
    assert rows[2]["reason"] == "the registry has no schema 2"
    assert rows[3]["reason"].startswith("its bytes are not of its schema")
    registry.up = False
    answer = d.get("/v1/relations/d.public.s/sample")
    assert (answer.status_code, answer.json()["code"]) == (503, "registry-unreachable")


def test_there_is_no_such_relation(d: TestClient) -> None:
    answer = d.get("/v1/relations/d.public.nothing/sample")
    assert (answer.status_code, answer.json()["code"]) == (404, "not-found")


def test_a_large_sample_is_cut(d: TestClient, fresh: Any) -> None:
    run(d, "CREATE STREAM s (t VARCHAR) WITH ('topic'='t', 'value.format'='json')")
    put(fresh, *(b'{"t":"%s"}' % (b"x" * 400_000) for _ in range(4)))
    found = sample(d)
    assert [r["offset"] for r in found["records"]] == [3, 2]
    assert found["note"] == "The other 2 are left out: an answer has at most 1 MiB of records."

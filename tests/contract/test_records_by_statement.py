"""What statements do to the catalog, the stores and the records: real services over a store in memory."""

from __future__ import annotations

import json
from typing import Any

import pytest
from starlette.testclient import TestClient

from leatstream.connectors.entities import Record
from leatstream.model.objects import QueryState

CONTEXT = {"database": "demo", "schema": "public", "store": "k"}
STORE = "CREATE STORE k WITH ('type'=KAFKA, 'uris'='localhost:9092', 'tls.disabled'=TRUE);"
SETUP = (
    "CREATE DATABASE demo; "
    + STORE
    + " CREATE ENTITY t WITH ('kafka.partitions'=2, 'kafka.replicas'=1, 'kafka.topic.retention.ms'='1000');"
    " CREATE STREAM s (id BIGINT NOT NULL, name VARCHAR, tags ARRAY<VARCHAR>)"
    " WITH ('topic'='t', 'value.format'='json', 'key.format'='primitive', 'key.columns'='Id');"
    " CREATE STREAM v (id BIGINT, name VARCHAR) WITH ('topic'='t', 'value.format'='json');"
)


class Sql:
    """Runs statements."""

    def __init__(self, client: TestClient) -> None:
        self.client = client

    def __call__(self, text: str, **more: Any) -> dict[str, Any]:
        answer = self.client.post("/v1/statements", json={"sql": text, **CONTEXT, **more})
        assert answer.status_code == 200, answer.text
        last: dict[str, Any] = answer.json()["results"][-1]
        return last

    def refused(self, text: str) -> dict[str, Any]:
        answer = self.client.post("/v1/statements", json={"sql": text, **CONTEXT})
        assert answer.status_code >= 400, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def table(self, text: str) -> list[list[Any]]:
        rows: list[list[Any]] = self(text)["rows"]
        return rows

    def valid(self, text: str) -> dict[str, Any]:
        answer = self.client.post("/v1/statements:validate", json={"sql": text, **CONTEXT})
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found


@pytest.fixture
def sql(client: TestClient) -> Sql:
    """A database, a store, a topic and a stream on it."""
    run = Sql(client)
    run(SETUP)
    return run


def _places(problem: dict[str, Any], text: str) -> list[str]:
    places = [e["position"] for e in problem["errors"]]
    return [text[p["offset"] : p["offset"] + p["length"]] for p in places]


# -- INSERT … VALUES ------------------------------------------------------------------------------------------


def test_values_become_records(sql: Sql, fresh: Any) -> None:
    done = sql("INSERT INTO s VALUES (1, 'a', ARRAY['x', NULL]), (-2, NULL, NULL)")
    assert (done["kind"], done["status"], done["query"]) == ("insert_values", "succeeded", None)
    assert done["object"] == {"noun": "relation", "name": "demo.public.s", "records": 2}
    sql("INSERT INTO demo.public.s (name, id) VALUES ('b', 3)")
    assert [(r.key, r.value) for r in fresh.cluster.records["t"]] == [
        (b"\0\0\0\0\0\0\0\1", b'{"id":1,"name":"a","tags":["x",null]}'),
        (b"\xff\xff\xff\xff\xff\xff\xff\xfe", b'{"id":-2,"name":null,"tags":null}'),
        (b"\0\0\0\0\0\0\0\3", b'{"id":3,"name":"b","tags":null}'),
    ]


def test_without_key_columns_there_is_no_key(sql: Sql, fresh: Any) -> None:
    sql("CREATE STREAM keyless (id BIGINT) WITH ('topic'='t', 'value.format'='json');")
    sql("INSERT INTO keyless VALUES (1)")
    assert fresh.cluster.records["t"][0].key is None


def test_every_fault_of_values_has_its_place_and_nothing_is_written(sql: Sql, fresh: Any) -> None:
    text = "INSERT INTO s VALUES (1, 'a', NULL), (NULL, 2, ARRAY[3]), (1), ('x', 'y', NULL)"
    problem = sql.refused(text)
    assert (problem["status"], problem["code"]) == (422, "type-mismatch")
    assert _places(problem, text) == ["NULL", "2", "3", "1", "'x'"]
    assert fresh.cluster.records == {}
    checked = sql.valid(text)
    assert [p["detail"] for p in checked["statements"][0]["problems"]] == [
        e["detail"] for e in problem["errors"]
    ]
    assert sql.valid("INSERT INTO s VALUES (1, 'a', NULL)")["valid"]
    assert fresh.cluster.records == {}


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("INSERT INTO s (id, nmae) VALUES (1, 'a')", "unknown-column", "nmae"),
        ("INSERT INTO s (id, id) VALUES (1, 2)", "validation", "id"),
        ("INSERT INTO s (name) VALUES ('a')", "type-mismatch", "name"),
        ("INSERT INTO nowhere VALUES (1)", "unknown-relation", "nowhere"),
        ("INSERT INTO ENTITY t VALUE('{\"a\": ')", "validation", "'{\"a\": '"),
        ("INSERT INTO ENTITY t VALUE('[1]')", "validation", "'[1]'"),
        ("INSERT INTO ENTITY t VALUE('{\"a\": NaN}')", "validation", "'{\"a\": NaN}'"),
        ("INSERT INTO ENTITY t VALUE('{}') WITH ('keys' = 'x')", "invalid-property", "'keys'"),
        ("INSERT INTO ENTITY t VALUE('{}') WITH ('key' = 1)", "invalid-property", "1"),
    ],
)
def test_wrong_inserts(sql: Sql, fresh: Any, text: str, code: str, place: str) -> None:
    problem = sql.refused(text)
    assert problem["code"] == code, problem
    assert _places(problem, text) == [place]
    assert fresh.cluster.records == {}


def test_a_reader_may_not_insert(sql: Sql, fresh: Any) -> None:
    sql.client.headers["Authorization"] = f"Bearer {fresh.reader_token}"
    for text in (
        "INSERT INTO s VALUES (1, 'a', NULL)",
        "INSERT INTO ENTITY t VALUE('{}')",
        "UPDATE STORE k WITH ('uris'='a:1')",
        "UPDATE ENTITY t WITH ('kafka.partitions'=3)",
        "CREATE OR REPLACE DATABASE demo",
    ):
        assert sql.refused(text)["code"] == "permission-denied", text
    assert fresh.cluster.records == {}


def test_a_record_into_an_entity_is_kept_as_it_is(sql: Sql, fresh: Any) -> None:
    sql("""INSERT INTO ENTITY t IN STORE k VALUE('{ "k":1, "ü": ''x'' }'""".replace("''x''", "2") + ") ")
    sql("INSERT INTO TOPIC t VALUE('{}') WITH ('key' = 'ü')")
    records = fresh.cluster.records["t"]
    assert [r.value for r in records] == ['{ "k":1, "ü": 2 }'.encode(), b"{}"]
    assert [r.key for r in records] == [None, "ü".encode()]
    assert sql.refused("INSERT INTO ENTITY nope VALUE('{}')")["code"] == "entity-not-found"


# -- OR REPLACE and COMMENT -----------------------------------------------------------------------------------


def test_or_replace_is_put(sql: Sql) -> None:
    sql(
        "CREATE OR REPLACE DATABASE demo COMMENT 'the demo'; CREATE OR REPLACE SCHEMA demo.public COMMENT 'all'"
    )
    assert ["comment", "the demo"] in sql.table("DESCRIBE DATABASE demo")
    assert ["comment", "all"] in sql.table("DESCRIBE SCHEMA demo.public")
    sql("CREATE OR REPLACE DATABASE demo")
    assert ["comment", None] in sql.table("DESCRIBE DATABASE demo")
    assert sql.refused("CREATE DATABASE demo COMMENT 'x'")["code"] == "already-exists"
    sql(
        STORE.replace("CREATE STORE k", "CREATE OR REPLACE STORE k COMMENT 'brokers'").replace("9092", "9093")
    )
    described = sql.table("DESCRIBE STORE k")
    assert ["comment", "brokers"] in described
    assert ["bootstrap_servers", "localhost:9093"] in described
    assert sql.refused("CREATE OR REPLACE STORE k WITH ('type'=KINESIS)")["status"] in (409, 422)


def test_a_stream_is_replaced_and_described_with_comments(sql: Sql) -> None:
    sql(
        "CREATE OR REPLACE STREAM s (id BIGINT NOT NULL COMMENT 'the key', name VARCHAR, tags ARRAY<VARCHAR>,"
        " more DATE) COMMENT 'people' WITH ('topic'='t', 'value.format'='json')"
    )
    found = sql("DESCRIBE STREAM s")
    told = found["object"].pop("effective")
    assert found["object"] == {"noun": "relation", "name": "demo.public.s", "comment": "people"}
    assert told["value.format"] == {"value": "json", "origin": "explicit"}
    assert told["topic.partitions"]["origin"] == "existing_entity"
    assert found["rows"][0] == ["id", "BIGINT", "true", "the key"]
    assert [r[0] for r in found["rows"]] == ["id", "name", "tags", "more"]
    listed = sql("LIST STREAMS")
    heads = [c["name"] for c in listed["columns"]]
    assert {r[0]: r[heads.index("comment")] for r in listed["rows"]}["demo.public.s"] == "people"
    sql("CREATE ENTITY other WITH ('kafka.partitions'=1, 'kafka.replicas'=1)")
    other = "CREATE OR REPLACE STREAM s (id BIGINT) WITH ('topic'='other', 'value.format'='json')"
    assert sql.refused(other)["code"] == "requires-replacement"


def test_comments_of_columns_may_change_under_a_query(sql: Sql) -> None:
    sql("CREATE STREAM copy AS SELECT * FROM v")
    text = "CREATE OR REPLACE STREAM v (id BIGINT{}, name VARCHAR) WITH ('topic'='t', 'value.format'='json')"
    sql(text.format(" COMMENT 'new'"))
    assert sql.table("DESCRIBE STREAM v")[0][3] == "new"
    assert sql.refused(text.format(" NOT NULL"))["code"] == "has-dependents"


def test_a_query_is_replaced_and_the_change_told(sql: Sql, fresh: Any) -> None:
    create = "CREATE OR REPLACE STREAM copy COMMENT 'a copy' WITH ('key.format'='primitive', 'key.columns'='name') AS SELECT * FROM v"
    made = sql(create)
    assert (made["query"], made["rows"]) == ("copy", None)
    again = sql(create)
    assert again["rows"] == [["copy", "none", "the query stays the same"]]
    _run(fresh, "copy")
    planned = sql.valid(create.replace("FROM v", "FROM v WHERE id > 1"))["statements"][0]
    assert planned["problems"] == []
    assert planned["plan"]["change"]["class"] == "restart-from-offsets"
    changed = sql(create.replace("FROM v", "FROM v WHERE id > 1").replace("a copy", "another"))
    assert changed["status"] == "running"
    assert changed["rows"][0][:2] == ["copy", "restart-from-offsets"]
    assert changed["rows"][0][2]
    body = sql.client.get("/v1/queries/copy").json()
    assert (body["generation"], body["status"]["state"]) == (2, "running")
    assert sql("DESCRIBE STREAM copy")["object"]["comment"] == "another"
    sql("TERMINATE QUERY copy;")
    back = sql(create)
    assert back["rows"][0][1] == "restart-from-offsets"
    assert sql.client.get("/v1/queries/copy").json()["desired_state"] == "running"


def test_what_a_query_did_not_make_it_does_not_replace(sql: Sql) -> None:
    assert sql.refused("CREATE OR REPLACE STREAM s AS SELECT * FROM v")["status"] in (409, 422)
    sql("CREATE ENTITY t2 WITH ('kafka.partitions'=2, 'kafka.replicas'=1)")
    sql("CREATE STREAM d (id BIGINT) WITH ('topic'='t2', 'value.format'='json')")
    problem = sql.refused("CREATE OR REPLACE STREAM d WITH ('topic'='t2') AS SELECT * FROM v")
    assert problem["code"] == "requires-replacement"
    sql("CREATE STREAM copy AS SELECT * FROM v")
    other = "CREATE OR REPLACE STREAM copy AS SELECT * FROM v QUERY WITH ('query.name'='other')"
    assert sql.refused(other)["code"] == "requires-replacement"
    declared = "CREATE OR REPLACE STREAM copy (id BIGINT) WITH ('topic'='copy', 'value.format'='json')"
    assert sql.refused(declared)["code"] in ("has-dependents", "property-required")
    assert sql.refused("CREATE STREAM copy AS SELECT * FROM v")["code"] == "already-exists"


def _run(fresh: Any, name: str) -> None:
    """Make the query look as if its job ran."""
    from dataclasses import replace

    with fresh.units() as unit:
        query = unit.queries.find(name)
        metrics = {"rows_in": 3, "watermarks": {"s": "x"}, "offsets": [1, 2]}
        status = replace(
            query.status,
            state=QueryState.RUNNING,
            driver_id="d1",
            observed_generation=query.meta.generation,
            metrics=metrics,
        )
        unit.queries.update(replace(query, status=status))
        unit.commit()


# -- UPDATE ---------------------------------------------------------------------------------------------------


def test_a_store_is_updated_and_keeps_what_is_not_named(sql: Sql, client: TestClient) -> None:
    sql(
        "CREATE STORE secured COMMENT 'c' WITH ('type'=KAFKA, 'uris'='a:1', 'kafka.sasl.hash_function'=SHA512,"
        " 'kafka.sasl.username'='leat', 'kafka.sasl.password'='first', 'tls.verify_server_hostname'=FALSE)"
    )
    sql("UPDATE STORE secured WITH ('uris'='b:2', 'kafka.sasl.password'='first')")
    found = client.get("/v1/stores/secured").json()
    assert (found["comment"], found["generation"]) == ("c", 2)
    kafka = found["kafka"]
    assert (kafka["bootstrap_servers"], kafka["security_protocol"]) == ("b:2", "sasl_ssl")
    assert (kafka["sasl"]["username"], kafka["tls"]["verify_hostname"]) == ("leat", False)
    assert "first" not in json.dumps(found)
    sql("UPDATE STORE secured WITH ('kafka.sasl.password'='second')")
    assert client.get("/v1/stores/secured").json()["generation"] == 3
    sql("UPDATE STORE secured WITH ('kafka.sasl.hash_function'=NONE, 'tls.disabled'=TRUE)")
    kafka = client.get("/v1/stores/secured").json()["kafka"]
    assert (kafka["security_protocol"], kafka.get("sasl"), kafka.get("tls")) == ("plaintext", None, None)


def test_the_kept_password_is_the_one_that_was_given(sql: Sql, fresh: Any) -> None:
    from leatstream.services.nouns.stores import resolve_store_secrets

    sql(
        "CREATE STORE secured WITH ('type'=KAFKA, 'uris'='a:1', 'kafka.sasl.hash_function'=PLAIN,"
        " 'kafka.sasl.username'='leat', 'kafka.sasl.password'='first', 'tls.disabled'=TRUE);"
        "UPDATE STORE secured WITH ('kafka.sasl.username'='other')"
    )
    with fresh.units(write=False) as unit:
        store = unit.stores.find("secured")
        assert resolve_store_secrets(fresh.env, unit, store) == {"sasl.password": "first"}
        assert "first" not in repr(store)


def test_wrong_updates_of_stores(sql: Sql) -> None:
    assert sql.refused("UPDATE STORE k WITH ('type'=KAFKA)")["code"] == "invalid-property"
    assert sql.refused("UPDATE STORE k WITH ('uri'='a:1')")["code"] == "invalid-property"
    assert sql.refused("UPDATE STORE k WITH ('kafka.sasl.username'='x')")["code"] == "invalid-property"
    assert sql.refused("UPDATE STORE nope WITH ('uris'='a:1')")["code"] == "not-found"


def test_an_entity_is_updated_and_keeps_what_is_not_named(sql: Sql, fresh: Any) -> None:
    sql("UPDATE ENTITY t WITH ('kafka.topic.cleanup.policy'='compact')")
    entity = fresh.cluster.entities["t"]
    assert dict(entity.configs) == {"retention.ms": "1000", "cleanup.policy": "compact"}
    sql("UPDATE TOPIC t IN STORE k WITH ('kafka.partitions'=4)")
    entity = fresh.cluster.entities["t"]
    assert entity.properties["topic.partitions"] == 4
    assert dict(entity.configs) == {"retention.ms": "1000", "cleanup.policy": "compact"}
    assert sql.refused("UPDATE ENTITY t WITH ('kafka.partitions'=1)")["code"] == "store-rejected"
    assert sql.refused("UPDATE ENTITY nope WITH ('kafka.partitions'=1)")["code"] == "entity-not-found"


# -- DESCRIBE QUERY … and GENERATE ----------------------------------------------------------------------------


def test_state_and_metrics_of_a_query(sql: Sql, fresh: Any) -> None:
    sql("CREATE STREAM copy AS SELECT * FROM v")
    state = dict(sql.table("DESCRIBE QUERY STATE copy"))
    assert (state["state"], state["generation"], state["restarts"]) == ("pending", "1", "0")
    assert sql.table("DESCRIBE QUERY METRICS copy") == []
    _run(fresh, "copy")
    assert dict(sql.table("DESCRIBE QUERY STATE copy"))["driver"] == "d1"
    found = sql("DESCRIBE QUERY METRICS copy")
    assert (found["kind"], found["columns"][0]["name"]) == ("describe_query_metrics", "metric")
    assert found["rows"] == [["offsets", "[1, 2]"], ["rows_in", "3"], ["watermarks.s", "x"]]
    assert sql.refused("DESCRIBE QUERY STATE nope")["code"] == "not-found"


def test_columns_are_generated_and_the_template_runs(sql: Sql, fresh: Any) -> None:
    fresh.cluster.entities["A.b"] = fresh.cluster.entities["t"]
    documents = [{"select": 1, "Größe": 1.5, "st": {"a": [True]}}, {"select": None, "t": "it's"}]
    fresh.cluster.records["A.b"] = [
        Record(None, json.dumps(d).encode(), 0, i, 1) for i, d in enumerate([*documents, "no object"])
    ]
    found = sql('GENERATE COLUMNS FROM ENTITY "A".b IN STORE k')
    assert found["rows"] == [
        ["select", "BIGINT", 1, 2],
        ["Größe", "DOUBLE", 1, 2],
        ["st", "STRUCT<a ARRAY<BOOLEAN>>", 1, 2],
        ["t", "VARCHAR", 1, 2],
    ]
    assert [r[0] for r in sql.table("GENERATE COLUMNS FROM ENTITY \"A\".b WITH ('limit' = 1)")] == [
        "select",
        "Größe",
        "st",
    ]
    ((text,),) = sql.table('GENERATE TEMPLATE FOR TOPIC "A".b')
    assert text.startswith('CREATE STREAM b (\n  "select" BIGINT,\n')
    sql(text)
    assert sql.table("DESCRIBE STREAM b")[1][:2] == ["Größe", "DOUBLE"]


def test_nothing_to_generate_from(sql: Sql, fresh: Any) -> None:
    assert sql.refused("GENERATE COLUMNS FROM ENTITY nope")["code"] == "entity-not-found"
    assert "no records" in sql.refused("GENERATE COLUMNS FROM ENTITY t")["detail"]
    fresh.cluster.records["t"] = [Record(None, b"1", 0, 0, 1)]
    assert "JSON object" in sql.refused("GENERATE TEMPLATE FOR ENTITY t")["detail"]
    assert sql.refused("GENERATE COLUMNS FROM ENTITY t WITH ('limit'=0)")["code"] == "invalid-property"
    assert sql.refused("GENERATE COLUMNS FROM ENTITY t WITH ('x'=0)")["code"] == "invalid-property"


def test_a_record_that_a_stream_cannot_read_is_told_at_once(sql: Sql) -> None:
    """It is written as it is said, and would end each query that reads the stream."""
    sql("CREATE STREAM copied AS SELECT id FROM s QUERY WITH ('query.name'='copy')")
    sql(
        "CREATE STREAM lenient AS SELECT id FROM s WITH ('source.deserialization.error.handling'='IGNORE') "
        "QUERY WITH ('query.name'='lenient')"
    )
    warnings = sql("""INSERT INTO ENTITY t VALUE('{"id": "yesterday", "name": "n"}')""")["object"]["warnings"]
    why = 'cannot read this record: column id is BIGINT, the record has the string "yesterday"'
    assert warnings == [
        f"stream demo.public.s {why}. It ends query copy",
        f"stream demo.public.v {why}",
    ]
    assert "warnings" not in sql("""INSERT INTO ENTITY t VALUE('{"id": 1, "name": "n"}')""")["object"]

"""SQL statements on the real services: what each one answers, columns and rows."""

from __future__ import annotations

import json
from typing import Any

import fakes
import pytest
from starlette.testclient import TestClient

from leatstream.connectors.entities import Record
from leatstream.errors import StoreError
from leatstream.services.queries.reconcile.reconciler import reconcile_all

STREAM = "CREATE STREAM pageviews (viewtime BIGINT NOT NULL, userid VARCHAR) WITH ('value.format'='json')"
SELECT = "CREATE STREAM views AS SELECT * FROM pageviews"
INSERT = "INSERT INTO views SELECT * FROM pageviews"
META = ["owner", "created_at", "updated_at"]
NO_TLS = "'type'=KAFKA, 'uris'='localhost:9092', 'tls.disabled'=TRUE"


class Sql:
    """Runs statements one by one, each with the context that the one before it left."""

    def __init__(self, client: TestClient) -> None:
        self.client = client
        self.context: dict[str, Any] = {}

    def __call__(self, text: str) -> dict[str, Any]:
        """The last result of a text that succeeds."""
        answer = self.client.post("/v1/statements", json={"sql": text, **self.context})
        assert answer.status_code == 200, answer.text
        body = answer.json()
        self.context = body["context"]
        found: dict[str, Any] = body["results"][-1]
        assert found["status"] == "succeeded", found
        return found

    def table(self, text: str) -> list[dict[str, Any]]:
        """Rows of the last result, by column name; every column has a type."""
        found = self(text)
        assert all(column["type"] for column in found["columns"])
        names = [column["name"] for column in found["columns"]]
        return [dict(zip(names, row, strict=True)) for row in found["rows"]]

    def properties(self, text: str) -> dict[str, Any]:
        """What DESCRIBE of an object other than a relation says."""
        return {row["property"]: row["value"] for row in self.table(text)}

    def refused(self, text: str) -> str:
        """The code of a statement that fails."""
        answer = self.client.post("/v1/statements", json={"sql": text, **self.context})
        assert answer.status_code >= 400, answer.text
        return str(answer.json()["code"])


@pytest.fixture
def sql(client: TestClient) -> Sql:
    """Nothing is there yet."""
    return Sql(client)


@pytest.fixture
def shop(sql: Sql) -> Sql:
    """A store, a topic, a database, a schema, a stream: all made by SQL and chosen by USE."""
    sql(f"CREATE STORE k WITH ({NO_TLS})")
    sql("CREATE ENTITY pageviews IN STORE k WITH ('topic.partitions'=3, 'topic.replicas'=1)")
    sql("CREATE DATABASE demo; CREATE SCHEMA raw IN DATABASE demo")
    sql("USE DATABASE demo; USE SCHEMA raw; USE STORE k")
    sql(STREAM)
    return sql


def _columns(result: dict[str, Any]) -> list[str]:
    return [column["name"] for column in result["columns"]]


@pytest.mark.parametrize("verb", ["LIST", "SHOW"])
@pytest.mark.parametrize(
    ("nouns", "kind", "columns", "first"),
    [
        ("DATABASES", "list_databases", ["name", *META], ["demo"]),
        ("SCHEMAS", "list_schemas", ["database", "name", *META], ["demo", "public"]),
        ("NAMESPACES IN DATABASE demo", "list_schemas", ["database", "name", *META], ["demo", "public"]),
        ("STORES", "list_stores", ["name", "type", "state", "message", *META], ["k", "kafka", "ready", None]),
        (
            "DATA STORES",
            "list_stores",
            ["name", "type", "state", "message", *META],
            ["k", "kafka", "ready", None],
        ),
        (
            "FUNCTIONS",
            "list_functions",
            ["name", "aliases", "arguments", "returns", "kind", "category", "comment"],
            ["rowtime", None, "[alias]", "BIGINT", "scalar", "Record"],
        ),
        ("ENTITIES", "list_entities", ["name", "properties", "configs"], ["pageviews"]),
        ("TOPICS IN STORE k", "list_entities", ["name", "properties", "configs"], ["pageviews"]),
        (
            "STREAMS",
            "list_streams",
            ["fqn", "kind", "store", "entity", "value_format", "comment", *META],
            ["demo.raw.pageviews", "stream", "k", "pageviews", "json", None],
        ),
        (
            "RELATIONS IN SCHEMA demo.raw",
            "list_relations",
            ["fqn", "kind", "store", "entity", "value_format", "comment", *META],
            ["demo.raw.pageviews", "stream", "k", "pageviews", "json", None],
        ),
    ],
)
def test_list(
    shop: Sql, verb: str, nouns: str, kind: str, columns: list[str], first: list[str | None]
) -> None:
    """LIST and SHOW of each noun: one table, the same columns whether there is something or not."""
    found = shop(f"{verb} {nouns}")
    assert found["kind"] == kind
    assert _columns(found) == columns
    assert found["rows"][0][: len(first)] == first
    if columns[-3:] == META:
        assert all(row[-3] == "sysadmin" for row in found["rows"])


@pytest.mark.parametrize("nouns", ["DATABASES", "STORES", "RELATIONS", "STREAMS", "QUERIES"])
def test_list_of_nothing(sql: Sql, nouns: str) -> None:
    """An empty table has its columns all the same."""
    found = sql(f"LIST {nouns}")
    assert found["rows"] == []
    assert found["columns"]


def test_entities_tell_their_properties(shop: Sql) -> None:
    """Numbers and settings as JSON text, one entity a row."""
    shop(
        "CREATE TOPIC users WITH ('kafka.partitions'=2, 'kafka.replicas'=1, 'kafka.topic.retention.ms'=60000)"
    )
    rows = {row["name"]: row for row in shop.table("SHOW TOPICS")}
    assert list(rows) == ["pageviews", "users"]
    assert json.loads(rows["users"]["properties"]) == {"topic.partitions": 2, "topic.replicas": 1}
    assert json.loads(rows["users"]["configs"]) == {"retention.ms": "60000"}


def test_describe_every_object(shop: Sql) -> None:
    """Properties of objects, columns of relations."""
    assert shop.properties("DESCRIBE DATABASE demo")["name"] == "demo"
    schema = shop.properties("DESCRIBE SCHEMA demo.raw")
    assert (schema["database"], schema["name"], schema["owner"]) == ("demo", "raw", "sysadmin")
    assert shop.properties("DESCRIBE STORE k") == {
        "name": "k",
        "type": "kafka",
        "state": "ready",
        "message": None,
        "comment": None,
        "bootstrap_servers": "localhost:9092",
        "security_protocol": "plaintext",
    }
    entity = {"name": "pageviews", "topic.partitions": "3", "topic.replicas": "1"}
    assert shop.properties("DESCRIBE ENTITY pageviews") == entity
    assert shop.properties("DESCRIBE TOPIC pageviews IN STORE k") == entity
    columns = [
        {"column": "viewtime", "type": "BIGINT", "not_null": "true", "comment": None},
        {"column": "userid", "type": "VARCHAR", "not_null": "false", "comment": None},
    ]
    for noun in ("RELATION pageviews", "STREAM demo.raw.pageviews"):
        assert shop.table(f"DESCRIBE {noun}") == columns
    for noun in ("DATABASE", "SCHEMA", "STORE", "RELATION", "QUERY"):
        assert shop.refused(f"DESCRIBE {noun} nothing") == "not-found"
    assert shop.refused("DESCRIBE ENTITY nothing") == "entity-not-found"


@pytest.mark.parametrize("word", ["", "STATEMENT "])
def test_describe_a_statement_changes_nothing(shop: Sql, word: str) -> None:
    """A dry run: kind and plan, and nothing is made."""
    (row,) = shop.table(f"DESCRIBE {word}{SELECT}")
    assert row["kind"] == "create_stream_as"
    assert row["plan"]["sink"]["fqn"] == "demo.raw.views"
    assert row["plan"]["sink"]["properties"]["topic.partitions"]["value"] == 3
    assert shop.table("LIST QUERIES") == []
    assert len(shop.table("LIST RELATIONS")) == 1
    assert shop.refused(f"DESCRIBE {word}DROP STREAM pageviews") == "unsupported"


def test_a_query_from_its_statement_to_its_end(shop: Sql, fresh: Any) -> None:
    """Made, listed, described, stopped, started anew, dropped."""
    made = shop.client.post("/v1/statements", json={"sql": SELECT, **shop.context}).json()["results"][0]
    # No driver takes it here: the job is still to start.
    assert (made["kind"], made["status"]) == ("create_stream_as", "running")
    assert made["object"] == {"noun": "relation", "name": "demo.raw.views"}
    name = made["query"]
    (row,) = shop.table("SHOW QUERIES")
    assert {
        column: row[column] for column in ("name", "desired_state", "state", "message", "sink", "sql")
    } == {
        "name": name,
        "desired_state": "running",
        "state": "pending",
        "message": None,
        "sink": "demo.raw.views",
        "sql": SELECT,
    }
    described = shop.table(f"DESCRIBE QUERY {name}")
    told = {row["property"]: row["value"] for row in described}
    (partitions,) = (row for row in described if row["property"] == "topic.partitions")
    assert (told["sql"], told["sink"], told["sources"]) == (SELECT, "demo.raw.views", "demo.raw.pageviews")
    assert (told["desired_state"], told["state"], told["error"]) == ("running", "pending", None)
    assert list(partitions.values()) == [
        "topic.partitions",
        "3",
        "left_most_source",
        "demo.raw.pageviews",
    ]
    assert told["mode"] == "realtime"
    assert shop.refused("DROP STREAM views") == "has-dependents"
    assert shop(f"TERMINATE QUERY {name}")["query"] == name
    assert shop.table("LIST QUERIES")[0]["desired_state"] == "stopped"
    restarted = shop.client.post("/v1/statements", json={"sql": f"RESTART QUERY {name}", **shop.context})
    result = restarted.json()["results"][0]
    assert (result["kind"], result["status"], result["query"]) == ("restart_query", "running", name)
    assert shop.table("LIST QUERIES")[0]["desired_state"] == "running"
    assert shop(f"DROP QUERY {name}")["kind"] == "drop_query"
    assert shop.refused(f"DROP QUERY {name}") == "not-found"
    for word in ("TERMINATE", "RESTART"):
        assert shop.refused(f"{word} QUERY {name}") == "not-found"


def test_insert_into_makes_a_query(shop: Sql) -> None:
    """INSERT answers as CREATE STREAM AS does, with the sink that is there."""
    shop(
        "CREATE STREAM views (viewtime BIGINT, userid VARCHAR) WITH ('topic'='pageviews2', 'value.format'='json',"
        " 'topic.partitions'=1, 'topic.replicas'=1)"
    )
    answer = shop.client.post("/v1/statements", json={"sql": INSERT, **shop.context})
    assert answer.status_code == 200, answer.text
    result = answer.json()["results"][0]
    assert (result["kind"], result["status"]) == ("insert_into", "running")
    assert [row["name"] for row in shop.table("LIST QUERIES")] == [result["query"]]


def test_use_is_told_in_the_context(shop: Sql) -> None:
    """Another database begins in its public schema; a name that is not there changes nothing."""
    assert {k: shop.context[k] for k in ("database", "schema", "store")} == {
        "database": "demo",
        "schema": "raw",
        "store": "k",
    }
    shop(f"CREATE DATABASE other; CREATE STORE k2 WITH ({NO_TLS})")
    found = shop("USE DATABASE other")
    assert (found["kind"], found["object"]) == ("use_database", {"noun": "database", "name": "other"})
    assert (shop.context["database"], shop.context["schema"], shop.context["store"]) == (
        "other",
        "public",
        "k",
    )
    assert shop("USE SCHEMA demo.raw")["kind"] == "use_schema"
    assert (shop.context["database"], shop.context["schema"]) == ("demo", "raw")
    assert shop("USE STORE k2")["kind"] == "use_store"
    assert shop.context["store"] == "k2"
    for noun in ("DATABASE", "SCHEMA", "STORE"):
        assert shop.refused(f"USE {noun} nothing") == "not-found"
    assert (shop.context["database"], shop.context["schema"], shop.context["store"]) == ("demo", "raw", "k2")


MAKES = [
    ("CREATE DATABASE {}d", "database"),
    ("CREATE SCHEMA {}s", "schema"),
    (f"CREATE STORE {{}}x WITH ({NO_TLS})", "store"),
    ("CREATE ENTITY {}t WITH ('topic.partitions'=1, 'topic.replicas'=1)", "entity"),
    ("CREATE TOPIC {}t WITH ('topic.partitions'=1, 'topic.replicas'=1)", "entity"),
    ("CREATE STREAM {}v (n BIGINT) WITH ('topic'='pageviews', 'value.format'='json')", "stream"),
]


@pytest.mark.parametrize(("make", "noun"), MAKES, ids=[m.split(" {")[0].lower() for m, _ in MAKES])
def test_create_and_drop_twice(shop: Sql, make: str, noun: str) -> None:
    """The second is refused, unless it says that it may be there, or may be gone, already."""
    assert shop(make.format(""))["kind"] == f"create_{noun}"
    assert shop.refused(make.format("")) == "already-exists"
    for _ in range(2):
        assert shop(make.format("IF NOT EXISTS "))["kind"] == f"create_{noun}"
    name = make.format("").split()[2]
    drop = f"DROP {make.split()[1]} {{}}{name}"
    assert shop(drop.format(""))["kind"] == f"drop_{noun}"
    assert shop.refused(drop.format("")) in ("not-found", "entity-not-found")
    assert shop(drop.format("IF EXISTS "))["kind"] == f"drop_{noun}"
    assert shop(make.format("IF NOT EXISTS "))["kind"] == f"create_{noun}"


def test_if_not_exists_of_a_query_makes_it_once(shop: Sql) -> None:
    """The same CREATE STREAM IF NOT EXISTS … AS in every start-up script."""
    text = SELECT.replace("STREAM", "STREAM IF NOT EXISTS")
    answer = shop.client.post("/v1/statements", json={"sql": text, **shop.context})
    assert answer.json()["results"][0]["query"]
    assert shop(text)["query"] is None
    assert len(shop.table("LIST QUERIES")) == 1
    assert shop.refused(SELECT) == "already-exists"
    assert shop("DROP QUERY IF EXISTS nothing")["kind"] == "drop_query"


def test_dropped_topics_are_gone(shop: Sql, fresh: Any) -> None:
    """With IN STORE, dots in the name, and not while a stream stands on it."""
    shop("CREATE TOPIC web.clicks IN STORE k WITH ('topic.partitions'=1, 'topic.replicas'=1)")
    assert "web.clicks" in fresh.cluster.entities
    found = shop("DROP TOPIC web.clicks IN STORE k")
    assert found["object"]["noun"] == "entity"
    assert "web.clicks" not in fresh.cluster.entities
    assert shop.refused("DROP TOPIC pageviews") == "has-dependents"


def test_print(shop: Sql, fresh: Any) -> None:
    """Position, time, key and value of what is there; never more than the limit."""
    values = [b'{"a": 1}', b"\xff", None]
    fresh.cluster.records["pageviews"] = [Record(b"k", v, 0, i, 1000 + i) for i, v in enumerate(values)]
    rows = shop.table("PRINT TOPIC pageviews WITH ('from_beginning')")
    at = "1970-01-01T00:00:01.000Z"
    assert rows[0] == {"partition": 0, "offset": 0, "timestamp": at, "key": "k", "value": '{"a": 1}'}
    assert [row["value"] for row in rows] == ['{"a": 1}', "base64:/w==", None]
    limited = shop.table("PRINT ENTITY pageviews IN STORE k WITH ('from_beginning', 'limit'=2)")
    assert [row["offset"] for row in limited] == [0, 1]
    assert shop.table("PRINT ENTITY pageviews") == []
    assert shop.refused("PRINT ENTITY nothing") == "entity-not-found"
    (result,) = shop.client.post(
        "/v1/statements", json={"sql": "PRINT ENTITY pageviews", **shop.context}
    ).json()["results"]
    types = {column["name"]: column["type"] for column in result["columns"]}
    assert types["partition"] == "INTEGER"
    assert types["offset"] == "BIGINT"
    assert types["timestamp"] == "TIMESTAMP_LTZ"


@pytest.mark.parametrize(
    ("begin", "offsets"),
    [
        ("'since' = '1970-01-01T00:00:02Z'", [2, 3]),
        ("'since' = '1970-01-01T00:00:03+00:00', 'partition' = '1'", [3]),
        ("'since' = 1500, 'from_beginning' = FALSE", [1, 2, 3]),
        ("'partition' = 1, 'from_beginning'", [1, 3]),
        ("'partition' = 1, 'offset' = 2", [3]),
        ("'offset' = 0, 'partition' = 0, 'limit' = 1", [0]),
        ("'partition' = 0", []),
    ],
)
def test_print_begins_where_it_is_told(shop: Sql, fresh: Any, begin: str, offsets: list[int]) -> None:
    """At a time, in a partition, at an offset; without any only new records come."""
    fresh.cluster.records["pageviews"] = [Record(None, b"{}", i % 2, i, 1000 * i + 500) for i in range(4)]
    rows = shop.table(f"PRINT ENTITY pageviews WITH ({begin})")
    assert [row["offset"] for row in rows] == offsets


def test_print_holds_no_more_than_an_answer_may_have(
    shop: Sql, fresh: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records of any length are no reason for the server to run out of memory; nor are many statements."""
    monkeypatch.setattr("leatstream.views.faults.MOST_ANSWERED", 2 << 20)
    monkeypatch.setattr("leatstream.services.environment.results.MOST_ANSWERED", 2 << 20)
    record = Record(b"k", b"x" * (1 << 19), 0, 0, 1000)
    fresh.cluster.records["pageviews"] = [record] * 100
    text = "PRINT TOPIC pageviews WITH ('from_beginning', 'limit'={})"
    answer = shop.client.post("/v1/statements", json={"sql": text.format(100), **shop.context})
    assert answer.status_code == 422
    problem = answer.json()
    assert (problem["code"], problem["sqlstate"]) == ("not-computable", "54000")
    assert problem["detail"].startswith("The answer has more than 2 MiB")
    assert "'limit'" in problem["errors"][0]["hint"]
    assert fresh.cluster.closed_readers == 1
    assert len(shop.table(text.format(3))) == 3
    both = {"sql": f"{text.format(3)}; {text.format(2)}", **shop.context}
    problem = shop.client.post("/v1/statements", json=both).json()
    assert problem["errors"][0]["hint"].startswith("send the statements apart")
    assert len(problem["results"]) == 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("'limit'=0", "from 1 to 10000"),
        ("'limit'=10001", "from 1 to 10000"),
        ("'limit'='many'", "from 1 to 10000"),
        ("'no.such'=1", "known: from_beginning, since"),
        ("'starting.position'='earliest'", "Use 'from_beginning'"),
        ("'sinse'='2026-01-31'", "Did you mean since?"),
        ("'since'='yesterday'", "a time such as 2026-01-31T12:00:00Z"),
        ("'since'='10000-01-01'", "a time such as"),
        ("'offset'=-1, 'partition'=0", "a whole number from 0"),
        ("'offset'=3", "Give 'partition' too"),
        ("'from_beginning', 'since'=1", "not at 'from_beginning' and 'since'"),
        ("'offset'=3, 'partition'=0, 'since'=1", "not at 'since' and 'offset'"),
    ],
)
def test_print_refuses_what_it_does_not_know(shop: Sql, given: str, said: str) -> None:
    """At its place, before anything is read; the dry run too."""
    body = {"sql": f"PRINT ENTITY pageviews WITH ({given})", **shop.context}
    problem = shop.client.post("/v1/statements", json=body).json()
    assert problem["code"] == "invalid-property"
    (fault,) = problem["errors"]
    assert said in f"{fault['detail']} {fault.get('hint')}"
    assert fault["position"]["column"] > 29
    (checked,) = shop.client.post("/v1/statements:validate", json=body).json()["statements"]
    assert [one["detail"] for one in checked["problems"]] == [fault["detail"]]


def test_a_store_that_does_not_answer_is_kept_and_told(
    sql: Sql, fresh: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service has asked it: users who create it need not find out by the next statement."""
    assert sql(f"CREATE STORE k WITH ({NO_TLS})")["object"] == {
        "noun": "store",
        "name": "k",
        "state": "ready",
    }
    assert sql(f"CREATE STORE IF NOT EXISTS k WITH ({NO_TLS})")["object"] == {"noun": "store", "name": "k"}

    def test(self: Any, timeout: float) -> None:
        raise StoreError("store-unreachable", f"Store {self.name}: no Kafka broker answered.")

    monkeypatch.setattr(fakes.MemoryConnector, "test", test)
    told = {"noun": "store", "name": "k", "state": "errored", "message": "Store k: no Kafka broker answered."}
    other = NO_TLS.replace("9092", "9093")
    assert sql(f"CREATE OR REPLACE STORE k WITH ({other})")["object"] == told
    assert sql("UPDATE STORE k WITH ('uris'='localhost:9094')")["object"] == told


def test_create_store_of_every_security(sql: Sql, fresh: Any) -> None:
    """TLS is on unless it is switched off, a password turns SASL on and is never shown."""
    sql(f"CREATE STORE plain WITH ({NO_TLS})")
    sql("CREATE STORE tls WITH ('type'=KAFKA, 'uris'='a:1,b:2')")
    login = "'kafka.sasl.hash_function'=SHA512, 'kafka.sasl.username'='u', 'kafka.sasl.password'='hunter2'"
    sql(f"CREATE STORE login WITH ({NO_TLS}, {login})")
    told = {name: sql.properties(f"DESCRIBE STORE {name}") for name in ("plain", "tls", "login")}
    assert {name: store["security_protocol"] for name, store in told.items()} == {
        "plain": "plaintext",
        "tls": "ssl",
        "login": "sasl_plaintext",
    }
    assert told["tls"]["bootstrap_servers"] == "a:1,b:2"
    assert json.loads(told["login"]["sasl"]) == {"mechanism": "scram_sha_512", "username": "u"}
    assert "hunter2" not in json.dumps(told) + json.dumps(sql.table("LIST STORES"))
    assert sql.refused("CREATE STORE x WITH ('type'=ORACLE, 'uris'='a:1')") == "invalid-property"
    assert sql.refused("CREATE STORE x WITH ('type'=PULSAR, 'uris'='a:1')") == "invalid-property"
    assert sql.refused("CREATE STORE x WITH ('type'=KAFKA)") == "invalid-property"


def test_what_depends_on_a_database_until_its_job_has_ended_is_said(
    pageviews: TestClient, fresh: Any
) -> None:
    """DROP QUERY returns at once, so a script that drops the database behind it comes too early."""
    sql = Sql(pageviews)
    sql("CREATE DATABASE other")
    text = "CREATE STREAM other.public.views AS SELECT * FROM demo.public.pageviews"
    assert pageviews.post("/v1/statements", json={"sql": text, "store": "k"}).status_code == 200

    def hint() -> str:
        answer = pageviews.post("/v1/statements", json={"sql": "DROP DATABASE other"})
        assert (answer.status_code, answer.json()["code"]) == (409, "has-dependents")
        return str(answer.json()["errors"][0]["hint"])

    assert hint() == "Drop those first."
    fresh.drivers.tokens["d1"] = "token"
    reconcile_all(fresh.env)
    pageviews.post("/v1/statements", json={"sql": "DROP QUERY views"})
    assert hint().startswith("Their queries are being deleted. Wait until")
    fresh.drivers.tokens.clear()
    reconcile_all(fresh.env)
    sql("DROP DATABASE other")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("USE DATABASE demmo", "Did you mean demo?"),
        ("DROP STORE kk", "Did you mean k?"),
        ("CREATE STREAM y (a BIGNT) WITH ('value.format' = 'json')", "Did you mean BIGINT?"),
        ("CREATE STREAM y (a BIGINT) WITH ('format' = 'json')", "Did you mean 'value.format'?"),
    ],
)
def test_a_slip_gets_the_nearest_word(pageviews: TestClient, text: str, hint: str) -> None:
    answer = pageviews.post("/v1/statements", json={"sql": text, "database": "demo", "store": "k"})
    assert answer.json()["errors"][0]["hint"] == hint

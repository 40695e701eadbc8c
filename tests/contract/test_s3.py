"""Streams over files at plan time: the real S3 connector on moto beside topics in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from aws_server import REGION, aws_server, bucket, s3_of
from starlette.testclient import TestClient

from leatstream.connectors.s3.connector import S3Connector
from leatstream.rest.app import create_app
from leatstream.services.driver_calls import build_spec

SECRET = "aws-secret-of-the-test"
CONTEXT = {"database": "demo", "schema": "public", "store": "k"}
STREAM = "CREATE STREAM {} (a BIGINT, b VARCHAR) WITH ('store'='lake','topic'='{}','value.format'='{}'{})"


@pytest.fixture(scope="module")
def aws() -> Iterator[str]:
    with aws_server() as address:
        bucket(address, "data")
        yield address


@pytest.fixture
def client(fresh: Any, aws: str) -> Iterator[TestClient]:
    env = fresh.with_real(s3=S3Connector)
    lake = {"region": REGION, "endpoint_url": aws, "bucket": "data", "access_key_id": "AKIAEXAMPLE"}
    with TestClient(create_app(env), headers=fresh.headers) as opened:
        for path, body in {
            "/v1/databases/demo": {},
            "/v1/stores/k": {"kafka": {"bootstrap_servers": "localhost:9092"}},
            "/v1/stores/lake": {"s3": {**lake, "prefix": "p", "secret_access_key": SECRET}},
            "/v1/stores/k/entities/t": {"kafka": {"partitions": 3, "replicas": 1}},
        }.items():
            answer = opened.put(path, json=body)
            assert answer.status_code == 201, answer.text
            assert SECRET not in answer.text
        run(
            opened,
            "CREATE STREAM t (a BIGINT, b VARCHAR) WITH ('topic'='t','value.format'='json','key.format'='primitive','key.type'='VARCHAR')",
        )
        yield opened


def run(client: TestClient, sql: str) -> Any:
    answer = client.post("/v1/statements", json={"sql": sql, **CONTEXT})
    assert answer.status_code == 200, answer.text
    return answer.json()["results"]


def planned(client: TestClient, sql: str) -> tuple[Any, list[Any]]:
    answer = client.post("/v1/statements:validate", json={"sql": sql, **CONTEXT})
    assert answer.status_code == 200, answer.text
    statement = answer.json()["statements"][0]
    return statement.get("plan"), statement.get("problems", [])


def test_a_store_and_its_directories(client: TestClient, aws: str) -> None:
    store = client.get("/v1/stores/lake").json()
    assert store["status"]["state"] == "ready"
    assert store["s3"]["bucket"] == "data"
    made = client.put("/v1/stores/lake/entities/d", json={})
    assert made.status_code == 201, made.text
    assert client.put("/v1/stores/lake/entities/d", json={}).status_code == 200
    s3_of(aws).put_object(Bucket="data", Key="p/d/1.json", Body=b'{"a": 1}\n')
    shown = client.get("/v1/stores/lake/entities/d").json()
    others = dict.fromkeys(("partitions", "replicas", "shards", "rows"))
    assert shown["effective"] == {"files": 1, "bytes": 9, "format": "json", "configs": {}} | others
    assert "d" in [e["name"] for e in client.get("/v1/stores/lake/entities").json()["items"]]
    (columns,) = run(client, "GENERATE COLUMNS FROM ENTITY d IN STORE lake")
    assert columns["rows"][0][:2] == ["a", "BIGINT"]
    wrong = client.put("/v1/stores/lake/entities/d2", json={"kafka": {"partitions": 1}})
    assert wrong.json()["code"] == "invalid-property"
    assert client.delete("/v1/stores/lake/entities/d").status_code == 204
    assert client.get("/v1/stores/lake/entities/d").status_code == 404


def test_streams_over_files_are_sources_and_sinks(client: TestClient) -> None:
    run(client, STREAM.format("f", "dir", "csv", ",'s3.csv.delimiter'=';'"))
    shown = client.get("/v1/relations/demo.public.f").json()
    assert shown["effective"]["s3.csv.delimiter"] == {"value": ";", "origin": "explicit", "from": None}
    plan, problems = planned(
        client,
        "CREATE STREAM o WITH ('value.format'='json','topic.partitions'=1,'topic.replicas'=1) AS SELECT a, b FROM f",
    )
    assert problems == []
    assert plan["mode"] == "micro_batch"
    assert plan["delivery"] == "at_least_once"
    plan, problems = planned(
        client,
        "CREATE STREAM o WITH ('store'='lake','s3.partition.by'='b','delivery.guarantee'='exactly_once') AS SELECT a, b FROM t",
    )
    assert problems == []
    assert plan["delivery"] == "exactly_once"
    assert plan["sink"]["entity_action"] == "create"
    properties = plan["sink"]["properties"]
    assert properties["value.format"]["value"] == "json"
    assert properties["s3.partition.by"]["value"] == "b"
    assert not any(name.startswith("key.") for name in properties)


def test_a_row_knows_its_file(client: TestClient, fresh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine analyzes what ``rowmeta()`` has of this kind of store, and of no other."""
    seen: list[str] = []
    plain = fresh.env.analyzer.analyze

    def analyze(views: Any, *more: Any) -> Any:
        seen[:] = [view.ddl for view in views]
        return plain(views, *more)

    monkeypatch.setattr(fresh.env.analyzer, "analyze", analyze)
    run(client, STREAM.format("f", "dir", "json", ""))
    for relation, members in (
        ("f", "`timestamp_type`: INT, `file`: STRING>"),
        ("t", "`timestamp_type`: INT>"),
    ):
        sql = f"CREATE STREAM o WITH ('store'='lake','value.format'='json') AS SELECT a, b FROM {relation}"
        _, problems = planned(client, sql)
        assert problems == []
        assert seen
        assert seen[0].endswith(members)


def test_joins_with_changelogs_go_into_files(client: TestClient) -> None:
    """What they give is a stream; groups of a changelog would have to be taken back, which files cannot."""
    run(
        client,
        "CREATE CHANGELOG c (b VARCHAR, n BIGINT, PRIMARY KEY (b)) WITH ('topic'='t','value.format'='json')",
    )
    into = " {} o WITH ('store'='lake','value.format'='json') AS "
    plan, problems = planned(
        client, f"CREATE{into.format('STREAM')}SELECT t.a, c.b FROM t JOIN c ON t.b = c.b"
    )
    assert problems == []
    assert (plan["mode"], plan["delivery"]) == ("micro_batch", "exactly_once")
    assert [join["kind"] for join in plan["joins"]] == ["temporal-join-stream-changelog"]
    _, problems = planned(
        client, f"CREATE{into.format('CHANGELOG')}SELECT n, count(*) AS b FROM c GROUP BY n"
    )
    assert [problem["code"] for problem in problems] == ["unsupported"]
    assert "no keys" in str(problems)


def test_avro_files_need_no_registry(client: TestClient, fresh: Any) -> None:
    """Their schema is in them: the plan makes it of the sink's columns."""
    run(client, STREAM.format("av", "avros", "avro", ""))
    sql = "CREATE STREAM o WITH ('store'='lake','value.format'='avro') AS SELECT a, b FROM av"
    plan, problems = planned(client, sql)
    assert problems == []
    assert plan["mode"] == "micro_batch"
    assert plan["sink"]["properties"]["value.format"]["value"] == "avro"
    run(client, sql)
    with fresh.env.open_unit(write=False) as unit:
        spec = build_spec(fresh.env, unit, unit.queries.find("o"))
    schema = json.loads(spec.sink.value_schema or "")
    assert (schema["namespace"], schema["name"]) == ("demo.public", "o")
    assert [field["name"] for field in schema["fields"]] == ["a", "b"]
    # Into a topic the same format asks for one.
    sql = "CREATE STREAM o2 WITH ('topic.partitions'=1,'topic.replicas'=1) AS SELECT a FROM av"
    _, problems = planned(client, sql)
    assert [problem["code"] for problem in problems] == ["property-required"]
    assert "schema registry" in str(problems)


REFUSED = [
    (
        "CREATE STREAM o WITH ('topic.partitions'=1,'topic.replicas'=1) AS SELECT a FROM f",
        "property-required",
        "csv",
    ),
    (
        "CREATE STREAM o WITH ('value.format'='csv','topic.partitions'=1,'topic.replicas'=1) AS SELECT a FROM f",
        "unsupported",
        "kafka",
    ),
    (
        "CREATE STREAM o WITH ('store'='lake','s3.partition.by'='z') AS SELECT a FROM t",
        "invalid-property",
        "'z'",
    ),
    (
        "CREATE STREAM o WITH ('store'='lake','s3.csv.header'=TRUE) AS SELECT a FROM t",
        "invalid-property",
        "CSV",
    ),
    (
        "CREATE STREAM o WITH ('store'='lake','value.format'='csv','s3.csv.decimal.comma'='yes') AS SELECT a FROM t",
        "invalid-property",
        "TRUE or FALSE",
    ),
    (
        "CREATE STREAM o WITH ('store'='lake','topic'='a/b') AS SELECT a FROM t",
        "invalid-property",
        "prefix",
    ),
    (
        "CREATE STREAM o WITH ('store'='lake','key.format'='primitive','key.columns'='b') AS SELECT b FROM t",
        "invalid-property",
        "no keys",
    ),
    (
        "CREATE STREAM o WITH ('store'='lake','headers.column'='b') AS SELECT b FROM t",
        "unsupported",
        "headers",
    ),
    ("CREATE STREAM o WITH ('s3.partition.by'='a') AS SELECT a FROM t", "invalid-property", "kafka"),
    (
        "CREATE CHANGELOG o WITH ('store'='lake') AS SELECT b, count(*) AS n FROM t GROUP BY b",
        "unsupported",
        "no changelogs",
    ),
    (STREAM.format("o", "x", "protobuf", ""), "unsupported", "protobuf"),
    (STREAM.format("o", "x", "avro", ",'s3.compression'='gzip'"), "invalid-property", "deflate or none"),
    (
        "CREATE STREAM o WITH ('store'='lake','value.format'='avro') AS SELECT * FROM odd",
        "type-mismatch",
        "no name for an Avro field",
    ),
    ("CREATE STREAM o WITH ('store'='lake','value.format'='avro')", "validation", "GENERATE COLUMNS"),
    ("INSERT INTO av VALUES (1, 'x')", "store-rejected", "s3"),
    (
        "CREATE CHANGELOG o (a BIGINT, PRIMARY KEY (a)) WITH ('store'='lake','value.format'='json')",
        "unsupported",
        "no changelogs",
    ),
    ("INSERT INTO f VALUES (1, 'x')", "store-rejected", "s3"),
]


def test_what_files_cannot_be_is_refused(client: TestClient) -> None:
    run(client, STREAM.format("f", "dir", "csv", ""))
    run(client, STREAM.format("av", "avros", "avro", ""))
    run(
        client, "CREATE STREAM odd (\"a b\" BIGINT) WITH ('store'='lake','topic'='odd','value.format'='json')"
    )
    for sql, code, word in REFUSED:
        answer = client.post("/v1/statements", json={"sql": sql, **CONTEXT})
        body = answer.json()
        assert (answer.status_code >= 400, body.get("code")) == (True, code), (sql, body)
        assert word in str(body), (sql, body)


def test_how_often_files_are_written_is_no_matter_of_their_readers(client: TestClient) -> None:
    def run(sql: str) -> int:
        return client.post("/v1/statements", json={"sql": sql, **CONTEXT}).status_code

    made = "CREATE OR REPLACE STREAM o WITH ('store'='lake','value.format'='json',{}) AS SELECT a, b FROM t"
    assert run(made.format("'s3.interval.millis'=10000")) == 200
    new = "'store'='k','value.format'='json','topic.partitions'=1,'topic.replicas'=1"
    assert run(f"CREATE STREAM r WITH ({new}) AS SELECT a, b FROM o") == 200
    assert run(made.format("'s3.interval.millis'=60000,'s3.file.max.bytes'=8388608")) == 200
    assert run(made.format("'s3.partition.by'='b'")) == 409

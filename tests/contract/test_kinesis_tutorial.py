"""The tutorial of the seeds at plan time: the real Kinesis connector on moto beside topics in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aws_server import REGION, aws_server
from starlette.testclient import TestClient

from leatstream.connectors.entities import Entity
from leatstream.connectors.kinesis.connector import KinesisConnector
from leatstream.rest.app import create_app

SECRET = "aws-secret-of-the-test"
PAGEVIEWS = (
    "CREATE STREAM pageviews_kinesis (viewtime BIGINT, userid VARCHAR, pageid VARCHAR)"
    " WITH ('store'='kinesis_store','topic'='pageviews','value.format'='json')"
)
USERS = (
    "CREATE STREAM users_kafka (registertime BIGINT, userid VARCHAR, regionid VARCHAR, gender VARCHAR)"
    " WITH ('store'='\"MSK\"','topic'='ds_users','value.format'='json')"
)
COPY = "CREATE STREAM pageviews_kafka WITH ('store'='kafka_store'{}) AS SELECT * FROM pageviews_kinesis"
JOIN = (
    "CREATE STREAM pageviews_enriched WITH ('store'='kinesis_store') AS"
    " SELECT p.userid AS userid, p.pageid, u.regionid, u.gender FROM {} JOIN {}"
    " WITHIN 5 MINUTES ON p.userid = u.userid"
)
CONTEXT = {"database": "demo", "schema": "public", "store": "kafka_store"}


@pytest.fixture(scope="module")
def aws() -> Iterator[str]:
    with aws_server() as address:
        yield address


@pytest.fixture
def client(fresh: Any, aws: str) -> Iterator[TestClient]:
    """Stores, streams and topics of the tutorial, over two kinds of store."""
    env = fresh.with_real(kinesis=KinesisConnector)
    fresh.cluster.entities["ds_users"] = Entity("ds_users", {"topic.partitions": 3, "topic.replicas": 1})
    keys = {"access_key_id": "AKIAEXAMPLE", "secret_access_key": SECRET}
    with TestClient(create_app(env), headers=fresh.headers) as opened:
        for name in ("kafka_store", "MSK"):
            body = {"kafka": {"bootstrap_servers": "h:1"}}
            assert (
                opened.put(f"/v1/stores/{name if name.islower() else f'%22{name}%22'}", json=body).status_code
                == 201
            )
        body = {"kinesis": {"region": REGION, "endpoint_url": aws, **keys}}
        store = opened.put("/v1/stores/kinesis_store", json=body)
        assert store.status_code == 201, store.text
        assert SECRET not in store.text
        assert store.json()["status"]["state"] == "ready"
        assert store.json()["kinesis"]["region"] == REGION
        entity = opened.put("/v1/stores/kinesis_store/entities/pageviews", json={"kinesis": {"shards": 4}})
        assert entity.status_code in (200, 201), entity.text
        assert opened.put("/v1/databases/demo", json={}).status_code == 201
        for sql in (PAGEVIEWS, USERS):
            made = opened.post("/v1/statements", json={"sql": sql, **CONTEXT})
            assert made.status_code == 200, made.text
        yield opened


def validated(client: TestClient, sql: str) -> dict[str, Any]:
    answer = client.post("/v1/statements:validate", json={"sql": sql, **CONTEXT})
    assert answer.status_code == 200, answer.text
    statement: dict[str, Any] = answer.json()["statements"][0]
    return statement


def test_kinesis_to_kafka_needs_partitions_and_replicas(client: TestClient) -> None:
    (problem,) = validated(client, COPY.format(""))["problems"]
    assert problem["code"] == "property-required"
    for word in ("topic.partitions", "topic.replicas", "pageviews_kinesis", "kinesis"):
        assert word in problem["detail"]
    plan = validated(client, COPY.format(",'topic.partitions'=1,'topic.replicas'=1"))["plan"]
    assert plan["sink"]["properties"]["topic.partitions"]["origin"] == "explicit"
    assert plan["mode"] == "micro_batch"


def test_records_of_kinesis_have_no_headers(client: TestClient) -> None:
    sql = COPY.format(",'topic.partitions'=1,'topic.replicas'=1")
    assert "SELECT *" in sql
    (problem,) = validated(client, sql.replace("SELECT *", "SELECT rowheaders()['a'] AS a"))["problems"]
    assert (problem["code"], problem["sqlstate"]) == ("unsupported", "0A000")
    assert "demo.public.pageviews_kinesis have no headers" in problem["detail"]
    given = "'store'='kinesis_store', 'topic.shards'=1, 'value.format'='json', 'headers.column'='h'"
    declared = f"CREATE STREAM k (n BIGINT, h MAP<VARCHAR, BYTES>) WITH ({given})"
    copied = f"CREATE STREAM k WITH ({given}) AS SELECT viewtime AS n FROM pageviews_kinesis"
    for sql in (declared, copied):
        (problem,) = validated(client, sql)["problems"]
        assert (problem["code"], problem["sqlstate"]) == ("unsupported", "0A000")
        assert "Records in stores of kind kinesis have no headers" in problem["detail"]
        assert (problem["position"]["line"], problem["hint"][:26]) == (1, "Leave 'headers.column' out")


def test_the_join_into_kinesis_takes_the_shards_of_its_left_most_source(client: TestClient) -> None:
    plan = validated(client, JOIN.format("pageviews_kinesis p", "users_kafka u"))["plan"]
    shards = plan["sink"]["properties"]["topic.shards"]
    assert shards == {"value": 4, "origin": "left_most_source", "from": "demo.public.pageviews_kinesis"}
    (problem,) = validated(client, JOIN.format("users_kafka u", "pageviews_kinesis p"))["problems"]
    assert problem["code"] == "property-required"
    assert "topic.shards" in problem["detail"]


def test_the_sql_form_of_the_example(fresh: Any, client: TestClient, aws: str) -> None:
    folder = Path(__file__).resolve().parents[2] / "examples" / "multi-store" / "sql"
    for store in ("kafka_store", "kinesis_store"):
        for name in client.get("/v1/relations").json()["items"]:
            client.delete(f"/v1/relations/{name['fqn']}")
        assert client.delete(f"/v1/stores/{store}").status_code == 204

    def run(text: str, **context: Any) -> Any:
        text = text.replace("http://127.0.0.1:4566", aws).replace("'us-east-1'", f"'{REGION}'")
        return client.post("/v1/statements", json={"sql": text, **context})

    made = run((folder / "stores.sql").read_text(encoding="utf-8"))
    assert made.status_code == 200, made.text
    shop = {"database": "multi_store", "schema": "shop"}
    refused = (folder / "refused.sql").read_text(encoding="utf-8").split(";")[:2]
    for sql, names in zip(refused, (("topic.partitions", "topic.replicas"), ("topic.shards",)), strict=True):
        answer = run(sql, **shop)
        assert (answer.status_code, answer.json()["code"]) == (422, "property-required")
        assert all(name in answer.json()["detail"] for name in names)
    done = run((folder / "queries.sql").read_text(encoding="utf-8"), **shop)
    assert done.status_code == 200, done.text
    assert [result.get("query") for result in done.json()["results"]] == [
        "pageviews_kafka",
        "pageviews_enriched",
        None,
        "users_regions",
    ]


def test_a_planned_store_and_stream_count(client: TestClient, aws: str) -> None:
    """As Terraform's first plan tells them, with the secret: the source's shards are read there and then."""
    keys = {"access_key_id": "AKIAEXAMPLE", "secret_access_key": SECRET}
    assume = {
        "stores": [
            {"name": "planned", "kinesis": {"region": REGION, "endpoint_url": aws, **keys}},
            {"name": "x"},
        ],
        "entities": [{"store": "planned", "name": "out", "kinesis": {"shards": 2, "retention_hours": 48}}],
        "relations": [
            {
                "fqn": "demo.public.views",
                "columns": [{"name": "userid", "type": "VARCHAR"}],
                "store": "planned",
                "topic": "pageviews",
                "value_format": "json",
            }
        ],
    }
    sql = "CREATE STREAM v WITH ('store'='planned') AS SELECT * FROM views"
    answer = client.post("/v1/statements:validate", json={"sql": sql, "assume": assume, **CONTEXT})
    (found,) = answer.json()["statements"]
    assert found["problems"] == []
    assert found["plan"]["sink"]["properties"]["topic.shards"]["value"] == 4
    assert SECRET not in answer.text
    half: Any = {
        "stores": [{"name": "planned", "kinesis": {"region": REGION, "access_key_id": "AKIAEXAMPLE"}}]
    }
    answer = client.post("/v1/statements:validate", json={"sql": sql, "assume": assume | half, **CONTEXT})
    (problem,) = answer.json()["statements"][0]["problems"]
    assert "access_key_id and secret_access_key go together." in problem["detail"]
    sql = "CREATE STREAM v WITH ('store'='planned', 'topic'='out') AS SELECT * FROM views"
    answer = client.post("/v1/statements:validate", json={"sql": sql, "assume": assume, **CONTEXT})
    properties = answer.json()["statements"][0]["plan"]["sink"]["properties"]
    assert (properties["topic.shards"]["value"], properties["topic.shards"]["origin"]) == (
        2,
        "existing_entity",
    )


def test_on_demand_sinks_need_no_shards_and_foreign_settings_are_refused(client: TestClient) -> None:
    sql = "CREATE STREAM s WITH ('store'='kinesis_store',{}) AS SELECT * FROM users_kafka"
    assert "plan" in validated(client, sql.format("'kinesis.stream.mode'=ON_DEMAND"))
    (problem,) = validated(client, sql.format("'topic.shards'=1,'kafka.topic.retention.ms'='5'"))["problems"]
    assert (problem["code"], "retention.ms" in problem["detail"]) == ("invalid-property", True)
    once = "'topic.shards'=1, 'delivery.guarantee'='exactly_once'"
    (problem,) = validated(client, sql.format(once))["problems"]
    assert (problem["code"], problem["hint"]) == ("unsupported", "Use at_least_once.")


def test_streams_are_entities_with_settings_of_their_own(client: TestClient) -> None:
    # The server's memory is the process's: other modules may have left streams in it.
    path = "/v1/stores/kinesis_store/entities/own_settings"
    assert client.put(path, json={"kinesis": {}}).json()["code"] == "property-required"
    assert client.put(path, json={"kafka": {"partitions": 1}}).status_code == 422
    made = client.put(path, json={"kinesis": {"shards": 1, "retention_hours": 48}})
    assert (made.status_code, made.json()["effective"]["shards"]) == (201, 1)
    assert made.json()["kinesis"] == {"shards": 1, "mode": "PROVISIONED", "retention_hours": 48}
    more = client.put(path, json={"kinesis": {"shards": 2}})
    assert more.json()["kinesis"] == {"shards": 2, "mode": "PROVISIONED", "retention_hours": 48}
    assert client.put(path, json={"kafka": {"partitions": 1}}).status_code == 422
    names = [e["name"] for e in client.get("/v1/stores/kinesis_store/entities").json()["items"]]
    assert {"own_settings", "pageviews"} <= set(names)
    assert names == sorted(names)
    assert client.delete(path).status_code == 204


def test_keys_may_be_taken_out_of_a_store(
    client: TestClient, aws: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server's own credentials are used then."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAOTHER")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of-the-machine")
    path = "/v1/stores/kinesis_store"
    kept = client.put(
        path, json={"kinesis": {"region": REGION, "endpoint_url": aws, "access_key_id": "AKIAEXAMPLE"}}
    )
    assert kept.status_code == 200, kept.text
    assert kept.json()["status"]["state"] == "ready"
    none = client.put(path, json={"kinesis": {"region": REGION, "endpoint_url": aws}})
    assert none.status_code == 200, none.text
    assert none.json()["kinesis"]["access_key_id"] is None
    assert none.json()["status"]["state"] == "ready"


def test_no_column_is_in_the_key_alone(client: TestClient) -> None:
    """Kinesis keeps a digest of some keys, of which no column could be read again."""
    inside = (
        "'topic.shards'=1,'value.format'='json','key.format'='primitive','key.columns'='userid',"
        "'value.columns.exclude'='userid'"
    )
    declared = f"CREATE STREAM k (userid VARCHAR, n BIGINT) WITH ('store'='kinesis_store',{inside})"
    keyed = (
        "CREATE CHANGELOG k (userid VARCHAR, n BIGINT, PRIMARY KEY (userid)) WITH ('store'='kinesis_store',"
    )
    keyed += "'topic.shards'=1,'value.format'='json','value.columns.exclude'='userid')"
    copied = f"CREATE STREAM k WITH ('store'='kinesis_store',{inside}) AS SELECT userid, viewtime"
    copied += " FROM pageviews_kinesis"
    for sql in (declared, keyed, copied):
        (problem,) = validated(client, sql)["problems"]
        assert (problem["code"], problem["sqlstate"]) == ("unsupported", "0A000")
        assert "Stores of kind kinesis keep a digest of some keys" in problem["detail"]
        assert problem["hint"] == "Leave 'value.columns.exclude' out."
    answer = client.post("/v1/statements", json={"sql": declared, **CONTEXT})
    assert (answer.status_code, answer.json()["code"]) == (422, "unsupported"), answer.text
    answer = client.post("/v1/statements", json={"sql": "INSERT INTO k VALUES ('a', 1)", **CONTEXT})
    assert answer.json()["code"] == "unknown-relation", answer.text
    # The key's column is in the value too: that is read.
    assert not validated(client, declared.replace(",'value.columns.exclude'='userid'", ""))["problems"]

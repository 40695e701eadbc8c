"""Run by ``test_synth.py`` once per library: builds one stack, tries faults, prints all of it as JSON."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable
from typing import Any

from leatstream_cdktf import (
    Application,
    Changelog,
    ClickHouseStore,
    Database,
    DatabricksStore,
    IcebergGlueStore,
    IcebergRestStore,
    KafkaStore,
    KinesisStore,
    LeatstreamProvider,
    OracleStore,
    Query,
    S3Store,
    Schema,
    Sink,
    SnowflakeStore,
    Stream,
    Table,
    l1,
    l2,
    tf,
)
from leatstream_cdktf._naming import RESERVED


def ownerless() -> list[str]:
    """The constructs written by hand that take no owner although their resource has one."""
    classes = [one for name in l2.__all__ if isinstance(one := getattr(l2, name), type)]
    owned = [one for one in classes if any("owner" in _arguments(base) for base in one.__mro__[1:])]
    return [one.__name__ for one in owned if "owner" not in _arguments(one)]


def _arguments(one: type) -> set[str]:
    return set(inspect.signature(one.__init__).parameters)


def build(stack: Any) -> dict[str, Any]:
    """Everything that L1 and L2 can say."""
    LeatstreamProvider(stack, "leatstream", url="http://localhost:8080")
    password = tf.TerraformVariable(stack, "password", type="string", sensitive=True)
    prefix = tf.TerraformVariable(stack, "prefix", type="string", default="x")
    kafka = KafkaStore(
        stack,
        "kafka",
        bootstrap_servers=["one:9092", "two:9092"],
        security_protocol="sasl_ssl",
        sasl={
            "mechanism": "plain",
            "username": "leat",
            "password": password.string_value,
            "password_version": 2,
        },
        tls={"verify_hostname": False},
    )
    KinesisStore(
        stack,
        "streams",
        region="eu-west-1",
        access_key_id="AKIA",
        secret_access_key=password.string_value,
        role_arn="arn:aws:iam::123456789012:role/leatstream",
    )
    S3Store(
        stack, "lake", region="eu-west-1", bucket="acme-events", prefix="team/raw/",
        access_key_id="AKIA", secret_access_key=password.string_value,
    )  # fmt: skip
    OracleStore(stack, "erp", host="db", service="shop", username="leat", password=password.string_value)
    ClickHouseStore(
        stack, "ch", host="ch.example.com", username="leat", password=password.string_value, database="shop"
    )
    SnowflakeStore(
        stack, "warehouse", account="acme-x1", username="LEAT", warehouse="LOADING", role="LOADER",
        private_key=password.string_value,
    )  # fmt: skip
    IcebergRestStore(
        stack, "tables", uri="https://catalog.example.com", warehouse="lake", client_id="leat",
        client_secret=password.string_value, s3={"region": "eu-west-1"},
    )  # fmt: skip
    IcebergGlueStore(
        stack, "glue", region="eu-west-1", warehouse_path="s3://acme-lake/warehouse",
        role_arn="arn:aws:iam::123456789012:role/leatstream",
    )  # fmt: skip
    DatabricksStore(
        stack, "lakehouse", host="dbc-1.cloud.databricks.com", warehouse_id="abc", token=password.string_value,
        s3={"bucket": "acme-lake", "region": "eu-west-1"},
    )  # fmt: skip
    demo = Database(stack, "demo", comment="for people")
    team = l1.Role(stack, "team", name="team")
    Database(stack, "owned", owner=team)
    Schema(stack, "owned_schema", database=demo, owner="team")
    public = Schema(stack, "public_schema", name="public", database=demo)
    pageviews = Stream(
        stack,
        "pageviews",
        schema=public,
        store=kafka,
        topic="views",
        columns={"viewtime": "BIGINT NOT NULL", "userid": "VARCHAR", "pageid": "VARCHAR"},
        key_format="primitive",
        key_type="VARCHAR",
        timestamp="viewtime",
        properties={"topic.partitions": 3, "x": True},
    )
    users = Stream(
        stack, "users", schema="public", database="demo", store="kafka",
        columns=[("userid", "VARCHAR"), {"name": "Région", "type": "VARCHAR", "comment": "for people"}],
    )  # fmt: skip
    cities = Changelog(
        stack, "cities", schema=public, store=kafka, primary_key=["id"], key_format="json",
        columns={"id": "BIGINT NOT NULL", "name": "VARCHAR"}, properties={"topic.partitions": 3},
    )  # fmt: skip
    Query(
        stack, "counts", sql="SELECT name, count(*) AS c FROM {c} GROUP BY name", sources={"c": cities},
        sink=Sink(name="per_name", kind="materialized_view"),
    )  # fmt: skip
    prices = Table(stack, "prices", schema=public, store="shop_db", topic="sales.prices")
    Table(
        stack, "log", schema="public", database="demo", store="shop_db", primary_key=["id"],
        columns={"id": "BIGINT NOT NULL"},
    )  # fmt: skip
    Query(
        stack,
        "priced",
        sql="SELECT name, count(*) AS c FROM {c} GROUP BY name",
        sources={"c": cities},
        sink=prices,
    )
    enriched = Query(
        stack,
        "enriched",
        sql="""
            -- who looked at what: {nobody}
            SELECT p.userid, '{"k": 1}' AS j, '${x}' AS t
            FROM {pageviews} p JOIN {users} u WITHIN 5 MINUTES ON p.userid = u.userid
        """,
        sources={"pageviews": pageviews, "users": users},
        sink=Sink(
            name="pageviews_enriched",
            store=kafka,
            value_format="json",
            timestamp="viewTime",
            properties={"topic.partitions": 1, "topic.replicas": 1, "it's": True},
        ),
        timeouts={"create": "5m"},
    )
    Query(
        stack, "chained", name="Chained", sql=f"SELECT * FROM {{e}} WHERE userid <> '{prefix.string_value}'",
        sources={"e": enriched}, sink=Sink(name=f"{prefix.string_value}_out", schema=public),
        desired_state="stopped", delete_sink_entity=True, properties={"isolation": "shared"},
    )  # fmt: skip
    into = Query(stack, "into", sql="SELECT * FROM {u}", sources={"u": "demo.public.users"}, sink=users)
    Query(stack, "into_changelog", sql="SELECT * FROM {u}", sources={"u": "demo.public.users"}, sink=cities)
    whole = Query(
        stack, "whole", sql="CREATE STREAM w AS SELECT * FROM {p}", sources={"p": pageviews}, store=kafka
    )
    shop = Application(
        stack, "shop", store=kafka, sources={"p": pageviews, "u": users}, comment="for people",
        statements=[
            "CREATE VIRTUAL STREAM virtual.public.late AS SELECT * FROM {p} WHERE viewtime > 5;",
            """
            CREATE STREAM late_of_b AS
              SELECT userid, '{"k": 1}' AS j FROM virtual.public.late
            """,
            "INSERT INTO {u} SELECT userid, '' FROM virtual.public.late",
        ],
    )  # fmt: skip
    Query(
        stack, "of_shop", sql="SELECT userid FROM {s}", sources={"s": shop.sink(0)}, schema=public,
        sink=Sink(name="of_b", store=kafka),
    )  # fmt: skip
    found = l1.DataStream(stack, "found", database="demo", schema="public", name="orders")
    Query(
        stack,
        "from_data",
        sql="SELECT * FROM {o}",
        sources={"o": found},
        sink=Sink(name="o2", store=kafka),
        schema=public,
        depends_on=[demo],
        lifecycle=tf.TerraformResourceLifecycle(prevent_destroy=True),
    )
    made = l1.Stream(
        stack, "made", database="demo", schema="raw", name="made", store="kafka", value_format="json"
    )
    other = l1.DataQuery(stack, "other", name="other")
    for name, left in {"found": found, "made": made, "query": other, "token": shop.sink(0)}.items():
        at = {"sources": {"l": left, "r": users}, "sink": Sink(name=f"left_{name}", store=kafka)}
        Query(stack, f"left_{name}", sql="SELECT l.a FROM {l} l, {r} r", **at)
    Application(
        stack, "left_app", sources={"l": found, "r": users},
        statements=["CREATE STREAM left_app AS SELECT l.a FROM {l} l, {r} r"],
    )  # fmt: skip
    l1.Entity(stack, "topic", store=kafka.name, name="raw", kafka={"partitions": 2, "replicas": 1})
    tf.TerraformOutput(stack, "state", value=enriched.status.state)
    tf.TerraformOutput(stack, "partitions", value=enriched.effective["topic.partitions"].value)
    tf.TerraformOutput(stack, "column", value=pageviews.columns[0].type)
    tf.TerraformOutput(stack, "plan", value=enriched.plan.token)
    tf.TerraformOutput(stack, "job", value=f"job {enriched.status.job.attempt}")
    tf.TerraformOutput(stack, "topics", value=[q.sink_topic for q in (enriched, into, whole)])
    return {"pageviews": pageviews, "users": users, "kafka": kafka, "public": public}


def fault(call: Callable[[], object]) -> str:
    """The error of a call that must fail."""
    try:
        call()
    except (TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def faults(stack: Any, made: dict[str, Any]) -> dict[str, str]:
    """What users get wrong, and what they are told."""
    p, kafka, public, users = made["pageviews"], made["kafka"], made["public"], made["users"]
    new = Sink(name="s", store=kafka)

    def query(sql: str, **more: Any) -> Callable[[], object]:
        return lambda: Query(stack, "bad", sql=sql, **more)

    def stream(**more: Any) -> Callable[[], object]:
        return lambda: Stream(
            stack, "bad", **({"schema": public, "store": kafka, "columns": {"a": "INT"}} | more)
        )

    def store(**more: Any) -> Callable[[], object]:
        return lambda: KafkaStore(stack, "bad", **({"bootstrap_servers": "x:1"} | more))

    calls = {
        "half a key": lambda: KinesisStore(stack, "bad", region="eu-west-1", access_key_id="AKIA"),
        "id without role": lambda: KinesisStore(stack, "bad", region="eu-west-1", external_id="x"),
        "half a key of files": lambda: S3Store(
            stack, "bad", region="eu-west-1", bucket="bbb", access_key_id="AKIA"
        ),
        "a host with a scheme": lambda: ClickHouseStore(stack, "bad", host="https://ch", username="leat"),
        "half a client": lambda: IcebergRestStore(stack, "bad", uri="https://x", client_id="leat"),
        "half a key of Glue": lambda: IcebergGlueStore(
            stack, "bad", region="eu-west-1", access_key_id="AKIA"
        ),
        "no such kind": lambda: Sink(name="s", kind="view"),
        "changelog without columns": lambda: Changelog(
            stack, "bad", schema=public, store=kafka, primary_key=["a"], columns={}
        ),
        "undeclared": query("SELECT * FROM {page}", sources={"pages": p}, sink=new),
        "no sink": query("SELECT 1"),
        "two sinks": query("CREATE STREAM x AS SELECT 1", sink=new),
        "not a query": query("DROP STREAM x"),
        "empty sql": query(" "),
        "wrong source": query("SELECT * FROM {a}", sources={"a": kafka}, sink=new),
        "source is a select": query("SELECT * FROM {a}", sources={"a": "(SELECT 1)"}, sink=new),
        "wrong sink": query("SELECT 1", sink="x"),
        "property twice": query("SELECT 1", sink=Sink(name="s", store=kafka, properties={"store": "k"})),
        "desired state": query("INSERT INTO x SELECT 1", desired_state="runing"),
        "no such argument": query("INSERT INTO x SELECT 1", desired_sate="running"),
        "schema without database": query("SELECT 1", sink=new, schema="public"),
        "columns empty": stream(columns={}),
        "columns wrong": stream(columns=[{"name": "a"}, ("b", "INT"), ("b", "INT"), {"nme": "x"}, "c"]),
        "schema of two databases": stream(database="demo"),
        "store of wrong kind": stream(store=users),
        "sasl key": store(sasl={"mechanism": "plain", "user": "u", "password": "hunter2"}),
        "oauth key": store(
            sasl={"mechanism": "oauthbearer", "oauth": {"client_id": "c", "client_secret": "hunter2", "x": 1}}
        ),
        "oauth missing": store(sasl={"mechanism": "oauthbearer", "username": "u"}),
        "aws key": store(sasl={"mechanism": "aws_msk_iam", "aws": {"secret_access_key": "hunter2", "x": 1}}),
        "sasl missing": store(security_protocol="sasl_ssl"),
        "sasl unused": store(
            security_protocol="ssl", sasl={"mechanism": "plain", "username": "u", "password": "p"}
        ),
        "mechanism": store(sasl={"mechanism": "PLAIN", "username": "u", "password": "hunter2"}),
        "no servers": store(bootstrap_servers=[]),
        "application of one text": lambda: Application(stack, "bad", statements="INSERT INTO x SELECT 1"),
        "application of nothing": lambda: Application(
            stack, "bad", statements=["INSERT INTO x SELECT 1", ";"]
        ),
        "undeclared in an application": lambda: Application(
            stack, "bad", statements=["INSERT INTO x SELECT * FROM {page}"], sources={"pages": p}
        ),
        "iterating a reference": lambda: list(p.columns),
    }
    return {name: fault(call) for name, call in calls.items()}


def main() -> None:
    """Print ``{library, synthesized, faults, unreserved}``."""
    app = tf.Testing.app()
    stack = tf.TerraformStack(app, "stack")
    made = build(stack)
    told = faults(stack, made)
    members = {
        name
        for base in (tf.TerraformResource, tf.TerraformDataSource, tf.TerraformProvider)
        for name in dir(base)
    }
    public = {name for name in members if not name.startswith(("_", "is_", "get_"))}
    json.dump(
        {
            "library": tf.__name__,
            "ownerless": ownerless(),
            "synthesized": json.loads(tf.Testing.synth(stack)),
            "faults": told,
            "unreserved": sorted(public - RESERVED["members"]),
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main()

"""WITH lists: both vocabularies, all faults at once, places in SQL and in REST bodies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from leatstream.connectors.registry import PLANNED
from leatstream.errors import RequestError
from leatstream.model.registered import SecretName
from leatstream.plan.logical import LogicalPlan
from leatstream.sql.parser import parse
from leatstream.sql.relation_properties import canonical_name, read_relation_properties
from leatstream.sql.source_properties import read_source_options
from leatstream.sql.statements import Properties
from leatstream.sql.store_properties import read_store_properties, read_store_update


def written(text: str) -> Properties:
    (statement,) = parse(f"CREATE STORE x WITH ({text})")
    return statement.properties  # type: ignore[attr-defined,no-any-return]


def faults(read: Callable[[Any], Any], given: Any) -> list[tuple[str, str | None, int | None]]:
    with pytest.raises(RequestError) as caught:
        read(given)
    return [(f.code or "", f.pointer, f.position.offset if f.position else None) for f in caught.value.faults]


def test_relation_properties() -> None:
    read = read_relation_properties(
        written(
            "'store'='MSK', 'topic'='Views', 'value.format'=JSON, 'key.format'='primitive',"
            " 'key.columns'='UserId',"
            " 'timestamp'='ViewTime', 'timestamp.format'='ISO8601', 'kafka.partitions'=3, 'topic.replicas'=1,"
            " 'kafka.topic.retention.ms'='100', 'topic.cleanup.policy'='compact',"
            " 'delivery.guarantee'='at_least_once',"
            " 'sink.timestamp.strategy'='event.time', 'snowflake.db.name'='d', 'kafka.topic.preallocate'=TRUE"
        )
    )
    assert (read.store, read.topic, read.value_format) == ("msk", "Views", "json")
    assert (read.key_format, read.key_columns, read.key_type) == ("primitive", ("userid",), None)
    assert (read.timestamp, read.timestamp_format) == ("viewtime", "iso8601")
    assert read.entity == {"topic.partitions": 3, "topic.replicas": 1}
    assert read.configs == {"retention.ms": "100", "cleanup.policy": "compact", "preallocate": "true"}
    assert (read.delivery_guarantee, read.sink_timestamp_strategy) == ("at_least_once", "event.time")
    assert read.other == {"snowflake.db.name": "d"}


def test_names_are_exact_in_quotes_and_in_rest() -> None:
    quoted = read_relation_properties(written("""'store'="MSK", 'timestamp'='"ViewTime"'"""))
    assert (quoted.store, quoted.timestamp) == ("MSK", "ViewTime")
    plain = read_relation_properties({"store": "MSK", "topic.partitions": "3", "kinesis.shards": 2})
    assert (plain.store, plain.entity) == ("MSK", {"topic.partitions": 3, "topic.shards": 2})


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("kafka.partitions", "topic.partitions"),
        ("Kinesis.Shards", "topic.shards"),
        ("topic.retention.ms", "kafka.topic.retention.ms"),
        ("store", "store"),
    ],
)
def test_canonical_names(key: str, name: str) -> None:
    assert canonical_name(key) == name


def test_a_property_of_sources_says_where_it_belongs() -> None:
    with pytest.raises(RequestError) as caught:
        read_relation_properties(
            written("'topic'='a', 'starting.position'='earliest', 'value.format'='json'")
        )
    (fault,) = caught.value.faults
    assert fault.hint == "It is a property of a source: FROM name WITH ('starting.position' = …)."


def test_relation_faults_in_sql() -> None:
    text = "'topic.partitions'=0, 'valeu.format'='json', 'key.format'='csv', 'enable.upsert.mode'=TRUE"
    start = len("CREATE STORE x WITH (")
    assert sorted(faults(read_relation_properties, written(text)), key=lambda f: f[2] or 0) == [
        ("invalid-property", None, start + text.index("0")),
        ("invalid-property", None, start + text.index("'valeu")),
        ("unsupported", None, start + text.index("'csv'")),
        ("unsupported", None, start + text.index("'enable")),
    ]


@pytest.mark.parametrize(
    ("given", "pointer"),
    [
        ({"kafka.partitions": 1, "topic.partitions": 2}, "#/properties/kafka.partitions"),
        ({"topic.partitions": "many"}, "#/properties/topic.partitions"),
        ({"topic.partitions": True}, "#/properties/topic.partitions"),
        ({"topic.partition": 2}, "#/properties/topic.partition"),
        ({"a/b~c": 2}, "#/properties/a~1b~0c"),
        ({"key.type": "VARCHAR"}, "#/properties/key.type"),
        ({"key.format": "primitive", "key.type": "BOOLEAN"}, "#/properties/key.type"),
        ({"key.format": "primitive", "key.columns": "a,b"}, "#/properties/key.columns"),
        ({"key.format": "primitive", "key.columns": "a", "key.type": "INT"}, "#/properties/key.type"),
        ({"topic": " "}, "#/properties/topic"),
        ({"delivery.guarantee": "sometimes"}, "#/properties/delivery.guarantee"),
        ({"topic.retention.ms": 1, "kafka.topic.retention.ms": 2}, "#/properties/kafka.topic.retention.ms"),
    ],
)
def test_relation_faults_in_rest(given: dict[str, Any], pointer: str) -> None:
    assert [(code, where) for code, where, _ in faults(read_relation_properties, given)] == [
        ("invalid-property", pointer)
    ]


def test_the_same_value_twice_is_no_conflict() -> None:
    assert read_relation_properties({"kafka.partitions": 2, "topic.partitions": 2}).entity == {
        "topic.partitions": 2
    }


def test_source_options(bind_text: Callable[[str], LogicalPlan]) -> None:
    plan = bind_text(
        "SELECT userid FROM pageviews WITH ('starting.position'='timestamp', 'timestamp'='VIEWTIME',"
        " 'starting.position.timestamp'=17, 'source.deserialization.error.handling'=IGNORE)"
    )
    options = read_source_options(plan.scans[0].properties)
    assert (options.starting_position, options.starting_timestamp_ms) == ("timestamp", 17)
    assert (options.on_error, options.timestamp) == ("ignore", "viewtime")
    default = read_source_options({})
    assert (default.starting_position, default.on_error) == (None, "terminate")


@pytest.mark.parametrize(
    ("text", "config"),
    [
        (
            "'type'=KAFKA, 'uris'='a:9092, b:9092', 'tls.disabled'=TRUE",
            {"bootstrap_servers": "a:9092,b:9092", "security_protocol": "plaintext"},
        ),
        (
            "'type'='kafka', 'uris'='a:9092', 'kafka.sasl.hash_function'=SHA512, 'kafka.sasl.username'='u',"
            " 'kafka.sasl.password'='p'",
            {
                "bootstrap_servers": "a:9092",
                "security_protocol": "sasl_ssl",
                "sasl": {"mechanism": "scram_sha_512", "username": "u", "password": "p"},
                "tls": {"verify_hostname": True},
            },
        ),
        (
            "'type'=CONFLUENT_KAFKA, 'uris'='a:9092', 'tls.verify_server_hostname'=FALSE,"
            " 'tls.ca_cert_file'='-----BEGIN CERTIFICATE-----x-----END CERTIFICATE-----'",
            {
                "bootstrap_servers": "a:9092",
                "security_protocol": "ssl",
                "tls": {
                    "verify_hostname": False,
                    "ca_certificate": "-----BEGIN CERTIFICATE-----x-----END CERTIFICATE-----",
                },
            },
        ),
    ],
)
def test_kafka_stores(text: str, config: dict[str, Any]) -> None:
    assert read_store_properties(written(text)) == ("kafka", config)


def test_planned_kinds_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PLANNED, "planned", ("planned.",))
    kind, raw = read_store_properties(written("'type'=PLANNED, 'uris'='planned://h/db'"))
    assert (kind, raw) == ("planned", {"uris": "planned://h/db"})


OAUTH = (
    "'type'=KAFKA, 'uris'='a:1', 'kafka.sasl.hash_function'=OAUTHBEARER,"
    " 'kafka.sasl.oauth.token_url'='https://h/token', 'kafka.sasl.oauth.client_id'='leat',"
    " 'kafka.sasl.oauth.client_secret'='hunter2'"
)
MSK = "'type'=MSK, 'uris'='a:1', 'kafka.sasl.hash_function'=AWS_MSK_IAM, 'kafka.msk.aws_region'='eu-west-1'"
OAUTH_SETTINGS = {"token_url": "https://h/token", "client_id": "leat", "client_secret": "hunter2"}


def test_a_store_with_client_credentials() -> None:
    more = ", 'kafka.sasl.oauth.scope'='a b', 'kafka.sasl.oauth.extensions'='logicalCluster=l-1, pool=p=2'"
    _, config = read_store_properties(written(OAUTH + more))
    assert config["security_protocol"] == "sasl_ssl"
    extensions = {"logicalCluster": "l-1", "pool": "p=2"}
    assert config["sasl"] == {
        "mechanism": "oauthbearer",
        "oauth": OAUTH_SETTINGS | {"scope": "a b", "extensions": extensions},
    }
    config["sasl"]["oauth"].pop("client_secret")
    named = {"sasl.oauth.client_secret": "vaulted"}
    later = read_store_update(written("'kafka.sasl.oauth.scope'='c'"), "kafka", config, named)
    kept = OAUTH_SETTINGS | {"scope": "c", "extensions": extensions, "client_secret": SecretName("vaulted")}
    assert later["sasl"]["oauth"] == kept
    login = "'kafka.sasl.hash_function'=PLAIN, 'kafka.sasl.username'='u', 'kafka.sasl.password'='p'"
    plain = read_store_update(written(login), "kafka", config)
    assert plain["sasl"] == {"mechanism": "plain", "username": "u", "password": "p"}


def test_a_store_of_amazon_msk() -> None:
    keys = ", 'kafka.msk.access_key_id'='AKID', 'kafka.msk.secret_access_key'='hunter2'"
    _, config = read_store_properties(written(f"{MSK}, 'kafka.msk.iam_role_arn'='{ROLE}'{keys}"))
    aws = {
        "region": "eu-west-1",
        "role_arn": ROLE,
        "access_key_id": "AKID",
        "secret_access_key": "hunter2",
    }
    assert config["sasl"] == {"mechanism": "aws_msk_iam", "aws": aws}
    config["sasl"]["aws"].pop("secret_access_key")
    later = read_store_update(written("'uris'='b:2'"), "kafka", config)
    assert later["sasl"]["aws"] == aws | {"secret_access_key": None}
    _, plain = read_store_properties(written(MSK))
    assert plain["sasl"]["aws"] == {"region": "eu-west-1"}
    assert read_store_update(written("'uris'='b:2'"), "kafka", plain)["sasl"] == plain["sasl"]


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("'uris'='a:1'", ["invalid-property"]),
        ("'type'=KAFKA", ["invalid-property"]),
        ("'type'=KAKFA, 'uris'='a:1'", ["invalid-property"]),
        ("'type'=KAFKA, 'uri'='a:1'", ["invalid-property", "invalid-property"]),
        ("'type'=KAFKA, 'uris'='a:1', 'kafka.sasl.hash_function'=AWS_MSK_IAM", ["invalid-property"]),
        (MSK + ", 'kafka.msk.access_key_id'='AKID'", ["invalid-property"]),
        (MSK + ", 'kafka.sasl.oauth.scope'='x'", ["invalid-property"]),
        ("'type'=KAFKA, 'uris'='a:1', 'kafka.msk.aws_region'='eu-west-1'", ["invalid-property"]),
        ("'type'=KAFKA, 'uris'='a:1', 'kafka.sasl.hash_function'=PLAIN", ["invalid-property"] * 2),
        ("'type'=KAFKA, 'uris'='a:1', 'kafka.sasl.hash_function'=OAUTHBEARER", ["invalid-property"] * 3),
        (OAUTH + ", 'kafka.sasl.username'='u'", ["invalid-property"]),
        (OAUTH + ", 'kafka.sasl.oauth.extensions'='x'", ["invalid-property"]),
        (OAUTH + ", 'kafka.sasl.oauth.ca_cert_file'='/x.pem'", ["invalid-property"]),
        ("'type'=KAFKA, 'uris'='a:1', 'kafka.sasl.oauth.scope'='x'", ["invalid-property"]),
        ("'type'=KAFKA, 'uris'='a:1', 'kafka.sasl.password'='hunter2'", ["invalid-property"]),
        ("'type'=KAFKA, 'uris'='a:1', 'tls.ca_cert_file'='@/etc/x.pem'", ["invalid-property"]),
        ("'type'=KAFKA, 'uris'='a:1', 'tls.disabled'='perhaps'", ["invalid-property"]),
        ("'type'=KAFKA, 'uris'='a:1', 'tls.client.key_file'='@x'", ["invalid-property"]),
    ],
)
def test_store_faults(text: str, codes: list[str]) -> None:
    with pytest.raises(RequestError) as caught:
        read_store_properties(written(text))
    assert [f.code for f in caught.value.faults] == codes
    assert all("hunter2" not in f.detail for f in caught.value.faults)


AWS = "'type'=KINESIS, 'uris'='https://kinesis.eu-west-1.amazonaws.com'"
KEYS = ", 'kinesis.access_key_id'='AKIA', 'kinesis.secret_access_key'='s3cr3t'"
ROLE = "arn:aws:iam::123456789012:role/leatstream"


@pytest.mark.parametrize(
    ("text", "config"),
    [
        (AWS, {"region": "eu-west-1"}),
        (AWS + KEYS, {"region": "eu-west-1", "access_key_id": "AKIA", "secret_access_key": "s3cr3t"}),
        (
            f"'type'=kinesis, 'kinesis.region'='us-east-1', 'kinesis.iam_role_arn'='{ROLE}',"
            " 'kinesis.external_id'='agreed'",
            {"region": "us-east-1", "role_arn": ROLE, "external_id": "agreed"},
        ),
        (
            """'type'=KINESIS, 'uris'='http://localhost:5000', 'access_region'="AWS us-east-1\"""",
            {"region": "us-east-1", "endpoint_url": "http://localhost:5000"},
        ),
    ],
)
def test_kinesis_stores(text: str, config: dict[str, Any]) -> None:
    assert read_store_properties(written(text)) == ("kinesis", config)


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("'type'=KINESIS", ["invalid-property"]),
        ("'type'=KINESIS, 'uris'='http://localhost:5000'", ["invalid-property"]),
        ("'type'=KINESIS, 'uris'='localhost:5000', 'kinesis.region'='eu'", ["invalid-property"] * 2),
        (AWS + ", 'kinesis.region'='us-east-1'", ["invalid-property"]),
        (AWS + ", 'kinesis.secret_access_key'='s3cr3t'", ["invalid-property"]),
        (AWS + ", 'kinesis.external_id'='x', 'kafka.sasl.username'='x'", ["invalid-property"] * 2),
        (AWS + ", 'kinesis.account.id'='123456789012'", ["unsupported"]),
    ],
)
def test_kinesis_store_faults(text: str, codes: list[str]) -> None:
    with pytest.raises(RequestError) as caught:
        read_store_properties(written(text))
    assert [fault.code for fault in caught.value.faults] == codes
    assert "s3cr3t" not in str(caught.value.faults)


FILES = "'type'=S3, 'uris'='https://acme.s3.eu-west-1.amazonaws.com/team/raw/'"
AWS_KEYS = ", 'aws.access_key_id'='AKIA', 'aws.secret_access_key'='s3cr3t'"


@pytest.mark.parametrize(
    ("text", "config"),
    [
        (FILES, {"region": "eu-west-1", "bucket": "acme", "prefix": "team/raw"}),
        (
            "'type'=S3, 'uris'='https://s3.us-east-1.amazonaws.com/acme'" + AWS_KEYS,
            {"region": "us-east-1", "bucket": "acme", "access_key_id": "AKIA", "secret_access_key": "s3cr3t"},
        ),
        (
            f"'type'=s3, 'uris'='s3://acme/a', 'aws.region'='us-east-1', 'aws.iam_role_arn'='{ROLE}',"
            " 'aws.iam_external_id'='agreed'",
            {
                "region": "us-east-1",
                "bucket": "acme",
                "prefix": "a",
                "role_arn": ROLE,
                "external_id": "agreed",
            },
        ),
        (
            """'type'=S3, 'uris'='http://localhost:9000/acme', 'access_region'="AWS us-east-1\"""",
            {"region": "us-east-1", "bucket": "acme", "endpoint_url": "http://localhost:9000"},
        ),
    ],
)
def test_s3_stores(text: str, config: dict[str, Any]) -> None:
    assert read_store_properties(written(text)) == ("s3", config)


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("'type'=S3", ["invalid-property"]),
        ("'type'=S3, 'uris'='s3://acme'", ["invalid-property"]),
        ("'type'=S3, 'uris'='http://localhost:9000', 'aws.region'='eu'", ["invalid-property"] * 2),
        (FILES + ", 'aws.region'='us-east-1'", ["invalid-property"]),
        (FILES + ", 'aws.secret_access_key'='s3cr3t'", ["invalid-property"]),
        (FILES + ", 'aws.iam_external_id'='x', 'kinesis.region'='x'", ["invalid-property"] * 2),
        (FILES + ", 'properties.file'='@x'", ["unsupported"]),
    ],
)
def test_s3_store_faults(text: str, codes: list[str]) -> None:
    with pytest.raises(RequestError) as caught:
        read_store_properties(written(text))
    assert [fault.code for fault in caught.value.faults] == codes
    assert "s3cr3t" not in str(caught.value.faults)


def test_updating_an_s3_store_keeps_what_is_not_named() -> None:
    present = {"region": "eu-west-1", "bucket": "acme", "prefix": "a/b", "access_key_id": "AKIA"}
    kept = read_store_update(written("'aws.iam_role_arn'='" + ROLE + "'"), "s3", present)
    assert kept == present | {"role_arn": ROLE, "secret_access_key": None}
    moved = read_store_update(written("'uris'='https://other.s3.us-east-1.amazonaws.com'"), "s3", present)
    assert moved == {
        "region": "us-east-1",
        "bucket": "other",
        "access_key_id": "AKIA",
        "secret_access_key": None,
    }
    own = present | {"endpoint_url": "http://localhost:9000"}
    rotated = read_store_update(written(AWS_KEYS[2:]), "s3", own)
    assert rotated == own | {"secret_access_key": "s3cr3t"}


@pytest.mark.parametrize(
    ("kind", "key", "present"),
    [
        ("kinesis", "kinesis.access_key_id", {"region": "eu-west-1", "access_key_id": "AKIA"}),
        ("s3", "aws.access_key_id", {"region": "eu-west-1", "bucket": "acme", "access_key_id": "AKIA"}),
    ],
)
def test_another_access_key_needs_its_own_secret(kind: str, key: str, present: dict[str, Any]) -> None:
    with pytest.raises(RequestError) as caught:
        read_store_update({key: "AKIB"}, kind, present)
    assert (
        caught.value.faults[0].detail
        == f"{key!r} needs {key.replace('access_key_id', 'secret_access_key')!r}."
    )


def test_settings_of_streams_in_kinesis() -> None:
    read = read_relation_properties({"kinesis.stream.mode": "ON_DEMAND", "kinesis.retention.hours": 48})
    assert read.configs == {"stream.mode": "ON_DEMAND", "retention.hours": "48"}

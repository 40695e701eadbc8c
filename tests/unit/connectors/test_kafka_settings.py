"""A Kafka store's settings: all faults at once, and the same meaning in both clients' words."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from leatstream.connectors.kafka.connector import KafkaConnector
from leatstream.connectors.kafka.settings import KafkaConfig, java_settings, librdkafka_settings
from leatstream.connectors.registry import PLANNED, connector_classes, open_connector
from leatstream.errors import RequestError
from leatstream.plan.job_spec import ColumnSpec, SinkSpec, SourceSpec, StoreRef

PEM = "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n"
KEY = "-----BEGIN PRIVATE KEY-----\ns3cret\n-----END PRIVATE KEY-----\n"
SASL = {"mechanism": "scram_sha_512", "username": "ada", "password": "s3cret"}
OAUTH = {"token_url": "https://h/token", "client_id": "leat", "client_secret": "s3cret"}

ROLE = "arn:aws:iam::123456789012:role/leatstream"
KEYS = {"access_key_id": "AKID", "secret_access_key": 's3"cret'}


def aws(**more: Any) -> dict[str, Any]:
    return login({"mechanism": "aws_msk_iam", "aws": {"region": "eu-west-1"} | more})


def login(sasl: dict[str, Any]) -> dict[str, Any]:
    return {"security_protocol": "sasl_ssl", "sasl": sasl}


def oauth(**more: Any) -> dict[str, Any]:
    given = {k: v for k, v in (OAUTH | more).items() if v is not None}
    return login({"mechanism": "oauthbearer", "oauth": given})


def faults(body: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(ValidationError) as caught:
        KafkaConfig.model_validate(body)
    assert "s3cret" not in str(caught.value)
    return {".".join(map(str, e["loc"])): e["msg"] for e in caught.value.errors()}


def test_plain_text_is_the_default() -> None:
    config = KafkaConfig(bootstrap_servers="a:9092, b:9093")
    assert config.bootstrap_servers == "a:9092,b:9093"
    assert librdkafka_settings(config) == {
        "bootstrap.servers": "a:9092,b:9093",
        "security.protocol": "plaintext",
    }
    assert java_settings(config) == {
        "bootstrap.servers": "a:9092,b:9093",
        "security.protocol": "PLAINTEXT",
    }


def test_every_fault_is_named_at_once() -> None:
    found = faults(
        {
            "bootstrap_servers": "no port",
            "security_protocol": "ssl",
            "sasl": {"mechanism": "magic", "username": "", "password": "s3cret"},
            "tls": {"ca_certificate": "/etc/ca.pem"},
            "extra": 1,
        }
    )
    assert set(found) == {
        "bootstrap_servers",
        "security_protocol",
        "sasl.mechanism",
        "sasl.username",
        "tls.ca_certificate",
        "extra",
    }
    assert "sasl_ssl" in found["security_protocol"]


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({"security_protocol": "sasl_ssl"}, "sasl"),
        ({"sasl": SASL}, "security_protocol"),
        ({"tls": {}}, "security_protocol"),
        ({"security_protocol": "SSL"}, "security_protocol"),
        ({"security_protocol": "sasl_ssl", "sasl": {**SASL, "password": ""}}, "sasl.password"),
        ({"security_protocol": "sasl_ssl", "sasl": {"mechanism": "plain", "username": "a"}}, "sasl.password"),
        ({"security_protocol": "ssl", "tls": {"client_certificate": PEM}}, "tls"),
        ({"security_protocol": "ssl", "tls": {"client_key": KEY}}, "tls"),
        (
            {"security_protocol": "ssl", "tls": {"client_certificate": PEM, "client_key": "RSA s3cret"}},
            "tls.client_key",
        ),
        (login({**SASL, "mechanism": "oauthbearer"}), "sasl.oauth,sasl.username,sasl.password"),
        (login({"mechanism": "oauthbearer"}), "sasl.oauth"),
        (login({**SASL, "oauth": OAUTH}), "sasl.oauth"),
        (oauth(client_secret=None), "sasl.oauth.client_secret"),
        (oauth(client_secret=""), "sasl.oauth.client_secret"),
        (oauth(client_id="a\nb"), "sasl.oauth.client_id"),
        (oauth(token_url="ftp://h/token"), "sasl.oauth.token_url"),
        (oauth(token_url="https://user:s3cret@h/token"), "sasl.oauth.token_url"),
        (oauth(token_url="https://h/token#x"), "sasl.oauth.token_url"),
        (oauth(token_url="https://h:99999/token"), "sasl.oauth.token_url"),
        (oauth(token_url="https://[1:2:3]/token"), "sasl.oauth.token_url"),
        (oauth(scope="a  b"), "sasl.oauth.scope"),
        (oauth(extensions={"auth": "x"}), "sasl.oauth.extensions"),
        (oauth(extensions={"a_b": "x"}), "sasl.oauth.extensions"),
        (oauth(extensions={"a": "x\x01y"}), "sasl.oauth.extensions"),
        (oauth(ca_certificate="/etc/ca.pem"), "sasl.oauth.ca_certificate"),
        (login({"mechanism": "aws_msk_iam"}), "sasl.aws"),
        (aws() | {"security_protocol": "sasl_plaintext"}, "security_protocol"),
        (aws(region="Ireland"), "sasl.aws.region"),
        (aws(role_arn="leatstream"), "sasl.aws.role_arn"),
        (aws(external_id="agreed"), "sasl.aws"),
        (aws(access_key_id="AKID"), "sasl.aws"),
        (aws(access_key_id="AKID", secret_access_key="s3cret"), "sasl.aws"),
        (aws(**KEYS, role_arn=ROLE, external_id="agreed"), "sasl.aws"),
        ({"bootstrap_servers": "h:70000"}, "bootstrap_servers"),
        ({"bootstrap_servers": "h:1,,i:2"}, "bootstrap_servers"),
        ({"bootstrap_servers": "h:1\nsasl.jaas.config=x"}, "bootstrap_servers"),
    ],
)
def test_one_fault(body: dict[str, Any], where: str) -> None:
    assert set(faults({"bootstrap_servers": "h:1"} | body)) == set(where.split(","))


def test_login_and_authority_in_both_words() -> None:
    config = KafkaConfig.model_validate(
        {
            "bootstrap_servers": "h:1",
            "security_protocol": "sasl_ssl",
            "sasl": {"mechanism": "plain", "username": 'a"b', "password": 'x\\"; evil'},
            "tls": {"ca_certificate": PEM, "verify_hostname": False},
        }
    )
    assert librdkafka_settings(config) == {
        "bootstrap.servers": "h:1",
        "security.protocol": "sasl_ssl",
        "sasl.mechanism": "PLAIN",
        "sasl.username": 'a"b',
        "sasl.password": 'x\\"; evil',
        "ssl.endpoint.identification.algorithm": "none",
        "ssl.ca.pem": PEM,
    }
    assert java_settings(config) == {
        "bootstrap.servers": "h:1",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="a\\"b" password="x\\\\\\"; evil";',
        "ssl.endpoint.identification.algorithm": "",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": PEM,
    }
    assert "evil" not in repr(config)


def connector() -> KafkaConnector:
    made = open_connector("kafka", "s", {"bootstrap_servers": "h:1"})
    assert isinstance(made, KafkaConnector)
    return made


def source(**more: Any) -> SourceSpec:
    return SourceSpec(
        view="v",
        relation="d.s.r",
        store=StoreRef(name="s", kind="kafka", config={}),
        entity="t",
        columns=[ColumnSpec(name="a", type="BIGINT")],
        value_format="json",
        **more,
    )


def test_source_options() -> None:
    options = connector().source_options(source(), realtime=True)
    assert options["subscribe"] == "t"
    assert options["startingOffsets"] == "latest"
    assert options["failOnDataLoss"] == "true"
    assert options["kafka.isolation.level"] == "read_committed"
    assert "kafka.max.poll.records" not in options
    bulk = connector().source_options(source(starting_position="earliest"), realtime=False)
    assert bulk["startingOffsets"] == "earliest"
    assert bulk["kafka.max.poll.records"] == "5000"
    at = source(starting_position="timestamp", starting_timestamp_ms=5)
    timed = connector().source_options(at, realtime=False)
    assert timed["startingTimestamp"] == "5"
    assert "startingOffsets" not in timed


def test_sink_options() -> None:
    sink = SinkSpec(
        relation="d.s.o",
        store=StoreRef(name="s", kind="kafka", config={}),
        entity="o",
        columns=[ColumnSpec(name="a", type="BIGINT")],
        value_format="json",
    )
    assert connector().sink_options(sink, realtime=True)["kafka.linger.ms"] == "0"
    assert connector().sink_options(sink, realtime=False)["kafka.linger.ms"] == "20"
    assert connector().sink_options(sink, realtime=False)["topic"] == "o"


def test_the_registry_knows_every_kind_and_refuses_what_is_not_built() -> None:
    assert set(connector_classes()) >= {"kafka", "kinesis", "postgres", "s3"}
    assert set(PLANNED).isdisjoint(connector_classes())
    for kind, built in connector_classes().items():
        assert built.kind == kind
    with pytest.raises(RequestError) as caught:
        open_connector("no_such_kind", "s", {})
    assert caught.value.code == "unsupported"
    assert "kafka" in caught.value.detail


def test_secrets_are_put_in_place_without_touching_the_catalogs_copy() -> None:
    config = {
        "bootstrap_servers": "h:1",
        "security_protocol": "sasl_plaintext",
        "sasl": {"mechanism": "plain", "username": "ada"},
    }
    made = open_connector("kafka", "s", config, {"sasl.password": "s3cret"})
    assert isinstance(made, KafkaConnector)
    assert made.settings.sasl is not None
    assert made.settings.sasl.password.get_secret_value() == "s3cret"
    assert config["sasl"] == {"mechanism": "plain", "username": "ada"}
    assert "sasl.password" in KafkaConnector.secret_fields()


def test_a_client_certificate_in_both_words() -> None:
    tls = {"client_certificate": PEM, "client_key": KEY}
    config = KafkaConfig.model_validate({"bootstrap_servers": "h:1", "security_protocol": "ssl", "tls": tls})
    assert "s3cret" not in repr(config)
    native, java = librdkafka_settings(config), java_settings(config)
    assert (native["ssl.certificate.pem"], native["ssl.key.pem"]) == (PEM, KEY)
    assert java["ssl.keystore.type"] == "PEM"
    assert (java["ssl.keystore.certificate.chain"], java["ssl.keystore.key"]) == (PEM, KEY)
    assert "tls.client_key" in KafkaConnector.secret_fields()


def test_client_credentials_in_both_words() -> None:
    extensions = {"logicalCluster": "lkc-1"}
    body = oauth(client_secret='s3cret"\\', scope="a b", extensions=extensions, ca_certificate=PEM)
    config = KafkaConfig.model_validate({"bootstrap_servers": "h:1"} | body)
    assert "s3cret" not in repr(config)
    native, java = librdkafka_settings(config), java_settings(config)
    # This process fetches the tokens: the secret is none of librdkafka's business.
    assert native == {
        "bootstrap.servers": "h:1",
        "security.protocol": "sasl_ssl",
        "sasl.mechanism": "OAUTHBEARER",
        "ssl.endpoint.identification.algorithm": "https",
    }
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLogin"
    line = PEM.replace("\n", "\\n")
    assert java["sasl.jaas.config"] == (
        f'{module}Module required clientId="leat" clientSecret="s3cret\\"\\\\" scope="a b" '
        f'extension_logicalCluster="lkc-1" ssl.truststore.type="PEM" ssl.truststore.certificates="{line}";'
    )
    assert java["sasl.login.callback.handler.class"] == f"{module}CallbackHandler"
    assert java["sasl.oauthbearer.token.endpoint.url"] == "https://h/token"
    assert java["sasl.mechanism"] == "OAUTHBEARER"
    assert "sasl.oauth.client_secret" in KafkaConnector.secret_fields()


@pytest.mark.parametrize(
    ("more", "options"),
    [
        ({}, ""),
        (
            {"role_arn": ROLE, "external_id": "agreed"},
            f' awsRoleArn="{ROLE}" awsRoleExternalId="agreed" awsRoleSessionName="leatstream" awsStsRegion="eu-west-1"',
        ),
        (
            {"role_arn": ROLE} | KEYS,
            f' awsRoleArn="{ROLE}" awsRoleAccessKeyId="AKID" awsRoleSecretAccessKey="s3\\"cret"'
            ' awsRoleSessionName="leatstream" awsStsRegion="eu-west-1"',
        ),
    ],
)
def test_amazon_credentials_in_both_words(more: dict[str, Any], options: str) -> None:
    config = KafkaConfig.model_validate({"bootstrap_servers": "h:1"} | aws(**more))
    assert 's3"cret' not in repr(config)
    native, java = librdkafka_settings(config), java_settings(config)
    assert (native["sasl.mechanism"], native["security.protocol"]) == ("OAUTHBEARER", "sasl_ssl")
    assert "sasl.password" not in native
    module = "software.amazon.msk.auth.iam.IAM"
    assert java["sasl.mechanism"] == "AWS_MSK_IAM"
    assert java["sasl.jaas.config"] == f"{module}LoginModule required{options};"
    assert java["sasl.client.callback.handler.class"] == f"{module}ClientCallbackHandler"
    assert "sasl.aws.secret_access_key" in KafkaConnector.secret_fields()

"""Spark's side of a store that asks who comes: the same settings as the admin side, on a real broker."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from secured_broker import PASSWORD, USER, SecuredBroker
from token_server import CLIENT, SCOPE, SECRET

from leatstream.connectors.entities import NewRecord
from leatstream.connectors.kafka.connector import KafkaConnector
from leatstream.connectors.kafka.settings import java_settings
from leatstream.connectors.registry import open_connector
from leatstream.dev.jars import msk_jars
from leatstream.errors import JobError, StoreError
from leatstream.plan.job_spec import ColumnSpec, JobSpec, SinkSpec, StoreRef
from leatstream_jobs.attempt.failures import chain_of, classify


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    broker = SecuredBroker(tmp_path_factory.mktemp("secured"))
    broker.start()
    yield broker
    broker.stop()


def login(broker: SecuredBroker, mechanism: str) -> KafkaConnector:
    tls: dict[str, Any] = {"ca_certificate": broker.certificate}
    if mechanism == "certificate":
        tls["client_certificate"] = broker.client_certificate
        config: dict[str, Any] = {"bootstrap_servers": broker.mutual, "security_protocol": "ssl", "tls": tls}
        secrets = {"tls.client_key": broker.client_key}
    elif mechanism == "oauthbearer":
        oauth = {
            "token_url": broker.tokens.url,
            "client_id": CLIENT,
            "scope": SCOPE,
            "extensions": {"logicalCluster": "lkc-1"},
            "ca_certificate": broker.tokens.certificate,
        }
        config = {
            "bootstrap_servers": broker.oauth,
            "security_protocol": "sasl_ssl",
            "sasl": {"mechanism": mechanism, "oauth": oauth},
            "tls": tls,
        }
        secrets = {"sasl.oauth.client_secret": SECRET}
    else:
        sasl = {"mechanism": mechanism, "username": USER}
        config = {
            "bootstrap_servers": broker.bootstrap,
            "security_protocol": "sasl_ssl",
            "sasl": sasl,
            "tls": tls,
        }
        secrets = {"sasl.password": PASSWORD}
    found = open_connector("kafka", "s", config, secrets)
    assert isinstance(found, KafkaConnector)
    return found


@pytest.mark.parametrize(
    "mechanism", ["plain", "scram_sha_256", "scram_sha_512", "certificate", "oauthbearer"]
)
def test_both_sides_log_in(spark: Any, secured: SecuredBroker, mechanism: str) -> None:
    """The admin side makes the topic and a record; Spark reads it and writes it to another."""
    store = login(secured, mechanism)
    source, sink = f"{mechanism}.in", f"{mechanism}.out"
    for topic in (source, sink):
        store.create_entity(topic, {"topic.partitions": 1, "topic.replicas": 1}, {})
    store.write_records(source, [NewRecord(b"k", b"v")])
    options = {f"kafka.{name}": value for name, value in java_settings(store.settings).items()}
    frame = spark.read.format("kafka").options(**options).option("subscribe", source).load()
    frame.select("key", "value").write.format("kafka").options(**options).option("topic", sink).save()
    (record,) = [r for r in store.read_records(sink, from_beginning=True, limit=1, idle_timeout=10) if r]
    assert (record.key, record.value) == (b"k", b"v")


def test_one_topic_that_is_denied_is_told_and_the_others_work(
    spark: Any, secured: SecuredBroker, eventually: Callable[..., Any]
) -> None:
    """Both ways and both sides; trying again would not help, and nothing is written."""
    store = login(secured, "plain")
    for topic in ("open.to.all", "unread", "unwritten"):
        store.create_entity(topic, {"topic.partitions": 1, "topic.replicas": 1}, {})
        store.write_records(topic, [NewRecord(b"k", b"v")])
    secured.deny("unread", "READ")
    secured.deny("unwritten", "WRITE")

    def refused(call: Callable[[], Any]) -> str | None:
        try:
            call()
        except StoreError as error:
            return f"{error.code}: {error.detail}"
        return None

    read = functools.partial(store.read_records, from_beginning=True, limit=1, idle_timeout=10)
    # A broker hears of a rule a little later than it is made.
    told = eventually(lambda: refused(lambda: list(read("unread"))), what="the rule about reading")
    assert told.startswith("store-auth-failed: ")
    assert "may not read topic unread" in told
    write = functools.partial(store.write_records, records=[NewRecord(b"k", b"v")])
    told = eventually(lambda: refused(lambda: write("unwritten")), what="the rule about writing")
    assert told.startswith("store-auth-failed: ")
    assert "may not write to topic unwritten" in told
    assert [r.value for r in read("open.to.all") if r] == [b"v"]
    options = {f"kafka.{name}": value for name, value in java_settings(store.settings).items()}

    def frame(topic: str) -> Any:
        found = spark.read.format("kafka").options(**options).option("subscribe", topic).load()
        return found.select("key", "value")

    assert len(frame("open.to.all").collect()) == 1
    into = frame("open.to.all").write.format("kafka").options(**options).option("topic", "unwritten")
    for job in (frame("unread").collect, into.save):
        with pytest.raises(Exception) as caught:  # noqa: PT011  (py4j's own class)
            job()
        failure = classify(
            chain_of(caught.value), JobSpec.model_construct(sources=[], checkpoint="file:///c")
        )
        assert failure.detail.startswith("A store refused the job's login or access:"), failure.detail
        assert failure.retryable is False


def msk(broker: SecuredBroker) -> KafkaConnector:
    aws = {
        "region": "eu-west-1",
        "access_key_id": "AKID",
        "role_arn": "arn:aws:iam::123456789012:role/leatstream",
    }
    config = {
        "bootstrap_servers": broker.bootstrap,
        "security_protocol": "sasl_ssl",
        "sasl": {"mechanism": "aws_msk_iam", "aws": aws},
        "tls": {"ca_certificate": broker.certificate},
    }
    found = open_connector("kafka", "s", config, {"sasl.aws.secret_access_key": "s3cret"})
    assert isinstance(found, KafkaConnector)
    return found


def test_a_driver_without_amazons_library_says_what_to_do(spark: Any, secured: SecuredBroker) -> None:
    sink = SinkSpec(
        relation="d.s.o",
        store=StoreRef(name="s", kind="kafka", config={}),
        entity="o",
        columns=[ColumnSpec(name="a", type="BIGINT")],
        value_format="json",
    )
    with pytest.raises(JobError, match="LEATSTREAM_MSK_IAM=true") as caught:
        msk(secured).write_batch(spark.range(1), sink)
    assert caught.value.code == "job-rejected"


def test_amazons_library_takes_our_settings(spark: Any, secured: SecuredBroker) -> None:
    """As far as it goes without Amazon: its login module logs in, and the broker is asked for its mechanism."""
    from py4j.protocol import Py4JJavaError

    jvm = spark._jvm
    urls = spark.sparkContext._gateway.new_array(jvm.java.net.URL, 1)
    urls[0] = jvm.java.net.URI(msk_jars()[0].as_uri()).toURL()
    thread = jvm.java.lang.Thread.currentThread()
    before = thread.getContextClassLoader()
    kafka = jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
    thread.setContextClassLoader(jvm.java.net.URLClassLoader(urls, kafka))
    try:
        settings = jvm.java.util.HashMap()
        for name, value in java_settings(msk(secured).settings).items():
            settings.put(name, value)
        settings.put("request.timeout.ms", "10000")
        settings.put("default.api.timeout.ms", "10000")
        admin = jvm.org.apache.kafka.clients.admin.Admin.create(settings)
        try:
            with pytest.raises(Py4JJavaError) as caught:
                admin.describeCluster().clusterId().get()
        finally:
            admin.close(jvm.java.time.Duration.ZERO)
    finally:
        thread.setContextClassLoader(before)
    assert "UnsupportedSaslMechanismException" in str(caught.value)
    assert "AWS_MSK_IAM" in str(caught.value)

"""Kafka against a real broker: without a login, and with a login over TLS."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer
from conformance import ConnectorConformance, Produce
from deadlines import patient
from secured_broker import PASSWORD, USER, SecuredBroker
from token_server import CLIENT, SCOPE, SECRET

from leatstream.connectors.base import Connector
from leatstream.connectors.entities import NewRecord, Record, RecordsFrom
from leatstream.connectors.kafka.connector import KafkaConnector
from leatstream.connectors.kafka.settings import librdkafka_settings
from leatstream.connectors.registry import open_connector
from leatstream.errors import StoreError

BROKEN_PEM = "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n"


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    broker = SecuredBroker(tmp_path_factory.mktemp("secured"))
    broker.start()
    yield broker
    broker.stop()


def secured_config(broker: SecuredBroker, **tls: Any) -> dict[str, Any]:
    return {
        "bootstrap_servers": broker.bootstrap,
        "security_protocol": "sasl_ssl",
        "sasl": {"mechanism": "plain", "username": USER},
        "tls": {"ca_certificate": broker.certificate} | tls,
    }


class KafkaConformance(ConnectorConformance):
    size: ClassVar = {"topic.partitions": 2, "topic.replicas": 1}
    bigger: ClassVar = {"topic.partitions": 3, "topic.replicas": 1}
    configs: ClassVar = {"retention.ms": "60000"}
    other_configs: ClassVar = {"cleanup.policy": "compact"}
    impossible = ({"topic.partitions": 1, "topic.replicas": 3}, "replica")
    illegal_name = "no topic / name"

    @pytest.fixture
    def refused(self, secured: SecuredBroker) -> Connector:
        return open_connector("kafka", "s", secured_config(secured), {"sasl.password": "wrong-password"})

    @pytest.fixture
    def unreachable(self) -> Connector:
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{nobody.getsockname()[1]}"
        return open_connector("kafka", "s", {"bootstrap_servers": address})

    @pytest.fixture
    def produce(self, connector: Connector) -> Produce:
        assert isinstance(connector, KafkaConnector)
        producer = Producer(librdkafka_settings(connector.settings))

        def send(entity: str, values: Sequence[bytes]) -> None:
            for value in values:
                producer.produce(entity, value)
            assert producer.flush(20) == 0

        return send


class TestKafka(KafkaConformance):
    @pytest.fixture
    def connector(self, kafka_broker: str) -> Connector:
        return open_connector("kafka", "s", {"bootstrap_servers": kafka_broker})

    def test_internal_topics_are_hidden(self, connector: Connector) -> None:
        connector.create_entity("_leat_hidden", self.size, {})
        try:
            names = [e.name for e in connector.list_entities()]
            assert [n for n in names if n.startswith(("__", "_leat"))] == []
        finally:
            connector.drop_entity("_leat_hidden")

    def test_a_key_goes_where_the_jobs_would_put_it(self, connector: Connector, entity: str) -> None:
        # Java's partitioner: murmur2 of the key, without its sign, modulo the partitions.
        connector.create_entity(entity, {"topic.partitions": 5, "topic.replicas": 1}, {})
        connector.write_records(entity, [NewRecord(k, b"x") for k in (b"21", b"foobar", b"a-key", b"")])
        read = connector.read_records(entity, from_beginning=True, limit=4, idle_timeout=5)
        places = {r.key: r.partition for r in read if r is not None}
        hashes = {b"21": -973932308, b"foobar": -790332482}
        assert {k: places[k] for k in hashes} == {k: (h & 0x7FFFFFFF) % 5 for k, h in hashes.items()}

    def test_reading_begins_at_a_place(self, connector: Connector, entity: str) -> None:
        connector.create_entity(entity, {"topic.partitions": 2, "topic.replicas": 1}, {})
        connector.write_records(entity, [NewRecord(b"a", str(n).encode()) for n in range(3)])
        (whole,) = {r.partition for r in self.part(connector, entity, RecordsFrom(beginning=True))}
        place = RecordsFrom(partition=str(whole), offset=1)
        assert [r.offset for r in self.part(connector, entity, place)] == [1, 2]
        assert self.part(connector, entity, RecordsFrom(partition=str(whole), offset=9)) == []
        last = self.part(connector, entity, RecordsFrom(since=0))[-1]
        assert last.timestamp is not None
        assert self.part(connector, entity, RecordsFrom(since=last.timestamp))[-1:] == [last]
        for empty in (RecordsFrom(since=last.timestamp + 60_000), RecordsFrom(partition=str(1 - int(whole)))):
            assert self.part(connector, entity, empty) == []
        with pytest.raises(StoreError, match="has no partition 7"):
            self.part(connector, entity, RecordsFrom(partition="7"))

    def part(self, connector: Connector, entity: str, start: RecordsFrom) -> list[Record]:
        return [r for r in connector.read_part(entity, start, limit=None, idle_timeout=0.3) if r is not None]

    def test_lag_tools_see_how_far_a_query_has_read(self, connector: Connector, entity: str) -> None:
        def groups() -> dict[str, dict[int, int]]:
            client = connector.admin.client  # type: ignore[attr-defined]
            found = {}
            for group in [g.group_id for g in client.list_consumer_groups().result(10).valid]:
                asked = client.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
                places = asked[group].result(10).topic_partitions
                found[group] = {p.partition: p.offset for p in places if p.topic == entity}
            return found

        connector.create_entity(entity, self.size, {})
        connector.mirror_offsets("a query", entity, {"0": 3, "1": 5}, 10)
        assert groups()["leatstream-a query"] == {0: 3, 1: 5}
        connector.mirror_offsets("a query", entity, {"0": 4}, 10)
        assert groups()["leatstream-a query"] == {0: 4, 1: 5}
        connector.forget_offsets("a query", 10)
        connector.forget_offsets("a query", 10)
        assert "leatstream-a query" not in groups()

    def test_what_the_broker_refuses_is_said(self, connector: Connector, entity: str) -> None:
        small = {"max.message.bytes": "200"}
        connector.create_entity(entity, {"topic.partitions": 1, "topic.replicas": 1}, small)
        with pytest.raises(StoreError) as caught:
            connector.write_records(entity, [NewRecord(None, b"x"), NewRecord(None, b"x" * 1000)])
        assert caught.value.code == "store-rejected"
        assert "of 2 records were written" in caught.value.detail

    def test_aborted_records_are_not_printed(
        self, connector: Connector, entity: str, kafka_broker: str
    ) -> None:
        connector.create_entity(entity, {"topic.partitions": 1, "topic.replicas": 1}, {})
        producer = Producer({"bootstrap.servers": kafka_broker, "transactional.id": entity})
        producer.init_transactions(30)
        for value in (b"kept", b"taken back"):
            producer.begin_transaction()
            producer.produce(entity, value)
            producer.flush(10)
            if value == b"kept":
                producer.commit_transaction(10)
            else:
                producer.abort_transaction(10)
        read = connector.read_records(entity, from_beginning=True, limit=None, idle_timeout=0.5)
        assert [r.value for r in read if r is not None] == [b"kept"]


class TestSecuredKafka(KafkaConformance):
    @pytest.fixture
    def connector(self, secured: SecuredBroker) -> Connector:
        return open_connector("kafka", "s", secured_config(secured), {"sasl.password": PASSWORD})

    def test_a_broker_of_unknown_authority_is_not_trusted(self, secured: SecuredBroker) -> None:
        config = secured_config(secured, ca_certificate=None)
        stranger = open_connector("kafka", "s", config, {"sasl.password": PASSWORD})
        with pytest.raises(StoreError) as caught:
            stranger.test(5)
        assert caught.value.code == "store-unreachable"
        assert "certificate" in caught.value.detail.lower()

    def test_plain_text_to_a_secured_port(self, secured: SecuredBroker) -> None:
        with pytest.raises(StoreError) as caught:
            open_connector("kafka", "s", {"bootstrap_servers": secured.bootstrap}).test(3)
        assert caught.value.code == "store-unreachable"
        assert "security_protocol" in str(caught.value.faults[0].hint)

    @pytest.mark.parametrize("mechanism", ["scram_sha_256", "scram_sha_512"])
    def test_scram(self, secured: SecuredBroker, mechanism: str) -> None:
        config = secured_config(secured) | {"sasl": {"mechanism": mechanism, "username": USER}}
        open_connector("kafka", "s", config, {"sasl.password": PASSWORD}).test(10)
        with pytest.raises(StoreError) as caught:
            open_connector("kafka", "s", config, {"sasl.password": "wrong"}).test(5)
        assert caught.value.code == "store-auth-failed"


class TestMutualTls(KafkaConformance):
    """The whole suite with a client certificate in place of a password."""

    @staticmethod
    def config(broker: SecuredBroker, **tls: Any) -> dict[str, Any]:
        shown = {"ca_certificate": broker.certificate, "client_certificate": broker.client_certificate}
        return {"bootstrap_servers": broker.mutual, "security_protocol": "ssl", "tls": shown | tls}

    @pytest.fixture
    def connector(self, secured: SecuredBroker) -> Connector:
        return open_connector("kafka", "s", self.config(secured), {"tls.client_key": secured.client_key})

    def test_without_a_certificate_nobody_comes_in(self, secured: SecuredBroker) -> None:
        config = self.config(secured)
        config["tls"].pop("client_certificate")
        with pytest.raises(StoreError) as caught:
            open_connector("kafka", "s", config).test(5)
        assert caught.value.code in ("store-auth-failed", "store-unreachable")
        assert "BEGIN" not in caught.value.detail


class TestOauth:
    """With tokens of an authorization server in place of a password; what they do then is the same."""

    @staticmethod
    def open(broker: SecuredBroker, secret: str = SECRET, **more: Any) -> Connector:
        oauth: dict[str, Any] = {
            "token_url": broker.tokens.url,
            "client_id": CLIENT,
            "scope": SCOPE,
            "extensions": {"logicalCluster": "lkc-1"},
            "ca_certificate": broker.tokens.certificate,
        }
        config = {
            "bootstrap_servers": broker.oauth,
            "security_protocol": "sasl_ssl",
            "sasl": {"mechanism": "oauthbearer", "oauth": oauth | more},
            "tls": {"ca_certificate": broker.certificate},
        }
        return open_connector("kafka", "s", config, {"sasl.oauth.client_secret": secret})

    def test_administration_and_printing(self, secured: SecuredBroker) -> None:
        store = self.open(secured)
        store.create_entity(
            "oauth.both", {"topic.partitions": 2, "topic.replicas": 1}, {"retention.ms": "60000"}
        )
        found = store.find_entity("oauth.both")
        assert found is not None
        assert dict(found.configs) == {"retention.ms": "60000"}
        store.write_records("oauth.both", [NewRecord(b"k", b"v")])
        read = store.read_records("oauth.both", from_beginning=True, limit=1, idle_timeout=10)
        assert [(r.key, r.value) for r in read if r is not None] == [(b"k", b"v")]
        store.drop_entity("oauth.both")

    def test_a_wrong_secret(self, secured: SecuredBroker) -> None:
        with pytest.raises(StoreError, match="refused the client") as caught:
            self.open(secured, "wrong-password").test(5)
        assert caught.value.code == "store-auth-failed"
        assert "wrong-password" not in f"{caught.value} {caught.value.faults}"

    @pytest.mark.parametrize(
        ("change", "code", "words"),
        [
            (
                {"scope": "everything"},
                "store-auth-failed",
                ["refused the scope", "invalid_scope", "sasl.oauth.scope"],
            ),
            (
                {"client_id": "nobody"},
                "store-auth-failed",
                ["refused the client", "invalid_client", "client_id"],
            ),
            ({"ca_certificate": None}, "store-unreachable", ["not trusted", "sasl.oauth.ca_certificate"]),
            ({"ca_certificate": BROKEN_PEM}, "store-rejected", ["ca_certificate cannot be read"]),
            # The brokers' own no: the token is for another audience.
            ({"scope": "stranger"}, "store-auth-failed", ["refused the login", "brokers trust"]),
        ],
    )
    def test_what_is_wrong_is_said(
        self, secured: SecuredBroker, change: dict[str, Any], code: str, words: list[str]
    ) -> None:
        with pytest.raises(StoreError) as caught:
            self.open(secured, **change).test(5)
        assert caught.value.code == code
        said = f"{caught.value.detail} {caught.value.faults[0].hint}"
        assert [word for word in words if word not in said] == []
        assert SECRET not in said

    def test_a_token_endpoint_that_is_away_or_silent(self, secured: SecuredBroker) -> None:
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            url = f"https://127.0.0.1:{nobody.getsockname()[1]}/token"
            for listening in (False, True):
                if listening:
                    nobody.listen(5)
                begin = time.monotonic()
                with pytest.raises(StoreError, match="token endpoint http") as caught:
                    self.open(secured, token_url=f"{url}?key=hidden").test(5)
                assert caught.value.code == "store-unreachable"
                assert "does not answer" in caught.value.detail
                assert "hidden" not in caught.value.detail
                # Bounded by the product itself; the margin is for a busy machine.
                assert time.monotonic() - begin < 10

    def test_a_token_is_used_until_it_wears_out(self, secured: SecuredBroker) -> None:
        store = self.open(secured)
        before = secured.tokens.asked
        store.test(5)
        for number in range(3):
            with pytest.raises(StoreError, match="not exist"):
                store.write_records(f"not.there.{number}", [NewRecord(None, b"x")])
        assert secured.tokens.asked == before + 1

    def test_a_client_outlives_its_token(self, secured: SecuredBroker) -> None:
        """The brokers end a session with its token; the client fetches another in time."""
        store = self.open(secured)
        secured.tokens.life = 6
        try:
            store.test(5)
            asked = secured.tokens.asked
            deadline = time.monotonic() + patient(30)
            while secured.tokens.asked < asked + 2:
                assert time.monotonic() < deadline
                store.test(5)
                time.sleep(0.2)
            store.test(5)
        finally:
            secured.tokens.life = 300

"""The embedded broker is a real Kafka: keeps records, comes back over its data, leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from leatstream.dev import ports
from leatstream.dev.broker import Broker, serves_metadata
from leatstream.errors import StackError

pytestmark = pytest.mark.kafka

RUN_A_BROKER = """
import sys, time
from pathlib import Path
from leatstream.dev.broker import Broker
broker = Broker(Path({directory!r}))
broker.start()
print(broker.pid, broker.port, flush=True)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One for all tests that leave it as it was."""
    with Broker(tmp_path_factory.mktemp("broker") / "kafka") as running:
        yield running


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(tmp_path / "kafka") as running:
        yield running


def create_topic(bootstrap_servers: str, topic: str, partitions: int = 2) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    for outcome in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
        outcome.result(20)


def produce(bootstrap_servers: str, topic: str, values: list[str]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    for value in values:
        producer.produce(topic, value.encode())
    assert producer.flush(20) == 0


def consume(bootstrap_servers: str, topic: str, count: int) -> set[str]:
    settings: dict[str, str | int | float | bool] = {
        "bootstrap.servers": bootstrap_servers,
        "group.id": "reader",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    try:
        messages = consumer.consume(count, timeout=30)
        return {(message.value() or b"").decode() for message in messages if message.error() is None}
    finally:
        consumer.close()


def test_records_survive_a_restart_on_the_same_address(own_broker: Broker) -> None:
    address = own_broker.bootstrap_servers
    create_topic(address, "kept")
    produce(address, "kept", ["one", "two", "drei"])
    assert consume(address, "kept", 3) == {"one", "two", "drei"}

    own_broker.stop()
    assert not own_broker.running
    own_broker.start()

    assert own_broker.bootstrap_servers == address
    assert consume(address, "kept", 3) == {"one", "two", "drei"}


def test_topics_are_not_made_by_using_them(broker: Broker) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "message.timeout.ms": 3000})
    seen: list[KafkaError | None] = []
    producer.produce("never-created", b"x", on_delivery=lambda error, _: seen.append(error))
    producer.flush(20)
    assert len(seen) == 1
    assert seen[0] is not None
    assert "never-created" not in producer.list_topics(timeout=10).topics


@pytest.mark.core
def test_transactions_commit(broker: Broker) -> None:
    create_topic(broker.bootstrap_servers, "paid")
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "t"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("paid", b"yes")
    producer.commit_transaction(30)
    assert consume(broker.bootstrap_servers, "paid", 1) == {"yes"}


def test_too_many_replicas_are_refused(broker: Broker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    outcome = admin.create_topics([NewTopic("tripled", 1, 3)])["tripled"]
    with pytest.raises(KafkaException, match="INVALID_REPLICATION_FACTOR"):
        outcome.result(20)


def test_a_second_broker_over_the_same_directory_is_refused_and_harms_nobody(broker: Broker) -> None:
    with pytest.raises(StackError) as caught:
        Broker(broker.data_dir).start()
    assert caught.value.code == "already-running"
    assert str(broker.data_dir) in caught.value.detail
    assert serves_metadata(broker.bootstrap_servers, 10)


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    with socket.socket() as squatter:
        squatter.bind((ports.LOOPBACK, 0))
        squatter.listen()
        port = squatter.getsockname()[1]
        with pytest.raises(StackError, match=str(port)) as caught:
            Broker(tmp_path, port=port).start()
    assert caught.value.code == "port-taken"
    with Broker(tmp_path) as after:  # the failed start holds nothing
        assert after.running


def test_a_broker_that_cannot_start_shows_its_log(tmp_path: Path) -> None:
    damaged = tmp_path / "topics"
    damaged.mkdir()
    (damaged / "meta.properties").write_text("version=1\nnode.id=7\ncluster.id=AAAAAAAAAAAAAAAAAAAAAA\n")
    with pytest.raises(StackError) as caught:
        Broker(tmp_path).start()
    assert caught.value.code == "part-failed"
    assert "node" in caught.value.detail.lower()


def test_it_ends_with_a_killed_owner_and_the_next_start_works(
    tmp_path: Path,
    run_python: Callable[[str], subprocess.Popen[str]],
    wait_for: Callable[[Callable[[], bool], float, str], None],
) -> None:
    owner = run_python(RUN_A_BROKER.format(directory=str(tmp_path)))
    assert owner.stdout is not None
    pid, port = map(int, owner.stdout.readline().split())
    create_topic(f"{ports.LOOPBACK}:{port}", "kept")
    owner.send_signal(signal.SIGKILL)
    owner.wait(10)
    wait_for(lambda: not psutil.pid_exists(pid), 20, "the broker ended with its owner")
    with Broker(tmp_path) as broker:
        assert broker.port == port
        create_topic(broker.bootstrap_servers, "another")


def test_a_left_over_broker_is_ended_at_the_next_start(
    tmp_path: Path, run_python: Callable[[str], subprocess.Popen[str]]
) -> None:
    owner = run_python(RUN_A_BROKER.format(directory=str(tmp_path)))
    assert owner.stdout is not None
    pid, _ = map(int, owner.stdout.readline().split())
    record = json.loads((tmp_path / "broker.json").read_text())
    assert record["pid"] == pid
    owner.kill()  # and start at once, while the old broker is still ending
    owner.wait(10)
    with Broker(tmp_path) as broker:
        assert broker.running
        assert not psutil.pid_exists(pid)


def test_a_killed_broker_is_noticed_and_can_be_started_again(
    own_broker: Broker, wait_for: Callable[[Callable[[], bool], float, str], None]
) -> None:
    create_topic(own_broker.bootstrap_servers, "kept")
    produce(own_broker.bootstrap_servers, "kept", ["one"])
    assert own_broker.pid is not None
    os.kill(own_broker.pid, signal.SIGKILL)
    wait_for(lambda: not own_broker.running, 10, "the broker is seen as ended")
    own_broker.stop()
    own_broker.start()
    assert consume(own_broker.bootstrap_servers, "kept", 1) == {"one"}

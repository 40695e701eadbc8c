"""A process that tells lag tools how far it has read outlives the broker's outage.

librdkafka's admin client ended or stopped it when a broker came back that it had waited for in vain.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from deadlines import patient

from leatstream.connectors.kafka.connector import KafkaConnector
from leatstream.connectors.kafka.groups import Groups
from leatstream.connectors.registry import open_connector
from leatstream.dev.broker import Broker
from leatstream.dev.ports import free_ports

QUERIES = 4
TELLER = """
import os, sys, threading
from leatstream.connectors.registry import open_connector
from leatstream.errors import StoreError

def tell(connector, query):
    n = 0
    while True:
        n += 1
        try:
            connector.mirror_offsets(query, "numbers", {"0": n}, 3.0)
            said = "told"
        except StoreError as error:
            said = error.code
        os.write(1, f"{said} {query}\\n".encode())
        threading.Event().wait(0.1)

for number in range(int(sys.argv[2])):
    connector = open_connector("kafka", "s", {"bootstrap_servers": sys.argv[1]}, {})
    threading.Thread(target=tell, args=(connector, f"q{number}")).start()
"""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    (port,) = free_ports(1)
    broker = Broker(tmp_path / "kafka", port, tmp_path / "kafka.log")
    broker.start(120)
    yield broker
    broker.stop()


@pytest.fixture
def teller(broker: Broker) -> Iterator[subprocess.Popen[str]]:
    connector = open_connector("kafka", "s", {"bootstrap_servers": broker.bootstrap_servers}, {})
    connector.create_entity("numbers", {"topic.partitions": 1, "topic.replicas": 1}, {}, 60)
    command = [sys.executable, "-c", TELLER, broker.bootstrap_servers, str(QUERIES)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    yield process
    process.kill()
    process.wait()


def wait_for(teller: subprocess.Popen[str], said: str, times: int) -> None:
    """Until each query has said so so often, from now on."""
    assert teller.stdout is not None
    heard: Counter[str] = Counter()
    deadline = time.monotonic() + patient(120)
    while len(heard) < QUERIES or min(heard.values()) < times:
        line = teller.stdout.readline()
        assert line, f"the process ended with {teller.wait()}"
        assert line.startswith(("told ", "store-unreachable ")), line
        assert time.monotonic() < deadline, heard
        word, query = line.split()
        heard[query] += word == said


@pytest.mark.timeout(240)
def test_telling_lag_tools_outlives_the_broker(broker: Broker, teller: subprocess.Popen[str]) -> None:
    wait_for(teller, "told", 1)
    assert broker.pid is not None
    os.kill(broker.pid, signal.SIGKILL)
    wait_for(teller, "store-unreachable", 3)
    broker.stop()
    broker.start(120)
    wait_for(teller, "told", 2)


def test_who_has_nothing_to_tell_any_more_holds_no_connection(broker: Broker) -> None:
    """Queries come and go in a shared driver; one that comes back is told of again."""
    connector = open_connector("kafka", "s", {"bootstrap_servers": broker.bootstrap_servers}, {})
    assert isinstance(connector, KafkaConnector)
    connector.create_entity("numbers", {"topic.partitions": 1, "topic.replicas": 1}, {}, 60)
    now = [0.0]
    groups = Groups(connector.admin, lambda: now[0])
    for at, query, members in ((0, "a", 1), (59, "b", 2), (61, "b", 1), (62, "a", 2)):
        now[0] = at
        groups.write_offsets(query, "numbers", {"0": at}, 30.0)
        assert len(groups._members) == members

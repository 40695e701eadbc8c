"""One broker and one pretended API for all tests of drivers; drivers are started one ahead of their need."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

# importlib mode leaves the test's own folder out, and the one that all tests share
from small_api import Pool, SmallApi

from leatstream.connectors.kafka.connector import KafkaConnector
from leatstream.connectors.registry import open_connector


@pytest.fixture(scope="session")
def bootstrap(kafka_broker: str) -> str:
    """A real broker's address."""
    return kafka_broker


@pytest.fixture(scope="session")
def kafka(bootstrap: str) -> KafkaConnector:
    """A connector to it."""
    connector = open_connector("kafka", "store", {"bootstrap_servers": bootstrap})
    assert isinstance(connector, KafkaConnector)
    return connector


@pytest.fixture(scope="session")
def api() -> Iterator[SmallApi]:
    """The API's side of the protocol."""
    served = SmallApi()
    yield served
    served.close()


@pytest.fixture(scope="session")
def pool(api: SmallApi, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    """Where tests get their drivers."""
    drivers = Pool(api, tmp_path_factory.mktemp("drivers"))
    yield drivers
    drivers.end()


@pytest.fixture
def topic(kafka: KafkaConnector) -> Iterator[Callable[..., str]]:
    """Makes topics and drops them."""
    made: list[str] = []

    def make(partitions: int = 2) -> str:
        name = f"t-{uuid.uuid4().hex[:8]}"
        kafka.create_entity(name, {"topic.partitions": partitions, "topic.replicas": 1}, {})
        made.append(name)
        return name

    yield make
    for name in made:
        kafka.drop_entity(name)


@pytest.fixture
def produce(bootstrap: str) -> Callable[..., None]:
    """Writes documents (or raw bytes) to a topic."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})

    def send(topic: str, *documents: dict[str, Any] | bytes | None) -> None:
        for document in documents:
            value = json.dumps(document).encode() if isinstance(document, dict) else document
            key = str(document.get("id", "")) if isinstance(document, dict) else None
            producer.produce(topic, value=value, key=key)
            producer.poll(0)
        assert producer.flush(30) == 0

    return send


@pytest.fixture
def rows(kafka: KafkaConnector) -> Callable[..., list[Any]]:
    """Reads a topic's values as JSON: at least ``at_least`` of them, then whatever else is there."""

    def read(topic: str, at_least: int, timeout: float = 60) -> list[Any]:
        found = kafka.read_records(topic, from_beginning=True, limit=at_least, idle_timeout=timeout)
        first = [r for r in found if r is not None]
        assert len(first) == at_least, [r.value for r in first]
        everything = kafka.read_records(topic, from_beginning=True, limit=None, idle_timeout=0.5)
        return [json.loads(r.value or b"null") for r in everything if r is not None]

    return read


@pytest.fixture
def job(bootstrap: str, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Makes JobSpec documents over JSON topics."""
    store = {"name": "store", "kind": "kafka", "config": {"bootstrap_servers": bootstrap}}

    def columns(text: str) -> list[dict[str, Any]]:
        parts = (c.strip().split(" ", 1) for c in text.split(", "))
        return [
            {"name": n, "type": t.removesuffix(" NOT NULL"), "not_null": t.endswith("NOT NULL")}
            for n, t in parts
        ]

    def make(sources: list[dict[str, Any]], sink: str, sql: str, out: str, **more: Any) -> dict[str, Any]:
        scans = [
            {
                "view": f"leat_src_{i}",
                "relation": f"demo.public.s{i}",
                "store": store,
                "value_format": "json",
                "starting_position": "earliest",
            }
            | source
            | {"columns": columns(source["columns"])}
            for i, source in enumerate(sources)
        ]
        return {
            "query_id": uuid.uuid4().hex,
            "query_name": "q",
            "generation": 1,
            "attempt": 1,
            "fencing_token": "token-1",
            "sql": sql,
            "sources": scans,
            "sink": {
                "relation": "demo.public.out",
                "store": store,
                "entity": sink,
                "columns": columns(out),
                "value_format": "json",
            },
            "mode": "micro_batch",
            "mode_reason": "test",
            "checkpoint": (tmp_path / "checkpoint").as_uri(),
            "conf": {"spark.sql.shuffle.partitions": "2"},
        } | more

    return make

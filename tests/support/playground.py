"""A database, a store and topics under a name of a test's own."""

from __future__ import annotations

import contextlib
import json
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx2
from deadlines import patient


@dataclass
class Playground:
    """A database, a store and topics under a name of its own."""

    http: httpx2.Client
    kafka: str
    name: str
    topics: list[str] = field(default_factory=list)

    @property
    def context(self) -> dict[str, str]:
        return {"database": self.name, "schema": "public", "store": self.name}

    def sql(self, text: str, **more: Any) -> dict[str, Any]:
        answer = self.http.post("/v1/statements", json={"sql": text, **self.context, **more})
        assert answer.status_code == 200, answer.text
        return answer.json()

    def refused(self, text: str, **more: Any) -> dict[str, Any]:
        answer = self.http.post("/v1/statements", json={"sql": text, **self.context, **more})
        assert answer.status_code >= 400, answer.text
        assert answer.headers["content-type"] == "application/problem+json"
        return {**answer.json(), "status_code": answer.status_code}

    def topic(self, name: str, partitions: int = 1) -> str:
        full = f"{self.name}.{name}"
        answer = self.http.put(
            f"/v1/stores/{self.name}/entities/{full}",
            json={"kafka": {"partitions": partitions, "replicas": 1}},
        )
        assert answer.status_code == 201, answer.text
        self.topics.append(full)
        return full

    def stream(self, name: str, columns: str, topic: str | None = None, **properties: Any) -> str:
        topic = topic or self.topic(name)
        more = "".join(f", '{k.replace('_', '.')}'='{v}'" for k, v in properties.items())
        self.sql(f"CREATE STREAM {name} ({columns}) WITH ('topic'='{topic}', 'value.format'='json'{more});")
        return topic

    def query(self, name: str) -> dict[str, Any]:
        answer = self.http.get(f"/v1/queries/{name}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    def wait(self, name: str, *states: str, seconds: float = 90.0) -> dict[str, Any]:
        wanted = ",".join(states or ("running",))
        left = patient(seconds)
        while True:
            answer = self.http.get(f"/v1/queries/{name}", params={"wait_for": wanted, "timeout": "15s"})
            assert answer.status_code == 200, answer.text
            body = answer.json()
            if body["status"]["state"] in wanted.split(","):
                return body
            left -= 15
            assert left > 0, f"query {name} is not {wanted}: {json.dumps(body['status'], indent=1)}"

    def run(self, name: str, sql: str, *, shared: bool = False, **body: Any) -> dict[str, Any]:
        """Create a query and wait until it runs.

        Args:
            name: of the query, without the playground's.
            sql: its statement.
            shared: in a driver that runs other queries too: a JVM of its own takes ten seconds of a processor.
            body: further members of the request.
        """
        if shared:
            sql += " QUERY WITH ('query.driver'='shared')"
        answer = self.http.put(f"/v1/queries/{self.name}_{name}", json={"sql": sql, **self.context, **body})
        assert answer.status_code == 201, answer.text
        return self.wait(f"{self.name}_{name}", "running", "failed")

    def produce(self, topic: str, records: list[Any], key: Callable[[Any], bytes] | None = None) -> None:
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.kafka, "linger.ms": 5})
        for record in records:
            value = record if isinstance(record, bytes) else json.dumps(record).encode()
            producer.produce(topic, value, key=key(record) if key else None)
            producer.poll(0)
        assert producer.flush(30) == 0

    def consume(
        self, topic: str, count: int, seconds: float = 60.0, distinct: str | None = None
    ) -> list[dict[str, Any]]:
        """Values from the beginning, until there are ``count`` of them (``distinct``: with different values of
        this field; at-least-once delivery may repeat records after a stop)."""
        from confluent_kafka import Consumer

        consumer = Consumer(
            {
                "bootstrap.servers": self.kafka,
                "group.id": f"test-{uuid.uuid4().hex}",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        consumer.subscribe([topic])
        found: list[dict[str, Any]] = []
        seen: set[Any] = set()
        deadline = time.monotonic() + patient(seconds)
        try:
            while len(seen if distinct else found) < count:
                message = consumer.poll(0.5)
                if message is not None and not message.error():
                    found.append(json.loads(message.value()))
                    seen.add(found[-1].get(distinct))
                assert time.monotonic() < deadline, (
                    f"{topic} has {len(found)} records, not {count}: {found[-3:]}"
                )
        finally:
            consumer.close()
        return found


@contextlib.contextmanager
def playground(server: Any, prefix: str) -> Iterator[Playground]:
    """A playground on any server (``LeatstreamServer``), for tests that break it; nothing is cleaned up."""
    with server.client() as http:
        play = Playground(http, server.kafka_bootstrap, f"{prefix}_{int(time.time() * 1000)}")
        body = {"kafka": {"bootstrap_servers": server.kafka_bootstrap}}
        assert http.put(f"/v1/stores/{play.name}", json=body).status_code == 201
        assert http.put(f"/v1/databases/{play.name}", json={}).status_code == 201
        yield play

"""Numbered records, produced at a steady pace while things break, and counted afterwards."""

from __future__ import annotations

import json
import threading
import time
import uuid

from deadlines import patient


class Feed:
    """Produces numbered records at a steady pace until the count is reached."""

    def __init__(self, kafka: str, topic: str, count: int) -> None:
        self.kafka, self.topic, self.count, self.sent = kafka, topic, count, 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.kafka, "linger.ms": 20, "acks": "all"})
        while self.sent < self.count:
            for _ in range(1000):
                producer.produce(self.topic, b'{"n": %d, "s": "x"}' % self.sent)
                self.sent += 1
            producer.poll(0)
            time.sleep(0.1)
        assert producer.flush(60) == 0

    def wait_for(self, share: float) -> None:
        deadline = time.monotonic() + patient(120)
        while self.sent < self.count * share:
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def join(self) -> None:
        self._thread.join(180)
        assert self.sent == self.count


def distinct_numbers(kafka: str, topic: str, count: int, seconds: float = 180.0) -> tuple[int, int]:
    """(distinct, all) numbers on a topic, once every number has come or time is over."""
    from confluent_kafka import Consumer

    group = {"group.id": uuid.uuid4().hex, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = Consumer({"bootstrap.servers": kafka, **group})
    consumer.subscribe([topic])
    seen: set[int] = set()
    total = 0
    deadline = time.monotonic() + patient(seconds)
    try:
        while len(seen) < count and time.monotonic() < deadline:
            for message in consumer.consume(1000, 0.5):
                if not message.error():
                    total += 1
                    seen.add(json.loads(message.value())["n"])
    finally:
        consumer.close()
    return len(seen), total

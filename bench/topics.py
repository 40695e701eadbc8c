"""Topics for benchmarks: made, filled, fed at a steady rate, counted and read back."""

from __future__ import annotations

import contextlib
import threading
import time
import uuid
import zlib
from collections.abc import Iterator
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from stack import BenchError

# What the filter of every benchmark reads, and the records that fit it.
COLUMNS = "viewtime BIGINT, userid VARCHAR, pageid VARCHAR"
DROPPED_PAGE = "Page_7"
PAGES = 1000
SELECT = f"SELECT viewtime, upper(userid) AS userid, pageid FROM {{source}} WHERE pageid <> '{DROPPED_PAGE}'"


class Topics:
    """Topics of one broker."""

    def __init__(self, bootstrap: str) -> None:
        """Connect.

        Args:
            bootstrap: ``host:port``.
        """
        self.bootstrap = bootstrap
        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": f"bench-{uuid.uuid4().hex}",
                "enable.auto.commit": False,
                "topic.metadata.refresh.fast.interval.ms": 10,
                "fetch.message.max.bytes": 8 << 20,
                "log_level": 0,
            }
        )

    def close(self) -> None:
        """Disconnect."""
        self._consumer.close()

    def create(self, name: str, partitions: int = 2, **configs: str) -> str:
        """Create a topic; keys of ``configs`` have underscores for dots."""
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        topic = NewTopic(name, partitions, replication_factor=1, config=settings)
        for future in self._admin.create_topics([topic]).values():
            future.result(30)
        return name

    def drop(self, name: str) -> None:
        """Delete a topic."""
        for future in self._admin.delete_topics([name]).values():
            future.result(30)

    def count(self, name: str, partitions: int = 2, timeout: float = 5.0) -> int:
        """Records in a topic by its offsets (no transactions, no deletions); 0 while it does not exist."""
        total = 0
        for partition in range(partitions):
            try:
                low, high = self._consumer.get_watermark_offsets(
                    TopicPartition(name, partition), timeout=timeout, cached=False
                )
            except KafkaException as error:
                if error.args[0].code() in _NOT_YET:
                    return total
                raise
            total += high - low
        return total

    def records(self, name: str, partitions: int = 2, seconds: float = 120.0) -> Iterator[Any]:
        """Every record that is in the topic now."""
        places = [TopicPartition(name, p) for p in range(partitions)]
        bounds = {p.partition: self._consumer.get_watermark_offsets(p, timeout=10) for p in places}
        left = sum(high - low for low, high in bounds.values())
        self._consumer.assign([TopicPartition(name, p, low) for p, (low, _) in bounds.items()])
        deadline = time.monotonic() + seconds
        try:
            while left > 0:
                for message in self._consumer.consume(min(10_000, left), timeout=1.0):
                    if message.error():
                        raise KafkaException(message.error())
                    left -= 1
                    yield message
                if time.monotonic() > deadline:
                    raise BenchError(f"{left} records of {name} were not read within {seconds:g} s")
        finally:
            self._consumer.unassign()

    def checksum(self, name: str, partitions: int = 2) -> tuple[int, int]:
        """Count and a sum over all records that does not depend on their order."""
        count = total = 0
        for message in self.records(name, partitions):
            count += 1
            total += zlib.crc32(message.value(), zlib.crc32(message.key() or b""))
        return count, total & (2**64 - 1)

    def fill(self, name: str, records: int) -> int:
        """Write page views as fast as they go, lz4; returns how many of them the filter lets pass."""
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "linger.ms": 50,
                "batch.num.messages": 10_000,
                "compression.type": "lz4",
                "queue.buffering.max.messages": 500_000,
            }
        )
        for i in range(records):
            user = b"User_%d" % (i * 7919 % 10_000)
            value = page_view(1_700_000_000_000 + i, user.decode(), f"Page_{i % PAGES}", i)
            while True:
                try:
                    producer.produce(name, value, key=user)
                    break
                except BufferError:
                    producer.poll(0.1)
            if i % 1000 == 0:
                producer.poll(0)
        if producer.flush(120):
            raise BenchError(f"the broker did not take all records of {name}")
        return records - sum(1 for i in range(int(DROPPED_PAGE.removeprefix("Page_")), records, PAGES))


_NOT_YET = {
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_PARTITION,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError._TIMED_OUT,
    KafkaError._TRANSPORT,
    KafkaError.NOT_LEADER_FOR_PARTITION,
}


def page_view(viewtime: int, user: str, page: str, session: int) -> bytes:
    """A record of about 105 bytes, two of whose five fields no query here reads."""
    return (
        f'{{"viewtime":{viewtime},"userid":"{user}","pageid":"{page}",'
        f'"session":"s{session:010d}","status":200}}'
    ).encode()


class SteadyProducer:
    """Feeds a topic at a fixed rate whatever happens behind it (open loop).

    ``viewtime`` of each record is its *intended* send time in epoch milliseconds, so that a sender that was
    held up does not hide a delay; ``session`` counts the records.
    """

    def __init__(self, bootstrap: str, topic: str, rate: float) -> None:
        """Describe it.

        Args:
            bootstrap: ``host:port``.
            topic: must exist.
            rate: records per second.
        """
        settings = {"bootstrap.servers": bootstrap, "linger.ms": 0, "acks": "all"}
        self._producer = Producer(settings)
        self._topic, self._rate = topic, rate
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.sent = 0

    def __enter__(self) -> SteadyProducer:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End, and wait until the broker has everything."""
        self._end.set()
        self._thread.join(30)
        self._producer.flush(30)

    def _run(self) -> None:
        begin = time.time()
        while not self._end.is_set():
            intended = begin + self.sent / self._rate
            delay = intended - time.time()
            if delay > 0:
                time.sleep(delay)
            # Pages 10 to 99: every record passes the filter.
            value = page_view(
                int(intended * 1000), f"User_{self.sent % 100}", f"Page_{10 + self.sent % 90}", self.sent
            )
            with contextlib.suppress(BufferError):
                self._producer.produce(self._topic, value, key=b"User_%d" % (self.sent % 100))
            self._producer.poll(0)
            self.sent += 1

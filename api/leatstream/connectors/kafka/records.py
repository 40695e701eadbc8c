"""Reading a topic's records for people: no consumer group, only what is committed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from leatstream.connectors.entities import Record, RecordsFrom
from leatstream.connectors.kafka.admin import KafkaAdmin
from leatstream.errors import StoreError

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

_FIRST_FETCH = 5.0  # seconds
_STILL_THERE = 5.0


def records(
    admin: KafkaAdmin, topic: str, start: RecordsFrom, limit: int | None, idle_timeout: float | None
) -> Iterator[Record | None]:
    """Records of all partitions, or of one, as they come; None now and then while there are none.

    Silence counts towards ``idle_timeout`` once every partition was read to its end.

    Raises:
        StoreError: entity-not-found or store-auth-failed, also while reading.
    """
    consumer = _consumer(admin, topic, start)
    seen, checked = 0, time.monotonic()
    last = checked + _FIRST_FETCH
    unread = {p.partition for p in consumer.assignment()}
    try:
        while limit is None or seen < limit:
            message = consumer.poll(0.2)
            error = message.error() if message is not None else None
            if message is not None and error is None:
                last = time.monotonic()
                if start.offset is not None and (message.offset() or 0) < start.offset:
                    yield None
                    continue
                seen += 1
                yield record_of(message)
                last = time.monotonic()  # the caller's own time is not silence
                continue
            if message is not None and error is not None and is_end(admin, topic, error):
                unread.discard(message.partition() or 0)
                last = last if unread else min(last, time.monotonic())
                continue
            if idle_timeout is not None and time.monotonic() - last >= idle_timeout:
                return
            if time.monotonic() - checked >= _STILL_THERE:
                checked = time.monotonic()
                if admin.topic(topic, 5.0) is None:
                    raise _gone(admin, topic)
            yield None
    finally:
        consumer.close()


def record_at(admin: KafkaAdmin, topic: str, partition: int, offset: int, timeout: float) -> Record | None:
    """The committed record at an offset; None where there is none, or none that came in time."""
    from confluent_kafka import TopicPartition

    end = time.monotonic() + timeout
    consumer = open_reader(admin)
    try:
        consumer.assign([TopicPartition(topic, partition, offset)])
        while (left := end - time.monotonic()) > 0:
            message = consumer.poll(min(left, 0.5))
            if message is not None:
                found = message.error() is None and message.offset() == offset
                return record_of(message) if found else None
        return None
    finally:
        consumer.close()


def ends_of(admin: KafkaAdmin, topic: str, timeout: float) -> dict[int, int]:
    """The offset behind the last record of each partition."""
    found, consumer = admin.topic(topic, timeout), open_reader(admin)
    try:
        return {
            partition: end_of(consumer, topic, partition, timeout)
            for partition in sorted(found.partitions if found else ())
        }
    finally:
        consumer.close()


def open_reader(admin: KafkaAdmin) -> Consumer:
    """A consumer of what is committed, that has no partitions yet."""
    from confluent_kafka import Consumer

    return Consumer(
        admin.settings()
        | {
            "group.id": "leatstream-print",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "allow.auto.create.topics": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 100,
            # Of each reader, and any number may stand still: 64 MiB would be fetched ahead.
            "queued.max.messages.kbytes": 2048,
        }
    )


def _consumer(admin: KafkaAdmin, topic: str, start: RecordsFrom) -> Consumer:
    consumer, found = open_reader(admin), admin.topic(topic, 5.0)
    try:
        consumer.assign(places(consumer, topic, sorted(found.partitions) if found else [], start))
    except BaseException:
        consumer.close()
        raise
    return consumer


def places(
    consumer: Consumer, topic: str, partitions: Sequence[int], start: RecordsFrom
) -> list[TopicPartition]:
    """Where the reading of each partition begins.

    Args:
        consumer: asks the brokers.
        topic: that is read.
        partitions: all that it has.
        start: where a person wants to begin.

    Raises:
        StoreError: entity-not-found, the topic has no such partition.
    """
    from confluent_kafka import OFFSET_BEGINNING, TopicPartition

    wanted = [p for p in partitions if start.partition in (None, str(p))]
    if start.partition is not None and not wanted:
        hint = f"Its partitions are 0 to {len(partitions) - 1}." if partitions else None
        raise StoreError("entity-not-found", f"Topic {topic} has no partition {start.partition}.", hint=hint)
    if start.offset is not None:
        # An offset beyond the end would reset the consumer to the beginning.
        return [TopicPartition(topic, p, min(start.offset, end_of(consumer, topic, p))) for p in wanted]
    found = [TopicPartition(topic, p, OFFSET_BEGINNING) for p in wanted]
    if start.since is not None:
        asked = [TopicPartition(topic, p, start.since) for p in wanted]
        found = list(consumer.offsets_for_times(asked, timeout=5.0)) if asked else []
    for at in found:
        behind = start.after.get(str(at.partition))
        # Resolved now: by the first fetch more records may have come, which the end would skip.
        if behind is not None:
            at.offset = min(behind + 1, end_of(consumer, topic, at.partition))
        elif (start.since is None and not start.beginning) or (start.since is not None and at.offset < 0):
            at.offset = end_of(consumer, topic, at.partition)
    return found


def end_of(consumer: Consumer, topic: str, partition: int, timeout: float = 5.0) -> int:
    """The offset behind the last record of a partition.

    Args:
        consumer: reads committed records.
        topic: that is read.
        partition: of the topic.
        timeout: seconds.
    """
    from confluent_kafka import TopicPartition

    at = TopicPartition(topic, partition)
    return int(consumer.get_watermark_offsets(at, timeout=timeout, cached=False)[1])


def is_end(admin: KafkaAdmin, topic: str, error: KafkaError) -> bool:
    """Whether this is the note that a partition's end is reached; raises for what reading cannot get over.

    Args:
        admin: of the store.
        topic: that is read.
        error: of the consumer.
    """
    name = error.name()
    if name in ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_PARTITION", "_UNKNOWN_TOPIC"):
        raise _gone(admin, topic)
    if name.endswith("AUTHORIZATION_FAILED"):
        raise StoreError("store-auth-failed", f"Store {admin.store}: the user may not read topic {topic}.")
    return name == "_PARTITION_EOF"


def _gone(admin: KafkaAdmin, topic: str) -> StoreError:
    return StoreError("entity-not-found", f"Topic {topic} of store {admin.store} does not exist any more.")


def record_of(message: Message) -> Record:
    """A message as every kind of store gives records."""
    stamp_kind, stamp = message.timestamp()
    headers = tuple(
        (str(k), v if v is None or isinstance(v, bytes) else v.encode()) for k, v in _headers(message)
    )
    return Record(
        key=message.key(),
        value=message.value(),
        partition=message.partition() or 0,
        offset=message.offset() or 0,
        timestamp=stamp if stamp_kind else None,
        headers=headers,
    )


def _headers(message: Message) -> list[tuple[str, str | bytes | None]]:
    return [(k, v) for k, v in message.headers() or []]  # type: ignore[str-unpack]

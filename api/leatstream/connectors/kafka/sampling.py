"""The newest or the oldest records of a topic, for people: of all partitions, by the records' times."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from leatstream.connectors.entities import Record
from leatstream.connectors.kafka.admin import KafkaAdmin
from leatstream.connectors.kafka.records import is_end, open_reader, record_of
from leatstream.connectors.sampling import MOST_BYTES, Sampled, size_of
from leatstream.errors import StoreError

if TYPE_CHECKING:
    from confluent_kafka import Consumer

_WIDER = 8  # times, where the end of a partition holds too few: markers of transactions, compacted records
_Order = tuple[int, int, int]


def sample(admin: KafkaAdmin, topic: str, *, newest: bool, limit: int, timeout: float) -> Sampled:
    """Committed records, the oldest first.

    Args:
        admin: of the store.
        topic: its name.
        newest: whether the newest are wanted, else the oldest.
        limit: the most of them.
        timeout: seconds.

    Raises:
        StoreError: entity-not-found, store-auth-failed.
    """
    end = time.monotonic() + timeout
    found = admin.topic(topic, timeout)
    if found is None:
        raise StoreError("entity-not-found", f"Topic {topic} does not exist in store {admin.store}.")
    consumer = open_reader(admin)
    try:
        bounds = _bounds(admin, consumer, topic, sorted(found.partitions), end)
        span = limit
        while True:
            starts = {p: max(low, high - span) if newest else low for p, (low, high) in bounds.items()}
            ends = {p: high for p, (low, high) in bounds.items() if high > low}
            kept = _Kept(limit, newest)
            whole = _read(admin, consumer, topic, starts, ends, kept, end)
            all_read = all(starts[p] == low for p, (low, _) in bounds.items())
            if not newest or not whole or all_read or len(kept.heap) >= limit:
                return Sampled(kept.records(), whole and len(bounds) == len(found.partitions))
            span *= _WIDER
    finally:
        consumer.close()


@dataclass(slots=True)
class _Kept:
    """The newest, or the oldest, of the records that were seen."""

    limit: int
    newest: bool
    heap: list[tuple[_Order, Record]] = field(default_factory=list)

    def add(self, record: Record) -> None:
        """Keep a record, if it is one of those that are wanted."""
        place = (record.timestamp or 0, int(record.partition), int(record.offset))
        # The heap gives its smallest first: the oldest of the newest, or the newest of the oldest.
        sign = 1 if self.newest else -1
        heappush(self.heap, ((sign * place[0], sign * place[1], sign * place[2]), record))
        if len(self.heap) > self.limit:
            heappop(self.heap)

    def records(self) -> list[Record]:
        """Those that are kept, the oldest first."""
        ordered = [record for _, record in sorted(self.heap, key=lambda one: one[0])]
        return ordered if self.newest else ordered[::-1]


def _bounds(
    admin: KafkaAdmin, consumer: Consumer, topic: str, partitions: list[int], end: float
) -> dict[int, tuple[int, int]]:
    """The first offset and the one behind the last of each partition that answers in time."""
    from confluent_kafka import KafkaException, TopicPartition

    found: dict[int, tuple[int, int]] = {}
    for partition in partitions:
        left = end - time.monotonic()
        if left <= 0:
            break
        place = TopicPartition(topic, partition)
        try:
            found[partition] = consumer.get_watermark_offsets(place, timeout=left, cached=False)
        except KafkaException as error:
            raise admin.rejected(error, f"reading topic {topic}") from None
    return found


def _read(
    admin: KafkaAdmin,
    consumer: Consumer,
    topic: str,
    starts: Mapping[int, int],
    ends: Mapping[int, int],
    kept: _Kept,
    end: float,
) -> bool:
    """Read from the starts on, of each partition as many as can be wanted; whether the ends were reached."""
    from confluent_kafka import TopicPartition

    if not ends:
        return True
    consumer.assign([TopicPartition(topic, partition, starts[partition]) for partition in ends])
    counts, size, unread = dict.fromkeys(ends, 0), 0, set(ends)
    while unread:
        left = end - time.monotonic()
        if left <= 0 or size > MOST_BYTES:
            return False
        message = consumer.poll(min(left, 0.2))
        if message is None:
            continue
        partition, error = message.partition() or 0, message.error()
        if error is not None:
            if is_end(admin, topic, error):
                unread.discard(partition)
            continue
        if partition not in unread:
            continue
        record = record_of(message)
        size += size_of(record)
        counts[partition] += 1
        kept.add(record)
        # A producer at work moves the end: what came after the beginning of this is left out.
        reached = int(record.offset) >= ends[partition] - 1
        if reached or (not kept.newest and counts[partition] >= kept.limit):
            unread.discard(partition)
            consumer.pause([TopicPartition(topic, partition)])
    return True

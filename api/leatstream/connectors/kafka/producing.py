"""Writing a few records to a topic for a statement, with a bound on the wait."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from leatstream.connectors.entities import NewRecord
from leatstream.connectors.kafka.admin import KafkaAdmin
from leatstream.connectors.kafka.passing import passes
from leatstream.errors import StoreError

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

LARGEST = 32 * 1024 * 1024
"""Bytes of a record; what Java's client has for all records that wait to be sent."""
_SLICE = 0.1  # seconds between looks at what the callbacks have heard
# Of librdkafka itself: nobody has said no.
_NOT_ACKNOWLEDGED = ("_MSG_TIMED_OUT", "_TIMED_OUT", "_TRANSPORT", "_PURGE_QUEUE", "_PURGE_INFLIGHT")
_SETTINGS = {
    "enable.idempotence": True,
    "linger.ms": 0,
    "message.max.bytes": LARGEST,
    # As Java's producer does, so that equal keys of statements and of queries share a partition.
    "partitioner": "murmur2_random",
}


def produce(admin: KafkaAdmin, topic: str, records: Sequence[NewRecord], timeout: float) -> None:
    """Write the records and wait for the brokers' acknowledgement.

    Raises:
        StoreError: the first thing that went wrong, with the number of records that the topic has got.
    """
    from confluent_kafka import KafkaException, Producer

    written = 0
    failed: KafkaError | None = None

    def heard(error: KafkaError | None, _: Message) -> None:
        nonlocal written, failed
        written += error is None
        failed = failed or error

    producer = Producer(admin.settings() | _SETTINGS | {"delivery.timeout.ms": int(timeout * 1000)})
    begun = time.monotonic()
    end = begun + timeout
    try:
        for record in records:
            headers: list[tuple[str, str | bytes | None]] = list(record.headers)
            producer.produce(topic, record.value, record.key, headers=headers, on_delivery=heard)
            producer.poll(0)
        while producer.flush(_SLICE) and failed is None and time.monotonic() < end:
            admin.raise_if_final(begun)
    except KafkaException as error:
        failed = failed or error.args[0]
    finally:
        # What has not been sent is not to arrive after the caller was told that it failed.
        producer.purge()
        producer.flush(_SLICE)
    if written < len(records):
        raise _failure(admin, topic, failed, f"{written} of {len(records)} records were written", timeout)


def _failure(
    admin: KafkaAdmin, topic: str, error: KafkaError | None, written: str, timeout: float
) -> StoreError:
    name = error.name() if error is not None else "_MSG_TIMED_OUT"
    if name.endswith("AUTHORIZATION_FAILED"):
        detail = f"Store {admin.store}: the user may not write to topic {topic}; {written}."
        return StoreError("store-auth-failed", detail)
    if name in ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION"):
        detail = f"Topic {topic} of store {admin.store} does not exist any more; {written}."
        return StoreError("entity-not-found", detail)
    if error is None or passes(error) or name in _NOT_ACKNOWLEDGED:
        detail = f"Store {admin.store}: no Kafka broker acknowledged within {timeout:g} s; {written}."
        hint = "Some may have arrived without being acknowledged: look before writing them again."
        return StoreError("store-unreachable", f"{detail}.", hint=hint)
    return StoreError(
        "store-rejected", f"Store {admin.store}: topic {topic} refused a record: {error.str()}; {written}."
    )

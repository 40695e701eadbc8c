"""A query's progress as the offsets of a consumer group, so that Kafka's own lag tools show it.

The group is a copy for people: Spark's checkpoint alone decides where a query goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from leatstream.connectors.kafka.admin import KafkaAdmin

# A cluster that has never had a group, or has just lost a broker, is getting its coordinator ready.
_GETTING_READY = ("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS")
_AGAIN = 0.2  # seconds


def group_of(query: str) -> str:
    """The consumer group of a query."""
    return f"leatstream-{query}"


def write_offsets(
    admin: KafkaAdmin, query: str, topic: str, offsets: Mapping[str, int], timeout: float
) -> None:
    """Set the group's offsets of one topic; StoreError when the cluster refuses or does not answer."""
    from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition

    group = group_of(query)

    def write(left: float) -> None:
        places = [TopicPartition(topic, int(partition), offset) for partition, offset in offsets.items()]
        request = [ConsumerGroupTopicPartitions(group, places)]
        asked = admin.client.alter_consumer_group_offsets(request, request_timeout=left)
        result = admin.wait(asked, f"set the offsets of group {group}", left)
        for place in result.topic_partitions or ():
            if place.error is not None:
                raise KafkaException(place.error)

    _until_ready(admin, write, f"setting the offsets of group {group}", timeout)


def forget(admin: KafkaAdmin, query: str, timeout: float) -> None:
    """Delete the group; succeeds when it is not there."""
    group = group_of(query)

    def delete(left: float) -> None:
        asked = admin.client.delete_consumer_groups([group], request_timeout=left)
        admin.wait(asked, f"delete group {group}", left)

    _until_ready(admin, delete, f"deleting group {group}", timeout, done="GROUP_ID_NOT_FOUND")


def _until_ready(
    admin: KafkaAdmin, call: Callable[[float], None], what: str, timeout: float, done: str | None = None
) -> None:
    from confluent_kafka import KafkaException

    end = time.monotonic() + timeout
    while True:
        left = end - time.monotonic()
        try:
            call(max(0.1, left))
            return
        except KafkaException as error:
            name = error.args[0].name()
            if name == done:
                return
            if name not in _GETTING_READY or left < _AGAIN:
                raise admin.rejected(error, what) from None
        time.sleep(_AGAIN)

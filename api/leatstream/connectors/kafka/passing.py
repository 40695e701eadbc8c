"""Which faults that a cluster tells pass by themselves.

librdkafka marks faults of transactions alone as ``retriable``; of all others it gives the protocol's code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

# Kafka's protocol calls these retriable: https://kafka.apache.org/protocol#protocol_error_codes. Not topics
# that are not there, which are told as that, and not damaged records, which producers send again themselves.
_PASSING = frozenset(
    {
        "LEADER_NOT_AVAILABLE",
        "NOT_LEADER_FOR_PARTITION",
        "REQUEST_TIMED_OUT",
        "BROKER_NOT_AVAILABLE",
        "REPLICA_NOT_AVAILABLE",
        "NETWORK_EXCEPTION",
        "COORDINATOR_LOAD_IN_PROGRESS",
        "COORDINATOR_NOT_AVAILABLE",
        "NOT_COORDINATOR",
        "NOT_ENOUGH_REPLICAS",
        "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
        "NOT_CONTROLLER",
        "CONCURRENT_TRANSACTIONS",
        "KAFKA_STORAGE_ERROR",
        "FENCED_LEADER_EPOCH",
        "UNKNOWN_LEADER_EPOCH",
        "OFFSET_NOT_AVAILABLE",
        "UNSTABLE_OFFSET_COMMIT",
        "THROTTLING_QUOTA_EXCEEDED",
    }
)


def passes(error: KafkaError) -> bool:
    """Whether patience alone may cure it, as of brokers that start, stop or hand a partition over."""
    return bool(error.retriable()) or error.name() in _PASSING

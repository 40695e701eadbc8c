"""What is said of a topic: partitions, replicas, and its configuration in Kafka's words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field, StrictInt

from leatstream.connectors.capabilities import EntityProperty
from leatstream.connectors.entity_settings import Configs, EntitySettings, Property
from leatstream.connectors.settings import terraform

PROPERTIES = (
    EntityProperty(
        "topic.partitions",
        ("kafka.partitions", "kafka.topic.partitions"),
        description="Number of partitions.",
        grows_only=True,
    ),
    EntityProperty(
        "topic.replicas", ("kafka.replicas", "kafka.topic.replicas"), description="Replication factor."
    ),
)
_CONFIGS = """
cleanup.policy compression.gzip.level compression.lz4.level compression.type compression.zstd.level
delete.retention.ms file.delete.delay.ms flush.messages flush.ms follower.replication.throttled.replicas
index.interval.bytes leader.replication.throttled.replicas local.retention.bytes local.retention.ms
max.compaction.lag.ms max.message.bytes message.downconversion.enable message.format.version
message.timestamp.after.max.ms message.timestamp.before.max.ms message.timestamp.difference.max.ms
message.timestamp.type min.cleanable.dirty.ratio min.compaction.lag.ms min.insync.replicas preallocate
remote.log.copy.disable remote.log.delete.on.disable remote.storage.enable retention.bytes retention.ms
segment.bytes segment.index.bytes segment.jitter.ms segment.ms unclean.leader.election.enable
"""
CONFIGS = {f"kafka.topic.{name}": name for name in _CONFIGS.split()}


def config_word(key: str) -> tuple[str, str] | None:
    """A property that is a topic's setting: its one name, and Kafka's word; None for others."""
    prefix = next((p for p in ("kafka.topic.", "topic.") if key.startswith(p)), None)
    name = key[len(prefix) :] if prefix else ""
    known = f"kafka.topic.{name}" in CONFIGS or name.startswith("confluent.")
    return (f"kafka.topic.{name}", name) if known else None


_Configs = dict[Annotated[str, Field(min_length=1, max_length=255)], Annotated[str, Field(max_length=2000)]]


class KafkaEntity(EntitySettings):
    """Settings of a Kafka topic."""

    example: ClassVar[Mapping[str, Any]] = {
        "partitions": 3,
        "replicas": 1,
        "configs": {"retention.ms": "86400000"},
    }

    partitions: Annotated[
        Annotated[StrictInt, Field(ge=1, le=100_000)] | None, Property("topic.partitions")
    ] = Field(None, description="Number of partitions; required to create a topic.")
    replicas: Annotated[Annotated[StrictInt, Field(ge=1, le=1000)] | None, Property("topic.replicas")] = (
        Field(
            None,
            description="Replication factor; required to create a topic.",
            json_schema_extra=terraform(replace=True),
        )
    )
    configs: Annotated[Annotated[_Configs, Field(max_length=100)] | None, Configs()] = Field(
        None, description="Topic configuration, such as `retention.ms`."
    )

"""Kafka: topics of a cluster, asked with confluent-kafka, streamed with Spark's own connector."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from leatstream.connectors.base import MAX_OFFSETS, Connector
from leatstream.connectors.capabilities import Capabilities, EntityProperty, Guarantee
from leatstream.connectors.entities import Entity, NewRecord, Record, RecordsFrom
from leatstream.connectors.entity_settings import EntitySettings
from leatstream.connectors.kafka import entity as entities
from leatstream.connectors.kafka.admin import PARTITIONS, REPLICAS, KafkaAdmin, entity_of
from leatstream.connectors.kafka.groups import Groups
from leatstream.connectors.kafka.login import MSK_LIBRARY
from leatstream.connectors.kafka.producing import LARGEST, produce
from leatstream.connectors.kafka.records import ends_of, record_at, records
from leatstream.connectors.kafka.sampling import sample
from leatstream.connectors.kafka.settings import KafkaConfig, java_settings
from leatstream.connectors.kafka.traffic import KafkaTraffic
from leatstream.connectors.kafka.transactions import KafkaBatchWriter, forget_batches
from leatstream.connectors.kafka.words import KafkaWords
from leatstream.connectors.sampling import Sampled
from leatstream.connectors.settings import StoreSettings
from leatstream.connectors.store_words import NO_CHOICE, StoreWords
from leatstream.connectors.traffic import READER, Traffic
from leatstream.connectors.writers import BatchWriter
from leatstream.errors import JobError, StoreError
from leatstream.model.objects import ROWHEADERS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from leatstream.plan.job_spec import JobSpec, SinkSpec, SourceSpec

_LEGAL = re.compile(r"[A-Za-z0-9._-]{1,249}\Z")
INTERNAL = ("__", "_leat")

# Measured (reference/throughput.md §3): in micro-batches these save about a quarter of the CPU per record.
# fetch.min.bytes stays 1: a backlog fills the fetches anyway, and an idle topic's records must not wait.
_BULK_SOURCE = {"max.partition.fetch.bytes": "4194304", "max.poll.records": "5000"}
# How large a record may be is the topic's to say; the client's own bound of 1 MB would come before it.
_LARGE = {"max.request.size": str(LARGEST)}
_BULK_SINK = {"linger.ms": "20", "batch.size": "262144", **_LARGE}
_PROMPT_SINK = {"linger.ms": "0", **_LARGE}

# Of headers with one name the last counts, as for Kafka's own lastHeader.
_HEADERS = (
    "map_from_entries(filter(headers, (h, i) ->"
    " NOT exists(slice(headers, i + 2, size(headers)), later -> later.key = h.key)))"
)


def _records(frame: DataFrame, source: SourceSpec) -> DataFrame:
    from pyspark.sql import functions as F

    position = F.struct("topic", "partition", "offset", F.col("timestampType").alias("timestamp_type"))
    more = [F.expr(_HEADERS).alias(ROWHEADERS)] if source.fetches_headers else []
    return frame.select("key", "value", "timestamp", position.alias("__leat_rowmeta"), *more)


class KafkaConnector(Connector):
    """One Kafka cluster."""

    kind: ClassVar[str] = "kafka"
    entity_noun: ClassVar[str] = "topic"
    sinks_watched: ClassVar[bool] = True
    capabilities: ClassVar[Capabilities] = Capabilities(
        verified_on="a real Apache Kafka broker",
        unverified="Amazon MSK with IAM, Confluent Cloud",
        source=True,
        sink=True,
        create_as=True,
        create_entity=True,
        print_records=True,
        insert_values=True,
        realtime=True,
        headers=True,
        batches=True,
        positions=True,
        bounded_runs=True,
        batch_bounds=True,
        hand_over=True,
        error_log=True,
        delivery=(
            Guarantee(
                "at_least_once",
                "records repeat after a fault; in real-time mode after a stop too, up to 60 s of them",
            ),
            Guarantee(
                "exactly_once",
                "where `delivery.guarantee` asks for it: for readers of committed records (`read_committed`)",
            ),
        ),
    )
    value_formats: ClassVar[tuple[str, ...]] = ("json", "avro", "protobuf", "json_schema", "primitive")
    streams: ClassVar[bool] = True
    entity_properties: ClassVar[tuple[EntityProperty, ...]] = entities.PROPERTIES
    EntityConfig: ClassVar[type[EntitySettings] | None] = entities.KafkaEntity
    entity_configs: ClassVar[Mapping[str, str]] = entities.CONFIGS
    Config: ClassVar[type[StoreSettings]] = KafkaConfig
    words: ClassVar[StoreWords] = KafkaWords(
        types=("kafka", "confluent_kafka", "msk", "redpanda"),
        title="a Kafka store",
        more=("tls.disabled",),
        unsupported=NO_CHOICE,
    )

    def __init__(self, name: str, config: StoreSettings) -> None:
        super().__init__(name, config)
        if not isinstance(config, KafkaConfig):
            raise TypeError("a Kafka store takes a KafkaConfig")
        self.settings = config
        self.admin = KafkaAdmin(name, config)
        self._groups = Groups(self.admin)

    @classmethod
    def config_word(cls, key: str) -> tuple[str, str] | None:
        """Topic settings, also ``topic.…`` and those of Confluent."""
        return entities.config_word(key)

    @classmethod
    def entity_name_fault(cls, name: str) -> str | None:
        """Why Kafka cannot have a topic of this name, or None; the rule is the broker's own."""
        if name in (".", "..") or not _LEGAL.match(name):
            return "a topic's name has 1 to 249 of the characters a-z, A-Z, 0-9, '.', '_' and '-'"
        return None

    # -- admin half ------------------------------------------------------------------------------------------

    def test(self, timeout: float) -> None:
        """Reach a broker and log in."""
        self.admin.metadata(timeout)

    def list_entities(self, timeout: float = 5.0) -> list[Entity]:
        """Every visible topic; internal ones (``__…``, ``_leat…``) are left out. Without configs."""
        topics = self.admin.metadata(timeout).topics
        shown = [t for name, t in topics.items() if not name.startswith(INTERNAL) and t.error is None]
        return sorted((entity_of(t) for t in shown), key=lambda entity: entity.name)

    def find_entity(self, entity: str, timeout: float = 5.0) -> Entity | None:
        """The topic with partitions, replicas and its own configs."""
        topic = self.admin.topic(entity, timeout) if _LEGAL.match(entity) else None
        return entity_of(topic, self.admin.configs(entity, timeout)) if topic else None

    def incarnation(self, entity: str, timeout: float = 5.0) -> str | None:
        """The topic's id, which a topic of the same name made later does not have."""
        return self.admin.topic_id(entity, timeout)

    def create_entity(
        self, entity: str, properties: Mapping[str, int], configs: Mapping[str, str], timeout: float = 10.0
    ) -> None:
        """Create the topic and wait until the cluster shows all its partitions."""
        from confluent_kafka import KafkaException
        from confluent_kafka.cimpl import NewTopic

        self._check_name(entity)
        partitions, replicas = properties[PARTITIONS], properties[REPLICAS]
        topic = NewTopic(entity, partitions, replication_factor=replicas, config=dict(configs))
        asked = self.admin.client.create_topics([topic], request_timeout=timeout)
        try:
            self.admin.wait(asked, f"create topic {entity}", timeout)
        except KafkaException as error:
            if error.args[0].name() != "TOPIC_ALREADY_EXISTS":
                raise self.admin.rejected(error, f"creating topic {entity}") from None
            self._check_same(entity, properties, timeout)
        self.admin.until(
            lambda: self._ready_partitions(entity, timeout) >= partitions, f"topic {entity}", timeout
        )

    def update_entity(
        self, entity: str, properties: Mapping[str, int], configs: Mapping[str, str], timeout: float = 10.0
    ) -> None:
        """Set the topic's configs (those not given go back to the default) and raise its partition count."""
        present = self.find_entity(entity, timeout)
        if present is None:
            raise StoreError("entity-not-found", f"Topic {entity} does not exist in store {self.name}.")
        replicas = properties.get(REPLICAS)
        if replicas is not None and replicas != present.properties[REPLICAS]:
            raise StoreError(
                "store-rejected",
                f"Topic {entity} has {present.properties[REPLICAS]} replicas; they cannot change in place.",
                hint="Drop the topic and create it again, or move its replicas with the cluster's own tools.",
            )
        if dict(configs) != dict(present.configs):
            self._set_configs(entity, present.configs, configs, timeout)
        self._add_partitions(entity, present.properties[PARTITIONS] or 0, properties.get(PARTITIONS), timeout)

    def drop_entity(self, entity: str, timeout: float = 10.0) -> None:
        """Delete the topic and wait until the cluster no longer shows it."""
        from confluent_kafka import KafkaException

        asked = self.admin.client.delete_topics([entity], request_timeout=timeout)
        try:
            self.admin.wait(asked, f"delete topic {entity}", timeout)
        except KafkaException as error:
            if error.args[0].name() != "UNKNOWN_TOPIC_OR_PART":
                raise self.admin.rejected(error, f"deleting topic {entity}") from None
        self.admin.until(
            lambda: self.admin.topic(entity, timeout) is None, f"topic {entity} as deleted", timeout
        )

    def property_limits(self, timeout: float = 5.0) -> Mapping[str, int]:
        """No more replicas than brokers."""
        return {REPLICAS: self.admin.brokers(timeout)}

    def read_records(
        self, entity: str, *, from_beginning: bool, limit: int | None, idle_timeout: float | None
    ) -> Iterator[Record | None]:
        """Committed records of all partitions, without joining a consumer group.

        Args:
            entity: the topic.
            from_beginning: read what exists; False reads only new records.
            limit: end after so many records; None = no limit.
            idle_timeout: end after so many seconds without a record; None = never.
        """
        start = RecordsFrom(beginning=from_beginning)
        return self.read_part(entity, start, limit=limit, idle_timeout=idle_timeout)

    def read_part(
        self, entity: str, start: RecordsFrom, *, limit: int | None, idle_timeout: float | None
    ) -> Iterator[Record | None]:
        """Committed records from a place on: each partition begins there.

        Args:
            entity: the topic.
            start: where the reading begins.
            limit: end after so many records; None = no limit.
            idle_timeout: end after so many seconds without a record; None = never.
        """
        if self.admin.topic(entity, 5.0) is None:
            raise StoreError("entity-not-found", f"Topic {entity} does not exist in store {self.name}.")
        return records(self.admin, entity, start, limit, idle_timeout)

    def sample_records(self, source: SourceSpec, *, newest: bool, limit: int, timeout: float) -> Sampled:
        """Committed records from the ends of the partitions, or from their beginnings.

        Args:
            source: what is read.
            newest: whether the newest records are wanted, else the oldest.
            limit: the most records.
            timeout: seconds.
        """
        return sample(self.admin, source.entity, newest=newest, limit=limit, timeout=timeout)

    def find_record(self, entity: str, partition: str, offset: str, timeout: float) -> Record | None:
        """The committed record at an offset.

        Args:
            entity: the topic.
            partition: its number.
            offset: of the record.
            timeout: seconds.
        """
        return record_at(self.admin, entity, int(partition), int(offset), timeout)

    def write_records(self, entity: str, records: Sequence[NewRecord], timeout: float = 10.0) -> None:
        """Produce them idempotently, partitioned by key as the jobs do."""
        if self.admin.topic(entity, 5.0) is None:
            raise StoreError("entity-not-found", f"Topic {entity} does not exist in store {self.name}.")
        produce(self.admin, entity, records, timeout)

    def mirror_offsets(self, query: str, entity: str, offsets: Mapping[str, int], timeout: float) -> None:
        """Set them in the consumer group ``leatstream-<query>``, which has no members."""
        self._groups.write_offsets(query, entity, offsets, timeout)

    def forget_batches(self, query_id: str, timeout: float) -> None:
        """Delete the query's batch topic."""
        forget_batches(self.admin, query_id, timeout)

    def forget_offsets(self, query: str, timeout: float) -> None:
        """Delete the query's consumer group."""
        self._groups.forget(query, timeout)

    def _check_name(self, entity: str) -> None:
        fault = self.entity_name_fault(entity)
        if fault is not None:
            raise StoreError("store-rejected", f"{entity!r} cannot be the name of a Kafka topic: {fault}.")

    def _check_same(self, entity: str, properties: Mapping[str, int], timeout: float) -> None:
        topic = self.admin.topic(entity, timeout)
        live = entity_of(topic).properties if topic else {}
        differs = [f"{k} {live.get(k)}, not {v}" for k, v in properties.items() if live.get(k) != v]
        if differs:
            raise StoreError(
                "entity-conflict", f"Topic {entity} exists in store {self.name} with {' and '.join(differs)}."
            )

    def _ready_partitions(self, entity: str, timeout: float) -> int:
        topic = self.admin.topic(entity, timeout)
        return sum(p.leader >= 0 for p in topic.partitions.values()) if topic else 0

    def _set_configs(
        self, entity: str, old: Mapping[str, str], new: Mapping[str, str], timeout: float
    ) -> None:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource

        changes = [
            ConfigEntry(k, v, incremental_operation=AlterConfigOpType.SET)
            for k, v in new.items()
            if old.get(k) != v
        ]
        changes += [
            ConfigEntry(k, None, incremental_operation=AlterConfigOpType.DELETE) for k in old if k not in new
        ]
        resource = ConfigResource(ConfigResource.Type.TOPIC, entity, incremental_configs=changes)
        asked = self.admin.client.incremental_alter_configs([resource], request_timeout=timeout)
        try:
            self.admin.wait(asked, f"change the settings of topic {entity}", timeout)
        except KafkaException as error:
            raise self.admin.rejected(error, f"changing the settings of topic {entity}") from None

    def _add_partitions(self, entity: str, present: int, wanted: int | None, timeout: float) -> None:
        from confluent_kafka import KafkaException
        from confluent_kafka.cimpl import NewPartitions

        if wanted is None or wanted == present:
            return
        if wanted < present:
            raise StoreError(
                "store-rejected",
                f"Topic {entity} has {present} partitions; Kafka cannot take partitions away.",
                hint="Drop the topic and create it again.",
            )
        asked = self.admin.client.create_partitions([NewPartitions(entity, wanted)], request_timeout=timeout)
        try:
            self.admin.wait(asked, f"add partitions to topic {entity}", timeout)
        except KafkaException as error:
            raise self.admin.rejected(error, f"adding partitions to topic {entity}") from None
        self.admin.until(
            lambda: self._ready_partitions(entity, timeout) >= wanted, f"{wanted} partitions", timeout
        )

    # -- Spark half ------------------------------------------------------------------------------------------

    def read_stream(self, spark: SparkSession, source: SourceSpec, *, realtime: bool) -> DataFrame:
        """Raw records of the topic, with topic, partition, offset and timestamp_type as position."""
        self._check_library(spark)
        options = self.source_options(source, realtime)
        options["groupIdPrefix"] = spark.conf.get(READER, "leatstream") or "leatstream"
        if not realtime:
            options["maxOffsetsPerTrigger"] = spark.conf.get(MAX_OFFSETS, "500000") or "500000"
        return _records(spark.readStream.format("kafka").options(**options).load(), source)

    def ends(self, entity: str, timeout: float) -> Mapping[int, int]:
        """The offset behind the last record of each partition."""
        return ends_of(self.admin, entity, timeout)

    def read_range(
        self, spark: SparkSession, source: SourceSpec, parts: Sequence[tuple[int, int, int]]
    ) -> DataFrame:
        """Records of the topic, as ``read_stream`` gives them, between offsets."""
        options = self.source_options(source, realtime=False)
        del options["subscribe"]
        options["assign"] = json.dumps({source.entity: [partition for partition, _, _ in parts]})
        options["startingOffsets"] = json.dumps({source.entity: {str(p): first for p, first, _ in parts}})
        options["endingOffsets"] = json.dumps({source.entity: {str(p): end for p, _, end in parts}})
        for name in ("startingTimestamp", "startingOffsetsByTimestampStrategy"):
            options.pop(name, None)
        return _records(spark.read.format("kafka").options(**options).load(), source)

    def write_stream(self, frame: DataFrame, sink: SinkSpec, *, realtime: bool) -> DataStreamWriter:
        """A writer to the topic, or to that of the frame's column ``topic``; at least once."""
        self._check_library(frame.sparkSession)
        options = self.sink_options(sink, realtime)
        if "topic" in frame.columns:
            # Each record says where it goes.
            del options["topic"]
        return frame.writeStream.format("kafka").options(**options)

    @classmethod
    def traffic(cls, spark: SparkSession) -> Traffic | None:
        """What Spark's clients count, unless they run in executors."""
        context: Any = spark.sparkContext
        return KafkaTraffic(spark) if context._jsc.sc().isLocal() else None

    def write_batch(self, frame: DataFrame, sink: SinkSpec) -> None:
        """Write to the topic, or to that of the frame's column ``topic``, and wait for it; at least once."""
        self._check_library(frame.sparkSession)
        options = self.sink_options(sink, realtime=False)
        if "topic" in frame.columns:
            del options["topic"]
        frame.write.format("kafka").options(**options).save()

    def batch_writer(self, spec: JobSpec) -> BatchWriter:
        """A writer of whole micro-batches in Kafka transactions; see ``kafka.transactions``."""
        return KafkaBatchWriter(self.name, self.settings, spec, self.admin)

    def _check_library(self, spark: SparkSession) -> None:
        """Raise JobError where the login needs a library that the driver was not started with."""
        if self.settings.sasl is None or self.settings.sasl.aws is None:
            return
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]

        jvm: Any = spark._jvm
        try:
            getattr(jvm, "java.lang.Class").forName(
                MSK_LIBRARY, False, getattr(jvm, "org.apache.spark.util.Utils").getContextOrSparkClassLoader()
            )
        except Py4JError:
            raise JobError(
                "job-rejected",
                f"Store {self.name} logs in with AWS_MSK_IAM, and this server's drivers do not have Amazon's "
                "library for it: start the server with LEATSTREAM_MSK_IAM=true.",
            ) from None

    def source_options(self, source: SourceSpec, realtime: bool) -> dict[str, str]:
        """Options of Spark's Kafka source. Holds the password: never log it."""
        options = {f"kafka.{k}": v for k, v in java_settings(self.settings).items()}
        options |= {
            "subscribe": source.entity,
            "failOnDataLoss": "true",
            "includeHeaders": "true" if source.fetches_headers else "false",
            # What a producer took back is no record.
            "kafka.isolation.level": "read_committed",
        }
        if source.starting_position == "timestamp":
            options["startingTimestamp"] = str(source.starting_timestamp_ms)
            options["startingOffsetsByTimestampStrategy"] = "latest"
        elif source.starting_position == "offsets":
            options["startingOffsets"] = self._first_offsets(source)
        else:
            options["startingOffsets"] = source.starting_position
        return options if realtime else options | {f"kafka.{k}": v for k, v in _BULK_SOURCE.items()}

    def _first_offsets(self, source: SourceSpec) -> str:
        """Every partition with its first offset; -2 is Kafka's word for the beginning."""
        entity = self.find_entity(source.entity)
        count = (entity.properties.get(PARTITIONS) if entity is not None else None) or 0
        wanted = {str(n): -2 for n in range(count)} | source.starting_offsets
        return json.dumps({source.entity: wanted})

    def sink_options(self, sink: SinkSpec, realtime: bool) -> dict[str, str]:
        """Options of Spark's Kafka sink. Holds the password: never log it."""
        client = java_settings(self.settings) | (_PROMPT_SINK if realtime else _BULK_SINK)
        return {f"kafka.{k}": v for k, v in client.items()} | {"topic": sink.entity}

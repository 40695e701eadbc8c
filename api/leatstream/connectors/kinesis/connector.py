"""Kinesis: data streams of one AWS region, asked and streamed with boto3."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from tempfile import gettempdir
from typing import TYPE_CHECKING, ClassVar

from leatstream.connectors.aws.words import ACCESS_REGION, UNSUPPORTED
from leatstream.connectors.base import MAX_OFFSETS, Connector
from leatstream.connectors.capabilities import Capabilities, EntityProperty, Guarantee
from leatstream.connectors.entities import Entity, NewRecord, Record, RecordsFrom
from leatstream.connectors.entity_settings import EntitySettings
from leatstream.connectors.kinesis import entity as entities
from leatstream.connectors.kinesis.admin import (
    DEFAULT_RETENTION,
    MODE,
    ON_DEMAND,
    PROVISIONED,
    RETENTION,
    SHARDS,
    KinesisAdmin,
    entity_of,
)
from leatstream.connectors.kinesis.put import put, requests
from leatstream.connectors.kinesis.records import record_at, records
from leatstream.connectors.kinesis.sampling import newest_of
from leatstream.connectors.kinesis.settings import KinesisConfig
from leatstream.connectors.kinesis.shards import creation
from leatstream.connectors.kinesis.words import KinesisWords
from leatstream.connectors.sampling import Sampled
from leatstream.connectors.settings import StoreSettings
from leatstream.connectors.store_words import StoreWords
from leatstream.errors import Faults, StoreError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from leatstream.connectors.writers import Written
    from leatstream.plan.job_spec import SinkSpec, SourceSpec

_LEGAL = re.compile(r"[A-Za-z0-9_.-]{1,128}\Z")
_HOURS = range(24, 8761)
_ASKING = 5.0  # seconds, for whether a stream is there


class KinesisConnector(Connector):
    """Kinesis Data Streams in one region."""

    kind: ClassVar[str] = "kinesis"
    entity_noun: ClassVar[str] = "stream"
    capabilities: ClassVar[Capabilities] = Capabilities(
        verified_on="moto, with boto3 as in production",
        unverified="Amazon Kinesis itself",
        source=True,
        sink=True,
        create_as=True,
        create_entity=True,
        print_records=True,
        insert_values=True,
        batches=True,
        delivery=(Guarantee("at_least_once", "records repeat after a fault or a request taken in part"),),
    )
    value_formats: ClassVar[tuple[str, ...]] = ("json", "avro", "protobuf", "json_schema")
    # A partition key is a digest of what cannot be one, and by chance where there is no key.
    exact_keys: ClassVar[bool] = False
    place_members: ClassVar[Mapping[str, str]] = {"shard": "STRING", "sequence_number": "STRING"}
    entity_properties: ClassVar[tuple[EntityProperty, ...]] = entities.PROPERTIES
    EntityConfig: ClassVar[type[EntitySettings] | None] = entities.KinesisEntity
    entity_configs: ClassVar[Mapping[str, str]] = entities.CONFIGS
    Config: ClassVar[type[StoreSettings]] = KinesisConfig
    words: ClassVar[StoreWords] = KinesisWords(
        types=("kinesis",),
        title="a Kinesis store",
        more=(ACCESS_REGION,),
        unsupported={
            **UNSUPPORTED,
            "kinesis.account.id": "the credentials or the role tell the account",
        },
    )

    def __init__(self, name: str, config: StoreSettings) -> None:
        super().__init__(name, config)
        if not isinstance(config, KinesisConfig):
            raise TypeError("a Kinesis store takes a KinesisConfig")
        self.settings = config
        self.admin = KinesisAdmin(name, config)

    @classmethod
    def entity_name_fault(cls, name: str) -> str | None:
        """Why Kinesis cannot have a stream of this name, or None; the rule is AWS's own."""
        if not _LEGAL.match(name):
            return "a stream's name has 1 to 128 of the characters a-z, A-Z, 0-9, '.', '_' and '-'"
        return None

    @classmethod
    def needed_properties(cls, configs: Mapping[str, str]) -> tuple[EntityProperty, ...]:
        """Shards, unless AWS shall see to them; RequestError for settings that streams do not have."""
        _check_configs(configs)
        return () if configs.get(MODE, "").upper() == ON_DEMAND else cls.entity_properties

    # -- admin half ------------------------------------------------------------------------------------------

    def test(self, timeout: float) -> None:
        """Reach Kinesis and list a stream."""
        self.admin.names(timeout, limit=1)

    def list_entities(self, timeout: float = 5.0) -> list[Entity]:
        """Every stream of the region, with live shards as far as AWS answers in time."""
        return self.admin.entities(timeout)

    def find_entity(self, entity: str, timeout: float = 5.0) -> Entity | None:
        """The stream with its open shards (None on demand) and what differs from AWS's defaults."""
        found = self.admin.summary(entity, timeout) if _LEGAL.match(entity) else None
        return entity_of(found) if found else None

    def incarnation(self, entity: str, timeout: float = 5.0) -> str | None:
        """When the stream was made."""
        found = self.admin.summary(entity, timeout) if _LEGAL.match(entity) else None
        return creation(found) if found else None

    def create_entity(
        self, entity: str, properties: Mapping[str, int], configs: Mapping[str, str], timeout: float = 10.0
    ) -> None:
        """Create the stream and wait until it can be used."""
        fault = self.entity_name_fault(entity)
        if fault is not None:
            raise StoreError("store-rejected", f"{entity!r} cannot be the name of a Kinesis stream: {fault}.")
        wanted = _check_configs(configs)
        shards = None if wanted[MODE] == ON_DEMAND else properties[SHARDS]
        if not self.admin.create(entity, shards, timeout):
            self._check_same(entity, shards, timeout)
            return
        self.admin.retain(entity, DEFAULT_RETENTION, int(wanted[RETENTION]), timeout)

    def update_entity(
        self, entity: str, properties: Mapping[str, int], configs: Mapping[str, str], timeout: float = 10.0
    ) -> None:
        """Set mode and retention (what is not given goes back to AWS's default) and the number of shards."""
        summary = self.admin.summary(entity, timeout)
        if summary is None:
            raise StoreError("entity-not-found", f"Stream {entity} does not exist in store {self.name}.")
        old, wanted = entity_of(summary), _check_configs(configs)
        shards, present = properties.get(SHARDS), int(summary["OpenShardCount"])
        fewest, most = -(-present // 2), present * 2
        if wanted[MODE] == PROVISIONED and shards is not None and not fewest <= shards <= most:
            raise StoreError(
                "store-rejected",
                f"Stream {entity} has {present} shards; AWS changes them to {fewest} to {most} at once.",
                hint=f"Go to {most if shards > most else fewest} first.",
            )
        self.admin.retain(entity, int(summary["RetentionPeriodHours"]), int(wanted[RETENTION]), timeout)
        if wanted[MODE] != old.configs.get(MODE, PROVISIONED):
            self.admin.switch_mode(entity, summary["StreamARN"], wanted[MODE], timeout)
        if wanted[MODE] == PROVISIONED and shards is not None and shards != present:
            self.admin.reshard(entity, shards, timeout)

    def drop_entity(self, entity: str, timeout: float = 10.0) -> None:
        """Delete the stream and wait until AWS does not show it any more."""
        if _LEGAL.match(entity):
            self.admin.delete(entity, timeout)

    def property_limits(self, timeout: float = 5.0) -> Mapping[str, int]:
        """None known: AWS's shard quota is the account's and says so itself."""
        return {}

    def read_records(
        self, entity: str, *, from_beginning: bool, limit: int | None, idle_timeout: float | None
    ) -> Iterator[Record | None]:
        """Records of all shards."""
        start = RecordsFrom(beginning=from_beginning)
        return self.read_part(entity, start, limit=limit, idle_timeout=idle_timeout)

    def read_part(
        self, entity: str, start: RecordsFrom, *, limit: int | None, idle_timeout: float | None
    ) -> Iterator[Record | None]:
        """Records from a place on: each shard begins there."""
        if self.find_entity(entity) is None:
            raise StoreError("entity-not-found", f"Stream {entity} does not exist in store {self.name}.")
        return records(self.admin, entity, start, limit, idle_timeout)

    def sample_records(self, source: SourceSpec, *, newest: bool, limit: int, timeout: float) -> Sampled:
        """The oldest records, or the newest ones without reading those before.

        Args:
            source: what is read.
            newest: whether the newest records are wanted, else the oldest.
            limit: the most records.
            timeout: seconds.
        """
        if not newest:
            return super().sample_records(source, newest=False, limit=limit, timeout=timeout)
        return newest_of(self.admin, source.entity, limit, timeout)

    def find_record(self, entity: str, partition: str, offset: str, timeout: float) -> Record | None:
        """The record of a shard with a sequence number."""
        return record_at(self.admin, entity, partition, offset, timeout)

    def write_records(self, entity: str, records: Sequence[NewRecord], timeout: float = 10.0) -> None:
        """Write them as the jobs do: by key, each until it is taken; one without a value is empty."""
        if not _LEGAL.match(entity) or self.admin.summary(entity, min(timeout, _ASKING)) is None:
            raise StoreError("entity-not-found", f"Stream {entity} does not exist in store {self.name}.")
        wanted = ((record.key, record.value or b"") for record in records)
        what, taken = f"writing to stream {entity}", 0
        try:
            for entries in requests(wanted):
                self.admin.call(what, timeout, lambda c: put(c, entity, entries, patience=timeout))  # noqa: B023
                taken += len(entries)
        except StoreError as error:
            detail = f"{error.detail.rstrip('.')}; at least {taken} of {len(records)} records were written."
            raise StoreError(error.code, detail, hint=error.faults[0].hint) from None

    def _check_same(self, entity: str, shards: int | None, timeout: float) -> None:
        found = self.find_entity(entity, timeout)
        present = found.properties[SHARDS] if found else None
        if present != shards:
            has, wanted = _count(present), _count(shards)
            raise StoreError(
                "entity-conflict", f"Stream {entity} exists in store {self.name} with {has}, not {wanted}."
            )

    # -- Spark half ------------------------------------------------------------------------------------------

    def read_stream(self, spark: SparkSession, source: SourceSpec, *, realtime: bool) -> DataFrame:
        """Raw records of the stream: the partition key is the key; stream, shard and number the position."""
        from pyspark.sql import functions as F

        from leatstream.connectors.kinesis.source import DDL, KinesisReader, SourcePlan
        from leatstream.connectors.scan_source import read_scan

        plan = SourcePlan(
            store=self.name,
            config=self.settings,
            stream=source.entity,
            starting_position=source.starting_position,
            starting_ms=source.starting_timestamp_ms,
            most=int(spark.conf.get(MAX_OFFSETS, "500000") or "500000"),
            directory=str(spark.conf.get("spark.local.dir", gettempdir())).split(",")[0],
        )
        frame = read_scan(spark, f"leatstream_kinesis_{source.view}", DDL, KinesisReader, plan)
        # rowmeta() has the same members for every kind of store; a shard's number stands for the partition.
        number = F.regexp_extract("shard", r"(\d+)$", 1).try_cast("int").alias("partition")
        topic, offset = F.lit(source.entity).alias("topic"), F.lit(None).cast("bigint").alias("offset")
        position = F.struct(
            topic, number, offset, F.lit(1).alias("timestamp_type"), "shard", "sequence_number"
        )
        # Kinesis has no tombstones; an empty record is what changelogs are written with.
        value = F.when(F.length("value") > 0, F.col("value")) if source.primary_key else F.col("value")
        return frame.select("key", value.alias("value"), "timestamp", position.alias("__leat_rowmeta"))

    def write_batch(self, frame: DataFrame, sink: SinkSpec) -> Written:
        """Write a batch; at least once."""
        from leatstream.connectors.kinesis.sink import SinkPlan, write_batch

        return write_batch(frame, SinkPlan(self.name, self.settings, sink.entity))


def _check_configs(configs: Mapping[str, str]) -> dict[str, str]:
    """Mode and retention, filled in; RequestError with every fault."""
    faults = Faults()
    mode = configs.get(MODE, PROVISIONED).upper()
    if mode not in (PROVISIONED, ON_DEMAND):
        faults.add("invalid-property", f"{MODE} is {PROVISIONED} or {ON_DEMAND}.")
    hours = configs.get(RETENTION, str(DEFAULT_RETENTION))
    if not (hours.isascii() and hours.isdecimal() and len(hours) < 6 and int(hours) in _HOURS):
        faults.add("invalid-property", f"{RETENTION} must be a whole number of hours from 24 to 8760.")
    for name in sorted(set(configs) - {MODE, RETENTION}):
        faults.add(
            "invalid-property",
            f"{name} is no setting of a Kinesis stream.",
            hint=f"Available: {MODE} and {RETENTION}.",
        )
    faults.raise_if_any()
    return {MODE: mode, RETENTION: hours}


def _count(shards: int | None) -> str:
    return "shards on demand" if shards is None else f"{shards} shards"

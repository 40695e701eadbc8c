"""S3: prefixes of a bucket as entities, their files read and written with boto3 and pyarrow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from leatstream.connectors.aws.words import ACCESS_REGION, UNSUPPORTED
from leatstream.connectors.base import MAX_OFFSETS, Connector
from leatstream.connectors.capabilities import Capabilities, EntityProperty, Guarantee
from leatstream.connectors.entities import Entity, OptionFault, Record, RecordsFrom
from leatstream.connectors.s3 import options as s3_options
from leatstream.connectors.s3.admin import LEGAL, S3Admin
from leatstream.connectors.s3.layout import Layout
from leatstream.connectors.s3.records import record_at, records, sample
from leatstream.connectors.s3.settings import S3Config
from leatstream.connectors.s3.words import S3Words
from leatstream.connectors.sampling import Sampled
from leatstream.connectors.settings import StoreSettings
from leatstream.connectors.store_words import StoreWords
from leatstream.connectors.writers import BatchTarget, Written
from leatstream.errors import Faults, JobError, StoreError
from leatstream.model.objects import Column
from leatstream.model.types import parse_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from leatstream.plan.job_spec import SinkSpec, SourceSpec

_ROW_BYTES = 512  # what a row is taken to be, where rows bound a batch


class S3Connector(Connector):
    """A bucket, or what lies below a prefix of it; its directories are the entities."""

    kind: ClassVar[str] = "s3"
    entity_noun: ClassVar[str] = "directory"
    gives_reasons: ClassVar[bool] = True
    capabilities: ClassVar[Capabilities] = Capabilities(
        verified_on="moto, with boto3 and PyArrow as in production",
        unverified="Amazon S3 itself",
        source=True,
        sink=True,
        create_as=True,
        create_entity=True,
        print_records=True,
        batches=True,
        delivery=(Guarantee("exactly_once", "the files of a batch appear one by one, each once and whole"),),
    )
    property_families: ClassVar[tuple[str, ...]] = ("s3.",)
    option_names: ClassVar[tuple[str, ...]] = s3_options.NAMES
    Config: ClassVar[type[StoreSettings]] = S3Config
    words: ClassVar[StoreWords] = S3Words(
        types=("s3",), title="an S3 store", more=("uris", ACCESS_REGION), unsupported=UNSUPPORTED
    )
    value_formats: ClassVar[tuple[str, ...]] = s3_options.VALUE_FORMATS
    keyed: ClassVar[bool] = False
    takes_rows: ClassVar[bool] = True
    holds_schemas: ClassVar[bool] = True
    place_members: ClassVar[Mapping[str, str]] = {"file": "STRING"}

    def __init__(self, name: str, config: StoreSettings) -> None:
        super().__init__(name, config)
        if not isinstance(config, S3Config):
            raise TypeError("an S3 store takes an S3Config")
        self.settings = config
        self.admin = S3Admin(name, config)

    @classmethod
    def entity_name_fault(cls, name: str) -> str | None:
        """Why there cannot be a directory of this name, or None."""
        if LEGAL.match(name):
            return None
        said = "a directory's name has 1 to 128 of the characters a-z, A-Z, 0-9, '.', '_', '=' and '-'"
        return f"{said}, the first a letter or digit; what lies deeper is for a store with a longer prefix"

    @classmethod
    def needed_properties(cls, configs: Mapping[str, str]) -> tuple[EntityProperty, ...]:
        """None; RequestError for settings, which directories do not have."""
        _refuse_configs(configs)
        return ()

    @classmethod
    def relation_options(
        cls, given: Mapping[str, Any], columns: Sequence[str], value_format: str
    ) -> tuple[dict[str, str], list[OptionFault]]:
        """The properties ``s3.…`` of a relation."""
        mine = {name: value for name, value in given.items() if name in cls.option_names}
        others = {name: value for name, value in given.items() if name not in mine}
        found, faults = s3_options.check_options(mine, columns, value_format)
        return found, [*faults, *super().relation_options(others, columns, value_format)[1]]

    @classmethod
    def trigger_interval_ms(cls, options: Mapping[str, str]) -> int:
        """Files are written every so often, or there would be a great many small ones."""
        return s3_options.read_options(options, "json").interval_ms

    @classmethod
    def carried_format(cls, value_format: str) -> str:
        """Rows of every format come as JSON objects."""
        return "json"

    # -- admin half ------------------------------------------------------------------------------------------

    def test(self, timeout: float) -> None:
        """Reach S3 and list a key."""
        self.admin.reach(timeout)

    def list_entities(self, timeout: float = 5.0) -> list[Entity]:
        """The directories below the store's prefix, by name."""
        return [Entity(name) for name in self.admin.directories(timeout)]

    def find_entity(self, entity: str, timeout: float = 5.0) -> Entity | None:
        """The directory with number, size and format of its files."""
        return self.admin.describe(entity, timeout) if LEGAL.match(entity) else None

    def incarnation(self, entity: str, timeout: float = 5.0) -> str | None:
        """The name: a directory is nothing but its files."""
        return entity if LEGAL.match(entity) and self.admin.exists(entity, timeout) else None

    def create_entity(
        self, entity: str, properties: Mapping[str, int], configs: Mapping[str, str], timeout: float = 10.0
    ) -> None:
        """Put a marker there, unless there is something already."""
        fault = self.entity_name_fault(entity)
        if fault is not None:
            raise StoreError("store-rejected", f"{entity!r} cannot be the name of a directory: {fault}.")
        _refuse_configs(configs)
        if not self.admin.exists(entity, timeout):
            self.admin.mark(entity, timeout)

    def update_entity(
        self, entity: str, properties: Mapping[str, int], configs: Mapping[str, str], timeout: float = 10.0
    ) -> None:
        """There is nothing to change."""
        if self.incarnation(entity, timeout) is None:
            raise StoreError("entity-not-found", f"{entity} does not exist in store {self.name}.")
        _refuse_configs(configs)

    def drop_entity(self, entity: str, timeout: float = 10.0) -> None:
        """Delete every file below the prefix, and the marker."""
        if LEGAL.match(entity):
            self.admin.remove(entity, timeout)

    def property_limits(self, timeout: float = 5.0) -> Mapping[str, int]:
        """None."""
        return {}

    def read_records(
        self, entity: str, *, from_beginning: bool, limit: int | None, idle_timeout: float | None
    ) -> Iterator[Record | None]:
        """Rows of the files, the oldest file first."""
        if self.incarnation(entity) is None:
            raise StoreError("entity-not-found", f"{entity} does not exist in store {self.name}.")
        return records(self.admin, entity, RecordsFrom(from_beginning), limit, idle_timeout)

    def read_part(
        self, entity: str, start: RecordsFrom, *, limit: int | None, idle_timeout: float | None
    ) -> Iterator[Record | None]:
        """Rows from a place on; files from before the time that is wanted are not read."""
        if start.since is None:
            return super().read_part(entity, start, limit=limit, idle_timeout=idle_timeout)
        if self.incarnation(entity) is None:
            raise StoreError("entity-not-found", f"{entity} does not exist in store {self.name}.")
        found = records(self.admin, entity, start, None, idle_timeout)
        return (one if one is None or start.holds(one) else None for one in found)

    def sample_records(self, source: SourceSpec, *, newest: bool, limit: int, timeout: float) -> Sampled:
        """Rows of the newest or the oldest files, read as the relation says.

        Args:
            source: what is read.
            newest: whether the newest records are wanted, else the oldest.
            limit: the most records.
            timeout: seconds.
        """
        return sample(self.admin, source.entity, _layout(source), newest=newest, limit=limit, timeout=timeout)

    # -- Spark half ------------------------------------------------------------------------------------------

    def read_stream(self, spark: SparkSession, source: SourceSpec, *, realtime: bool) -> DataFrame:
        """Rows of the files as JSON objects, without keys; file and row are the position."""
        from pyspark.sql import functions as F

        from leatstream.connectors.s3.positions import Bounds
        from leatstream.connectors.s3.source import DDL, S3Reader, SourcePlan
        from leatstream.connectors.scan_source import read_scan

        options = s3_options.read_options(source.options, source.value_format)
        most = int(spark.conf.get(MAX_OFFSETS, "500000") or "500000") * _ROW_BYTES
        plan = SourcePlan(
            store=self.name,
            config=self.settings,
            entity=source.entity,
            layout=_layout(source),
            starting_position=source.starting_position,
            starting_ms=source.starting_timestamp_ms,
            bounds=Bounds(options.batch_files, min(options.batch_bytes, most), options.late_ms),
        )
        frame = read_scan(spark, f"leatstream_s3_{source.view}", DDL, S3Reader, plan)
        # rowmeta() has the same members for every kind of store.
        position = F.struct(
            F.lit(source.entity).alias("topic"),
            F.lit(None).cast("int").alias("partition"),
            F.col("row").alias("offset"),
            F.lit(1).alias("timestamp_type"),
            "file",
            "fault",
            "reason",
        )
        key = F.lit(None).cast("binary").alias("key")
        return frame.select(key, "value", "timestamp", position.alias("__leat_rowmeta"))

    def records_at(self, source: SourceSpec, position: Mapping[str, Any], timeout: float) -> Iterator[Record]:
        """The row of a file."""
        path, number = str(position["file"]), int(position["offset"])
        found = record_at(self.admin, source.entity, path, number, _layout(source), timeout)
        yield from [] if found is None else [found]

    def row_writer(self, sink: SinkSpec, target: BatchTarget) -> Callable[[DataFrame, int], Written]:
        """A writer of rows into files; exactly once.

        Raises:
            JobError: job-rejected, for Avro without the schema that the plan makes of the columns.
        """
        from leatstream.connectors.s3.sink import S3Sink
        from leatstream.connectors.s3.write import SinkPlan, stem

        if sink.value_format == "avro" and sink.value_schema is None:
            raise JobError("job-rejected", f"Files of {sink.relation} have no schema to be written by.")
        plan = SinkPlan(
            store=self.name,
            config=self.settings,
            prefix=self.admin.prefix(sink.entity),
            stem=stem(target.query_id, target.query_name, target.generation),
            value_format=sink.value_format,
            options=s3_options.read_options(sink.options, sink.value_format),
            columns=tuple(Column(c.name, parse_type(c.type), c.not_null) for c in sink.columns),
            schema=sink.value_schema,
        )
        return S3Sink(plan, target).apply


def _layout(source: SourceSpec) -> Layout:
    options = s3_options.read_options(source.options, source.value_format)
    columns = {c.name: parse_type(c.type) for c in source.columns}
    return Layout(source.value_format, columns, options.header, options.delimiter, options.decimal_comma)


def _refuse_configs(configs: Mapping[str, str]) -> None:
    faults = Faults()
    for name in sorted(configs):
        faults.add("invalid-property", f"{name} is no setting of a directory in S3.", hint="There is none.")
    faults.raise_if_any()

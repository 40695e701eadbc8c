"""Iceberg tables as a store, asked, read and written with pyiceberg: what both kinds do alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from leatstream.connectors.base import MAX_OFFSETS
from leatstream.connectors.capabilities import Capabilities, Guarantee
from leatstream.connectors.entities import Entity, NewRecord, OptionFault, Record, Table
from leatstream.connectors.entity_settings import EntitySettings
from leatstream.connectors.iceberg import names, options, types
from leatstream.connectors.iceberg.admin import IcebergAdmin
from leatstream.connectors.iceberg.catalogs import opener_of
from leatstream.connectors.iceberg.entity import IcebergEntity
from leatstream.connectors.iceberg.settings import IcebergGlueConfig, IcebergRestConfig
from leatstream.connectors.table_connector import TableConnector
from leatstream.connectors.table_fit import TableTypes
from leatstream.connectors.writers import TableReader, TableWriter
from leatstream.errors import Faults, Position, StoreError
from leatstream.model.names import quote
from leatstream.model.objects import Column, Relation, RelationKind
from leatstream.model.types import DataType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from leatstream.plan.job_spec import JobSpec, LookupSpec, SinkSpec, SourceSpec

CAPABILITIES = Capabilities(
    source=True,
    sink=True,
    create_as=True,
    create_entity=True,
    print_records=True,
    insert_values=True,
    lookup=True,
    batches=True,
    delivery=(
        Guarantee(
            "exactly_once",
            "a batch and its number are one commit; the catalog refuses a commit on a state that has changed",
        ),
    ),
)


class IcebergConnector(TableConnector):
    """The Iceberg tables of one catalog; an entity is ``namespace.table``."""

    capabilities: ClassVar[Capabilities] = CAPABILITIES
    EntityConfig: ClassVar[type[EntitySettings] | None] = IcebergEntity
    property_families: ClassVar[tuple[str, ...]] = ("iceberg.",)
    table_names: ClassVar[tuple[str, ...]] = names.TABLE_NAMES
    store_names: ClassVar[tuple[str, ...]] = names.CATALOGS
    option_names: ClassVar[tuple[str, ...]] = options.NAMES
    place_members: ClassVar[Mapping[str, str]] = {"file": "STRING", "snapshot": "BIGINT"}
    types: ClassVar[TableTypes] = types.ICEBERG_TYPES
    admin: IcebergAdmin
    _fault: ClassVar[Callable[[str], str | None]]

    def __init__(self, name: str, config: IcebergRestConfig | IcebergGlueConfig, catalog: str | None) -> None:
        super().__init__(name, config)
        self._settings = config
        self._catalog = catalog
        self.admin = IcebergAdmin(name, config.where, opener_of(config))

    @classmethod
    def canonical_entity(cls, name: str) -> str:
        """``orders`` is ``default.orders``."""
        return ".".join(names.split(name))

    @classmethod
    def entity_name_fault(cls, name: str) -> str | None:
        """Why the catalog cannot have a table of this name, or None."""
        return cls._fault(name)

    @classmethod
    def relation_options(
        cls, given: Mapping[str, Any], columns: Sequence[str], value_format: str
    ) -> tuple[dict[str, str], list[OptionFault]]:
        """The properties ``iceberg.…`` of a relation that do not name its table.

        Args:
            given: those of every kind's own words, as written.
            columns: the relation's.
            value_format: has no meaning for tables.
        """
        mine = {name: value for name, value in given.items() if name in cls.option_names}
        others = {name: value for name, value in given.items() if name not in mine}
        found, faults = options.check_options(mine)
        return found, [*faults, *super().relation_options(others, columns, value_format)[1]]

    def named_entity(self, named: Mapping[str, str], default: str) -> tuple[str, list[OptionFault]]:
        """``namespace.table``; the catalog is the store's own."""
        return names.named(named, default, self._catalog)

    @classmethod
    def sink_interval_ms(cls, sink: SinkSpec) -> int:
        """Each commit makes files of data and metadata, and with a key it writes files again."""
        return options.interval_ms(sink.options, keyed=bool(sink.key_columns))

    # -- admin half ------------------------------------------------------------------------------------------

    def test(self, timeout: float) -> None:
        """Log in and list namespaces."""
        self.admin.test(timeout)

    @classmethod
    def kept_type(cls, kind: DataType) -> DataType:
        """Iceberg has no small numbers, and no lengths of texts."""
        return types.kept_type(kind)

    def read_records(
        self, entity: str, *, from_beginning: bool, limit: int | None, idle_timeout: float | None
    ) -> Iterator[Record | None]:
        """The rows of the present snapshot; a table has no end to wait at, so it ends after them."""
        from leatstream.connectors.iceberg.records import rows

        self.admin.loaded(entity, 5.0, f"reading table {entity}")
        return rows(self.admin, entity, limit)

    def write_records(self, entity: str, records: Sequence[NewRecord], timeout: float = 10.0) -> None:
        """Write rows in one commit."""
        from leatstream.connectors.iceberg.records import write

        write(self.admin, entity, records, timeout)

    # -- Spark half ------------------------------------------------------------------------------------------

    def check_source(self, relation: Relation, entity: Entity, position: Position | None = None) -> None:
        """See that it is a stream, and that the table's rows can be read as its columns."""
        faults = Faults()
        if relation.kind is RelationKind.CHANGELOG:
            faults.add(
                "unsupported",
                f"{relation.fqn} is a changelog, and of an Iceberg table only appended rows are read.",
                position=position,
                hint="Declare it as a STREAM, or join its table with a stream: its rows can be looked up.",
            )
        table = entity.table
        wrong = self.read_misfits(table, relation.columns, ()) if table is not None else []
        for misfit in wrong:
            detail = f"Table {entity.name} of store {quote(self.name)}: {misfit.detail}."
            faults.add("type-mismatch", detail, position=position, hint=misfit.hint)
        faults.raise_if_any()

    def read_stream(self, spark: SparkSession, source: SourceSpec, *, realtime: bool) -> DataFrame:
        """Appended rows as JSON objects, without keys; snapshot, file and row are the position."""
        from pyspark.sql import functions as F

        from leatstream.connectors.iceberg.source import DDL, IcebergReader, SourcePlan
        from leatstream.connectors.scan_source import read_scan

        plan = SourcePlan(
            store=self.name,
            config=self._settings,
            entity=source.entity,
            columns=tuple((column.name, column.type) for column in source.columns),
            starting_position=source.starting_position,
            starting_ms=source.starting_timestamp_ms,
            start=source.options.get(options.START),
            skip=source.options.get(options.SKIP) == "true",
            most=int(spark.conf.get(MAX_OFFSETS, "500000") or "500000"),
        )
        frame = read_scan(spark, f"leatstream_iceberg_{source.view}", DDL, IcebergReader, plan)
        # rowmeta() has the same members for every kind of store.
        place = F.struct(
            F.lit(source.entity).alias("topic"),
            F.lit(None).cast("int").alias("partition"),
            F.col("row").alias("offset"),
            F.lit(1).alias("timestamp_type"),
            "file",
            "snapshot",
        )
        key = F.lit(None).cast("binary").alias("key")
        return frame.select(key, "value", "timestamp", place.alias("__leat_rowmeta"))

    def forget_sink(self, query_id: str, entity: str, timeout: float) -> None:
        """Remove a query's number from its table, and files of attempts that failed."""
        from leatstream.connectors.iceberg.sink import forget_query

        forget_query(self.admin, entity, query_id, timeout)

    def check_new(self, entity: str, columns: Sequence[Column], primary_key: Sequence[str]) -> None:
        """Refuse keys that identifier fields cannot be."""
        for column in columns:
            if column.name in primary_key and column.type.kind in types.NO_KEYS:
                raise StoreError(
                    "store-rejected",
                    f"Column {column.name} of table {entity} cannot be in the key: it is {column.type}.",
                    hint=f"Iceberg's identifier fields are not {', '.join(types.NO_KEYS)}; CAST it.",
                )

    def is_as_made(self, table: Table, columns: Sequence[Column], primary_key: Sequence[str]) -> bool:
        """Identifier fields have no order."""
        in_order = [c.name for c in table.columns if c.name in primary_key]
        as_made = super().is_as_made(replace(table, primary_key=tuple(in_order)), columns, in_order)
        return as_made and set(primary_key) == set(table.primary_key)

    def table_reader(self, spec: LookupSpec) -> TableReader:
        """Look at the table once more."""
        from leatstream.connectors.iceberg.lookup import IcebergTableReader

        table = self.read_table(spec.entity, spec.columns)
        return IcebergTableReader(self.name, self._settings, spec, table)

    def table_writer(self, spec: JobSpec) -> TableWriter:
        """Look at the table once more, and claim it for this attempt."""
        from leatstream.connectors.iceberg.sink import IcebergTableWriter

        sink = spec.sink
        self.written_table(sink.entity, sink.columns, sink.key_columns)
        return IcebergTableWriter(self.admin, spec)

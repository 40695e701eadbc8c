"""What a store kind must offer: one class, in ``connectors/<kind>/connector.py``.

The server uses the admin half, a driver the Spark half. ``capabilities`` says which methods a kind has; the
other ones raise. A kind must have ``test``, ``list_entities`` and ``find_entity``. Client libraries and
pyspark are imported inside methods, so that importing a connector costs nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from leatstream.connectors.entities import OptionFault, StoredView
from leatstream.connectors.sampling import IDLE, Sampled, taken
from leatstream.connectors.settings import StoreSettings, secret_addresses, secret_fields
from leatstream.errors import JobError, StoreError
from leatstream.model.names import nearest
from leatstream.model.types import DataType
from leatstream.plan.record_place import RecordPlace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from leatstream.connectors.capabilities import Capabilities, EntityProperty
    from leatstream.connectors.entities import (
        Entity,
        Misfit,
        NewRecord,
        Record,
        RecordsFrom,
        SourceWatch,
        Table,
    )
    from leatstream.connectors.entity_settings import EntitySettings
    from leatstream.connectors.store_words import StoreWords
    from leatstream.connectors.traffic import Traffic
    from leatstream.connectors.writers import BatchTarget, BatchWriter, TableReader, TableWriter, Written
    from leatstream.errors import Position
    from leatstream.model.objects import Column, Relation
    from leatstream.plan.job_spec import JobSpec, LookupSpec, SinkSpec, SourceSpec

# Set on the session by the job: one micro-batch's bound per source, which a SourceSpec does not carry.
MAX_OFFSETS = "leatstream.max_offsets_per_trigger"


class Connector(ABC):
    """A store kind, bound to one store's settings (secrets already resolved).

    Attributes:
        kind: its name, as in REST's bodies and in JobSpecs.
        capabilities: what it can be used for; rules ask these, never the name.
        Config: the settings of a store.
        words: what SQL's CREATE STORE says beside the settings' marks.
        entity_properties: what a sink needs of an entity.
        value_formats: what its entities' records or files may be written in.
        keyed: whether its records have keys, and so whether there are changelogs.
        exact_keys: whether keys are read as they were written, so that a column can be in the key alone.
        streams: whether Spark has a sink of its own for streams, ``write_stream``; others are written batch
            by batch.
        takes_rows: sinks are given rows, for ``row_writer``, and not encoded records.
        holds_schemas: what is written by a schema holds it, so that no schema registry is asked.
        place_members: what the kind adds to the position of a record, ``rowmeta()``, with Spark types.
        gives_reasons: whether its position has a member ``reason``, which says why a row is none.
        entity_noun: what its entities are, for messages.
        sinks_watched: whether a job looks every few seconds if its sink exists: the look costs nothing, and
            writes to one that was deleted fail late.
    """

    kind: ClassVar[str]
    capabilities: ClassVar[Capabilities]
    entity_properties: ClassVar[tuple[EntityProperty, ...]] = ()
    EntityConfig: ClassVar[type[EntitySettings] | None] = None
    """What can be said of an entity in REST; None where there is nothing but its name."""
    entity_configs: ClassVar[Mapping[str, str]] = {}
    """Property in SQL of an entity's setting, to the store's word for it."""
    property_families: ClassVar[tuple[str, ...]] = ()
    """What the properties of relations begin with that only this kind has, such as ``s3.``."""
    table_names: ClassVar[tuple[str, ...]] = ()
    """Properties that name a relation's table, of kinds with ``tables``: the table's own one is the last."""
    store_names: ClassVar[tuple[str, ...]] = ()
    """Those of ``table_names`` that can only repeat a setting of the store."""
    option_names: ClassVar[tuple[str, ...]] = ()
    """Further properties in this kind's own words that ``relation_options`` takes."""
    Config: ClassVar[type[StoreSettings]]
    words: ClassVar[StoreWords]
    tables: ClassVar[bool] = False
    """Whether entities are tables: with columns of their own, made by ``create_table``."""
    value_formats: ClassVar[tuple[str, ...]] = ("json",)
    keyed: ClassVar[bool] = True
    exact_keys: ClassVar[bool] = True
    streams: ClassVar[bool] = False
    takes_rows: ClassVar[bool] = False
    holds_schemas: ClassVar[bool] = False
    place_members: ClassVar[Mapping[str, str]] = {}
    gives_reasons: ClassVar[bool] = False
    entity_noun: ClassVar[str] = "entity"
    sinks_watched: ClassVar[bool] = False

    def __init__(self, name: str, config: StoreSettings) -> None:
        self.name = name
        self.config = config

    @classmethod
    def secret_fields(cls) -> tuple[str, ...]:
        """Dotted paths of the settings that are secrets, such as ``sasl.password``."""
        return secret_fields(cls.Config)

    @classmethod
    def secret_addresses(cls) -> Mapping[str, Any]:
        """Dotted paths of the settings that decide who receives secrets, to their defaults."""
        return secret_addresses(cls.Config)

    @classmethod
    def config_word(cls, key: str) -> tuple[str, str] | None:
        """A SQL property that is an entity's setting: its one name, and the store's word; None for others."""
        return (key, cls.entity_configs[key]) if key in cls.entity_configs else None

    @classmethod
    def entity_name_fault(cls, name: str) -> str | None:
        """Why the store cannot have an entity of this name, or None."""
        return None

    def canonical_entity(self, name: str) -> str:
        """The one name of an entity that can be written in several ways, such as with its schema."""
        return name

    @classmethod
    def needed_properties(cls, configs: Mapping[str, str]) -> tuple[EntityProperty, ...]:
        """Properties that a new entity with these configs needs.

        Raises:
            RequestError: invalid-property, for configs that entities of this kind cannot have.
        """
        return cls.entity_properties

    @classmethod
    def relation_options(
        cls, given: Mapping[str, Any], columns: Sequence[str], value_format: str
    ) -> tuple[dict[str, str], list[OptionFault]]:
        """Check the properties that relations have in this kind's own words, such as ``s3.partition.by``.

        Args:
            given: those of every kind's own words, as written.
            columns: the relation's.
            value_format: one of ``value_formats``.

        Returns:
            texts for SourceSpec and SinkSpec, and what is wrong.
        """
        return {}, [cls.foreign_option(name) for name in given if name not in cls.table_names]

    @classmethod
    def foreign_option(cls, name: str) -> OptionFault:
        """That no relation of this kind has such a property, with the one that was probably meant."""
        # Without the family, which is the same of all and would make any two names alike.
        tails = {one.partition(".")[2]: one for one in (*cls.table_names, *cls.option_names)}
        near = nearest(name.partition(".")[2], tails)
        known = [f"'{one}'" for one in tails.values()]
        if near is not None:
            hint = f"Did you mean '{tails[near]}'?"
        elif known:
            hint = f"Available: {' and '.join([', '.join(known[:-1]), known[-1]] if known[1:] else known)}."
        else:
            hint = "Leave it out: the entity is named by 'topic'."
        return OptionFault(name, f"{name} is no property of a relation in a store of kind {cls.kind}.", hint)

    def named_entity(self, named: Mapping[str, str], default: str) -> tuple[str, list[OptionFault]]:
        """The entity that a relation's ``table_names`` mean; only kinds with ``tables`` have it.

        Args:
            named: property to name, of those that are given.
            default: the table's name where none is given.

        Returns:
            the entity, and what is wrong with the names.
        """
        return default, []

    @classmethod
    def trigger_interval_ms(cls, options: Mapping[str, str]) -> int:
        """How often a sink with these options is written; 0 = as fast as it goes."""
        return 0

    @classmethod
    def sink_interval_ms(cls, sink: SinkSpec) -> int:
        """How often a sink is written; kinds whose cost hangs on more than options override it."""
        return cls.trigger_interval_ms(sink.options)

    @classmethod
    def carried_format(cls, value_format: str) -> str:
        """The format of the values that ``read_stream`` gives for records in ``value_format``."""
        return value_format

    @abstractmethod
    def test(self, timeout: float) -> None:
        """Reach the store and log in. Raises StoreError within ``timeout`` seconds."""

    def about(self, timeout: float) -> Mapping[str, str]:
        """Facts about the server behind the store, to show to people; called after ``test``."""
        return {}

    @abstractmethod
    def list_entities(self, timeout: float = 5.0) -> list[Entity]:
        """Every entity the credentials may see, sorted by name, internal ones left out."""

    @abstractmethod
    def find_entity(self, entity: str, timeout: float = 5.0) -> Entity | None:
        """The entity with live properties, or None. Raises StoreError if the store cannot be asked."""

    def incarnation(self, entity: str, timeout: float = 5.0) -> str | None:
        """An identity that a later entity of the same name does not share; None if the entity does not exist.

        Kinds whose store gives no identity return the name, so that only a missing entity is noticed.
        """
        return entity if self.find_entity(entity, timeout) is not None else None

    def create_entity(
        self, entity: str, properties: Mapping[str, int], configs: Mapping[str, str], timeout: float = 10.0
    ) -> None:
        """Create an entity; called when a query's sink is created, and by CREATE ENTITY. Idempotent.

        Only of kinds with the capability ``create_entity``.

        Args:
            entity: its name in the store.
            properties: entity property, such as ``topic.partitions``, to its value.
            configs: settings of the store's own, such as ``retention.ms``.
            timeout: seconds.

        Raises:
            StoreError: ``entity-conflict`` if it exists with other properties, or what the store reports.
        """
        raise StoreError("store-rejected", f"Nothing can be created in stores of kind {self.kind}.")

    def create_table(
        self, entity: str, columns: Sequence[Column], primary_key: Sequence[str], timeout: float = 10.0
    ) -> None:
        """Create a table; idempotent. Only kinds whose entities are tables have it.

        Args:
            entity: its name in the store.
            columns: its columns, in this order.
            primary_key: names of the key's columns; empty = no key.
            timeout: seconds.

        Raises:
            StoreError: ``entity-conflict`` if it exists with other columns or another key.
        """
        raise StoreError("store-rejected", f"Stores of kind {self.kind} have no tables.")

    def create_view_rows(self, view: StoredView, timeout: float = 10.0) -> None:
        """Create what holds a version's rows, which a sink with ``stored_view`` writes; idempotent.

        Nobody sees them yet. Only of kinds with the capability ``view_swap``.
        """
        raise self._holds_no_views()

    def show_view(self, view: StoredView, timeout: float = 10.0) -> None:
        """Have a view show the rows of a version, and create both where they are missing; idempotent.

        Of kinds with the capability ``view_swap`` no reader sees anything between the two versions.
        Only of kinds with the capability ``view``.

        Raises:
            StoreError: ``entity-conflict`` if something else has this name.
        """
        raise self._holds_no_views()

    def drop_view(self, entity: str, versions: Sequence[str] = ("",), timeout: float = 10.0) -> None:
        """Delete a materialized view and its rows; idempotent. Only of kinds with the capability ``view``.

        Args:
            entity: the view's name in the store.
            versions: whose rows are deleted with it.
            timeout: seconds.
        """
        raise self._holds_no_views()

    def drop_view_rows(self, entity: str, version: str, timeout: float = 10.0) -> None:
        """Delete the rows of a version that the view does not show; idempotent.

        Only of kinds with the capability ``view_swap``.

        Args:
            entity: the view's name in the store.
            version: whose rows they are.
            timeout: seconds.
        """
        raise self._holds_no_views()

    def add_view_index(
        self, entity: str, version: str, name: str, columns: Sequence[Column], timeout: float = 10.0
    ) -> None:
        """Index columns of a version's rows; idempotent. Only of kinds with the capability ``view``.

        Args:
            entity: the view's name in the store.
            version: whose rows they are; where there are none yet, nothing is done.
            name: the index's, unique in the view.
            columns: of the view.
            timeout: seconds.
        """
        raise self._holds_no_views()

    def drop_view_index(self, entity: str, version: str, name: str, timeout: float = 10.0) -> None:
        """Remove what ``add_view_index`` made; idempotent.

        Args:
            entity: the view's name in the store.
            version: whose rows they are.
            name: the index's.
            timeout: seconds.
        """
        raise self._holds_no_views()

    def _holds_no_views(self) -> StoreError:
        return StoreError("store-rejected", f"Stores of kind {self.kind} hold no materialized views.")

    @classmethod
    def view_rows(cls, entity: str, version: str = "") -> str:
        """The entity with a version's rows: the view itself, unless a kind keeps them apart."""
        return entity

    @classmethod
    def kept_type(cls, kind: DataType) -> DataType:
        """The type that a column of a new table is read back with."""
        return kind

    def update_entity(
        self, entity: str, properties: Mapping[str, int], configs: Mapping[str, str], timeout: float = 10.0
    ) -> None:
        """Change what the store can change in place; idempotent.

        Args:
            entity: its name in the store.
            properties: the properties to change; the others stay.
            configs: the store's own settings to change; the others stay.
            timeout: seconds.

        Raises:
            StoreError: ``store-rejected`` for what cannot change in place; ``entity-not-found``.
        """
        raise StoreError("store-rejected", f"Nothing can be changed in stores of kind {self.kind}.")

    def drop_entity(self, entity: str, timeout: float = 10.0) -> None:
        """Delete an entity and wait until the store no longer lists it; idempotent.

        Only of kinds with the capability ``create_entity``.
        """
        raise StoreError("store-rejected", f"Nothing can be deleted in stores of kind {self.kind}.")

    def property_limits(self, timeout: float = 5.0) -> Mapping[str, int]:
        """Largest value the store can give a property now, such as ``topic.replicas`` = brokers."""
        return {}

    def read_records(
        self, entity: str, *, from_beginning: bool, limit: int | None, idle_timeout: float | None
    ) -> Iterator[Record | None]:
        """Records as they come; None now and then while idle, so that the caller can stop.

        Only of kinds with the capability ``print_records``.

        Args:
            entity: its name in the store.
            from_beginning: read what exists; False reads only new records.
            limit: end after so many records; None = no limit.
            idle_timeout: end after so many seconds without a record; None = never.
        """
        raise StoreError("store-rejected", f"Records of stores of kind {self.kind} cannot be shown.")

    def read_part(
        self, entity: str, start: RecordsFrom, *, limit: int | None, idle_timeout: float | None
    ) -> Iterator[Record | None]:
        """Records from a place on, as ``read_records`` gives them; None in place of those not wanted.

        Only of kinds with the capability ``print_records``. Kinds that can begin at a place override it.

        Args:
            entity: its name in the store.
            start: where the reading begins; an offset only for kinds with the capability ``positions``.
            limit: more records are not wanted; None = no limit.
            idle_timeout: end after so many seconds without a record; None = never.
        """
        # A table is asked for so many rows; of those that are left out, nobody knows how many there are.
        most = None if start.leaves_out else limit
        records = self.read_records(
            entity, from_beginning=start.reads_existing, limit=most, idle_timeout=idle_timeout
        )
        return (one if one is None or start.holds(one) else None for one in records)

    def sample_records(self, source: SourceSpec, *, newest: bool, limit: int, timeout: float) -> Sampled:
        """A few records as ``read_stream`` gives them, without Spark; of tables a few of the existing rows.

        Only of kinds with the capability ``print_records``.

        Args:
            source: what is read.
            newest: whether the newest records are wanted, else the oldest; tables have no such order.
            limit: the most records.
            timeout: seconds.
        """
        first = limit if self.tables or not newest else None
        records = self.read_records(source.entity, from_beginning=True, limit=first, idle_timeout=IDLE)
        return taken(records, newest=newest and not self.tables, limit=limit, timeout=timeout)

    def find_record(self, entity: str, partition: str, offset: str, timeout: float) -> Record | None:
        """One record by its position in the store; called to show a record that a query failed at.

        Args:
            entity: its name in the store.
            partition: the partition, shard or file.
            offset: the position in it.
            timeout: seconds.

        Returns:
            The record; None if it was deleted, does not arrive in time, or the kind has no such positions.
        """
        return None

    def records_at(self, source: SourceSpec, position: Mapping[str, Any], timeout: float) -> Iterator[Record]:
        """The record at a position, as ``read_stream`` gives it; called to explain why a record was refused.

        Args:
            source: what is read.
            position: the record's ``rowmeta()``.
            timeout: seconds.

        Yields:
            One record as a rule; all that it may be where records have no position of their own; none where
            they were deleted.
        """
        place = RecordPlace.of_position(source.entity, position)
        if place is not None:
            found = self.find_record(place.entity, place.partition, place.offset, timeout)
            yield from [] if found is None else [found]

    def ends(self, entity: str, timeout: float) -> Mapping[int, int]:
        """The offset behind the last record of each partition, of kinds that have such."""
        return {}

    def read_range(
        self, spark: SparkSession, source: SourceSpec, parts: Sequence[tuple[int, int, int]]
    ) -> DataFrame:
        """Records as from ``read_stream``, of ranges of offsets. Only kinds that have ``ends`` have it.

        Args:
            spark: the session.
            source: what is read.
            parts: partition, first offset, and the offset after the last one.
        """
        raise NotImplementedError

    def write_records(self, entity: str, records: Sequence[NewRecord], timeout: float = 10.0) -> None:
        """Write a few records and wait until the store has them, in order per key.

        They are no transaction: if the store stops answering in between, earlier ones stay written.

        Args:
            entity: its name in the store.
            records: what to write.
            timeout: seconds, for all of them.

        Raises:
            StoreError: entity-not-found, or what the store reports; its detail says how many were written.
        """
        raise StoreError(
            "store-rejected", f"Records cannot be written to stores of kind {self.kind} by a statement."
        )

    def check_source(self, relation: Relation, entity: Entity, position: Position | None = None) -> None:
        """Check, while a query is planned, that it can read the entity as this relation.

        What cannot be checked passes.

        Args:
            relation: what the query reads.
            entity: the entity with live properties.
            position: place of the relation in the SQL, for faults.

        Raises:
            RequestError: every fault of the relation, at ``position``.
            StoreError: the store cannot be read so.
        """
        return

    def watch_source(self, source: SourceSpec) -> SourceWatch | None:
        """A watch over what the store keeps for a query's reader; None where it keeps nothing."""
        return None

    def forget_readers(self, prefix: str) -> None:
        """Remove what readers with this prefix left in the store, after a query has ended; idempotent."""
        return

    def mirror_offsets(self, query: str, entity: str, offsets: Mapping[str, int], timeout: float) -> None:
        """Show the store's own lag tools how far a query has read; only kinds that have such tools do it.

        Args:
            query: the query's name.
            entity: what it reads.
            offsets: partition to the next offset.
            timeout: seconds.

        Raises:
            StoreError: the store refuses or does not answer.
        """
        return

    def forget_offsets(self, query: str, timeout: float) -> None:
        """Remove what ``mirror_offsets`` wrote for a deleted query; idempotent, StoreError as there."""
        return

    def read_stream(self, spark: SparkSession, source: SourceSpec, *, realtime: bool) -> DataFrame:
        """Raw records: ``key`` BINARY, ``value`` BINARY, ``timestamp``, ``__leat_rowmeta`` STRUCT.

        Where the source asks for them, also ``__leat_rowheaders`` MAP<STRING, BINARY>. Called in the driver,
        once for each source at each start of a job.

        Args:
            spark: the session.
            source: what is read, and from where on.
            realtime: whether the job runs in real-time mode.

        Only of kinds with the capability ``source``.

        Raises:
            JobError: job-rejected, of other kinds.
        """
        raise JobError("job-rejected", f"Queries cannot read stores of kind {self.kind}.")

    def write_stream(self, frame: DataFrame, sink: SinkSpec, *, realtime: bool) -> DataStreamWriter:
        """A writer for a frame of ``key`` BINARY, ``value`` BINARY and optionally ``timestamp`` TIMESTAMP.

        Of kinds whose records have headers also ``headers``, ARRAY<STRUCT<key STRING, value BINARY>>, if the
        sink has a column of them.

        Only kinds with ``streams`` have it. The caller sets output mode, trigger and checkpoint.

        Args:
            frame: the records.
            sink: where they are written.
            realtime: whether the job runs in real-time mode.

        Raises:
            JobError: job-rejected, of other kinds.
        """
        raise JobError("job-rejected", f"Stores of kind {self.kind} are written batch by batch.")

    @classmethod
    def traffic(cls, spark: SparkSession) -> Traffic | None:
        """Bytes that clients of this kind count themselves; None where they do not, or run elsewhere."""
        return None

    def row_writer(self, sink: SinkSpec, target: BatchTarget) -> Callable[[DataFrame, int], Written]:
        """Prepare to write rows, each micro-batch of a number once (``leatstream_jobs.writing.file_rows``).

        Only of kinds with ``takes_rows``. What it gives raises RuntimeError with a mark of ``store_marks``.

        Raises:
            JobError: job-rejected, of other kinds.
        """
        raise JobError("job-rejected", f"Stores of kind {self.kind} are given records, not rows.")

    def write_batch(self, frame: DataFrame, sink: SinkSpec) -> Written | None:
        """Write a batch frame of ``key`` and ``value`` as above; returns when the store has all of it.

        Only of kinds with the capability ``batches``.

        Returns:
            What was sent; None where ``traffic`` reports it.

        Raises:
            JobError: job-rejected, of other kinds.
        """
        detail = f"Stores of kind {self.kind} are not written batch by batch."
        raise JobError("job-rejected", detail)

    def batch_writer(self, spec: JobSpec) -> BatchWriter:
        """Prepare to write records exactly once, micro-batch by micro-batch.

        Only of kinds that promise ``exactly_once`` beside another guarantee.

        Raises:
            StoreError: what the store says.
            JobError: job-rejected, of other kinds.
        """
        raise JobError("job-rejected", f"Stores of kind {self.kind} do not take batches exactly once.")

    def forget_batches(self, query_id: str, timeout: float) -> None:
        """Remove what ``batch_writer`` keeps for a deleted query; idempotent."""
        return

    def forget_sink(self, query_id: str, entity: str, timeout: float) -> None:
        """Remove what writers keep of a deleted query at its sink; idempotent.

        Args:
            query_id: of the query that has ended.
            entity: its sink; it may be gone.
            timeout: seconds.
        """
        self.forget_batches(query_id, timeout)

    def table_misfits(
        self, table: Table, columns: Sequence[Column], primary_key: Sequence[str]
    ) -> list[Misfit]:
        """Why rows of these columns cannot be written into a table; empty if they can.

        Only kinds whose entities are tables have it.

        Args:
            table: the table as it is now.
            columns: what would be written.
            primary_key: columns by which rows replace each other; empty = rows are only added.
        """
        return []

    def read_misfits(
        self, table: Table, columns: Sequence[Column], primary_key: Sequence[str]
    ) -> list[Misfit]:
        """Why a table's rows cannot be read as these columns; empty if they can.

        Only kinds whose entities are tables have it.

        Args:
            table: the table as it is now.
            columns: what would be read.
            primary_key: columns that must be unique in the table; may be empty.
        """
        return []

    def table_reader(self, spec: LookupSpec) -> TableReader:
        """Prepare to look rows up in a table.

        Only of kinds with the capability ``lookup``.

        Raises:
            StoreError: the table is gone or cannot be read as its relation, or what the store says.
            JobError: job-rejected, of other kinds.
        """
        raise JobError("job-rejected", f"In stores of kind {self.kind} rows cannot be looked up.")

    def table_writer(self, spec: JobSpec) -> TableWriter:
        """Prepare to write the sink's table; from then on older attempts of the query cannot.

        Only of kinds whose entities are tables.

        Raises:
            StoreError: the table is gone or does not fit, or what the store says.
            JobError: job-rejected, of other kinds.
        """
        raise JobError("job-rejected", f"Stores of kind {self.kind} have no tables.")

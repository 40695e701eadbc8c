"""PostgreSQL: the tables of one database, asked and written with psycopg."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from leatstream.connectors.base import Connector
from leatstream.connectors.capabilities import Capabilities, EntityProperty, Guarantee
from leatstream.connectors.entities import Entity, Misfit, NewRecord, OptionFault, Record, SourceWatch, Table
from leatstream.connectors.entity_settings import EntitySettings
from leatstream.connectors.postgres import entity as entities
from leatstream.connectors.postgres.admin import (
    BATCHES,
    REPLICA_IDENTITY,
    PostgresAdmin,
    entity_name,
    split_entity,
)
from leatstream.connectors.postgres.cdc import check_source, forget, read_changes, waiting_records, watch
from leatstream.connectors.postgres.records import rows, write
from leatstream.connectors.postgres.settings import PostgresConfig
from leatstream.connectors.postgres.types import PostgresTypes, column_type, read_type
from leatstream.connectors.postgres.words import PostgresWords
from leatstream.connectors.settings import StoreSettings
from leatstream.connectors.store_words import NO_CHOICE, StoreWords
from leatstream.connectors.table_fit import misfits, read_misfits
from leatstream.connectors.writers import TableReader, TableWriter
from leatstream.errors import Faults, Position, StoreError
from leatstream.model.names import quote
from leatstream.model.objects import Column, Relation
from leatstream.model.types import DataType, parse_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from leatstream.plan.job_spec import JobSpec, LookupSpec, SourceSpec

_IDENTITIES = ("default", "full", "nothing")
_LONGEST = 63  # bytes


class PostgresConnector(Connector):
    """The tables of one PostgreSQL database; an entity is ``table`` or ``schema.table``."""

    kind: ClassVar[str] = "postgres"
    entity_noun: ClassVar[str] = "table"
    capabilities: ClassVar[Capabilities] = Capabilities(
        verified_on="a real PostgreSQL server",
        source=True,
        sink=True,
        create_as=True,
        cdc=True,
        create_entity=True,
        print_records=True,
        insert_values=True,
        lookup=True,
        batches=True,
        delivery=(
            Guarantee(
                "exactly_once", "a batch and its number are one transaction; rows with a key are upserted"
            ),
        ),
    )
    EntityConfig: ClassVar[type[EntitySettings] | None] = entities.PostgresEntity
    entity_configs: ClassVar[Mapping[str, str]] = entities.CONFIGS
    property_families: ClassVar[tuple[str, ...]] = ("postgresql.",)
    table_names: ClassVar[tuple[str, ...]] = entities.TABLE_NAMES
    store_names: ClassVar[tuple[str, ...]] = entities.TABLE_NAMES[:1]
    Config: ClassVar[type[StoreSettings]] = PostgresConfig
    words: ClassVar[StoreWords] = PostgresWords(
        types=("postgresql", "postgres"),
        title="a PostgreSQL store",
        more=("uris", "tls.disabled", "tls.verify_server_hostname"),
        unsupported={
            **NO_CHOICE,
            "tls.client.cert_file": "users log in with a password",
            "tls.client.key_file": "users log in with a password",
        },
    )
    tables: ClassVar[bool] = True

    def __init__(self, name: str, config: StoreSettings) -> None:
        super().__init__(name, config)
        if not isinstance(config, PostgresConfig):
            raise TypeError("a PostgreSQL store takes a PostgresConfig")
        self.settings = config
        self.admin = PostgresAdmin(name, config)

    @classmethod
    def canonical_entity(cls, name: str) -> str:
        """``public.orders`` is ``orders``."""
        return entity_name(*split_entity(name))

    @classmethod
    def entity_name_fault(cls, name: str) -> str | None:
        """Why PostgreSQL cannot have a table of this name, or None."""
        for part in split_entity(name):
            if not part or "\x00" in part or len(part.encode(errors="replace")) > _LONGEST:
                return "a table is called table or schema.table, and each of the two has 1 to 63 bytes"
        if split_entity(name)[0].startswith("pg_") or split_entity(name)[1] == BATCHES:
            return "this name belongs to the server or to leatstream"
        return None

    @classmethod
    def needed_properties(cls, configs: Mapping[str, str]) -> tuple[EntityProperty, ...]:
        """None; RequestError for settings that tables do not have."""
        _check_configs(configs)
        return ()

    def named_entity(self, named: Mapping[str, str], default: str) -> tuple[str, list[OptionFault]]:
        """``schema.table``; the database is the store's own."""
        database, schema, table = self.table_names
        faults: list[OptionFault] = []
        if "." in named.get(schema, ""):
            faults.append(OptionFault(schema, f"{schema} is a name."))
        if named.get(database, self.settings.database) != self.settings.database:
            detail = f"{database} differs from the database of store {quote(self.name)}."
            faults.append(OptionFault(database, detail, "A store is one database; leave it out."))
        return f"{named.get(schema, 'public')}.{named.get(table, default)}", faults

    # -- admin half ------------------------------------------------------------------------------------------

    def test(self, timeout: float) -> None:
        """Log in and ask for the version."""
        self.admin.server(timeout)

    def about(self, timeout: float) -> Mapping[str, str]:
        """Server version and ``wal_level``."""
        return self.admin.server(timeout)

    def list_entities(self, timeout: float = 5.0) -> list[Entity]:
        """Every table of the schemas that the user may use."""
        return self.admin.entities(timeout)

    def find_entity(self, entity: str, timeout: float = 5.0) -> Entity | None:
        """The table with columns, keys, estimated rows and size."""
        return self.admin.find(entity, timeout) if self.entity_name_fault(entity) is None else None

    def incarnation(self, entity: str, timeout: float = 5.0) -> str | None:
        """The table's object id."""
        return self.admin.identity(entity, timeout) if self.entity_name_fault(entity) is None else None

    def create_entity(
        self, entity: str, properties: Mapping[str, int], configs: Mapping[str, str], timeout: float = 10.0
    ) -> None:
        """Refused: a table has columns; see ``create_table``."""
        raise StoreError(
            "store-rejected",
            f"A table of store {self.name} is made of columns, and none were given for {entity}.",
            hint="CREATE STREAM … AS SELECT and CREATE CHANGELOG … AS SELECT make the table they need.",
        )

    def create_table(
        self, entity: str, columns: Sequence[Column], primary_key: Sequence[str], timeout: float = 10.0
    ) -> None:
        """Create the table, and its schema if there is none."""
        fault = self.entity_name_fault(entity)
        if fault is not None:
            raise StoreError("store-rejected", f"{entity!r} cannot be the name of a table: {fault}.")
        if self.admin.create(entity, columns, primary_key, timeout):
            return
        found = self.find_entity(entity, timeout)
        if found is None or found.table is None or not _same(found.table, columns, primary_key):
            raise StoreError(
                "entity-conflict",
                f"Table {entity} exists in store {self.name} with other columns or another key.",
            )

    @classmethod
    def kept_type(cls, kind: DataType) -> DataType:
        """PostgreSQL has no TINYINT, MAP or STRUCT, and one precision of times."""
        return read_type(column_type(kind))

    def update_entity(
        self, entity: str, properties: Mapping[str, int], configs: Mapping[str, str], timeout: float = 10.0
    ) -> None:
        """Set the replica identity; what is not given goes back to the default."""
        self._table(entity, timeout)
        self.admin.set_identity(entity, _check_configs(configs), timeout)

    def drop_entity(self, entity: str, timeout: float = 10.0) -> None:
        """Drop the table."""
        if self.entity_name_fault(entity) is None:
            self.admin.drop(entity, timeout)

    def property_limits(self, timeout: float = 5.0) -> Mapping[str, int]:
        """None: tables have no such properties."""
        return {}

    def read_records(
        self, entity: str, *, from_beginning: bool, limit: int | None, idle_timeout: float | None
    ) -> Iterator[Record | None]:
        """The rows that are there, by primary key; a table has no end to wait at, so it ends after them."""
        return rows(self.admin, entity, self._table(entity, 5.0), limit)

    def write_records(self, entity: str, records: Sequence[NewRecord], timeout: float = 10.0) -> None:
        """Write rows in one transaction."""
        write(self.admin, entity, self._table(entity, timeout), records, timeout)

    def _table(self, entity: str, timeout: float) -> Table:
        found = self.find_entity(entity, timeout)
        if found is None or found.table is None:
            raise StoreError("entity-not-found", f"Table {entity} does not exist in store {self.name}.")
        return found.table

    def check_source(self, relation: Relation, entity: Entity, position: Position | None = None) -> None:
        """See that the table's changes can be read."""
        check_source(relation, entity, self.admin.server(5.0), position)

    # -- Spark half ------------------------------------------------------------------------------------------

    def read_stream(self, spark: SparkSession, source: SourceSpec, *, realtime: bool) -> DataFrame:
        """The table's rows and their changes as records; see ``postgres_cdc``."""
        return read_changes(spark, source, self.name, self.settings)

    def records_at(self, source: SourceSpec, position: Mapping[str, Any], timeout: float) -> Iterator[Record]:
        """Rows and changes of the batch that are at this place of the log; of first rows any."""
        return waiting_records(source, int(position["offset"]))

    def watch_source(self, source: SourceSpec) -> SourceWatch | None:
        """The replication slot of a query."""
        return watch(source, self.name, self.settings)

    def forget_readers(self, prefix: str) -> None:
        """Drop a query's slots and publications."""
        forget(prefix, self.name, self.settings)

    def table_misfits(
        self, table: Table, columns: Sequence[Column], primary_key: Sequence[str]
    ) -> list[Misfit]:
        """Missing columns, types that do not fit, keys that are not there."""
        return misfits(table, columns, primary_key, PostgresTypes())

    def read_misfits(
        self, table: Table, columns: Sequence[Column], primary_key: Sequence[str]
    ) -> list[Misfit]:
        """Missing columns, types that are read as others, NULLs, keys that are not there."""
        return read_misfits(table, columns, primary_key, PostgresTypes())

    def table_reader(self, spec: LookupSpec) -> TableReader:
        """Look at the table once more."""
        from leatstream.connectors.postgres.lookup import PostgresTableReader

        found = self.find_entity(spec.entity)
        if found is None or found.table is None:
            raise StoreError("store-rejected", f"Table {spec.entity} of store {self.name} is gone.")
        columns = [Column(c.name, parse_type(c.type), c.not_null) for c in spec.columns]
        wrong = self.read_misfits(found.table, columns, ())
        if wrong:
            shown = "; ".join(one.detail for one in wrong)
            raise StoreError(
                "store-rejected", f"Table {spec.entity} of store {self.name} has changed: {shown}."
            )
        return PostgresTableReader(self.name, self.settings, spec, found.table)

    def table_writer(self, spec: JobSpec) -> TableWriter:
        """Look at the table once more, and claim it for this attempt."""
        from leatstream.connectors.postgres.sink import PostgresTableWriter

        sink = spec.sink
        found = self.find_entity(sink.entity)
        if found is None or found.table is None:
            raise StoreError("store-rejected", f"Table {sink.entity} of store {self.name} is gone.")
        columns = [Column(c.name, parse_type(c.type), c.not_null) for c in sink.columns]
        wrong = self.table_misfits(found.table, columns, sink.key_columns)
        if wrong:
            shown = "; ".join(one.detail for one in wrong)
            raise StoreError(
                "store-rejected", f"Table {sink.entity} of store {self.name} has changed: {shown}."
            )
        return PostgresTableWriter(self.name, self.settings, spec, found.table)


def _check_configs(configs: Mapping[str, str]) -> str:
    """The replica identity; RequestError with every fault."""
    faults = Faults()
    identity = configs.get(REPLICA_IDENTITY, "default").lower()
    if identity not in _IDENTITIES:
        faults.add("invalid-property", f"{REPLICA_IDENTITY} is {', '.join(_IDENTITIES)}.")
    for name in sorted(set(configs) - {REPLICA_IDENTITY}):
        faults.add(
            "invalid-property", f"{name} is no setting of a table.", hint=f"There is {REPLICA_IDENTITY}."
        )
    faults.raise_if_any()
    return identity


def _same(table: Table, columns: Sequence[Column], primary_key: Sequence[str]) -> bool:
    """Whether a table is as it would have been made."""
    made = [(c.name, column_type(c.type)) for c in columns]
    return made == [(c.name, c.native) for c in table.columns] and tuple(primary_key) == table.primary_key

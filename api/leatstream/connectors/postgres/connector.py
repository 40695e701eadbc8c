"""PostgreSQL: the tables of one database, asked and written with psycopg."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from leatstream.connectors.capabilities import Capabilities, EntityProperty, Guarantee
from leatstream.connectors.entities import Entity, NewRecord, OptionFault, Record, SourceWatch
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
from leatstream.connectors.postgres.types import POSTGRES_TYPES, column_type, read_type
from leatstream.connectors.postgres.words import PostgresWords
from leatstream.connectors.settings import StoreSettings
from leatstream.connectors.store_words import NO_CHOICE, StoreWords
from leatstream.connectors.table_connector import TableConnector
from leatstream.connectors.table_fit import TableTypes
from leatstream.connectors.writers import TableReader, TableWriter
from leatstream.errors import Faults, Position
from leatstream.model.names import quote
from leatstream.model.objects import Relation
from leatstream.model.types import DataType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from leatstream.plan.job_spec import JobSpec, LookupSpec, SourceSpec

_IDENTITIES = ("default", "full", "nothing")
_LONGEST = 63  # bytes


class PostgresConnector(TableConnector):
    """The tables of one PostgreSQL database; an entity is ``table`` or ``schema.table``."""

    kind: ClassVar[str] = "postgres"
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
    types: ClassVar[TableTypes] = POSTGRES_TYPES
    admin: PostgresAdmin

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
            faults.append(OptionFault(schema, f"{schema} must be a name."))
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

    @classmethod
    def kept_type(cls, kind: DataType) -> DataType:
        """PostgreSQL has no TINYINT, MAP or STRUCT, and one precision of times."""
        return read_type(column_type(kind))

    def update_entity(
        self, entity: str, properties: Mapping[str, int], configs: Mapping[str, str], timeout: float = 10.0
    ) -> None:
        """Set the replica identity; what is not given goes back to the default."""
        self.existing(entity, timeout)
        self.admin.set_identity(entity, _check_configs(configs), timeout)

    def property_limits(self, timeout: float = 5.0) -> Mapping[str, int]:
        """None: tables have no such properties."""
        return {}

    def read_records(
        self, entity: str, *, from_beginning: bool, limit: int | None, idle_timeout: float | None
    ) -> Iterator[Record | None]:
        """The rows that are there, by primary key; a table has no end to wait at, so it ends after them."""
        return rows(self.admin, entity, self.existing(entity, 5.0), limit)

    def write_records(self, entity: str, records: Sequence[NewRecord], timeout: float = 10.0) -> None:
        """Write rows in one transaction."""
        write(self.admin, entity, self.existing(entity, timeout), records, timeout)

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

    def table_reader(self, spec: LookupSpec) -> TableReader:
        """Look at the table once more."""
        from leatstream.connectors.postgres.lookup import PostgresTableReader

        table = self.read_table(spec.entity, spec.columns)
        return PostgresTableReader(self.name, self.settings, spec, table)

    def table_writer(self, spec: JobSpec) -> TableWriter:
        """Look at the table once more, and claim it for this attempt."""
        from leatstream.connectors.postgres.sink import PostgresTableWriter

        sink = spec.sink
        table = self.written_table(sink.entity, sink.columns, sink.key_columns)
        return PostgresTableWriter(self.name, self.settings, spec, table)


def _check_configs(configs: Mapping[str, str]) -> str:
    """The replica identity; RequestError with every fault."""
    faults = Faults()
    identity = configs.get(REPLICA_IDENTITY, "default").lower()
    if identity not in _IDENTITIES:
        faults.add("invalid-property", f"{REPLICA_IDENTITY} is {', '.join(_IDENTITIES)}.")
    for name in sorted(set(configs) - {REPLICA_IDENTITY}):
        faults.add(
            "invalid-property", f"{name} is no setting of a table.", hint=f"Available: {REPLICA_IDENTITY}."
        )
    faults.raise_if_any()
    return identity

"""Oracle Database: the tables of one service, asked and written with python-oracledb. Experimental."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from leatstream.connectors.base import Connector
from leatstream.connectors.capabilities import Capabilities, EntityProperty, Guarantee
from leatstream.connectors.entities import Entity, Misfit, NewRecord, OptionFault, Record, Table
from leatstream.connectors.entity_settings import EntitySettings
from leatstream.connectors.oracle import entity as entities
from leatstream.connectors.oracle.admin import OracleAdmin
from leatstream.connectors.oracle.names import name_fault
from leatstream.connectors.oracle.records import rows, write
from leatstream.connectors.oracle.settings import OracleConfig
from leatstream.connectors.oracle.types import OracleTypes, column_type, read_type
from leatstream.connectors.oracle.words import OracleWords
from leatstream.connectors.settings import StoreSettings
from leatstream.connectors.store_words import NO_CHOICE, StoreWords
from leatstream.connectors.table_fit import misfits, read_misfits
from leatstream.connectors.upper_names import canonical
from leatstream.connectors.writers import TableReader, TableWriter
from leatstream.errors import Faults, StoreError
from leatstream.model.objects import Column
from leatstream.model.types import DataType, parse_type
from leatstream.plan.job_spec import JobSpec, LookupSpec


class OracleConnector(Connector):
    """The tables of an Oracle database; an entity is ``table`` or ``schema.table``."""

    kind: ClassVar[str] = "oracle"
    entity_noun: ClassVar[str] = "table"
    capabilities: ClassVar[Capabilities] = Capabilities(
        sink=True,
        create_as=True,
        create_entity=True,
        print_records=True,
        insert_values=True,
        lookup=True,
        batches=True,
        delivery=(
            Guarantee(
                "exactly_once", "a batch and its number are one transaction; rows with a key are merged"
            ),
        ),
        verified_on="H2 in its Oracle mode behind python-oracledb's interface",
        unverified="any Oracle server: its SQL, logins, TLS and types",
    )
    EntityConfig: ClassVar[type[EntitySettings] | None] = entities.OracleEntity
    property_families: ClassVar[tuple[str, ...]] = ("oracle.",)
    table_names: ClassVar[tuple[str, ...]] = entities.TABLE_NAMES
    Config: ClassVar[type[StoreSettings]] = OracleConfig
    words: ClassVar[StoreWords] = OracleWords(
        types=("oracle",),
        title="an Oracle store",
        more=("uris", "tls.disabled"),
        unsupported={
            **NO_CHOICE,
            "tls.verify_server_hostname": "over TLS the host's name is always checked",
            "tls.client.cert_file": "users log in with a password",
            "tls.client.key_file": "users log in with a password",
            "oracle.sid": "name a service of the database in 'uris'",
            "oracle.wallet": "write the authority's PEM text into 'tls.ca_cert_file'",
        },
    )
    tables: ClassVar[bool] = True

    def __init__(self, name: str, config: StoreSettings) -> None:
        super().__init__(name, config)
        if not isinstance(config, OracleConfig):
            raise TypeError("an Oracle store takes an OracleConfig")
        self.settings = config
        self.admin = OracleAdmin(name, config)

    @classmethod
    def entity_name_fault(cls, name: str) -> str | None:
        """Why Oracle cannot have a table of this name, or None."""
        return name_fault(name)

    @classmethod
    def needed_properties(cls, configs: Mapping[str, str]) -> tuple[EntityProperty, ...]:
        """None; RequestError for settings, of which tables have none."""
        faults = Faults()
        for name in sorted(configs):
            faults.add("invalid-property", f"{name} is no setting of a table.", hint="Leave it out.")
        faults.raise_if_any()
        return ()

    def named_entity(self, named: Mapping[str, str], default: str) -> tuple[str, list[OptionFault]]:
        """``schema.table``, or the table's name alone in the user's own schema."""
        schema, table = self.table_names
        name = named.get(table, default)
        given = named.get(schema)
        if given is None or given == canonical(self.settings.own_schema):
            # A dot would part schema and table.
            return (f"{canonical(self.settings.own_schema)}.{name}" if "." in name else name), []
        faults = [OptionFault(schema, f"{schema} is a name without a dot.")] if "." in given else []
        return f"{given}.{name}", faults

    # -- admin half ------------------------------------------------------------------------------------------

    def test(self, timeout: float) -> None:
        """Log in and ask for a row."""
        self.admin.server(timeout)

    def about(self, timeout: float) -> Mapping[str, str]:
        """Server version."""
        return self.admin.server(timeout)

    def list_entities(self, timeout: float = 5.0) -> list[Entity]:
        """Every table that the user may see, without those of Oracle's own users."""
        return self.admin.entities(timeout)

    def find_entity(self, entity: str, timeout: float = 5.0) -> Entity | None:
        """The table with columns and keys."""
        return self.admin.find(entity, timeout) if name_fault(entity) is None else None

    def incarnation(self, entity: str, timeout: float = 5.0) -> str | None:
        """The table's object id."""
        return self.admin.identity(entity, timeout) if name_fault(entity) is None else None

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
        """Create the table; its schema is a user, and must exist."""
        fault = name_fault(entity)
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
        """Oracle has no BOOLEAN in tables before 23ai, no TIME, and a DATE with a time of day."""
        return read_type(column_type(kind))

    def update_entity(
        self, entity: str, properties: Mapping[str, int], configs: Mapping[str, str], timeout: float = 10.0
    ) -> None:
        """Nothing: a table has no settings."""
        self._table(entity, timeout)

    def drop_entity(self, entity: str, timeout: float = 10.0) -> None:
        """Drop the table."""
        if name_fault(entity) is None:
            self.admin.drop(entity, timeout)

    def read_records(
        self, entity: str, *, from_beginning: bool, limit: int | None, idle_timeout: float | None
    ) -> Iterator[Record | None]:
        """The existing rows, by primary key; a table has no end to wait at, so it ends after them."""
        return rows(self.admin, entity, self._table(entity, 5.0), limit)

    def write_records(self, entity: str, records: Sequence[NewRecord], timeout: float = 10.0) -> None:
        """Write rows in one transaction."""
        write(self.admin, entity, self._table(entity, timeout), records, timeout)

    def _table(self, entity: str, timeout: float) -> Table:
        found = self.find_entity(entity, timeout)
        if found is None or found.table is None:
            raise StoreError("entity-not-found", f"Table {entity} does not exist in store {self.name}.")
        return found.table

    def forget_batches(self, query_id: str, timeout: float) -> None:
        """Remove the query's row of batch numbers and its temporary tables."""
        from leatstream.connectors.oracle.batches import forget
        from leatstream.connectors.oracle.sink import staged_prefix

        forget(self.name, self.settings, query_id, timeout)
        self.admin.drop_own(staged_prefix(query_id), timeout)

    # -- Spark half ------------------------------------------------------------------------------------------

    def table_misfits(
        self, table: Table, columns: Sequence[Column], primary_key: Sequence[str]
    ) -> list[Misfit]:
        """Missing columns, types that do not fit, keys that are not there."""
        return misfits(table, columns, primary_key, OracleTypes())

    def read_misfits(
        self, table: Table, columns: Sequence[Column], primary_key: Sequence[str]
    ) -> list[Misfit]:
        """Missing columns, types that are read as others, NULLs, keys that are not there."""
        return read_misfits(table, columns, primary_key, OracleTypes())

    def table_reader(self, spec: LookupSpec) -> TableReader:
        """Look at the table once more."""
        from leatstream.connectors.oracle.lookup import OracleTableReader

        found = self._present(spec.entity)
        columns = [Column(c.name, parse_type(c.type), c.not_null) for c in spec.columns]
        self._unchanged(spec.entity, self.read_misfits(found, columns, ()))
        return OracleTableReader(self.name, self.settings, spec, found)

    def table_writer(self, spec: JobSpec) -> TableWriter:
        """Look at the table once more, and claim it for this attempt."""
        from leatstream.connectors.oracle.sink import OracleTableWriter

        sink = spec.sink
        found = self._present(sink.entity)
        columns = [Column(c.name, parse_type(c.type), c.not_null) for c in sink.columns]
        self._unchanged(sink.entity, self.table_misfits(found, columns, sink.key_columns))
        return OracleTableWriter(self.name, self.settings, spec, found)

    def _present(self, entity: str) -> Table:
        found = self.find_entity(entity)
        if found is None or found.table is None:
            raise StoreError("store-rejected", f"Table {entity} of store {self.name} is gone.")
        return found.table

    def _unchanged(self, entity: str, wrong: Sequence[Misfit]) -> None:
        if wrong:
            shown_faults = "; ".join(one.detail for one in wrong)
            raise StoreError(
                "store-rejected", f"Table {entity} of store {self.name} has changed: {shown_faults}."
            )


def _same(table: Table, columns: Sequence[Column], primary_key: Sequence[str]) -> bool:
    """Whether a table is as it would have been made."""
    made = [(c.name, column_type(c.type)) for c in columns]
    return made == [(c.name, c.native) for c in table.columns] and tuple(primary_key) == table.primary_key

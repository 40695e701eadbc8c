"""Oracle Database: the tables of one service, asked and written with python-oracledb. Experimental."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from leatstream.connectors.capabilities import Capabilities, Guarantee
from leatstream.connectors.entities import NewRecord, OptionFault, Record
from leatstream.connectors.entity_settings import EntitySettings
from leatstream.connectors.oracle import entity as entities
from leatstream.connectors.oracle.admin import OracleAdmin
from leatstream.connectors.oracle.names import name_fault
from leatstream.connectors.oracle.records import rows, write
from leatstream.connectors.oracle.settings import OracleConfig
from leatstream.connectors.oracle.types import ORACLE_TYPES, column_type, read_type
from leatstream.connectors.oracle.words import OracleWords
from leatstream.connectors.settings import StoreSettings
from leatstream.connectors.store_words import NO_CHOICE, StoreWords
from leatstream.connectors.table_connector import TableConnector
from leatstream.connectors.table_fit import TableTypes
from leatstream.connectors.upper_names import canonical
from leatstream.connectors.writers import TableReader, TableWriter
from leatstream.model.types import DataType
from leatstream.plan.job_spec import JobSpec, LookupSpec


class OracleConnector(TableConnector):
    """The tables of an Oracle database; an entity is ``table`` or ``schema.table``."""

    kind: ClassVar[str] = "oracle"
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
    types: ClassVar[TableTypes] = ORACLE_TYPES
    admin: OracleAdmin

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

    def named_entity(self, named: Mapping[str, str], default: str) -> tuple[str, list[OptionFault]]:
        """``schema.table``, or the table's name alone in the user's own schema."""
        schema, table = self.table_names
        name = named.get(table, default)
        given = named.get(schema)
        if given is None or given == canonical(self.settings.own_schema):
            # A dot would part schema and table.
            return (f"{canonical(self.settings.own_schema)}.{name}" if "." in name else name), []
        faults = [OptionFault(schema, f"{schema} must be a name without a dot.")] if "." in given else []
        return f"{given}.{name}", faults

    # -- admin half ------------------------------------------------------------------------------------------

    def test(self, timeout: float) -> None:
        """Log in and ask for a row."""
        self.admin.server(timeout)

    def about(self, timeout: float) -> Mapping[str, str]:
        """Server version."""
        return self.admin.server(timeout)

    @classmethod
    def kept_type(cls, kind: DataType) -> DataType:
        """Oracle has no BOOLEAN in tables before 23ai, no TIME, and a DATE with a time of day."""
        return read_type(column_type(kind))

    def read_records(
        self, entity: str, *, from_beginning: bool, limit: int | None, idle_timeout: float | None
    ) -> Iterator[Record | None]:
        """The existing rows, by primary key; a table has no end to wait at, so it ends after them."""
        return rows(self.admin, entity, self.existing(entity, 5.0), limit)

    def write_records(self, entity: str, records: Sequence[NewRecord], timeout: float = 10.0) -> None:
        """Write rows in one transaction."""
        write(self.admin, entity, self.existing(entity, timeout), records, timeout)

    def forget_batches(self, query_id: str, timeout: float) -> None:
        """Remove the query's row of batch numbers and its temporary tables."""
        from leatstream.connectors.oracle.batches import forget
        from leatstream.connectors.oracle.sink import staged_prefix

        forget(self.name, self.settings, query_id, timeout)
        self.admin.drop_own(staged_prefix(query_id), timeout)

    def table_reader(self, spec: LookupSpec) -> TableReader:
        """Look at the table once more."""
        from leatstream.connectors.oracle.lookup import OracleTableReader

        table = self.read_table(spec.entity, spec.columns)
        return OracleTableReader(self.name, self.settings, spec, table)

    def table_writer(self, spec: JobSpec) -> TableWriter:
        """Look at the table once more, and claim it for this attempt."""
        from leatstream.connectors.oracle.sink import OracleTableWriter

        sink = spec.sink
        table = self.written_table(sink.entity, sink.columns, sink.key_columns)
        return OracleTableWriter(self.name, self.settings, spec, table)

    # -- Spark half ------------------------------------------------------------------------------------------

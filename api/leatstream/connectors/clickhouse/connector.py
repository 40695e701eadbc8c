"""ClickHouse: the tables of one server, asked and written over its HTTP interface."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from leatstream.connectors.capabilities import Capabilities, Guarantee
from leatstream.connectors.clickhouse import batches, fit, view_indexes, views
from leatstream.connectors.clickhouse import entity as entities
from leatstream.connectors.clickhouse.admin import ClickHouseAdmin
from leatstream.connectors.clickhouse.names import entity_name, name_fault, split_entity
from leatstream.connectors.clickhouse.records import rows, write
from leatstream.connectors.clickhouse.settings import ClickHouseConfig
from leatstream.connectors.clickhouse.types import CLICKHOUSE_TYPES, kept_type
from leatstream.connectors.clickhouse.words import ClickHouseWords
from leatstream.connectors.entities import Misfit, NewRecord, OptionFault, Record, StoredView, Table
from leatstream.connectors.entity_settings import EntitySettings
from leatstream.connectors.settings import StoreSettings
from leatstream.connectors.store_words import NO_CHOICE, StoreWords
from leatstream.connectors.table_connector import TableConnector
from leatstream.connectors.table_fit import TableTypes
from leatstream.connectors.writers import TableReader, TableWriter
from leatstream.model.objects import Column
from leatstream.model.types import DataType

if TYPE_CHECKING:
    from leatstream.plan.job_spec import JobSpec, LookupSpec

_INTERVAL = 1000  # milliseconds: each batch makes parts that the server has to merge
_CLIENT = "users log in with a password"


class ClickHouseConnector(TableConnector):
    """The tables of one ClickHouse server; an entity is ``table`` or ``database.table``."""

    kind: ClassVar[str] = "clickhouse"
    capabilities: ClassVar[Capabilities] = Capabilities(
        verified_on="the engine of ClickHouse 26.5 (chdb) behind its HTTP interface",
        unverified="a ClickHouse server, its users and grants, TLS, replicas, ClickHouse Cloud",
        sink=True,
        create_as=True,
        view=True,
        view_swap=True,
        create_entity=True,
        print_records=True,
        insert_values=True,
        lookup=True,
        batches=True,
        delivery=(
            Guarantee(
                "exactly_once",
                "tables with a key are read with FINAL; tables without one remember their last 1000 inserts, "
                "and a repeated one has to be among them",
            ),
        ),
    )
    EntityConfig: ClassVar[type[EntitySettings] | None] = entities.ClickHouseEntity
    property_families: ClassVar[tuple[str, ...]] = ("clickhouse.",)
    table_names: ClassVar[tuple[str, ...]] = entities.TABLE_NAMES
    Config: ClassVar[type[StoreSettings]] = ClickHouseConfig
    words: ClassVar[StoreWords] = ClickHouseWords(
        types=("clickhouse",),
        title="a ClickHouse store",
        more=("uris", "tls.disabled", "tls.verify_server_hostname"),
        unsupported={**NO_CHOICE, "tls.client.cert_file": _CLIENT, "tls.client.key_file": _CLIENT},
    )
    types: ClassVar[TableTypes] = CLICKHOUSE_TYPES
    admin: ClickHouseAdmin
    shape_words: ClassVar[str] = "other columns, another key or engine"

    def __init__(self, name: str, config: StoreSettings) -> None:
        super().__init__(name, config)
        if not isinstance(config, ClickHouseConfig):
            raise TypeError("a ClickHouse store takes a ClickHouseConfig")
        self.settings = config
        self.admin = ClickHouseAdmin(name, config)

    def canonical_entity(self, name: str) -> str:
        """A table of the store's own database is called without it."""
        return entity_name(*split_entity(name, self.settings.home), self.settings.home)

    @classmethod
    def entity_name_fault(cls, name: str) -> str | None:
        """Why ClickHouse cannot have a table of this name, or None."""
        return name_fault(name)

    def named_entity(self, named: Mapping[str, str], default: str) -> tuple[str, list[OptionFault]]:
        """``database.table``."""
        database, table = self.table_names
        faults: list[OptionFault] = []
        if "." in named.get(database, ""):
            faults.append(OptionFault(database, f"{database} must be a name."))
        return f"{named.get(database, self.settings.home)}.{named.get(table, default)}", faults

    @classmethod
    def trigger_interval_ms(cls, options: Mapping[str, str]) -> int:
        """A second: ClickHouse wants few large inserts."""
        return _INTERVAL

    # -- admin half ------------------------------------------------------------------------------------------

    def test(self, timeout: float) -> None:
        """Log in and ask for the version."""
        self.admin.server(timeout)

    def about(self, timeout: float) -> Mapping[str, str]:
        """Server version and time zone."""
        return self.admin.server(timeout)

    def create_view_rows(self, view: StoredView, timeout: float = 10.0) -> None:
        """Create the table of a version's rows."""
        views.create_rows(self.admin, view, timeout)

    def show_view(self, view: StoredView, timeout: float = 10.0) -> None:
        """Put a view over this version's rows in the place of the one before, and create what is missing."""
        views.show(self.admin, view, timeout)

    def drop_view(self, entity: str, versions: Sequence[str] = ("",), timeout: float = 10.0) -> None:
        """Drop the view and its tables of rows.

        Args:
            entity: the view's name in the store.
            versions: whose rows are dropped with it.
            timeout: seconds.
        """
        views.drop(self.admin, entity, versions, timeout)

    def drop_view_rows(self, entity: str, version: str, timeout: float = 10.0) -> None:
        """Drop the table of a version's rows.

        Args:
            entity: the view's name in the store.
            version: whose rows they are.
            timeout: seconds.
        """
        views.drop_rows(self.admin, entity, version, timeout)

    def add_view_index(
        self, entity: str, version: str, name: str, columns: Sequence[Column], timeout: float = 10.0
    ) -> None:
        """Add data-skipping indexes to the table of a version's rows.

        Args:
            entity: the view's name in the store.
            version: whose rows they are.
            name: the index's, unique in the view.
            columns: of the view.
            timeout: seconds.
        """
        view_indexes.add(self.admin, views.rows_entity(entity, version), name, columns, timeout)

    def drop_view_index(self, entity: str, version: str, name: str, timeout: float = 10.0) -> None:
        """Drop the data-skipping indexes of this name.

        Args:
            entity: the view's name in the store.
            version: whose rows they are.
            name: the index's.
            timeout: seconds.
        """
        view_indexes.drop(self.admin, views.rows_entity(entity, version), name, timeout)

    @classmethod
    def view_rows(cls, entity: str, version: str = "") -> str:
        """The table that the view reads when it shows this version."""
        return views.rows_entity(entity, version)

    @classmethod
    def kept_type(cls, kind: DataType) -> DataType:
        """ClickHouse keeps every type; times have one precision."""
        return kept_type(kind)

    def read_records(
        self, entity: str, *, from_beginning: bool, limit: int | None, idle_timeout: float | None
    ) -> Iterator[Record | None]:
        """The existing rows, by key; a table has no end to wait at, so it ends after them."""
        return rows(self.admin, entity, self.existing(entity, 5.0), limit)

    def write_records(self, entity: str, records: Sequence[NewRecord], timeout: float = 10.0) -> None:
        """Write rows; those of the same columns in a row are one insert."""
        write(self.admin, entity, self.existing(entity, timeout), records, timeout)

    def forget_batches(self, query_id: str, timeout: float) -> None:
        """Remove the query's row of ``leatstream_batches``."""
        with self.admin.client("forgetting a query", timeout) as client:
            batches.forget(client, query_id)

    def is_as_made(self, table: Table, columns: Sequence[Column], primary_key: Sequence[str]) -> bool:
        """Compare the engine too, and the declared types, which comments of columns keep."""
        kept = [kept_type(c.type) for c in columns] == [c.type for c in table.columns]
        as_made = super().is_as_made(table, columns, primary_key)
        return as_made and kept and not fit.engine_misfits(table, primary_key)

    # -- Spark half ------------------------------------------------------------------------------------------

    def table_misfits(
        self, table: Table, columns: Sequence[Column], primary_key: Sequence[str]
    ) -> list[Misfit]:
        """Missing columns, types that do not fit, an engine or a key by which rows would not be replaced."""
        return fit.misfits(table, columns, primary_key)

    def table_reader(self, spec: LookupSpec) -> TableReader:
        """Look at the table once more."""
        from leatstream.connectors.clickhouse.lookup import ClickHouseTableReader

        table = self.read_table(spec.entity, spec.columns)
        return ClickHouseTableReader(self.name, self.settings, spec, table)

    def table_writer(self, spec: JobSpec) -> TableWriter:
        """Look at the table once more, and claim it for this attempt."""
        from leatstream.connectors.clickhouse.sink import ClickHouseTableWriter

        sink = spec.sink
        if sink.stored_view:
            sink = sink.model_copy(update={"entity": views.rows_entity(sink.entity, sink.version)})
            spec = spec.model_copy(update={"sink": sink})
        table = self.written_table(sink.entity, sink.columns, sink.key_columns)
        return ClickHouseTableWriter(self.name, self.settings, spec, table)

    # -- Spark half ------------------------------------------------------------------------------------------

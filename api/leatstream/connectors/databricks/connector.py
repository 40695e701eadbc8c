"""Databricks: external Delta tables of a Unity Catalog, written past the warehouse. Experimental."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from leatstream.connectors.capabilities import Capabilities, Guarantee
from leatstream.connectors.databricks import entity as entities
from leatstream.connectors.databricks.admin import DatabricksAdmin, no_bucket
from leatstream.connectors.databricks.names import DEFAULT, name_fault
from leatstream.connectors.databricks.records import rows
from leatstream.connectors.databricks.settings import DatabricksConfig, DatabricksFiles
from leatstream.connectors.databricks.types import DATABRICKS_TYPES, column_type, read_type
from leatstream.connectors.databricks.words import PORT, DatabricksWords
from leatstream.connectors.entities import Misfit, OptionFault, Record, Table
from leatstream.connectors.entity_settings import EntitySettings
from leatstream.connectors.settings import StoreSettings
from leatstream.connectors.store_words import NO_CHOICE, StoreWords
from leatstream.connectors.table_connector import TableConnector
from leatstream.connectors.table_fit import TableTypes
from leatstream.connectors.writers import TableWriter
from leatstream.errors import StoreError
from leatstream.model.objects import Column
from leatstream.model.types import DataType
from leatstream.plan.job_spec import JobSpec

_REFUSED = {name: hint for name, hint in NO_CHOICE.items() if name != "access_region"}


class DatabricksConnector(TableConnector):
    """The tables of one catalog; an entity is ``table``, ``schema.table`` or ``catalog.schema.table``."""

    kind: ClassVar[str] = "databricks"
    capabilities: ClassVar[Capabilities] = Capabilities(
        sink=True,
        create_as=True,
        create_entity=True,
        print_records=True,
        batches=True,
        delivery=(
            Guarantee(
                "exactly_once",
                "a batch and its number are one version of the Delta table; rows with a key are merged",
            ),
        ),
        verified_on="delta-rs on moto's S3, and databricks-sdk against a facade of the workspace's API",
        unverified="a Databricks workspace, Unity Catalog, a SQL warehouse, Amazon S3",
    )
    EntityConfig: ClassVar[type[EntitySettings] | None] = entities.DatabricksEntity
    property_families: ClassVar[tuple[str, ...]] = ("databricks.", "table.data.")
    table_names: ClassVar[tuple[str, ...]] = entities.TABLE_NAMES
    Config: ClassVar[type[StoreSettings]] = DatabricksConfig
    words: ClassVar[StoreWords] = DatabricksWords(
        types=("databricks",),
        title="a Databricks store",
        more=(PORT, "access_region"),
        unsupported={
            **_REFUSED,
            "tls.disabled": "the workspace is reached by https://",
            "tls.ca_cert_file": "the machine's own authorities are trusted",
            "databricks.volume": "new tables lie in a bucket: 'databricks.cloud.s3.bucket'",
        },
    )
    types: ClassVar[TableTypes] = DATABRICKS_TYPES
    admin: DatabricksAdmin

    def __init__(self, name: str, config: StoreSettings) -> None:
        super().__init__(name, config)
        if not isinstance(config, DatabricksConfig):
            raise TypeError("a Databricks store takes a DatabricksConfig")
        self.settings = config
        self.admin = DatabricksAdmin(name, config)

    @classmethod
    def canonical_entity(cls, name: str) -> str:
        """``default.Orders`` is ``orders``: the catalog has no case."""
        lower = name.lower()
        return lower.removeprefix(f"{DEFAULT}.") if lower.count(".") == 1 else lower

    @classmethod
    def entity_name_fault(cls, name: str) -> str | None:
        """Why the catalog cannot have a table of this name, or None."""
        return name_fault(name)

    @classmethod
    def trigger_interval_ms(cls, options: Mapping[str, str]) -> int:
        """Each batch is a version with files of its own: seldom and large ones are read faster."""
        return 30_000

    @classmethod
    def relation_options(
        cls, given: Mapping[str, Any], columns: Sequence[str], value_format: str
    ) -> tuple[dict[str, str], list[OptionFault]]:
        """None; a table's place is the store's to say.

        Args:
            given: those of every kind's own words, as written.
            columns: the relation's.
            value_format: has no meaning for tables.
        """
        options, faults = super().relation_options(
            {name: value for name, value in given.items() if name != entities.LOCATION}, columns, value_format
        )
        if entities.LOCATION in given:
            detail = f"{entities.LOCATION} is not read: new tables lie in the bucket of the store."
            hint = "Leave it out. A table that lies elsewhere is named by its name in the catalog."
            faults.append(OptionFault(entities.LOCATION, detail, hint))
        return options, faults

    def named_entity(self, named: Mapping[str, str], default: str) -> tuple[str, list[OptionFault]]:
        """``schema.table``, with the catalog before it where it is not the store's."""
        catalog, schema, table = self.table_names
        faults = [
            OptionFault(name, f"{name} is a name without a dot.")
            for name in (catalog, schema)
            if "." in named.get(name, "")
        ]
        found = f"{named.get(schema, DEFAULT)}.{named.get(table, default)}"
        own = named.get(catalog, self.settings.catalog).lower()
        return (found if own == self.settings.catalog.lower() else f"{own}.{found}"), faults

    # -- admin half ------------------------------------------------------------------------------------------

    def test(self, timeout: float) -> None:
        """Log in, and look at the warehouse; it is not started."""
        self.admin.workspace.warehouse(timeout)

    def about(self, timeout: float) -> Mapping[str, str]:
        """Name and state of the warehouse."""
        return self.admin.workspace.warehouse(timeout)

    @classmethod
    def kept_type(cls, kind: DataType) -> DataType:
        """Delta's texts have no length, and it has no TIME."""
        return read_type(column_type(kind))

    def read_records(
        self, entity: str, *, from_beginning: bool, limit: int | None, idle_timeout: float | None
    ) -> Iterator[Record | None]:
        """The existing rows; a table has no end to wait at, so it ends after them."""
        table = self.existing(entity, 5.0)
        return rows(self.name, self._files(), entity, self._location(entity, table), table.primary_key, limit)

    def _files(self) -> DatabricksFiles:
        if self.settings.s3 is None:
            raise no_bucket(self.name)
        return self.settings.s3

    def _location(self, entity: str, table: Table) -> str:
        fault = _apart(table)
        if fault is not None:
            raise StoreError(
                "store-rejected", f"Table {entity} of store {self.name}: {fault.detail}.", hint=fault.hint
            )
        return str(table.details["location"])

    # -- Spark half ------------------------------------------------------------------------------------------

    def table_misfits(
        self, table: Table, columns: Sequence[Column], primary_key: Sequence[str]
    ) -> list[Misfit]:
        """Files that the workspace owns, missing columns, types that do not fit, missing keys."""
        found = super().table_misfits(table, columns, primary_key)
        fault = _apart(table)
        return found if fault is None else [fault, *found]

    def table_writer(self, spec: JobSpec) -> TableWriter:
        """Look at the table once more, and claim it for this attempt."""
        from leatstream.connectors.databricks.sink import DatabricksTableWriter

        sink = spec.sink
        table = self.written_table(sink.entity, sink.columns, sink.key_columns)
        return DatabricksTableWriter(self.name, self._files(), self._location(sink.entity, table), spec)

    # -- Spark half ------------------------------------------------------------------------------------------


def _apart(table: Table) -> Misfit | None:
    """Why a table's files are not for leatstream to touch, or None."""
    location = str(table.details.get("location") or "")
    kind, form = table.details.get("type"), table.details.get("format")
    if (kind, form) == ("EXTERNAL", "DELTA") and location.startswith("s3://"):
        return None
    return Misfit(
        f"it is no external Delta table on S3, but {str(kind).lower()}, {str(form).lower()}",
        "Let leatstream create the table, or create one with LOCATION 's3://…'",
    )

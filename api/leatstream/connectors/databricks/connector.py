"""Databricks: Delta tables of a Unity Catalog, managed by the workspace or external. Experimental."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from leatstream.connectors.capabilities import Capabilities, Guarantee
from leatstream.connectors.databricks import entity as entities
from leatstream.connectors.databricks.admin import DatabricksAdmin
from leatstream.connectors.databricks.names import DEFAULT, full_name, name_fault, quoted
from leatstream.connectors.databricks.records import rows, selected_rows
from leatstream.connectors.databricks.settings import DatabricksConfig
from leatstream.connectors.databricks.types import DATABRICKS_TYPES, column_type, read_type
from leatstream.connectors.databricks.words import PORT, DatabricksWords
from leatstream.connectors.entities import Misfit, OptionFault, Record, Table
from leatstream.connectors.entity_settings import EntitySettings
from leatstream.connectors.settings import StoreSettings
from leatstream.connectors.store_words import NO_CHOICE, StoreWords
from leatstream.connectors.table_connector import TableConnector
from leatstream.connectors.table_fit import TableTypes
from leatstream.connectors.writers import TableWriter
from leatstream.model.objects import Column
from leatstream.model.types import DataType
from leatstream.plan.job_spec import JobSpec

_LOOK = 30.0  # seconds
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
                "external tables: a batch and its number are one version of the Delta table; managed tables: "
                "rows with a key are merged, others rely on COPY INTO, which loads a file once, and which "
                "the double of the tests imitates",
            ),
        ),
        verified_on="delta-rs on moto's S3; databricks-sdk against a facade of the workspace's API, over "
        "Spark with open Delta Lake",
        unverified="a Databricks workspace: Unity Catalog, a SQL warehouse, COPY INTO, volumes; Amazon S3",
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
            OptionFault(name, f"{name} must be a name without a dot.")
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
        table, files = self.existing(entity, 5.0), self.settings.s3
        if files is not None and _is_external(table):
            return rows(self.name, files, entity, str(table.details["location"]), table.primary_key, limit)
        return selected_rows(
            self.admin.warehouse, entity, self._statement_name(entity), table.primary_key, limit
        )

    def _statement_name(self, entity: str) -> str:
        return quoted(*full_name(self.settings.catalog, entity).split("."))

    # -- Spark half ------------------------------------------------------------------------------------------

    def table_misfits(
        self, table: Table, columns: Sequence[Column], primary_key: Sequence[str]
    ) -> list[Misfit]:
        """Tables that cannot be reached, missing columns, types that do not fit, missing keys."""
        found = super().table_misfits(table, columns, primary_key)
        fault = self._apart(table)
        return found if fault is None else [fault, *found]

    def _apart(self, table: Table) -> Misfit | None:
        """Why rows cannot be written to a table, or None."""
        form = str(table.details.get("format"))
        if form != "DELTA":
            return Misfit(f"it is no Delta table, but {form.lower()}", "Let leatstream create the table")
        if self.settings.volume is not None or (self.settings.s3 is not None and _is_external(table)):
            return None
        return Misfit(
            "it is managed by the workspace, and the store names no volume where rows wait for the warehouse"
            if table.details.get("type") == "MANAGED"
            else "the store names neither the bucket of its files nor a volume",
            "Give the store a volume: 'databricks.volume' = '/Volumes/main/default/staging'",
        )

    def table_writer(self, spec: JobSpec) -> TableWriter:
        """Look at the table once more, and claim it for this attempt."""
        from leatstream.connectors.databricks.managed_sink import ManagedTableWriter
        from leatstream.connectors.databricks.sink import DatabricksTableWriter

        sink, files = spec.sink, self.settings.s3
        table = self.written_table(sink.entity, sink.columns, sink.key_columns)
        if files is not None and _is_external(table):
            return DatabricksTableWriter(self.name, files, str(table.details["location"]), spec)
        identity = str(self.admin.identity(sink.entity, _LOOK))
        name = self._statement_name(sink.entity)
        return ManagedTableWriter(self.name, self.settings, spec, table, name, identity)


def _is_external(table: Table) -> bool:
    """Whether a table's files are for leatstream to touch."""
    location = str(table.details.get("location") or "")
    kind = table.details.get("type"), table.details.get("format")
    return kind == ("EXTERNAL", "DELTA") and location.startswith("s3://")

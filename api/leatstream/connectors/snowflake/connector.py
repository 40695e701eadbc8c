"""Snowflake: the tables of an account, asked and written with its connector for Python."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from leatstream.connectors.capabilities import Capabilities, Guarantee
from leatstream.connectors.entities import NewRecord, OptionFault, Record, Table
from leatstream.connectors.entity_settings import EntitySettings
from leatstream.connectors.settings import StoreSettings
from leatstream.connectors.snowflake.admin import SnowflakeAdmin
from leatstream.connectors.snowflake.entity import (
    BATCHES,
    PUBLIC,
    STAGED,
    TABLE_NAMES,
    SnowflakeEntity,
    entity_name,
    place_of,
)
from leatstream.connectors.snowflake.records import rows, write
from leatstream.connectors.snowflake.settings import SnowflakeConfig
from leatstream.connectors.snowflake.types import SNOWFLAKE_TYPES, column_type, read_type
from leatstream.connectors.snowflake.words import REGION, SnowflakeWords
from leatstream.connectors.store_words import NO_CHOICE, StoreWords
from leatstream.connectors.table_connector import TableConnector
from leatstream.connectors.table_fit import TableTypes
from leatstream.connectors.upper_names import canonical
from leatstream.connectors.writers import TableReader, TableWriter
from leatstream.errors import StoreError
from leatstream.model.objects import Column
from leatstream.model.types import DataType
from leatstream.plan.job_spec import JobSpec, LookupSpec

BUFFER = "snowflake.buffer.millis"
_INTERVAL = 10_000
_LONGEST = 255  # characters of a name
_MILLIS = re.compile(r"[0-9]{1,8}\Z")
_HOUR = 3_600_000


class SnowflakeConnector(TableConnector):
    """The tables of an account; an entity is ``table``, ``schema.table`` or ``database.schema.table``."""

    kind: ClassVar[str] = "snowflake"
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
                "exactly_once",
                "a batch and its number are one transaction; of rows with one key the last one stays; relies "
                "on Snowflake's transactions, which the double of the tests does not have in full",
            ),
        ),
        verified_on="fakesnow (DuckDB) behind a login by key pair, with Snowflake's own connector",
        unverified="a Snowflake account: its locks, limits, warehouses and rights",
    )
    EntityConfig: ClassVar[type[EntitySettings] | None] = SnowflakeEntity
    property_families: ClassVar[tuple[str, ...]] = ("snowflake.",)
    table_names: ClassVar[tuple[str, ...]] = TABLE_NAMES
    option_names: ClassVar[tuple[str, ...]] = (BUFFER,)
    Config: ClassVar[type[StoreSettings]] = SnowflakeConfig
    words: ClassVar[StoreWords] = SnowflakeWords(
        types=("snowflake",),
        title="a Snowflake store",
        # The region is a part of the account's address, and asked for no more.
        more=("uris", REGION),
        unsupported={
            **NO_CHOICE,
            "tls.disabled": "Snowflake answers over TLS only",
            "tls.verify_server_hostname": "Snowflake's certificate is always checked",
            "tls.ca_cert_file": "Snowflake's certificate is checked with the machine's authorities",
        },
    )
    types: ClassVar[TableTypes] = SNOWFLAKE_TYPES
    admin: SnowflakeAdmin

    def __init__(self, name: str, config: StoreSettings) -> None:
        super().__init__(name, config)
        if not isinstance(config, SnowflakeConfig):
            raise TypeError("a Snowflake store takes a SnowflakeConfig")
        self.settings = config
        self.admin = SnowflakeAdmin(name, config)

    def canonical_entity(self, name: str) -> str:
        """``SHOP.PUBLIC.ORDERS`` is ``orders`` in a store with database shop."""
        fault = self.entity_name_fault(name)
        database = self.settings.database
        return name if fault is not None else entity_name(place_of(name, database), database)

    @classmethod
    def entity_name_fault(cls, name: str) -> str | None:
        """Why Snowflake cannot have a table of this name, or None."""
        parts = [canonical(part) for part in name.split(".")]
        if len(parts) > 3 or not all(_is_name(part) for part in parts):
            return (
                "a table is called table, schema.table or database.schema.table, and each part has 1 to 255"
                " characters and no quotation mark"
            )
        if parts[-1] in (BATCHES, STAGED) or (len(parts) > 1 and parts[-2] == "information_schema"):
            return "this name belongs to Snowflake or to leatstream"
        return None

    def named_entity(self, named: Mapping[str, str], default: str) -> tuple[str, list[OptionFault]]:
        """``database.schema.table``, of the store's database where none is named."""
        faults = [
            OptionFault(key, f"{key} is one name, without a dot.") for key in named if "." in named[key]
        ]
        keys = self.table_names
        database, schema, table = (named.get(key) for key in keys)
        if database is None and self.settings.database is None:
            detail = f"Store {self.name} has no database, so a table's own has to be named."
            faults.append(OptionFault(keys[0], detail, f"WITH ('{keys[0]}' = '…'), or give the store one."))
        parts = (database or self.settings.database or "", schema or PUBLIC, table or default)
        return ".".join(parts), faults

    @classmethod
    def relation_options(
        cls, given: Mapping[str, Any], columns: Sequence[str], value_format: str
    ) -> tuple[dict[str, str], list[OptionFault]]:
        """How often batches are written, beside the table's names."""
        mine = {name: value for name, value in given.items() if name != BUFFER}
        found, faults = super().relation_options(mine, columns, value_format)
        if BUFFER in given:
            millis = str(given[BUFFER])
            if _MILLIS.match(millis) and 1000 <= int(millis) <= _HOUR:
                found[BUFFER] = str(int(millis))
            else:
                detail = f"{BUFFER} must be a whole number of milliseconds from 1000 to {_HOUR}."
                faults.append(OptionFault(BUFFER, detail, f"The default is {_INTERVAL}."))
        return found, faults

    @classmethod
    def trigger_interval_ms(cls, options: Mapping[str, str]) -> int:
        """Each batch keeps the warehouse running, which costs money."""
        return int(options.get(BUFFER, _INTERVAL))

    # -- admin half ------------------------------------------------------------------------------------------

    def test(self, timeout: float) -> None:
        """Log in and ask for the version, which needs no warehouse."""
        self.admin.server(timeout)

    def about(self, timeout: float) -> Mapping[str, str]:
        """Snowflake's version."""
        return self.admin.server(timeout)

    @classmethod
    def kept_type(cls, kind: DataType) -> DataType:
        """Snowflake has no FLOAT of 4 bytes, one precision of times, and VARIANT for what is nested."""
        return read_type(column_type(kind))

    def read_records(
        self, entity: str, *, from_beginning: bool, limit: int | None, idle_timeout: float | None
    ) -> Iterator[Record | None]:
        """The existing rows, by primary key; a table has no end to wait at, so it ends after them."""
        return rows(self.admin, entity, self.existing(entity, 5.0), limit)

    def write_records(self, entity: str, records: Sequence[NewRecord], timeout: float = 10.0) -> None:
        """Write rows in one transaction."""
        write(self.admin, entity, self.existing(entity, timeout), records, timeout)

    def check_new(self, entity: str, columns: Sequence[Column], primary_key: Sequence[str]) -> None:
        """Refuse names of columns that would be others there."""
        for column in columns:
            if not _is_name(column.name) or canonical(column.name) != column.name:
                raise StoreError(
                    "store-rejected",
                    f"A column of table {entity} cannot be called {column.name}.",
                    hint="Write names in lower case: Snowflake has them in upper case, which means the same.",
                )

    def is_as_made(self, table: Table, columns: Sequence[Column], primary_key: Sequence[str]) -> bool:
        """Compare what types are read back as: Snowflake has several words for one."""
        made = [(c.name, read_type(column_type(c.type))) for c in columns]
        return made == [(c.name, c.type) for c in table.columns] and tuple(primary_key) == table.primary_key

    # -- Spark half ------------------------------------------------------------------------------------------

    def table_reader(self, spec: LookupSpec) -> TableReader:
        """Look at the table once more."""
        from leatstream.connectors.snowflake.lookup import SnowflakeTableReader

        table = self.read_table(spec.entity, spec.columns)
        return SnowflakeTableReader(self.name, self.settings, spec, table)

    def table_writer(self, spec: JobSpec) -> TableWriter:
        """Look at the table once more, and claim it for this attempt."""
        from leatstream.connectors.snowflake.sink import SnowflakeTableWriter

        sink = spec.sink
        table = self.written_table(sink.entity, sink.columns, sink.key_columns)
        return SnowflakeTableWriter(self.name, self.settings, spec, table)

    # -- Spark half ------------------------------------------------------------------------------------------


def _is_name(part: str) -> bool:
    return 0 < len(part) <= _LONGEST and '"' not in part and all(ord(c) >= 32 for c in part)

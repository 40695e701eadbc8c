"""What every kind whose entities are tables does alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Protocol

from leatstream.connectors.base import Connector
from leatstream.connectors.capabilities import EntityProperty
from leatstream.connectors.entities import Entity, Misfit, Table
from leatstream.connectors.table_fit import TableTypes, misfits, read_misfits
from leatstream.errors import Faults, StoreError
from leatstream.model.objects import Column
from leatstream.model.types import parse_type

if TYPE_CHECKING:
    from leatstream.plan.job_spec import ColumnSpec

_LOOK = 30.0  # seconds, at the start of a job: a warehouse may have to wake


class TableAdmin(Protocol):
    """Asks a store about its tables; each method raises StoreError."""

    def entities(self, timeout: float) -> list[Entity]:
        """Every table that the login may see."""

    def find(self, entity: str, timeout: float) -> Entity | None:
        """The table with columns and keys, or None."""

    def identity(self, entity: str, timeout: float) -> str | None:
        """What a later table of the same name does not share; None if there is no table."""

    def create(
        self, entity: str, columns: Sequence[Column], primary_key: Sequence[str], timeout: float
    ) -> bool:
        """Create a table and its schema if there is none; whether it is known to be new.

        Args:
            entity: the table.
            columns: its columns.
            primary_key: names of the key's columns.
            timeout: seconds.
        """

    def drop(self, entity: str, timeout: float) -> None:
        """Drop a table; idempotent."""


class TableConnector(Connector):
    """A kind with ``tables``. A subclass has its settings, reader and writer, and what differs.

    Attributes:
        types: of its tables' columns.
        shape_words: what has to be the same for a table to be the one that would be made.
    """

    entity_noun: ClassVar[str] = "table"
    tables: ClassVar[bool] = True
    types: ClassVar[TableTypes]
    shape_words: ClassVar[str] = "other columns or another key"
    admin: TableAdmin

    @classmethod
    def needed_properties(cls, configs: Mapping[str, str]) -> tuple[EntityProperty, ...]:
        """None; RequestError for settings, of which tables have none."""
        faults = Faults()
        for name in sorted(configs):
            faults.add("invalid-property", f"{name} is no setting of a table.", hint="Leave it out.")
        faults.raise_if_any()
        return ()

    # -- admin half ------------------------------------------------------------------------------------------

    def list_entities(self, timeout: float = 5.0) -> list[Entity]:
        """Every table that the login may see."""
        return self.admin.entities(timeout)

    def find_entity(self, entity: str, timeout: float = 5.0) -> Entity | None:
        """The table with columns and keys."""
        return self.admin.find(entity, timeout) if self.entity_name_fault(entity) is None else None

    def incarnation(self, entity: str, timeout: float = 5.0) -> str | None:
        """The store's own identity of the table."""
        return self.admin.identity(entity, timeout) if self.entity_name_fault(entity) is None else None

    def create_entity(
        self, entity: str, properties: Mapping[str, int], configs: Mapping[str, str], timeout: float = 10.0
    ) -> None:
        """Refused: a table has columns; see ``create_table``.

        Args:
            entity: the table.
            properties: of the entity; a table has none.
            configs: settings; a table has none.
            timeout: seconds.

        Raises:
            StoreError: store-rejected, always.
        """
        raise StoreError(
            "store-rejected",
            f"A table of store {self.name} is made of columns, and none were given for {entity}.",
            hint="CREATE STREAM … AS SELECT and CREATE CHANGELOG … AS SELECT make the table they need.",
        )

    def create_table(
        self, entity: str, columns: Sequence[Column], primary_key: Sequence[str], timeout: float = 10.0
    ) -> None:
        """Create the table, and what it lies in if the store allows it.

        Args:
            entity: the table.
            columns: its columns.
            primary_key: names of the key's columns.
            timeout: seconds.

        Raises:
            StoreError: store-rejected; entity-conflict, there is another table of this name.
        """
        fault = self.entity_name_fault(entity)
        if fault is not None:
            raise StoreError("store-rejected", f"{entity!r} cannot be the name of a table: {fault}.")
        self.check_new(entity, columns, primary_key)
        if self.admin.create(entity, columns, primary_key, timeout):
            return
        found = self.find_entity(entity, timeout)
        if found is None or found.table is None or not self.is_as_made(found.table, columns, primary_key):
            detail = f"Table {entity} exists in store {self.name} with {self.shape_words}."
            raise StoreError("entity-conflict", detail)

    def check_new(self, entity: str, columns: Sequence[Column], primary_key: Sequence[str]) -> None:
        """Refuse columns that a new table cannot have, before the store is asked.

        Args:
            entity: the table.
            columns: its columns.
            primary_key: names of the key's columns.

        Raises:
            StoreError: store-rejected.
        """

    def is_as_made(self, table: Table, columns: Sequence[Column], primary_key: Sequence[str]) -> bool:
        """Whether a table is as ``create_table`` would have made it.

        Args:
            table: as it is now.
            columns: those it would have.
            primary_key: names of the key's columns.
        """
        made = [(c.name, self.types.column_type(c.type)) for c in columns]
        there = [(c.name, c.native) for c in table.columns]
        return made == there and tuple(primary_key) == table.primary_key

    def update_entity(
        self, entity: str, properties: Mapping[str, int], configs: Mapping[str, str], timeout: float = 10.0
    ) -> None:
        """Nothing of a table changes in place.

        Args:
            entity: the table.
            properties: of the entity; a table has none.
            configs: settings; a table has none.
            timeout: seconds.

        Raises:
            StoreError: entity-not-found.
            RequestError: invalid-property, for settings.
        """
        self.existing(entity, timeout)
        self.needed_properties(configs)

    def drop_entity(self, entity: str, timeout: float = 10.0) -> None:
        """Drop the table."""
        if self.entity_name_fault(entity) is None:
            self.admin.drop(entity, timeout)

    def existing(self, entity: str, timeout: float) -> Table:
        """The table; StoreError entity-not-found."""
        found = self.find_entity(entity, timeout)
        if found is None or found.table is None:
            raise StoreError("entity-not-found", f"Table {entity} does not exist in store {self.name}.")
        return found.table

    # -- Spark half ------------------------------------------------------------------------------------------

    def table_misfits(
        self, table: Table, columns: Sequence[Column], primary_key: Sequence[str]
    ) -> list[Misfit]:
        """Missing columns, types that do not fit, keys that are not there.

        Args:
            table: as it is now.
            columns: that are written.
            primary_key: names of the key's columns.
        """
        return misfits(table, columns, primary_key, self.types)

    def read_misfits(
        self, table: Table, columns: Sequence[Column], primary_key: Sequence[str]
    ) -> list[Misfit]:
        """Missing columns, types that are read as others, NULLs, keys that are not there.

        Args:
            table: as it is now.
            columns: that are read.
            primary_key: names of the key's columns.
        """
        return read_misfits(table, columns, primary_key, self.types)

    def written_table(self, entity: str, columns: Sequence[ColumnSpec], primary_key: Sequence[str]) -> Table:
        """The table at the start of a job that writes it.

        Args:
            entity: the table.
            columns: the sink's.
            primary_key: columns by which rows replace each other.

        Raises:
            StoreError: store-rejected, it is gone or does not fit any more.
        """
        table = self._present(entity)
        return self._unchanged(entity, table, self.table_misfits(table, _columns(columns), primary_key))

    def read_table(self, entity: str, columns: Sequence[ColumnSpec]) -> Table:
        """The table at the start of a job that looks rows up; StoreError as of ``written_table``."""
        table = self._present(entity)
        return self._unchanged(entity, table, self.read_misfits(table, _columns(columns), ()))

    def _present(self, entity: str) -> Table:
        found = self.find_entity(entity, _LOOK)
        if found is None or found.table is None:
            raise StoreError("store-rejected", f"Table {entity} of store {self.name} is gone.")
        return found.table

    def _unchanged(self, entity: str, table: Table, wrong: Sequence[Misfit]) -> Table:
        if wrong:
            shown = "; ".join(one.detail for one in wrong)
            raise StoreError("store-rejected", f"Table {entity} of store {self.name} has changed: {shown}.")
        return table


def _columns(specs: Sequence[ColumnSpec]) -> list[Column]:
    return [Column(c.name, parse_type(c.type), c.not_null) for c in specs]

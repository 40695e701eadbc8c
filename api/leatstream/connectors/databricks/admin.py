"""The tables of a catalog: listed, described, created and dropped."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from leatstream.connectors.databricks.errors import RefusedStatementError, file_errors
from leatstream.connectors.databricks.files import storage_options
from leatstream.connectors.databricks.names import entity_name, full_name, quoted
from leatstream.connectors.databricks.settings import DatabricksConfig, DatabricksFiles
from leatstream.connectors.databricks.statements import Warehouse
from leatstream.connectors.databricks.types import read_type
from leatstream.connectors.databricks.volume import TOP, remove
from leatstream.connectors.databricks.workspace import Workspace
from leatstream.connectors.entities import Entity, Table, TableColumn
from leatstream.errors import StoreError
from leatstream.formats.arrow_types import arrow_type
from leatstream.model.objects import Column

_WAREHOUSE = 300.0  # seconds: one that is stopped takes minutes to start
_COMMENT = "Made by leatstream."
_NO_ORDER = ("BOOLEAN", "BYTES", "VARBINARY", "ARRAY", "MAP", "STRUCT")  # no statistics, so no clustering


class DatabricksAdmin:
    """One catalog of a workspace."""

    def __init__(self, store: str, config: DatabricksConfig) -> None:
        self.store = store
        self.config = config
        self.workspace = Workspace(store, config)
        self.warehouse = Warehouse(self.workspace)

    def entities(self, timeout: float) -> list[Entity]:
        """All tables of the catalog by name; views are left out."""
        found: list[Entity] = []
        catalog = self.config.catalog
        with self.workspace.errors("listing tables", timeout):
            client = self.workspace.client(timeout)
            for schema in client.schemas.list(catalog_name=catalog):
                if schema.name in (None, "information_schema"):
                    continue
                for one in client.tables.list(catalog_name=catalog, schema_name=str(schema.name)):
                    if _is_table(one):
                        found.append(Entity(entity_name(catalog, str(one.full_name)), table=Table(())))
        return sorted(found, key=lambda e: e.name)

    def find(self, entity: str, timeout: float) -> Entity | None:
        """The table with columns, key, and where its files lie; None where there is none."""
        found = self.info(entity, timeout)
        if found is None:
            return None
        keys = [
            tuple(one.primary_key_constraint.child_columns)
            for one in found.table_constraints or ()
            if one.primary_key_constraint is not None
        ]
        columns = tuple(
            TableColumn(
                name=str(column.name),
                type=read_type(str(column.type_text)),
                native=str(column.type_text),
                not_null=column.nullable is False,
                comment=column.comment,
            )
            for column in found.columns or ()
        )
        details = {
            "location": found.storage_location,
            "format": found.data_source_format.value if found.data_source_format else None,
            "type": found.table_type.value if found.table_type else None,
        }
        table = Table(columns, keys[0] if keys else (), tuple(keys), details)
        return Entity(entity_name(self.config.catalog, str(found.full_name)), table=table)

    def info(self, entity: str, timeout: float) -> Any:
        """What the catalog has of a table; None where there is none."""
        try:
            with self.workspace.errors(f"describing table {entity}", timeout):
                found = self.workspace.client(timeout).tables.get(full_name(self.config.catalog, entity))
        except StoreError as error:
            if error.code == "entity-not-found":
                return None
            raise
        return found if _is_table(found) else None

    def identity(self, entity: str, timeout: float) -> str | None:
        """The table's id in the catalog; None if there is no table."""
        found = self.info(entity, timeout)
        return None if found is None else str(found.table_id)

    def create(
        self, entity: str, columns: Sequence[Column], primary_key: Sequence[str], timeout: float
    ) -> bool:
        """Make an empty Delta table: in the bucket, or managed without one; whether there was no table.

        Args:
            entity: the table's name.
            columns: its columns.
            primary_key: names of the key's columns; empty = no key.
            timeout: seconds; a warehouse that has to start gets more.
        """
        if self.info(entity, timeout) is not None:
            return False
        files = self.config.s3
        if files is None and self.config.volume is None:
            raise no_place(self.store)
        catalog, schema, _ = names = full_name(self.config.catalog, entity).split(".")
        bound = max(timeout, _WAREHOUSE)
        self._execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(catalog, schema)}", entity, bound)
        if files is not None:
            statements = self._external(entity, files, columns, primary_key)
        else:
            statements = [managed_table(names, columns, primary_key)]
        try:
            for statement in statements:
                self._execute(statement, entity, bound)
        except RefusedStatementError as error:
            if error.condition.startswith("TABLE_OR_VIEW_ALREADY_EXISTS"):
                return False
            raise
        return True

    def _execute(self, statement: str, entity: str, timeout: float) -> None:
        self.warehouse.run(statement, f"creating table {entity}", timeout)

    def _external(
        self, entity: str, files: DatabricksFiles, columns: Sequence[Column], primary_key: Sequence[str]
    ) -> list[str]:
        """Make a table's files; the statements that register it."""
        catalog, schema, table = full_name(self.config.catalog, entity).split(".")
        # A dropped table's files stay, as those of every external table: a new one begins without them.
        location = "/".join(
            [f"s3://{files.bucket}", *filter(None, [files.prefix]), schema, f"{table}-{uuid.uuid4().hex[:8]}"]
        )
        self._make_files(entity, files, location, columns, primary_key)
        name = quoted(catalog, schema, table)
        statements = [f"CREATE TABLE {name} USING DELTA LOCATION '{location}'"]
        if primary_key:
            statements.append(f"ALTER TABLE {name} ADD {_key(table, primary_key)}")
        return statements

    def _make_files(
        self,
        entity: str,
        files: DatabricksFiles,
        location: str,
        columns: Sequence[Column],
        primary_key: Sequence[str],
    ) -> None:
        import pyarrow as pa

        fields = [
            pa.field(c.name, arrow_type(c.type), nullable=not (c.not_null or c.name in primary_key))
            for c in columns
        ]
        with file_errors(self.store, entity):
            from deltalake import DeltaTable

            DeltaTable.create(location, pa.schema(fields), storage_options=storage_options(files))

    def drop(self, entity: str, timeout: float) -> None:
        """Take a table out of the catalog; an external one's files stay. Does nothing where there is none."""
        found = self.info(entity, timeout)
        if found is None:
            return
        with self.workspace.errors(f"dropping table {entity}", timeout):
            self.workspace.client(timeout).tables.delete(full_name(self.config.catalog, entity))
        if self.config.volume is not None:
            remove(self.workspace, f"{self.config.volume}/{TOP}/{found.table_id}", timeout)


def managed_table(
    names: Sequence[str], columns: Sequence[Column], primary_key: Sequence[str], most: int = 4
) -> str:
    """The statement that makes a managed table, with its key at once.

    Args:
        names: catalog, schema and table.
        columns: its columns.
        primary_key: names of the key's columns; a table is clustered by them, so that a merge reads less.
        most: so many columns at most that it is clustered by.
    """
    parts = [
        f"{quoted(column.name)} {column.type.spark()}"
        + (" NOT NULL" if column.not_null or column.name in primary_key else "")
        + (f" COMMENT {_text(column.comment)}" if column.comment else "")
        for column in columns
    ]
    if primary_key:
        parts.append(_key(names[-1], primary_key))
    kinds = {column.name: column.type.kind for column in columns}
    by = [quoted(name) for name in primary_key if kinds[name] not in _NO_ORDER][:most]
    clustered = f" CLUSTER BY ({', '.join(by)})" if by else ""
    return f"CREATE TABLE {quoted(*names)} ({', '.join(parts)}) USING DELTA{clustered} COMMENT '{_COMMENT}'"


def _key(table: str, primary_key: Sequence[str]) -> str:
    return f"CONSTRAINT {quoted(f'{table}_pk')} PRIMARY KEY ({', '.join(quoted(key) for key in primary_key)})"


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def no_place(store: str) -> StoreError:
    """Neither leatstream nor the warehouse can write rows."""
    return StoreError(
        "store-rejected",
        f"Store {store} names neither a volume nor a bucket, and rows are written there.",
        hint="Give the store 'volume' for managed tables ('databricks.volume' in SQL), or 's3' for external"
        " ones ('databricks.cloud.s3.bucket').",
    )


def _is_table(found: Any) -> bool:
    return found.table_type is not None and found.table_type.value in ("EXTERNAL", "MANAGED")

"""Asking a catalog about tables and changing them; every call ends in time."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from leatstream.connectors.entities import Entity, Table, TableColumn
from leatstream.connectors.iceberg import names
from leatstream.connectors.iceberg.catalogs import Opener, need_client
from leatstream.connectors.iceberg.errors import reported, store_error
from leatstream.connectors.iceberg.first_snapshot import add_first_snapshot
from leatstream.connectors.iceberg.types import native_text, read_type, table_schema
from leatstream.errors import StoreError
from leatstream.model.objects import Column

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table as IcebergTable

_PROPERTIES = {
    # Each commit writes a file of metadata; without these they pile up for ever.
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
    "commit.manifest-merge.enabled": "true",
}
_KEPT = 240.0  # seconds; what a catalog hands out for files, and a role's credentials, live longer


class IcebergAdmin:
    """One catalog. It is kept open for some minutes, as logging in takes a good part of a second."""

    def __init__(self, store: str, where: str, opener: Opener) -> None:
        self.store = store
        self.where = where
        self._opener = opener
        self._open: tuple[float, float, Catalog] | None = None

    @contextlib.contextmanager
    def catalog(
        self, what: str, timeout: float, *, fresh: bool = False, rows: bool = False
    ) -> Iterator[Catalog]:
        """The catalog; its errors are raised as StoreErrors.

        Args:
            what: what is tried, for messages.
            timeout: seconds that a request may last.
            fresh: whether to log in again.
            rows: see ``errors.reported``.
        """
        need_client(self.store)
        with reported(self.store, what, self.where, timeout, rows=rows):
            now = time.monotonic()
            if fresh or self._open is None or self._open[0] < now or self._open[1] != timeout:
                self._open = (now + _KEPT, timeout, self._opener(timeout))
            yield self._open[2]

    def unclear(self, what: str, error: Exception, timeout: float) -> StoreError | None:
        """The fault of a commit that may be made for all that, such as one whose answer was lost; or None.

        Args:
            what: what was tried, for messages.
            error: what the commit raised.
            timeout: seconds that a request had.
        """
        found = store_error(self.store, what, error, self.where, timeout, rows=True)
        return found if found is not None and found.code == "store-unreachable" else None

    def test(self, timeout: float) -> None:
        """Log in, and see that namespaces may be listed."""
        with self.catalog("logging in", timeout, fresh=True) as catalog:
            catalog.list_namespaces()

    def entities(self, timeout: float) -> list[Entity]:
        """Every table of every namespace, by name."""
        deadline = time.monotonic() + timeout
        found: list[str] = []
        with self.catalog("listing tables", timeout) as catalog:
            waiting = list(catalog.list_namespaces())
            seen = set(waiting)
            while waiting:
                if time.monotonic() > deadline:
                    raise StoreError(
                        "store-unreachable",
                        f"Store {self.store}: the catalog did not list its tables within {timeout:g} s.",
                        hint="It has many namespaces; ask for a table by its name.",
                    )
                space = waiting.pop()
                found += filter(None, (names.joined(tuple(one)) for one in catalog.list_tables(space)))
                below = [one for one in self._below(catalog, space) if one not in seen]
                seen |= set(below)
                waiting += below
        return [Entity(name, table=Table(columns=())) for name in sorted(set(found))]

    @staticmethod
    def _below(catalog: Catalog, space: tuple[str, ...]) -> list[tuple[str, ...]]:
        from pyiceberg.exceptions import NoSuchNamespaceError, RESTError

        with contextlib.suppress(NoSuchNamespaceError, NotImplementedError, RESTError):
            return [one for one in catalog.list_namespaces(space) if one[: len(space)] == space]
        return []

    def table(self, entity: str, timeout: float, what: str | None = None) -> IcebergTable | None:
        """The table as it is now, or None.

        Args:
            entity: its name in the store.
            timeout: seconds.
            what: what is tried, for messages.
        """
        need_client(self.store)
        from pyiceberg.exceptions import (
            NoSuchNamespaceError,
            NoSuchPropertyException,
            NoSuchTableError,
        )

        with self.catalog(what or f"looking for table {entity}", timeout) as catalog:
            try:
                return catalog.load_table(names.split(entity))
            except (NoSuchTableError, NoSuchNamespaceError, NoSuchPropertyException):
                return None  # the last one: a table of Glue's that is of another format

    def loaded(self, entity: str, timeout: float, what: str) -> IcebergTable:
        """The table as it is now.

        Args:
            entity: its name in the store.
            timeout: seconds.
            what: what is tried, for messages.

        Raises:
            StoreError: entity-not-found.
        """
        found = self.table(entity, timeout, what)
        if found is None:
            raise StoreError("entity-not-found", f"Table {entity} does not exist in store {self.store}.")
        return found

    def find(self, entity: str, timeout: float) -> Entity | None:
        """The table with its columns and key."""
        found = self.table(entity, timeout)
        return None if found is None else Entity(".".join(names.split(entity)), table=described(found))

    def identity(self, entity: str, timeout: float) -> str | None:
        """An identity that a later table of its name does not share."""
        found = self.table(entity, timeout)
        return None if found is None else str(found.metadata.table_uuid)

    def create(
        self, entity: str, columns: Sequence[Column], primary_key: Sequence[str], timeout: float
    ) -> bool:
        """Create a table and its namespace; False when there is one of this name already.

        Args:
            entity: its name in the store.
            columns: its columns, in this order.
            primary_key: names of the key's columns; empty = no key.
            timeout: seconds.
        """
        need_client(self.store)
        from pyiceberg.exceptions import NamespaceAlreadyExistsError, TableAlreadyExistsError

        identifier = names.split(entity)
        with self.catalog(f"creating table {entity}", timeout) as catalog:
            schema = table_schema(columns, primary_key)
            for depth in range(1, len(identifier)):
                space = identifier[:depth]
                if not catalog.namespace_exists(space):
                    with contextlib.suppress(NamespaceAlreadyExistsError):
                        catalog.create_namespace(space)
            try:
                made = catalog.create_table(identifier, schema, properties=_PROPERTIES)
            except TableAlreadyExistsError:
                return False
        self._begin(made, entity, timeout)
        return True

    def _begin(self, table: IcebergTable, entity: str, timeout: float) -> None:
        """Give a new table its first snapshot; where files cannot be written from here, the job does it."""
        with (
            contextlib.suppress(StoreError),
            self.catalog(f"creating table {entity}", timeout),
            table.transaction() as transaction,
        ):
            add_first_snapshot(table, transaction)

    def drop(self, entity: str, timeout: float) -> None:
        """Drop a table with its files; does nothing where there is none."""
        need_client(self.store)
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

        found = self.table(entity, timeout)
        if found is None:
            return
        with (
            self.catalog(f"dropping table {entity}", timeout) as catalog,
            contextlib.suppress(NoSuchTableError, NoSuchNamespaceError),
        ):
            catalog.purge_table(names.split(entity))


def described(table: IcebergTable) -> Table:
    """What is said of a table: its columns, its identifier fields as its key, and facts for people."""
    schema = table.schema()
    identifiers = schema.identifier_field_ids
    keys = tuple(one.name for one in schema.fields if one.field_id in identifiers)
    # A key inside a struct is none that rows of columns could be matched by.
    whole = bool(keys) and len(keys) == len(identifiers)
    return Table(
        columns=tuple(
            TableColumn(
                name=one.name,
                type=read_type(one.field_type),
                native=native_text(one.field_type),
                not_null=one.required,
                filled=one.write_default is not None,
                comment=one.doc,
            )
            for one in schema.fields
        ),
        primary_key=keys if whole else (),
        unique=(keys,) if whole else (),
        details=_details(table),
    )


def _details(table: IcebergTable) -> dict[str, str | int | None]:
    snapshot = table.current_snapshot()
    summary: Any = snapshot.summary if snapshot is not None else None

    def total(name: str) -> int | None:
        text = summary.get(name) if summary is not None else "0"
        return int(text) if text is not None else None

    parts = ", ".join(str(one.transform) + "(" + one.name + ")" for one in table.spec().fields)
    return {
        "location": table.location(),
        "format_version": table.metadata.format_version,
        "snapshot": snapshot.snapshot_id if snapshot is not None else None,
        "rows": total("total-records"),
        "bytes": total("total-files-size"),
        "files": total("total-data-files"),
        "partitioned_by": parts or None,
    }

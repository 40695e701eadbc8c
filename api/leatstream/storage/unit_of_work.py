"""Units of work: one transaction on the catalog each."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime

import sqlalchemy as sa

from leatstream.errors import CatalogAway, CatalogBusy, CatalogFull
from leatstream.model.access import Account, Invitation, LinkedIdentity, Role, TokenRow
from leatstream.model.functions import FunctionSource, UserFunction
from leatstream.model.objects import Database, Query, Relation, Schema, Store
from leatstream.model.registered import (
    Application,
    DescriptorSource,
    EntityDrop,
    Savepoint,
    SavepointState,
    SchemaRegistry,
    Secret,
    SessionDefaults,
)
from leatstream.ports import (
    AuditRows,
    ChangeRows,
    DriverRows,
    QueryLogRows,
    Repository,
    SecretRows,
    TokenRows,
    UnitOfWork,
)
from leatstream.storage import codec, tables
from leatstream.storage.audit_log import SqlAuditRows
from leatstream.storage.change_log import NotedChanges, SqlChangeRows
from leatstream.storage.engine import BUSY_SECONDS, WRITE, is_away, is_busy, is_full, make_engine
from leatstream.storage.query_log import SqlQueryLogRows
from leatstream.storage.repositories import SqlDriverRows, SqlRepository, SqlSecretRows, SqlTokenRows


class SqlUnitOfWork:
    """One transaction (``ports.UnitOfWork``). Nothing is kept unless ``commit`` is called."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection
        self._noted = noted = NotedChanges()
        self._tokens = SqlTokenRows(connection, noted)
        self.databases: Repository[Database] = SqlRepository(connection, codec.DATABASES, noted)
        self.schemas: Repository[Schema] = SqlRepository(connection, codec.SCHEMAS, noted)
        self.stores: Repository[Store] = SqlRepository(connection, codec.STORES, noted)
        self.relations: Repository[Relation] = SqlRepository(connection, codec.RELATIONS, noted)
        self.queries: Repository[Query] = SqlRepository(connection, codec.QUERIES, noted)
        self.function_sources: Repository[FunctionSource] = SqlRepository(
            connection, codec.FUNCTION_SOURCES, noted
        )
        self.functions: Repository[UserFunction] = SqlRepository(connection, codec.FUNCTIONS, noted)
        self.query_log: QueryLogRows = SqlQueryLogRows(connection, noted)
        self.named_secrets: Repository[Secret] = SqlRepository(connection, codec.SECRETS, noted)
        self.schema_registries: Repository[SchemaRegistry] = SqlRepository(
            connection, codec.SCHEMA_REGISTRIES, noted
        )
        self.descriptor_sources: Repository[DescriptorSource] = SqlRepository(
            connection, codec.DESCRIPTOR_SOURCES, noted
        )
        self.session_defaults: Repository[SessionDefaults] = SqlRepository(connection, codec.SESSION_DEFAULTS)
        self.applications: Repository[Application] = SqlRepository(connection, codec.APPLICATIONS, noted)
        self.savepoints: Repository[Savepoint] = SqlRepository(connection, codec.SAVEPOINTS, noted)
        self.entity_drops: Repository[EntityDrop] = SqlRepository(connection, codec.ENTITY_DROPS)
        self.roles: Repository[Role] = SqlRepository(connection, codec.ROLES, noted)
        self.accounts: Repository[Account] = SqlRepository(connection, codec.ACCOUNTS, noted)
        self.invitations: Repository[Invitation] = SqlRepository(connection, codec.INVITATIONS)
        self.linked_identities: Repository[LinkedIdentity] = SqlRepository(
            connection, codec.LINKED_IDENTITIES
        )
        self.secrets: SecretRows = SqlSecretRows(connection)
        self.drivers: DriverRows = SqlDriverRows(connection)
        self.tokens: TokenRows = self._tokens
        self.audit: AuditRows = SqlAuditRows(connection)
        self.changes: ChangeRows = SqlChangeRows(connection)

    def commit(self) -> None:
        """Make every change of this unit lasting, at once. The unit is over then."""
        self._noted.write(self._connection)
        self._connection.commit()

    @property
    def unfiltered(self) -> UnitOfWork:
        """The unit itself, which shows every object."""
        return self

    def find_token(self, token_hash: str) -> TokenRow | None:
        """The live API token with this SHA-256, or None."""
        return self._tokens.find(token_hash, datetime.now(UTC))

    def waiting_savepoints(self) -> Sequence[Savepoint]:
        """Those that have still to be copied or removed; the others are not read."""
        table = tables.savepoints
        waiting = (
            table.c.document["state"]
            .as_string()
            .in_((SavepointState.PENDING.value, SavepointState.DELETING.value))
        )
        rows = self._connection.execute(sa.select(table).where(waiting).order_by(table.c.key)).mappings()
        return [codec.from_row(codec.SAVEPOINTS, dict(row)) for row in rows]

    def sealed_values(self, after: str, limit: int) -> Sequence[tuple[str, bytes]]:
        """References greater than ``after`` with their envelopes, in order, at most so many."""
        c = tables.secrets.c
        statement = sa.select(c.reference, c.envelope).where(c.reference > after).order_by(c.reference)
        return [(row[0], bytes(row[1])) for row in self._connection.execute(statement.limit(limit))]


class SqlUnits:
    """Opens units of work on one database (``ports.OpenUnit``)."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._reading = engine
        self._writing = engine.execution_options(**{WRITE: True})
        # Those who wait here hold no connection, which the one whose turn it is may need a second of; and
        # SQLite's own waiting is by sleeping ever longer, while a lock inside the process hands over at once.
        self._writer = threading.Lock()

    def __call__(self, *, write: bool = True) -> AbstractContextManager[UnitOfWork]:
        """A unit; ``write=False`` for reading only. Leaving the block without commit rolls back."""
        return self._open(write)

    @contextmanager
    def _open(self, write: bool) -> Iterator[UnitOfWork]:
        alone = self._alone() if write else nullcontext()
        try:
            with alone, (self._writing if write else self._reading).connect() as connection:
                connection.begin()
                yield SqlUnitOfWork(connection)
        except sa.exc.DBAPIError as error:
            if is_away(error):
                raise CatalogAway(str(error.orig)) from error
            if is_busy(error):
                raise _busy() from error
            if is_full(error):
                raise CatalogFull(str(error.orig)) from error
            raise
        except sa.exc.TimeoutError as error:  # every connection of the pool is taken
            raise _busy() from error

    @contextmanager
    def _alone(self) -> Iterator[None]:
        if not self._writer.acquire(timeout=BUSY_SECONDS):
            raise _busy()
        try:
            yield
        finally:
            self._writer.release()

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()


def _busy() -> CatalogBusy:
    return CatalogBusy(f"The catalog is busy: another change has not ended within {BUSY_SECONDS} s.")


def open_units(url: str) -> SqlUnits:
    """Units of work on the catalog at this URL; it must have been migrated (``migrate``).

    Raises:
        StackError: part-failed, the URL names no database that can hold the catalog.
    """
    return SqlUnits(make_engine(url))

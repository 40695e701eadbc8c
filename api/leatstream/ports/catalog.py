"""The catalog: objects of each noun, transactions, tokens, secrets; and the time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, TypeVar

from leatstream.model.access import (
    ANY_EVENT,
    Account,
    AuditEvent,
    AuditFilter,
    Invitation,
    LinkedIdentity,
    Role,
    TokenRow,
)
from leatstream.model.changes import Change
from leatstream.model.functions import FunctionSource, UserFunction
from leatstream.model.objects import (
    Database,
    Query,
    QueryEvent,
    QueryProgress,
    QueryVersion,
    Relation,
    Schema,
    Store,
)
from leatstream.model.registered import (
    Application,
    DescriptorSource,
    EntityDrop,
    Savepoint,
    SchemaRegistry,
    Secret,
    SessionDefaults,
)

T = TypeVar("T")


class Clock(Protocol):
    """The time, so that tests may set it."""

    def now(self) -> datetime:
        """The present moment, with time zone UTC."""


class Repository(Protocol[T]):
    """Objects of one noun inside a unit of work.

    Keys are exact names: a Fqn's text for relations, ``database.schema`` quoted for schemas.
    """

    def key(self, item: T) -> str:
        """The object's key."""

    def find(self, key: str) -> T | None:
        """The object, or None."""

    def find_by_id(self, object_id: str) -> T | None:
        """The object of this opaque id, or None."""

    def add(self, item: T) -> None:
        """Insert; CatalogError already-exists if the key is taken."""

    def update(self, item: T) -> None:
        """Replace the object with the same id."""

    def delete(self, object_id: str) -> None:
        """Remove it; idempotent."""

    def page(self, *, prefix: str = "", after: str = "", limit: int = 1000) -> Sequence[T]:
        """Objects ordered by key.

        Args:
            prefix: what their keys start with.
            after: only keys that are greater than this.
            limit: most objects to return.
        """


class SecretRows(Protocol):
    """Encrypted secret values by reference."""

    def put(self, reference: str, envelope: bytes) -> None:
        """Store an envelope, or replace the one with this reference; idempotent."""

    def find(self, reference: str) -> bytes | None:
        """The envelope, or None."""

    def delete(self, reference: str) -> None:
        """Delete it; idempotent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverRow:
    """What the catalog keeps of a driver process across restarts of the server.

    Attributes:
        role: ``dedicated`` or ``analyzer``.
        token_hash: SHA-256 (hex) of the driver's own bearer token.
        started_at: when it was started (seconds since 1970); for people.
        query_id, attempt: what it runs, if anything.
        server: id of the server that started it.
        report: what that server last noted of it, for people (``engine.driver_notes``).
    """

    id: str
    role: str
    token_hash: str
    pid: int
    started_at: float
    created_at: datetime
    query_id: str | None = None
    attempt: int | None = None
    server: str | None = None
    report: Mapping[str, Any] = field(default_factory=dict)


class DriverRows(Protocol):
    """Driver processes that run or ran."""

    def add(self, row: DriverRow) -> None:
        """Insert a driver."""

    def update(self, row: DriverRow) -> None:
        """Replace the row with the same id, except its report."""

    def note(self, driver_id: str, report: Mapping[str, Any]) -> None:
        """Replace the report of a driver; nothing happens if it is unknown."""

    def delete(self, driver_id: str) -> None:
        """Delete it; idempotent."""

    def list(self) -> Sequence[DriverRow]:
        """All of them, oldest first."""


class TokenRows(Protocol):
    """API tokens; only hashes of values are kept. A token that is rotated has two values for a while."""

    def add(self, row: TokenRow) -> None:
        """Insert a value, or replace the one with the same id."""

    def find(self, token_hash: str, at: datetime) -> TokenRow | None:
        """The value with this hash that had not expired at a moment, or None."""

    def list(self, name: str | None = None) -> Sequence[TokenRow]:
        """Values of one token, or of all, by name and age."""

    def note_use(self, token_id: str, at: datetime) -> None:
        """Record when a value was used last; idempotent."""

    def delete(self, token_id: str) -> None:
        """Revoke a value; idempotent."""

    def delete_of(self, principal: str) -> None:
        """Revoke every token of a principal; idempotent."""


class AuditRows(Protocol):
    """The audit log, which is only added to. Each event's hash covers the one before."""

    def add(self, event: AuditEvent) -> None:
        """Append an event; called inside the transaction of the change that it is about."""

    def page(
        self,
        *,
        before: int | None = None,
        after: int | None = None,
        limit: int = 100,
        only: AuditFilter = ANY_EVENT,
    ) -> Sequence[AuditEvent]:
        """Events, newest first; with ``after`` oldest first.

        Args:
            before: only events with a smaller number.
            after: only events with a larger number.
            limit: most events to return.
            only: which of them.
        """

    def broken(self) -> int | None:
        """Number of the first event whose hash does not fit, or None."""

    def oldest(self) -> datetime | None:
        """When the oldest event was; None of an empty log."""

    def delete_until(self, at: datetime) -> int:
        """Delete the events before a moment; returns how many."""


class ChangeRows(Protocol):
    """The feed of changes. Writes of the other rows add to it in their transaction; its order is theirs."""

    def newest(self) -> str:
        """Id of the last change; of an empty feed the place before all."""

    def has(self, change_id: str) -> bool:
        """Whether the change is kept."""

    def after(self, change_id: str, limit: int) -> Sequence[Change]:
        """Changes after one, oldest first."""

    def before(self, change_id: str | None, limit: int) -> Sequence[Change]:
        """Changes before one, or the newest; newest first."""

    def last_of_roles(self, roles: Sequence[str]) -> str:
        """Id of the last change of one of these roles; the place before all where none is kept."""

    def present(self, changes: Sequence[Change]) -> Mapping[str, tuple[str, str]]:
        """Key and owner, by id, of the objects of these changes that still exist."""

    def oldest(self) -> datetime | None:
        """When the oldest change was; None of an empty feed."""

    def exceeds(self, most: int) -> bool:
        """Whether more changes than this are kept."""

    def delete_old(self, until: datetime, most: int) -> int:
        """Delete what is older than a moment or exceeds a number, but not the newest; returns how many."""


class QueryLogRows(Protocol):
    """What happened to queries: the newest events and versions of each; older ones are deleted."""

    def add_event(self, query_id: str, event: QueryEvent) -> None:
        """Append an event."""

    def add_version(self, query_id: str, version: QueryVersion) -> None:
        """Append a version of its statement."""

    def add_progress(self, query_id: str, progress: QueryProgress) -> None:
        """Append what its job reported."""

    def progress(self, query_id: str, limit: int, since: datetime | None = None) -> Sequence[QueryProgress]:
        """The newest, oldest of them first.

        Args:
            query_id: of the query.
            limit: the most moments.
            since: only moments after this one; None = as far back as they are kept.
        """

    def events(self, query_id: str, limit: int) -> Sequence[QueryEvent]:
        """The newest, oldest of them first."""

    def versions(self, query_id: str, limit: int) -> Sequence[QueryVersion]:
        """The newest, oldest of them first."""

    def add_handed_on(self, query_id: str, heir_id: str) -> None:
        """Record that another query has taken over, and has the versions of this one as its own."""

    def delete_of(self, query_id: str) -> None:
        """Delete all rows of a query; idempotent."""


class UnitOfWork(Protocol):
    """One transaction on the catalog. Nothing is kept unless ``commit`` is called."""

    databases: Repository[Database]
    schemas: Repository[Schema]
    stores: Repository[Store]
    relations: Repository[Relation]
    queries: Repository[Query]
    function_sources: Repository[FunctionSource]
    functions: Repository[UserFunction]
    query_log: QueryLogRows
    named_secrets: Repository[Secret]
    schema_registries: Repository[SchemaRegistry]
    descriptor_sources: Repository[DescriptorSource]
    session_defaults: Repository[SessionDefaults]
    applications: Repository[Application]
    savepoints: Repository[Savepoint]
    entity_drops: Repository[EntityDrop]
    secrets: SecretRows
    drivers: DriverRows
    tokens: TokenRows
    audit: AuditRows
    changes: ChangeRows
    roles: Repository[Role]
    accounts: Repository[Account]
    invitations: Repository[Invitation]
    linked_identities: Repository[LinkedIdentity]

    @property
    def unfiltered(self) -> UnitOfWork:
        """The unit as the service itself sees it: with what is hidden from who asks."""

    def commit(self) -> None:
        """Make every change of this unit lasting, at once."""

    def find_token(self, token_hash: str) -> TokenRow | None:
        """The live API token with this SHA-256, or None."""

    def waiting_savepoints(self) -> Sequence[Savepoint]:
        """Those still to be copied or removed; cheap where there is none, as it is asked all the time."""

    def sealed_values(self, after: str, limit: int) -> Sequence[tuple[str, bytes]]:
        """References greater than ``after`` with their envelopes, in order, at most so many."""


class OpenUnit(Protocol):
    """Opens units of work; leaving the block without commit rolls back."""

    def __call__(self, *, write: bool = True) -> AbstractContextManager[UnitOfWork]:
        """A unit; ``write=False`` for reading only."""


class SecretBox(Protocol):
    """Seals and opens secret values."""

    def seal(self, reference: str, value: str) -> bytes:
        """Encrypt for this reference only."""

    def open(self, reference: str, envelope: bytes) -> str:
        """Decrypt; fails if the envelope was made for another reference."""

"""What the services need from the outside, as protocols; ``bootstrap`` chooses who provides it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol, TypeVar

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
from leatstream.plan.job_spec import ViewDatabase
from leatstream.plan.logical import AnalysisFailure, AnalyzedColumn, FunctionShape, ViewSchema

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
        """Remove it; nothing happens if it is not there."""

    def page(self, *, prefix: str = "", after: str = "", limit: int = 1000) -> Sequence[T]:
        """Objects whose key starts with ``prefix`` and is greater than ``after``, ordered by key."""


class SecretRows(Protocol):
    """Enveloped secret values by reference."""

    def put(self, reference: str, envelope: bytes) -> None:
        """Store or replace."""

    def find(self, reference: str) -> bytes | None:
        """The envelope, or None."""

    def delete(self, reference: str) -> None:
        """Forget it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverRow:
    """What is remembered of a driver process across restarts of the API.

    Attributes:
        role: ``dedicated`` or ``analyzer``.
        token_hash: SHA-256 (hex) of the driver's own bearer token.
        started_at: when it was started (seconds of 1970); for people.
        query_id, attempt: what it was given to run, if anything.
        server: id of the server that started it.
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


class DriverRows(Protocol):
    """Driver processes that are or were there."""

    def add(self, row: DriverRow) -> None:
        """Remember a driver."""

    def find(self, driver_id: str) -> DriverRow | None:
        """The driver, or None."""

    def update(self, row: DriverRow) -> None:
        """Replace what is known of the driver with the same id."""

    def delete(self, driver_id: str) -> None:
        """Forget it; nothing happens if it is not there."""

    def list(self) -> Sequence[DriverRow]:
        """All of them, oldest first."""


class TokenRows(Protocol):
    """API tokens; only hashes are kept."""

    def add(
        self,
        token_id: str,
        token_hash: str,
        principal: str,
        role: str,
        *,
        created_at: datetime,
        expires_at: datetime | None = None,
    ) -> None:
        """Remember a token; one with the same id is replaced."""

    def delete(self, token_id: str) -> None:
        """Revoke it."""

    def delete_of(self, principal: str) -> None:
        """Revoke every token of a principal."""


class QueryLogRows(Protocol):
    """What happened to queries: the newest events and versions of each, older ones are forgotten."""

    def add_event(self, query_id: str, event: QueryEvent) -> None:
        """Note an event."""

    def add_version(self, query_id: str, version: QueryVersion) -> None:
        """Note a version."""

    def add_progress(self, query_id: str, progress: QueryProgress) -> None:
        """Note what its job told."""

    def progress(self, query_id: str, limit: int) -> Sequence[QueryProgress]:
        """The newest, oldest of them first."""

    def events(self, query_id: str, limit: int) -> Sequence[QueryEvent]:
        """The newest, oldest of them first."""

    def versions(self, query_id: str, limit: int) -> Sequence[QueryVersion]:
        """The newest, oldest of them first."""

    def add_handed_on(self, query_id: str, heir_id: str) -> None:
        """Let the versions of one query be those of another, which has taken over from it."""

    def delete_of(self, query_id: str) -> None:
        """Forget all of a query's."""


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

    def commit(self) -> None:
        """Make every change of this unit lasting, at once."""

    def find_token(self, token_hash: str) -> tuple[str, str] | None:
        """Principal name and role of a live API token by its SHA-256, or None."""

    def waiting_savepoints(self) -> Sequence[Savepoint]:
        """Those still to be copied or removed; cheap where there is none, as it is asked all the time."""


class CheckpointFiles(Protocol):
    """Files of checkpoints. Every path is below their root, and its parts are parted by ``/``.

    Under a URL any of these may wait for a file system that is far away, for some seconds where it does not
    answer; copies and removals take as long as they take.

    Raises:
        CheckpointError: from each of them: the file system of a URL does not answer, or refuses.
        OSError: from each of them: a disk's faults.
    """

    def names(self, path: str) -> list[str]:
        """Names of what lies in a folder, in order; none where there is no such folder."""

    def read(self, path: str) -> str:
        """The text of a small file; FileNotFoundError."""

    def modified(self, path: str) -> float | None:
        """When a file was written last, seconds since 1970; None where there is no such file."""

    def holds(self, checkpoint: str) -> bool:
        """Whether a checkpoint is there; half a copy is none."""

    def copy(self, source: str, target: str, parts: Sequence[str] | None = None) -> None:
        """Copy a checkpoint that no job writes to, or parts of one that never change.

        The target is there whole or not at all (``holds``); one that is there is left alone, so that whoever
        was interrupted may ask again.

        Args:
            source: the checkpoint.
            target: where its copy shall be.
            parts: files and folders to copy; those that it does not have are left out. None = all.

        Raises:
            FileNotFoundError: there is no such checkpoint.
        """

    def remove(self, path: str) -> None:
        """Remove a folder with all that is in it; does nothing where there is none."""

    def close(self) -> None:
        """End what was started for them; whoever asks again starts it anew."""


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


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A SELECT over materialized views, in the words of the view store's own database.

    Attributes:
        sql: with placeholders for ``parameters``; view ``i`` of ``tables`` is called ``view_name(i, table)``.
        tables: table and generation of each view.
        limit: most rows to fetch.
        timeout: seconds.
    """

    sql: str
    parameters: Sequence[object]
    tables: Sequence[tuple[str, int]]
    limit: int
    timeout: float


@dataclass(frozen=True, slots=True)
class Freshness:
    """How new a view's rows are: its newest batch, None before the first; times in microseconds of 1970."""

    batch: int | None
    batch_time: int | None
    watermark: int | None


class ViewStore(Protocol):
    """Keeps the rows of materialized views; jobs write them."""

    kind: Literal["sqlite", "postgresql"]
    database: ViewDatabase
    password: str | None

    def read(self, snapshot: Snapshot) -> tuple[list[tuple[object, ...]], list[Freshness]]:
        """Rows and the freshness of each view, as of one batch of each.

        Raises:
            EngineError: view-not-ready, if a view's job has not begun; statement-timeout.
            RequestError: not-computable, such as a division by zero.
        """

    def add_index(self, table: str, name: str, columns: Sequence[int]) -> None:
        """Make an index, if the table is there; the job makes it otherwise."""

    def drop_index(self, table: str, name: str) -> None:
        """Take an index away; nothing happens if it is not there."""

    def drop(self, table: str) -> None:
        """Take a view's rows away; nothing happens if they are not there."""


@dataclass(frozen=True, slots=True)
class AnalysisRequest:
    """SQL to analyze over empty views, as a driver is asked."""

    id: str
    views: Sequence[ViewSchema]
    sql: str
    functions: Sequence[FunctionShape] = ()


class Analyzer(Protocol):
    """The engine's own analyzer, the authority on types. Answers come from a driver that pulls requests."""

    def analyze(
        self,
        views: Sequence[ViewSchema],
        sql: str,
        timeout: float,
        functions: Sequence[FunctionShape] = (),
    ) -> list[AnalyzedColumn] | AnalysisFailure:
        """Analyze SQL over empty views. EngineError engine-unavailable if no driver answers in time."""

    def take(self, driver_id: str) -> AnalysisRequest | None:
        """The next request for a driver to answer, or None."""

    def complete(self, request_id: str, result: list[AnalyzedColumn] | AnalysisFailure) -> None:
        """A driver's answer; unknown ids are ignored (the asker has given up)."""


class Leases(Protocol):
    """Which queries this server looks after, where several share a catalog."""

    def renew(self) -> frozenset[str] | None:
        """Take what is free, keep what is held: ids of this server's queries; None if all are its own."""

    def hand_over(self, query_id: str) -> None:
        """Let another server have a query that this one has no room for; it stays if there is no other."""

    def close(self) -> None:
        """Give every query back; others take them at once."""


@dataclass(frozen=True, slots=True)
class Sharing:
    """That a query may have a driver together with others; ``near``: that driver if it has room."""

    near: str | None = None


class Drivers(Protocol):
    """Driver processes: started ahead, given one query at a time, or several if shared; ended for certain."""

    def authenticate(self, driver_id: str, token: str) -> bool:
        """Whether this is the token the driver was started with."""

    def report(self, driver_id: str, state: str, pid: int) -> None:
        """What a polling driver says of itself: ``warming`` or ``idle``."""

    def role(self, driver_id: str) -> str | None:
        """``dedicated``, ``shared`` or ``analyzer``; None for a driver that should not be there."""

    def assigned(self, driver_id: str) -> str | None:
        """Id of the query this driver alone was given, or None."""

    def shares(self, driver_id: str) -> Sequence[str]:
        """Ids of the queries that a shared driver was given, in that order."""

    def assign(self, query_id: str, sharing: Sharing | None = None) -> str | None:
        """Give an idle, warming or new driver to a query; its id, or None while none may be had."""

    def why_none(self) -> str:
        """What kept ``assign`` from giving a driver, as words behind "waiting for a driver: "."""

    def release(self, driver_id: str, query_id: str) -> None:
        """Take a query back from a driver, which waits for work again; nothing, if it has another by now."""

    def let_go(self, driver_id: str, query_id: str) -> None:
        """The driver is done with a query: it ends, unless it has others, or another one by now."""

    def keep(self, driver_id: str, query_id: str) -> bool:
        """Have a driver whose query has ended in order wait for another one; False if it is to end."""

    def assignments(self) -> Sequence[tuple[str, str, float]]:
        """Driver, id of the query it was given, and seconds since then."""

    def serving(self, driver_id: str) -> float:
        """Seconds since it could take its newest query; 0 while it warms up, or is not known."""

    def process_id(self, driver_id: str) -> int | None:
        """Its process id; None for a driver that is not known."""

    def is_alive(self, driver_id: str) -> bool:
        """Whether its process is there."""

    def runs(self, driver_id: str, query_id: str) -> bool:
        """Whether its process is there and, if it is shared, still has the query."""

    def has_crashed(self, driver_id: str) -> bool:
        """Whether its process has ended by itself, and not in order, since this server is there."""

    def end(self, driver_id: str, *, grace: float = 0.0) -> None:
        """End the process and its children; returns when they are gone."""

    def ready(self) -> bool:
        """Whether statements can be checked and run, also while every driver has a query."""

    def warm(self) -> bool:
        """Whether a warm driver waits for a query, or none is kept."""


class Launcher(Protocol):
    """Where drivers run: processes beside this server, or pods of a cluster.

    A driver is found by its id alone, also by a later process of the same server.
    """

    def start(self, driver_id: str, role: str, token: str) -> int:
        """Start a driver; its process id, 0 where it has none on this machine.

        Raises:
            EngineError: ``engine-unavailable``, it cannot be started now.
        """

    def is_alive(self, driver_id: str, pid: int) -> bool:
        """Whether it runs or may still run; where that cannot be seen it does."""

    def ask_to_end(self, driver_id: str, pid: int, grace: float) -> None:
        """Have it end in order within ``grace`` seconds, without waiting for that."""

    def end(self, driver_id: str, pid: int, grace: float) -> None:
        """End it and all that it started; returns when nothing of it is left that could write.

        ``grace`` is the seconds in which it may end in order; 0 = it is killed.

        Raises:
            EngineError: ``engine-unavailable``, it cannot be told that it has ended.
        """

    def clear(self, driver_id: str) -> None:
        """Take away what a driver that has ended leaves, except for its log."""

    def bound_log(self, driver_id: str) -> None:
        """See that the log of one that runs does not grow without end; asked every second."""

    def log(self, driver_id: str) -> str:
        """What it has said, as far as that is kept, also after its end."""

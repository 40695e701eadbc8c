"""What every service function is given: the outside world behind ports, and who is asking."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Generic, TypeVar

from leatstream.connectors.base import Connector
from leatstream.connectors.destinations import Destinations
from leatstream.errors import CatalogError, already_exists, sentence
from leatstream.formats.registry_client import RegistryAddress, RegistryClient
from leatstream.model.objects import Meta, Query, Store
from leatstream.ports import (
    Analyzer,
    CheckpointFiles,
    Clock,
    Drivers,
    Identities,
    Leases,
    OpenUnit,
    SecretBox,
    UnitOfWork,
    ViewStore,
)
from leatstream.services.environment.outside_secrets import OutsideSecrets
from leatstream.services.environment.own_tokens import OwnTokens
from leatstream.services.environment.refused_sign_ins import RefusedSignIns
from leatstream.services.environment.rights import Rights, built_in_rights
from leatstream.services.environment.selections import Selections
from leatstream.services.environment.signal import Signal
from leatstream.services.environment.sole_server import SoleServer
from leatstream.services.environment.turns import Turns
from leatstream.services.environment.visible import UnitsOf

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is asking, and in which role.

    Attributes:
        name: of the account.
        role: owns what the principal makes.
        given: its rights, where they are more or less than those of a built-in role.
        token: id of the token that it came with, for the audit log.
        request: id of the request, for the audit log.
        address: of the client, for the audit log.
        bound: whether it stays in its role and what that inherits, as an API token does.
    """

    name: str
    role: str
    given: Rights | None = None
    token: str | None = None
    request: str | None = None
    address: str | None = None
    bound: bool = False

    @property
    def rights(self) -> Rights:
        """What it may do."""
        return self.given if self.given is not None else built_in_rights(self.role)


@dataclass(frozen=True, slots=True)
class Context:
    """What unqualified names mean, and the role. No server keeps it: clients send it with each statement."""

    database: str | None = None
    schema: str | None = None
    store: str | None = None
    role: str | None = None

    def as_json(self) -> dict[str, str | None]:
        """The JSON form."""
        return {"database": self.database, "schema": self.schema, "store": self.store, "role": self.role}


@dataclass(frozen=True, slots=True)
class Precondition:
    """What must hold for a write: If-Match's generation, that the object is new, or that it is there."""

    if_match: int | None = None
    must_be_new: bool = False
    must_exist: bool = False

    def check(self, generation: int | None, noun: str, name: str) -> None:
        """Compare with the object's generation (None = it does not exist).

        Args:
            generation: of the object; None = it does not exist.
            noun: what kind of object it is.
            name: of the object.

        Raises:
            CatalogError: ``stale`` or ``already-exists``.
        """
        if self.must_be_new and generation is not None:
            raise already_exists(noun, name)
        if self.must_exist and generation is None:
            raise CatalogError(
                "stale", sentence(f"{noun} {name} does not exist"), hint="Leave If-Match out to create it."
            )
        if self.if_match is not None and self.if_match != generation:
            found = "does not exist" if generation is None else f"is at generation {generation}"
            raise CatalogError(
                "stale",
                sentence(f"{noun} {name} {found}, not at {self.if_match}"),
                hint="Read it again, look at what has changed, and repeat with the new ETag.",
            )


@dataclass(frozen=True, slots=True)
class Stored(Generic[T]):
    """Result of a put: the object, whether it is new, whether anything changed."""

    item: T
    created: bool
    changed: bool


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a list; ``next_page_token`` is None on the last."""

    items: list[T]
    next_page_token: str | None


@dataclass(frozen=True, slots=True)
class RuntimeSettings:
    """Knobs of the services.

    Attributes:
        checkpoint_root: directory or URI under which queries keep their checkpoints.
        log_dir: directory of the drivers' logs.
        slots: task slots of one driver.
        analysis_timeout: seconds.
        store_timeout: seconds that a call of a store or registry may take; a plan must report an unreachable
            one within five.
        watermark_delay_ms: how late a record may be in a stateful query.
        heartbeat_timeout: seconds without a word after which a driver counts as lost.
        orphan_seconds: how long a job continues without a server that answers it.
        start_timeout: seconds a driver may take from hand-over to its first heartbeat.
        stop_grace: seconds a job may take to stop before it is ended.
        backoff_initial, backoff_maximum: seconds between restarts, doubling.
        backoff_jitter: share of such a pause that chance may take off it.
        keep_replaced: seconds that a query is kept after another has taken over from it.
        keep_checkpoints: seconds that a query's old checkpoints are kept once its present one is at work.
        keep_events: seconds that an event of the audit log is kept.
        keep_changes: seconds that a change stays in the feed of changes.
        revoked_grace: seconds that a job continues after its owner has lost a privilege that it needs.
        max_restarts: restarts in a row before a query is given up as failed.
        default_store: store taken when neither statement nor context names one.
        error_excerpts: whether errors may show short pieces of a record's values.
        requests_per_second: of one account; 0 = any number.
        public_url: of the server, as browsers reach it; empty = as their requests say.
        session_seconds: how long a browser stays signed in by an identity provider.
        isolated_drivers: whether drivers run apart from the server's account and files, as in pods.
    """

    checkpoint_root: str
    log_dir: Path
    slots: int = 8
    analysis_timeout: float = 60.0
    store_timeout: float = 4.0
    watermark_delay_ms: int = 10_000
    heartbeat_timeout: float = 30.0
    orphan_seconds: float = 120.0
    start_timeout: float = 120.0
    stop_grace: float = 20.0
    backoff_initial: float = 0.5
    backoff_maximum: float = 30.0
    backoff_jitter: float = 0.25
    max_restarts: int = 8
    keep_replaced: float = 86_400.0
    keep_checkpoints: float = 86_400.0
    keep_events: float = 34_560_000.0
    keep_changes: float = 604_800.0
    revoked_grace: float = 60.0
    default_store: str | None = None
    error_excerpts: bool = True
    requests_per_second: float = 0.0
    public_url: str = ""
    session_seconds: float = 43_200.0
    isolated_drivers: bool = False


STILL_SECONDS = 120.0


@dataclass(slots=True)
class Passes:
    """The reconciler's passes in this process.

    Attributes:
        count: how many went well.
        seconds: how long these took together.
        ended: when the last one ended, however it went, by ``time.monotonic``; at first when this was made.
    """

    count: int = 0
    seconds: float = 0.0
    ended: float = field(default_factory=time.monotonic)

    def stand_still(self) -> bool:
        """Whether none has ended for so long that the loop must hang somewhere."""
        return time.monotonic() - self.ended > STILL_SECONDS


@dataclass(slots=True)
class RightsLooks:
    """The last look at the rights of running queries in this process.

    Attributes:
        number: of the newest event of the audit log then; -1 before the first look.
        at: when it was.
    """

    number: int = -1
    at: datetime | None = None


@dataclass(slots=True)
class Environment:
    """The outside world, behind ports.

    Attributes:
        connect: opens a connector for a store, its secrets resolved; cheap, no I/O.
        checkpoints: the files under ``settings.checkpoint_root``.
        changed: notified at every change a waiter may care for.
        listening_since: when this process began to hear heartbeats.
        selections: interactive SELECTs that last.
        open_registry: opens a client of a schema registry that answers within some seconds; no I/O.
        leases: which queries this server looks after.
        identities: verifies tokens of other issuers.
        destinations: where the server may connect to for users' stores and registries.
        outside: values of secret stores outside the catalog.
        awaited_copies: ids of new queries that wait for a copy of the checkpoint that they begin with.
        turns: of those who plan; staged environments share them.
        refused_sign_ins: those of the last minute, for the audit log.
        who: the principal of the request, where it is one.
        staged: whether changes wait for a commit of all, so that nothing outside the catalog may follow yet.
    """

    open_unit: OpenUnit
    clock: Clock
    secrets: SecretBox
    connect: Callable[[Store], Connector]
    connector_classes: Mapping[str, type[Connector]]
    analyzer: Analyzer
    drivers: Drivers
    views: ViewStore
    checkpoints: CheckpointFiles
    settings: RuntimeSettings
    changed: Signal = field(default_factory=Signal)
    listening_since: datetime | None = None
    selections: Selections = field(default_factory=Selections)
    open_registry: Callable[[RegistryAddress, float], RegistryClient] = RegistryClient
    leases: Leases = field(default_factory=SoleServer)
    identities: Identities = field(default_factory=OwnTokens)
    destinations: Destinations = field(default_factory=Destinations)
    outside: OutsideSecrets = field(default_factory=OutsideSecrets)
    awaited_copies: set[str] = field(default_factory=set)
    passes: Passes = field(default_factory=Passes)
    rights_looks: RightsLooks = field(default_factory=RightsLooks)
    turns: Turns = field(default_factory=Turns)
    refused_sign_ins: RefusedSignIns = field(default_factory=RefusedSignIns)
    staged: bool = False
    who: Principal | None = None

    @property
    def caller(self) -> Principal:
        """Whose request it is; without one the server's own, which has every privilege."""
        return self.who or Principal("", "sysadmin", built_in_rights("orgadmin"))

    def seen_by(self, who: Principal) -> Environment:
        """The environment of one principal's request: its units show and change what the principal may."""
        # Of an environment that is a principal's already, the units below: who changes its role sees no less.
        base = self.open_unit.base if isinstance(self.open_unit, UnitsOf) else self._whole
        return replace(self, open_unit=UnitsOf(base, who), who=who)

    def _whole(self, *, write: bool = True) -> AbstractContextManager[UnitOfWork]:
        return self.open_unit(write=write)

    @contextmanager
    def planning(self) -> Iterator[UnitOfWork]:
        """A unit for reading while stores, registries or the analyzer are asked.

        Raises:
            EngineError: engine-unavailable, too many do so already.
        """
        with self.turns.taken(), self.open_unit(write=False) as unit:
            yield unit


def new_id(prefix: str) -> str:
    """An opaque id that sorts by creation time: prefix, 48 bits of milliseconds, 80 random bits, in hex."""
    return f"{prefix}_{int(time.time() * 1000):012x}{os.urandom(10).hex()}"


def view_table(query: Query) -> str:
    """The table of the materialized view that a query keeps."""
    return query.meta.id


def rows_version(query: Query) -> str:
    """Whose rows a query writes, of those that a store has for its view; empty = under their usual name."""
    return query.meta.id if query.own_rows else ""


def reader_prefix(query: Query) -> str:
    """What the names begin with that the query's readers have in stores."""
    return f"leat_{query.meta.id}_"


def new_meta(prefix: str, principal: Principal, now: datetime) -> Meta:
    """Meta of a new object.

    Args:
        prefix: of its id.
        principal: who makes it, its owner.
        now: the time.
    """
    return Meta(
        id=new_id(prefix),
        generation=1,
        created_at=now,
        updated_at=now,
        created_by=principal.name,
        owner=principal.role,
    )


def next_meta(meta: Meta, now: datetime) -> Meta:
    """Meta after a change of what the user wrote."""
    return Meta(
        id=meta.id,
        generation=meta.generation + 1,
        created_at=meta.created_at,
        updated_at=now,
        created_by=meta.created_by,
        owner=meta.owner,
    )

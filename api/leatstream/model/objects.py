"""What the catalog holds. Objects are immutable; a change makes a new one of a higher generation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from leatstream.model.names import Fqn
from leatstream.model.types import DataType

HIDDEN_PREFIX = "__leat_"
ROWTIME = "__leat_rowtime"
ROWKEY = "__leat_rowkey"
ROWMETA = "__leat_rowmeta"
ROWHEADERS = "__leat_rowheaders"
DELETED = "__leat_deleted"
# Until when a version of a changelog's row held: the time of the next one.
UNTIL = "__leat_until"


class Origin(StrEnum):
    """Where an effective property's value came from."""

    EXPLICIT = "explicit"
    EXISTING_ENTITY = "existing_entity"
    LEFT_MOST_SOURCE = "left_most_source"
    SESSION = "session"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Effective:
    """A property's value in force and where it came from.

    Attributes:
        value: string, integer or boolean.
        origin: which rule gave it.
        source: the object the value was read from, such as ``demo.public.pageviews`` (``from`` in JSON).
    """

    value: Any
    origin: Origin
    source: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The JSON form: value, origin and, where known, from."""
        body = {"value": self.value, "origin": self.origin.value}
        return body | ({"from": self.source} if self.source else {})

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Effective:
        """Read back what ``as_json`` wrote."""
        return cls(body["value"], Origin(body["origin"]), body.get("from"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta:
    """What every catalog object carries. ``generation`` counts changes of what the user wrote, from 1."""

    id: str
    generation: int
    created_at: datetime
    updated_at: datetime
    created_by: str
    owner: str


@dataclass(frozen=True, slots=True)
class Column:
    """A declared column."""

    name: str
    type: DataType
    not_null: bool = False
    comment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """A logical grouping of schemas."""

    meta: Meta
    name: str
    comment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """A namespace of relations inside a database."""

    meta: Meta
    database: str
    name: str
    comment: str | None = None


class StoreState(StrEnum):
    """Whether a store answered when it was last asked."""

    PENDING = "pending"
    READY = "ready"
    ERRORED = "errored"


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """Connectivity and access to a system of the user's.

    Attributes:
        kind: connector kind, such as ``kafka``.
        config: the typed settings as the user wrote them, secrets left out.
        secrets: field path (``sasl.password``) to secret reference (``secret://…``); never values.
        secret_names: field path to the secret that holds the value, where the user named one.
        secret_changes: counts new values of those secrets, so that connections are opened again.
        schema_registry: name of the registry that describes its records.
        server: what the server reported about itself when it was last asked.
    """

    meta: Meta
    name: str
    kind: str
    config: Mapping[str, Any]
    secrets: Mapping[str, str] = field(default_factory=dict)
    secret_names: Mapping[str, str] = field(default_factory=dict)
    secret_changes: int = 0
    schema_registry: str | None = None
    comment: str | None = None
    state: StoreState = StoreState.PENDING
    message: str | None = None
    error_code: str | None = None
    server: Mapping[str, str] = field(default_factory=dict)
    checked_at: datetime | None = None


class RelationKind(StrEnum):
    """Kinds of relation. A table is one of a store that has tables: written, and looked up in by joins."""

    STREAM = "stream"
    CHANGELOG = "changelog"
    MATERIALIZED_VIEW = "materialized_view"
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class ViewIndex:
    """An index of a materialized view; its name is unique in the view's schema."""

    name: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """A relational face of an entity, or a materialized view, which has none: leatstream keeps its rows.

    Attributes:
        store: name of the store that holds the entity; empty for a materialized view.
        entity: topic, data stream or table behind the relation.
        value_format: such as ``json``; empty where there are no records: of a table, of a materialized view.
        key_format, key_type: how record keys read; ``primitive`` with a type such as ``VARCHAR``.
        timestamp: column that gives event time; none = the record's own time.
        properties: WITH keys as the user wrote them; ``find_property`` asks for one.
        effective: every property in force with its origin.
        created_by_query: id of the query that made it, for CREATE … AS SELECT.
        primary_key: columns that identify a row of a changelog; of a table, by which rows are upserted.
        indexes: of a materialized view.
    """

    meta: Meta
    fqn: Fqn
    kind: RelationKind
    columns: tuple[Column, ...]
    store: str
    entity: str
    value_format: str
    key_format: str | None = None
    key_type: str | None = None
    timestamp: str | None = None
    timestamp_format: str | None = None
    properties: Mapping[str, Any] = field(default_factory=dict)
    effective: Mapping[str, Effective] = field(default_factory=dict)
    created_by_query: str | None = None
    comment: str | None = None
    primary_key: tuple[str, ...] = ()
    indexes: tuple[ViewIndex, ...] = ()

    def find_column(self, name: str) -> Column | None:
        """The column of exactly this name, or None."""
        return next((c for c in self.columns if c.name == name), None)

    def find_property(self, name: str) -> Any:
        """The value of a WITH key, in whatever case the user wrote it, or None."""
        return next((v for key, v in self.properties.items() if str(key).strip().lower() == name), None)


class DesiredState(StrEnum):
    """What the user wants of a query."""

    RUNNING = "running"
    STOPPED = "stopped"


class QueryState(StrEnum):
    """What is known of a query's job."""

    PENDING = "pending"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FAILED = "failed"
    LOST = "lost"
    COMPLETED = "completed"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryStatus:
    """Observed state of a query, written by the reconciler and the drivers' heartbeats.

    Attributes:
        attempt: number of the newest attempt to run it; the fencing number.
        observed_generation: generation of the spec the job runs.
        error: ``{code, detail, retryable}`` of the failure, kept until the query has got on.
        metrics: last progress: rows in and out, rates, batch duration, watermark, skipped rows, offsets.
        restarts: restarts in a row after faults of its own, without work done in between.
        outages: tries in a row that ended because a store was unreachable.
        progress_at: when its progress was last added to the log of it.
        next_attempt_at: when the next start may happen (back-off).
        crashes: how often in a row a shared driver has died with the query in it.
        apart_from: the shared driver that it is suspected of having ended; it has one of its own since.
        reached: how far the last attempt had read when it ended (``plan.hand_over``).
        revoked_at: since when its owner lacks a privilege that the running job needs.
        view_behind: whether the store that holds its view shows the version before, from which it took over.
        never_ran: it is new, and each attempt has reported that it ended before a batch was done.
    """

    state: QueryState = QueryState.PENDING
    since: datetime | None = None
    message: str | None = None
    error: Mapping[str, Any] | None = None
    attempt: int = 0
    driver_id: str | None = None
    pid: int | None = None
    observed_generation: int = 0
    heartbeat_at: datetime | None = None
    metrics: Mapping[str, Any] = field(default_factory=dict)
    log_tail: tuple[str, ...] = ()
    restarts: int = 0
    outages: int = 0
    progress_at: datetime | None = None
    next_attempt_at: datetime | None = None
    entity_ready: bool = False
    crashes: int = 0
    apart_from: str | None = None
    reached: Mapping[str, Any] | None = None
    revoked_at: datetime | None = None
    view_behind: bool = False
    never_ran: bool = False

    @property
    def starts_again(self) -> int:
        """How often the job was started after its first time, whatever it ended by."""
        return max(self.attempt - 1, 0)


class QueryKind(StrEnum):
    """Which statement makes up a query."""

    CREATE_STREAM_AS = "create_stream_as"
    CREATE_CHANGELOG_AS = "create_changelog_as"
    CREATE_TABLE_AS = "create_table_as"
    CREATE_MATERIALIZED_VIEW_AS = "create_materialized_view_as"
    INSERT_INTO = "insert_into"

    @property
    def makes_sink(self) -> bool:
        """Whether its relation is created and deleted with the query."""
        return self is not QueryKind.INSERT_INTO


@dataclass(frozen=True, slots=True, kw_only=True)
class StartFrom:
    """The position from which a person restarted a query.

    Attributes:
        position: earliest, latest, timestamp or offsets.
        offsets: relation to partition to the first offset to be read.
        checkpoint_generation: of the checkpoint that begins there; another one does not.
    """

    position: str
    timestamp_ms: int | None = None
    offsets: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    checkpoint_generation: int = 0


@dataclass(frozen=True, slots=True)
class SkippedRecord:
    """A record that a query skips on a person's request; ``place``: see ``plan.record_place``."""

    place: str
    at: datetime
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointOrigin:
    """What a checkpoint is a copy of: a savepoint, or the checkpoint of another query.

    Attributes:
        name: as the user wrote it.
        path: below the root of checkpoints.
        whole: with its state; else the offsets alone.
        laid: whether the copy exists.
    """

    name: str
    path: str
    whole: bool
    laid: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A continuous statement and the job that runs it.

    Attributes:
        sql: verbatim.
        context: database, schema, store and role that unqualified names were resolved with.
        plan: the explained plan (JSON), as ``statements:validate`` shows it.
        job: the JobSpec document without attempt, fencing token and secrets.
        code: source texts of the users' functions it calls, by digest: the version it runs.
        checkpoint_generation: directory of the checkpoint; a new one when old state cannot be kept.
        start: where the checkpoint of its number begins; else, as the statement says.
        origin: what its first checkpoint is a copy of; None = it begins empty.
        beside: id of the query that it is to take over from, or, with ``kept_until``, that took over from it.
        beside_relation: what the sink's relation becomes when this query takes over.
        own_rows: whether a store that holds its view has its rows under a name of its own: it began beside
            another version, whose rows have the usual name or one of their own too.
        kept_until: when it is deleted, with its rows and its checkpoint.
        on_hold: whether it stands still for a moment, whatever the user wants, as another takes over.
        hand_over: where it has taken over from another (``plan.hand_over``); it writes nothing before.
        skipped: records that its job leaves out, whenever it reads them.
    """

    meta: Meta
    name: str
    kind: QueryKind
    sql: str
    statement_hash: str
    context: Mapping[str, str | None]
    sources: tuple[str, ...]
    sink: str
    desired_state: DesiredState = DesiredState.RUNNING
    delete_sink_entity: bool = False
    comment: str | None = None
    properties: Mapping[str, Any] = field(default_factory=dict)
    effective: Mapping[str, Effective] = field(default_factory=dict)
    plan: Mapping[str, Any] = field(default_factory=dict)
    job: Mapping[str, Any] = field(default_factory=dict)
    code: Mapping[str, str] = field(default_factory=dict)
    checkpoint_generation: int = 1
    start: StartFrom | None = None
    origin: CheckpointOrigin | None = None
    beside: str | None = None
    beside_relation: Relation | None = None
    own_rows: bool = False
    kept_until: datetime | None = None
    on_hold: bool = False
    hand_over: Mapping[str, Any] | None = None
    skipped: tuple[SkippedRecord, ...] = ()
    deleting: bool = False
    status: QueryStatus = field(default_factory=QueryStatus)

    @property
    def is_wanted(self) -> bool:
        """Whether a job of it should be at work now."""
        return self.desired_state is DesiredState.RUNNING and not (self.deleting or self.on_hold)

    @property
    def is_silent(self) -> bool:
        """Whether it writes nothing into its topic, as another does: before it takes over, and when kept."""
        return self.beside is not None and self.kind is not QueryKind.CREATE_MATERIALIZED_VIEW_AS


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryEvent:
    """Something that happened to a query's job.

    Attributes:
        state: the job's state from then on.
        reason: one sentence; None where the state says it all.
        error: code of the failure, such as ``source-gone``.
    """

    at: datetime
    state: QueryState
    attempt: int
    generation: int
    reason: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryProgress:
    """What a query's job reported at one moment: see ``QueryStatus.metrics``."""

    at: datetime
    attempt: int
    metrics: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryVersion:
    """What a user wrote of a query, once for each generation.

    Attributes:
        by: the principal.
        change: class of the change that this version made to the job; None for the first.
        reason: why it is of that class.
    """

    generation: int
    at: datetime
    by: str
    sql: str
    desired_state: DesiredState
    change: str | None = None
    reason: str | None = None

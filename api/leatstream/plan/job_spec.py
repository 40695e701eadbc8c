"""The JobSpec: all a driver needs to run one attempt of one query. Versioned, immutable, no secrets."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from leatstream.plan.hand_over import HandOver

# The kind of store that stands for the client that reads the rows of an interactive SELECT.
READER_KIND = "reader"


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Mode(StrEnum):
    """How Spark runs the job."""

    REALTIME = "realtime"
    MICRO_BATCH = "micro_batch"


class Isolation(StrEnum):
    """Whether the query has a driver of its own, or one together with others."""

    DEDICATED = "dedicated"
    SHARED = "shared"


class Delivery(StrEnum):
    """What reaches the sink after a failure."""

    AT_LEAST_ONCE = "at_least_once"
    EXACTLY_ONCE = "exactly_once"


class RegistryRef(_Document):
    """How to reach a schema registry; ``password`` is a reference for the driver."""

    name: str
    kind: str
    uris: str
    username: str | None = None
    password: str | None = None
    ca_certificate: str | None = None


class StoreRef(_Document):
    """How to reach a store. ``secrets`` maps a field path of ``config`` to a reference for the driver."""

    name: str
    kind: str
    config: dict[str, Any]
    secrets: dict[str, str] = Field(default_factory=dict)
    registry: RegistryRef | None = None

    def references(self) -> set[str]:
        """References to every secret that is needed here."""
        own = self.registry.password if self.registry is not None else None
        return {*self.secrets.values(), *([own] if own else [])}


class ColumnSpec(_Document):
    """A column; ``type`` in the product's own words, such as ``DECIMAL(10, 2)``."""

    name: str
    type: str
    not_null: bool = False


class ChangeFeed(_Document):
    """How the changes of a table are read, from stores that have logs of them.

    Attributes:
        slot, publication: named by the user; None = the query's own, ``name``.
        name: of what the query has of its own in the store.
        ignore_truncates: whether a changelog passes over the emptying of its table.
        directory: URI of where records wait between the log and the tasks, beside the checkpoint.
    """

    slot: str | None = None
    publication: str | None = None
    name: str = ""
    ignore_truncates: bool = False
    directory: str = ""


class DescriptorRef(_Document):
    """A message type: its full name, and the compiled descriptor set (base64) that it stands in."""

    message: str
    files: str


class SourceSpec(_Document):
    """One scan.

    The driver registers it as temporary view ``view`` with the declared columns, then ``__leat_rowtime``
    TIMESTAMP (the timestamp column's value or the record's time), ``__leat_rowkey`` BINARY and
    ``__leat_rowmeta`` STRUCT (store-specific position).

    Attributes:
        starting_position: used on the very first start only; afterwards the checkpoint rules.
        starting_timestamp_ms: epoch milliseconds, with ``timestamp``.
        starting_offsets: partition to first offset, with ``offsets``; others are read from their beginning.
        on_error: ``terminate`` fails the job, ``ignore`` skips the record and counts it.
        descriptor: of Protobuf values that are bare messages, without a schema registry.
        log_entity: of the sink's store: what ``ignore`` skips is written there too.
        watermark_delay_ms: set when the plan keeps state.
        idle_timeout_ms: after such a silence the clock gives event time; only with ``watermark_delay_ms``.
        max_ahead_ms: records whose event time is further ahead of their own time are undecodable, and those
            whose BIGINT must be seconds; None = every time can be meant.
        feed: set where the entity is a table whose changes are read.
        primary_key: of a changelog: a record without value takes back the row that its key names. The view
            has ``__leat_deleted`` BOOLEAN too, then.
        key_only: columns that are read from the record's key; the others are in its value.
        headers_column: the one that is filled from the record's headers.
        options: in the store kind's own words, such as ``s3.csv.header``; checked by its connector.
        headers: whether the view has ``__leat_rowheaders`` MAP<STRING, BINARY> too.
        skip: records that are left out, each time that they are read: partition, or shard, to their offsets.
    """

    view: str
    relation: str
    store: StoreRef
    entity: str
    columns: list[ColumnSpec]
    value_format: str
    key_format: str | None = None
    key_type: str | None = None
    timestamp: str | None = None
    timestamp_format: str | None = None
    starting_position: Literal["earliest", "latest", "timestamp", "offsets"] = "latest"
    starting_timestamp_ms: int | None = None
    starting_offsets: dict[str, int] = Field(default_factory=dict)
    on_error: Literal["terminate", "ignore"] = "terminate"
    watermark_delay_ms: int | None = None
    idle_timeout_ms: int | None = None
    max_ahead_ms: int | None = None
    log_entity: str | None = None
    descriptor: DescriptorRef | None = None
    primary_key: list[str] = Field(default_factory=list)
    key_only: list[str] = Field(default_factory=list)
    headers_column: str | None = None
    options: dict[str, str] = Field(default_factory=dict)
    feed: ChangeFeed | None = None
    headers: bool = False
    skip: dict[str, list[str]] = Field(default_factory=dict)

    @property
    def fetches_headers(self) -> bool:
        """Whether records are to be read with their headers."""
        return self.headers or self.headers_column is not None


class ViewDatabase(_Document):
    """Where materialized views are kept.

    Attributes:
        location: directory of the SQLite files, or URL of the PostgreSQL database without its password.
        secret: reference to the password, if there is one.
    """

    kind: Literal["sqlite", "postgresql"]
    location: str
    secret: str | None = None


class ViewSpec(_Document):
    """The table of a materialized view.

    Attributes:
        table: its name, made of the query's id.
        generation: of the checkpoint; rows of another one are deleted when the job starts.
        retention_ms: how long a row stays, by its row time, else by when it was written.
        indexes: columns of each index, by the index's name.
    """

    table: str = ""
    generation: int = 0
    database: ViewDatabase | None = None
    retention_ms: int | None = None
    indexes: dict[str, list[str]] = Field(default_factory=dict)


class SinkSpec(_Document):
    """Where rows go.

    Attributes:
        view: set where the sink is a materialized view; then there is no store, entity or format. Rows with
            the same key columns replace each other; without key columns every row is kept.
        key_columns: columns that make the record key; empty = the left-most record's key is passed on.
        key_only: those of them that are not in the record's value.
        headers_column: the column that is written as the record's headers, and not in its value either.
        value_schema, key_schema: what the job registers, or writes into files, of formats that a schema
            describes.
        deletes: the SQL gives ``__leat_deleted`` too: where it is true, a record without value is written.
        timestamp_strategy: ``proc.time`` lets the store stamp the record, ``event.time`` writes row time.
        options: in the store kind's own words, such as ``s3.partition.by``; checked by its connector.
        stored_view: whether the entity is a materialized view that the store holds: ``view`` is not set then.
        version: of a stored view: whose rows these are (``StoredView``), filled in as ``ViewSpec.table`` is.
        retention_ms: of a stored view: how long a row stays; the store's own affair.
    """

    relation: str
    store: StoreRef
    entity: str
    columns: list[ColumnSpec]
    value_format: str
    key_format: str | None = None
    key_type: str | None = None
    key_columns: list[str] = Field(default_factory=list)
    key_only: list[str] = Field(default_factory=list)
    headers_column: str | None = None
    value_schema: str | None = None
    key_schema: str | None = None
    deletes: bool = False
    timestamp_strategy: Literal["proc.time", "event.time"] = "proc.time"
    options: dict[str, str] = Field(default_factory=dict)
    view: ViewSpec | None = None
    stored_view: bool = False
    version: str = ""
    retention_ms: int | None = None


def value_columns(spec: SourceSpec | SinkSpec) -> list[ColumnSpec]:
    """The columns that are in the record's value."""
    elsewhere = (*spec.key_only, spec.headers_column)
    return [column for column in spec.columns if column.name not in elsewhere]


class SnapshotSpec(_Document):
    """What the job keeps of a changelog source: see ``plan.logical.Snapshot``.

    Attributes:
        history_ms: how far behind the newest event times of both sides old versions are kept.
    """

    view: str
    keys: list[str]
    versions: bool = False
    history_ms: int | None = None


class LinkSpec(_Document):
    """Spark SQL for the rows that a changelog's rows or a group concern: see ``plan.logical.Link``."""

    view: str
    relation: str
    values: list[str]


class LookupSpec(_Document):
    """A table whose rows a batch's rows are joined with: see ``plan.logical.Lookup``.

    Attributes:
        view: of the rows that were found, which the job's SQL reads: the declared columns, nothing else.
        left: Spark SQL that gives the rows whose ``values`` are looked up in the columns ``keys``.
    """

    view: str
    relation: str
    store: StoreRef
    entity: str
    columns: list[ColumnSpec]
    left: str
    keys: list[str]
    values: list[str]
    cache_ttl_ms: int = 0


class PatternSpec(_Document):
    """A row pattern (docs/sql/match-recognize.md).

    Attributes:
        view: of the matches, which the job's SQL reads: ``results`` in their order, ``__leat_rowkey`` and
            ``__leat_rowtime``.
        input: Spark SQL over the sources' views that gives the cells ``c0``, ``c1``, … of each row.
        types: of the cells, in Spark's words.
        partitions: how many of the cells, from the first on, rows are parted by.
        term: see ``plan.pattern``.
        define: variable to its condition, a node as ``leatstream_jobs.patterns.values`` has it.
        measures: a node for each result.
        results: column to type, in the product's words.
        to_next, to_row, to_variables: where the next match may begin: in the row after the first one, in the
            first or last row of these variables, else behind the last row.
        all_rows: whether a match gives each of its rows, else one.
        memory: how many rows before a match are asked for.
    """

    view: str
    input: str
    types: list[str]
    partitions: int
    term: list[Any]
    define: dict[str, list[Any]]
    measures: list[list[Any]]
    results: dict[str, str]
    within_ms: int | None = None
    to_next: bool = False
    to_row: Literal["first", "last"] | None = None
    to_variables: list[str] = Field(default_factory=list)
    all_rows: bool = False
    memory: int = 0


class OperatorSpec(_Document):
    """What is computed batch by batch against what the batches before left."""

    kind: str
    snapshots: list[SnapshotSpec] = Field(default_factory=list)
    links: list[LinkSpec] = Field(default_factory=list)
    groups: LinkSpec | None = None
    pattern: PatternSpec | None = None

    @property
    def replaces(self) -> bool:
        """Whether its rows replace each other: what is written is how those after a batch differ."""
        return self.kind in ("changelog-join", "changelog-aggregate")


class FunctionSpec(_Document):
    """A user's function that the SQL calls.

    Attributes:
        name: in the compiled SQL.
        function: in the user's.
        arguments, returns: types as the user writes them.
        digest: SHA-256 (hex) of the source's text, which the driver fetches by it.
    """

    name: str
    function: str
    arguments: list[str]
    returns: str
    aggregate: bool
    source: str
    file: str
    handler: str
    digest: str
    timeout_seconds: int
    language: Literal["python", "java"] = "python"


class MemberSpec(_Document):
    """Another query that is part of the job: what it makes of the rows, and where they go."""

    query_id: str
    query_name: str
    sql: str
    sink: SinkSpec
    delivery: Delivery = Delivery.AT_LEAST_ONCE


class JobSpec(_Document):
    """One attempt of one query.

    Attributes:
        attempt: counts from 1 for ever; a driver whose attempt is not the newest must end.
        fencing_token: random per attempt; every heartbeat carries it.
        sql: Spark SQL over the sources' views; output = sink columns, ``__leat_deleted`` if the sink deletes,
            ``__leat_rowkey``, ``__leat_rowtime``.
        operator: set when ``sql`` is run batch by batch over views that the driver fills from snapshots.
        lookups: tables that the driver reads for each batch, what the batch asks for; ``sql`` is run batch by
            batch then too.
        output_mode: ``update`` writes a group at each change, ``append`` each row once.
        distinct: whether rows are left out whose sink columns were all written before.
        state: digests of what the state is made of, by part, for ``plan.change``; no business of the driver.
        checkpoint: URI of the checkpoint directory, owned by this query generation.
        conf: Spark SQL settings frozen with the checkpoint, such as ``spark.sql.shuffle.partitions``.
        max_offsets_per_trigger: bound of one micro-batch, in records of each source.
        target_batch_ms: how long a micro-batch shall last: it takes fewer records than the bound where those
            would last longer. None = always as many.
        json_reader: what reads JSON records in micro-batches: Spark's expressions, or Python workers where
            these can; ``auto`` leaves it to the server's setting.
        available_now: whether the job ends after the records that existed at its start.
        leads: ids of queries that are part of this one's job (docs/adr/0016); they have no job of their own.
        led_by: id of the query whose job this one is part of.
        members: the queries of ``leads`` as the attempt runs them; empty in the catalog.
        silent: whether nothing is written: the job only makes its state, to take over from another version.
        hand_over: where it takes over, so that nothing is written up to there; None = it writes everything.
        excerpts: whether an error may show short pieces of a record's values.
        places: where the parts of ``sql`` come from: first and last character there, then offset and length
            in the user's text; for errors at run time, and no business of the driver.
    """

    version: Literal[1] = 1
    query_id: str
    query_name: str
    generation: int
    attempt: int
    fencing_token: str
    sql: str
    sources: list[SourceSpec]
    sink: SinkSpec
    mode: Mode
    mode_reason: str
    operator: OperatorSpec | None = None
    lookups: list[LookupSpec] = Field(default_factory=list)
    output_mode: Literal["append", "update"] = "append"
    distinct: bool = False
    delivery: Delivery = Delivery.AT_LEAST_ONCE
    checkpoint: str
    conf: dict[str, str] = Field(default_factory=dict)
    functions: list[FunctionSpec] = Field(default_factory=list)
    state: dict[str, str] = Field(default_factory=dict)
    max_offsets_per_trigger: int = 500_000
    target_batch_ms: int | None = None
    realtime_batch_ms: int = 60_000
    trigger_interval_ms: int = 0
    json_reader: Literal["auto", "workers", "expressions"] = "auto"
    available_now: bool = False
    driver: Isolation = Isolation.DEDICATED
    leads: list[str] = Field(default_factory=list)
    led_by: str | None = None
    members: list[MemberSpec] = Field(default_factory=list)
    silent: bool = False
    hand_over: HandOver | None = None
    excerpts: bool = True
    places: list[tuple[int, int, int, int]] = Field(default_factory=list)

    @property
    def checkpoint_name(self) -> str:
        """The last part of ``checkpoint``: another one counts batches from 0."""
        return self.checkpoint.rstrip("/").rsplit("/", 1)[-1]

    @property
    def is_batch_job(self) -> bool:
        """Whether Python processes its batches, because Spark alone cannot run this job."""
        return bool(self.members or self.lookups) or self.operator is not None

    @property
    def has_watermark(self) -> bool:
        """Whether event time decides when results are given."""
        by_spark = not self.is_batch_job or (self.operator is not None and self.operator.pattern is not None)
        return by_spark and any(source.watermark_delay_ms is not None for source in self.sources)

    def stores(self) -> list[StoreRef]:
        """Every store that the driver opens."""
        sinks = (sink.store for sink in self.sinks())
        return [*(s.store for s in self.sources), *(s.store for s in self.lookups), *sinks]

    def sinks(self) -> list[SinkSpec]:
        """Every sink that the job writes."""
        return [self.sink, *(member.sink for member in self.members)]

    def references(self) -> set[str]:
        """References to every secret that the driver needs."""
        views = (sink.view.database for sink in self.sinks() if sink.view is not None)
        own = {database.secret for database in views if database is not None and database.secret is not None}
        return own.union(*(store.references() for store in self.stores()))

    def of_member(self, member: MemberSpec) -> JobSpec:
        """The job as it were if it had this query alone: its checkpoint and attempt, the member's sink."""
        own = {name: getattr(member, name) for name in ("query_id", "query_name", "sql", "sink", "delivery")}
        return self.model_copy(update={**own, "leads": [], "members": []})

"""Queries: continuous statements with a job each."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StrictBool, StrictInt

from leatstream.errors import RequestError
from leatstream.model.objects import DesiredState, Query, QueryKind, QueryState, QueryStatus
from leatstream.rest.schemas.base import (
    OMIT,
    Body,
    Comment,
    EffectiveView,
    Name,
    ObjectView,
    OwnedBody,
    PositionView,
    Properties,
    View,
    effective_view,
    meta_fields,
    properties_view,
    terraform,
)
from leatstream.rest.schemas.plans import Plan
from leatstream.services.environment import Context, Page
from leatstream.services.planning.change_feeds import behind
from leatstream.services.queries.definition import QueryDefinition
from leatstream.services.queries.restart import StartWish

Offset = Annotated[StrictInt, Field(ge=0, le=2**62)]
Sql = Annotated[str, Field(min_length=1, max_length=500_000)]


class QueryBody(OwnedBody):
    """A query: SQL that runs until it is stopped, as a PySpark job of its own."""

    model_config = ConfigDict(
        json_schema_extra=terraform(
            resource="leatstream_query",
            path="/v1/queries/{name}",
            key=["name"],
            path_attributes={"name": "Name of the query, exact."},
            assume="queries",
            delete_query={"delete_entity": "{delete_sink_entity}"},
            wait={
                "follow": "desired_state",
                "targets": {"running": ["running", "completed"], "stopped": ["stopped"]},
                "failed": ["failed"],
                "logs": "logs",
                "restart": "restart",
            },
            timeouts=["create", "update", "delete"],
            change=True,
            omit=["statement_canonical", "statement_hash"],
            attributes={
                "kind": {"infer": "kind", "replace": True},
                "sources": {"infer": "plan.sources[].fqn"},
                "sink": {"infer": "plan.sink.fqn", "replace": True},
                "effective": {"infer": "plan.sink.properties"},
                "plan": {"infer": "plan"},
                "plan.sink.store": {"replace": True},
                "plan.sink.entity": {"replace": True},
                "status": {"volatile": True},
            },
            **{"import": "{name}"},
        )
        | {
            "examples": [
                {
                    "sql": "CREATE STREAM views_of_b AS SELECT * FROM pageviews WHERE userid = 'b'",
                    "database": "demo",
                    "schema": "public",
                }
            ]
        }
    )

    sql: Sql = Field(
        description="`CREATE STREAM`, `CHANGELOG` or `MATERIALIZED VIEW … AS SELECT`, or "
        "`INSERT INTO … SELECT`. White space, comments and a "
        "final semicolon make no difference.",
        json_schema_extra=terraform(semantic="sql"),
    )
    database: Name | None = Field(None, description="Database of unqualified names.")
    schema_: Name | None = Field(None, alias="schema", description="Schema of unqualified names.")
    store: Name | None = Field(None, description="Store of the sink, where the SQL names none.")
    desired_state: DesiredState = Field(DesiredState.RUNNING, description="Whether the job should run.")
    properties: Properties = Field(None, description="Properties of the query.")
    delete_sink_entity: StrictBool = Field(
        False,
        description="Whether destroying the query deletes the sink's topic and its records.",
        json_schema_extra=terraform(provider_only=True),
    )
    comment: Comment = None

    def to_domain(self) -> QueryDefinition:
        """The definition for the services."""
        return QueryDefinition(
            sql=self.sql,
            context=Context(self.database, self.schema_, self.store),
            desired_state=self.desired_state,
            delete_sink_entity=self.delete_sink_entity,
            properties=dict(self.properties or {}),
            comment=self.comment,
        )


class QueryPatch(Body):
    """Members to change (JSON merge patch, RFC 7396); those left out stay, null resets."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"desired_state": "stopped"}]})

    sql: Sql | None = Field(None, description="The statement; it can be changed, not removed.")
    database: Name | None = Field(None, description="Database of unqualified names.")
    schema_: Name | None = Field(None, alias="schema", description="Schema of unqualified names.")
    store: Name | None = Field(None, description="Store of the sink, where the SQL names none.")
    desired_state: DesiredState | None = Field(None, description="Whether the job should run.")
    properties: dict[str, str | None] | None = Field(
        None, max_length=100, description="Properties to set; null removes one."
    )
    delete_sink_entity: StrictBool | None = Field(
        None, description="Whether destroying the query deletes its topic."
    )
    comment: Comment = None

    def changes(self, old: Query) -> dict[str, Any]:
        """The fields of ``QueryDefinition`` that change, with their new values."""
        given = {name: getattr(self, name) for name in self.model_fields_set}
        defaults = {"desired_state": DesiredState.RUNNING, "delete_sink_entity": False}
        found = {
            name: defaults[name] if value is None and name in defaults else value
            for name, value in given.items()
            if name not in ("database", "schema_", "store", "properties")
        }
        if given.keys() & {"database", "schema_", "store"}:
            context = {**old.context, **{n.rstrip("_"): v for n, v in given.items() if n in _CONTEXT}}
            found["context"] = Context(**context)
        if "properties" in given:
            merged = (
                {**old.properties, **(given["properties"] or {})} if given["properties"] is not None else {}
            )
            found["properties"] = {name: value for name, value in merged.items() if value is not None}
        return found


RecordText = Annotated[str, Field(max_length=500, examples=["orders:3:42"])]


class RestartBody(Body):
    """How a query is started again: from another place, or past a record; else from its checkpoint.

    From another place it gets a new checkpoint; the old one is kept.
    """

    model_config = ConfigDict(json_schema_extra={"examples": [{"from": "earliest"}]})

    from_: Literal["earliest", "latest", "timestamp", "offsets"] | None = Field(
        None, alias="from", description="The place in every source."
    )
    skip_record: RecordText | None = Field(
        None,
        description="The record that the query has failed at, as topic, partition and offset: it is left out "
        "from now on. Not together with `from`.",
    )
    timestamp: Annotated[str, Field(max_length=40)] | None = Field(
        None,
        description="With `timestamp`: in ISO 8601, or milliseconds since 1970.",
        examples=["2026-01-31T12:00:00Z"],
    )
    offsets: dict[str, dict[str, Offset]] | None = Field(
        None,
        max_length=100,
        description="With `offsets`: the first offset to be read, by source and partition. A partition that "
        "is left out is read from its beginning.",
    )

    def to_domain(self) -> StartWish | None:
        """The wish for the services; None = from its checkpoint."""
        if self.from_ is None and self.timestamp is None and self.offsets is None:
            return None
        if self.skip_record is not None:
            detail = "A query is started from another place, or past a record, not both at once."
            raise RequestError("validation", detail, pointer="#/skip_record")
        if self.from_ is None:
            raise RequestError("validation", "'from' says where to start.", pointer="#/from")
        return StartWish(self.from_, self.timestamp, self.offsets)


class RestartFailedBody(Body):
    """Which failed queries are started again, from their checkpoints."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"failed_by": "orders:3:42", "skip_record": True}]}
    )

    failed_by: Annotated[str, Field(min_length=1, max_length=500)] = Field(
        description="What they have failed by: a record, as topic, partition and offset, or the `code` or "
        "`condition` of their `status.error`."
    )
    skip_record: StrictBool = Field(
        False, description="Whether they leave out, from now on, the record that `failed_by` names."
    )


class RestartedQueries(View):
    """The queries that are started again."""

    queries: list[str] = Field(description="Their names; empty if none has failed so.")
    other_causes: list[str] = Field(description="By what other queries have failed.")


class ReplaceBody(Body):
    """The next version of a query that keeps a materialized view."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"sql": "CREATE MATERIALIZED VIEW v AS SELECT userid FROM pageviews"}]
        }
    )

    sql: Sql = Field(description="The statement. Unqualified names are read as those of the present one.")


_CONTEXT = ("database", "schema_", "store")


class JobView(View):
    """The job that runs the query."""

    driver_id: str | None = Field(None, description="The driver that runs the job.")
    attempt: int = Field(description="Counts starts of the job.")
    pid: int | None = Field(None, description="Process id of the driver.", json_schema_extra=OMIT)
    mode: str | None = Field(None, description="Mode in force.")
    mode_reason: str | None = Field(None, description="Why.")


class RecordPlaceView(View):
    """Where a record is."""

    entity: str = Field(description="Topic or data stream.")
    partition: str = Field(description="Number of the partition, or id of the shard.")
    offset: str = Field(description="Offset, or sequence number.")


class SkippedRecordView(View):
    """A record that the query skips at a user's request."""

    record: str = Field(description="Topic, partition and offset.")
    at: datetime = Field(description="When that was said.")
    by: str = Field(description="Who said it.")


class JobErrorView(View):
    """Why the job failed."""

    code: str = Field(description="Stable code, such as source-gone.")
    detail: str = Field(description="What happened.")
    retryable: bool = Field(False, description="Whether a restart may cure it.")
    condition: str | None = Field(None, description="The engine's own name of the error.")
    hint: str | None = Field(None, description="What a person can do about it.")
    record: RecordPlaceView | None = Field(None, description="The record that the job has failed at.")
    columns: list[str] | None = Field(None, description="Columns of that record that are to blame.")
    expression: str | None = Field(None, description="The part of the statement that could not be computed.")
    position: PositionView | None = Field(None, description="Where that is in the statement.")


class Condition(View):
    """One aspect of a query's state."""

    type: str = Field(
        description="EntityReady, JobRunning, Progressing, SlotBehind, TakingOver, OnHold, Kept or Deleting."
    )
    status: bool
    message: str | None = None


class QueryStatusView(View):
    """What the query does now."""

    state: QueryState = Field(
        description="pending, starting, running, stopping, stopped, failed, lost or completed."
    )
    desired_state: DesiredState = Field(description="What is wanted.", json_schema_extra=OMIT)
    message: str | None = Field(None, description="More about the state.")
    hint: str | None = Field(None, description="What to do about it: the hint of `error`.")
    has_run: bool = Field(
        description="Whether there are positions, and perhaps state, to lose: false until a new query runs."
    )
    error: JobErrorView | None = Field(
        None, description="Cause of the failure, until the query has got on after it.", json_schema_extra=OMIT
    )
    conditions: list[Condition] = Field(description="Aspects of the state.", json_schema_extra=OMIT)
    observed_generation: int = Field(description="Generation that the job runs.", json_schema_extra=OMIT)
    since: datetime | None = Field(None, description="When the state began.", json_schema_extra=OMIT)
    restarts: int = Field(
        0,
        description="Starts of the job after its first one, after faults, stops and changes.",
        json_schema_extra=OMIT,
    )
    job: JobView | None = Field(None, description="The job that runs the query.")
    metrics: dict[str, Any] = Field(description="Last progress.", json_schema_extra=OMIT)
    skipped_records: list[SkippedRecordView] | None = Field(
        None, description="Records that the query leaves out.", json_schema_extra=OMIT
    )

    @classmethod
    def from_domain(cls, query: Query) -> QueryStatusView:
        """The status of a query."""
        status = query.status
        error = None
        if status.error:
            given = {"code": "job-failed", "detail": "", **status.error}
            error = JobErrorView.model_validate({**given, "detail": given.pop("shown", given["detail"])})
        return cls(
            state=status.state,
            desired_state=query.desired_state,
            message=status.message,
            hint=error.hint if error else None,
            has_run=not status.never_ran,
            error=error,
            conditions=_conditions(query, status),
            observed_generation=status.observed_generation,
            since=status.since,
            restarts=status.starts_again,
            job=JobView(
                driver_id=status.driver_id,
                attempt=status.attempt,
                pid=status.pid,
                mode=query.plan.get("mode"),
                mode_reason=query.plan.get("mode_reason"),
            ),
            metrics=dict(status.metrics),
            skipped_records=[SkippedRecordView(record=s.place, at=s.at, by=s.by) for s in query.skipped]
            or None,
        )


def _conditions(query: Query, status: QueryStatus) -> list[Condition]:
    found = [
        Condition(type="EntityReady", status=status.entity_ready),
        Condition(type="JobRunning", status=status.state is QueryState.RUNNING, message=status.message),
    ]
    if status.state is QueryState.RUNNING and "waits_for" in status.metrics:
        waits = status.metrics["waits_for"]
        found.append(Condition(type="Progressing", status=waits is None, message=waits))
    if status.revoked_at is not None:
        found.append(Condition(type="Revoked", status=True, message=status.message))
    if query.kept_until is not None:
        until = query.kept_until.isoformat(timespec="seconds")
        found.append(Condition(type="Kept", status=True, message=f"until {until}, for ROLLBACK QUERY"))
    elif query.beside is not None:
        message = "it takes over when it has caught up"
        found.append(Condition(type="TakingOver", status=True, message=message))
    elif status.view_behind:
        message = "the view in its store still shows the version before"
        found.append(Condition(type="TakingOver", status=True, message=message))
    if query.on_hold:
        message = "it stands still between two batches, as one version takes over from another"
        found.append(Condition(type="OnHold", status=True, message=message))
    found += [Condition(type="SlotBehind", status=True, message=text) for text in behind(query)]
    return [*found, Condition(type="Deleting", status=True)] if query.deleting else found


class QueryView(ObjectView):
    """A query."""

    name: str = Field(description="Name of the query, exact.")
    kind: QueryKind = Field(description="Such as create_stream_as or insert_into.")
    sql: str = Field(description="The statement as it was written.")
    database: str | None = Field(None, description="Database of unqualified names.")
    schema_: str | None = Field(None, alias="schema", description="Schema of unqualified names.")
    store: str | None = Field(None, description="Store of the sink, where the SQL names none.")
    desired_state: DesiredState = Field(description="Whether the job should run.")
    properties: dict[str, str] | None = Field(None, description="Properties of the query.")
    delete_sink_entity: bool = Field(description="Whether destroying the query deletes the sink's topic.")
    comment: Comment = None
    statement_canonical: str = Field(description="The statement without comments, in one spelling.")
    statement_hash: str = Field(description="Equal for statements of the same meaning.")
    sources: list[str] = Field(description="Relations read.")
    sink: str = Field(description="Relation written.")
    effective: dict[str, EffectiveView] = Field(
        description="Every property in force, with where it came from."
    )
    plan: Plan | None = Field(None, description="How the query runs.")
    status: QueryStatusView = Field(description="What the query does now.")

    @classmethod
    def from_domain(cls, item: Query, canonical: str) -> QueryView:
        """The answer for a query; ``canonical`` is its statement in one spelling."""
        return cls(
            **meta_fields(item.meta),
            name=item.name,
            kind=item.kind,
            sql=item.sql,
            database=item.context.get("database"),
            schema=item.context.get("schema"),
            store=item.context.get("store"),
            desired_state=item.desired_state,
            properties=properties_view(item.properties),
            delete_sink_entity=item.delete_sink_entity,
            comment=item.comment,
            statement_canonical=canonical,
            statement_hash=item.statement_hash,
            sources=list(item.sources),
            sink=item.sink,
            effective=effective_view(item.effective),
            plan=Plan.model_validate(item.plan) if item.plan else None,
            status=QueryStatusView.from_domain(item),
        )


class QueryList(View):
    """One page of queries."""

    items: list[QueryView]
    next_page_token: str | None = None


class QueryLogs(View):
    """The last log lines of a query's job, oldest first."""

    lines: list[str]


class QueryEventView(View):
    """Something that happened to the query's job."""

    at: datetime = Field(description="When.")
    state: QueryState = Field(description="State of the job from then on.")
    attempt: int = Field(description="Counts starts of the job.")
    generation: int = Field(description="Version of the query.")
    reason: str | None = Field(None, description="Why, one sentence.")
    error: str | None = Field(None, description="Code of the failure, such as source-gone.")


class QueryProgressView(View):
    """What the query's job reported at a moment."""

    at: datetime = Field(description="When.")
    attempt: int = Field(description="Counts starts of the job.")
    metrics: dict[str, Any] = Field(description="Such as status.metrics of the query.")


class QueryProgressList(View):
    """What a query's job reported lately, oldest first."""

    items: list[QueryProgressView]


class QueryEvents(View):
    """The last events of a query's job, oldest first."""

    items: list[QueryEventView]


class QueryVersionView(View):
    """A version of a query."""

    generation: int = Field(description="Number of the version.")
    at: datetime = Field(description="When it was written.")
    by: str = Field(description="Who wrote it.")
    sql: str = Field(description="The statement.")
    desired_state: DesiredState = Field(description="Whether the job should run.")
    change: str | None = Field(None, description="Class of what it changed for the job; none for the first.")
    reason: str | None = Field(None, description="Why it is of that class.")


class QueryHistory(View):
    """The last versions of a query, oldest first."""

    items: list[QueryVersionView]


def page_view(page: Page[Query], canonical: Any, *, brief: bool = False) -> QueryList:
    """The answer for a page.

    Args:
        page: of queries.
        canonical: writes a statement in one spelling.
        brief: without what only the page of one query shows.
    """
    if brief:
        left_out: dict[str, Any] = {"plan": None, "effective": {}}
        items = [QueryView.from_domain(item, "").model_copy(update=left_out) for item in page.items]
    else:
        items = [QueryView.from_domain(item, canonical(item.sql)) for item in page.items]
    return QueryList(items=items, next_page_token=page.next_page_token)

"""Plans of continuous statements, as validation and queries show them."""

from __future__ import annotations

from pydantic import Field

from leatstream.rest.schemas.base import OMIT, EffectiveView, View


class PlanSource(View):
    """A relation that is read."""

    fqn: str = Field(description="Full name.")
    kind: str = Field(description="Kind of the relation.")
    store: str = Field(description="Name of its store.")
    store_kind: str = Field(description="Kind of its store.")
    left_most: bool = Field(description="Whether sink properties are inferred from it.")


class PlanColumn(View):
    """A column of the sink."""

    name: str = Field(description="Name of the column, exact.")
    type: str = Field(description="SQL type.")
    not_null: bool = Field(False, description="Whether it is never null.")


class PlanSink(View):
    """The relation that is written."""

    fqn: str = Field(description="Full name.")
    kind: str = Field(description="Kind of the relation.")
    store: str = Field(description="Name of its store.")
    store_kind: str = Field(description="Kind of its store.")
    entity: str = Field(description="Topic or table behind it.")
    entity_action: str = Field(description="create or reuse.", json_schema_extra=OMIT)
    columns: list[PlanColumn] = Field(description="Columns, in order.")
    primary_key: list[str] = Field(
        default_factory=list,
        description="Columns that identify a row of a changelog or table.",
        json_schema_extra=OMIT,
    )
    properties: dict[str, EffectiveView] = Field(
        description="Every property in force, with where it came from.", json_schema_extra=OMIT
    )


class PlanWithin(View):
    """Bounds of an interval join: left - before <= right <= left + after."""

    before_ms: int = Field(description="Milliseconds before.")
    after_ms: int = Field(description="Milliseconds after.")


class PlanJoin(View):
    """A join."""

    kind: str = Field(description="Such as interval-join-stream-stream.")
    type: str = Field(description="inner, left or full.")
    within: PlanWithin | None = Field(None, description="Time bound.")
    left: str = Field(description="Left relation.")
    right: str = Field(description="Right relation.")


class PlanWindow(View):
    """Stretches of event time that rows are grouped by."""

    kind: str = Field(description="tumble, hop, cumulate or session.")
    size_ms: int = Field(description="Length of a window, of a session its gap, milliseconds.")
    advance_ms: int = Field(description="From a window to the next one, milliseconds.")
    late_after_ms: int | None = Field(
        None, description="How far behind the newest row a row may be and still count, milliseconds."
    )


class PlanChange(View):
    """What a change does to the running job."""

    class_: str = Field(
        alias="class",
        description="none, hot, restart-keep-state, restart-from-offsets, new-state, blue-green or refused.",
    )
    reason: str = Field(description="Why, one sentence.")


class Plan(View):
    """How a continuous statement runs."""

    sources: list[PlanSource] = Field(
        description="Relations read, in the order of the SQL.", json_schema_extra=OMIT
    )
    sink: PlanSink = Field(description="Relation written.")
    joins: list[PlanJoin] = Field(description="Joins, in the order of the SQL.")
    window: PlanWindow | None = Field(None, description="Window of GROUP BY.", json_schema_extra=OMIT)
    output_mode: str | None = Field(
        None,
        description="append: each row is written once; update: a row is written at each change of its group.",
        json_schema_extra=OMIT,
    )
    mode: str = Field(description="realtime or micro_batch.")
    mode_reason: str | None = Field(None, description="Why this mode.")
    delivery: str | None = Field(None, description="Delivery guarantee.")
    driver: str | None = Field(
        None, description="dedicated, or shared with other queries.", json_schema_extra=OMIT
    )
    change: PlanChange | None = Field(
        None, description="What the change does to the job.", json_schema_extra=OMIT
    )


class ApplicationQueryPlan(View):
    """What becomes of one query of an application."""

    name: str = Field(description="Name of the query, exact.")
    action: str = Field(description="create, keep or change.")
    plan: Plan = Field(description="How it runs; `change` shows what a change does to its job.")
    job: str | None = Field(None, description="Name of the query whose job it is part of; mostly its own.")


class ApplicationPlan(View):
    """What an application makes, and what its change does. Null where it cannot change in place."""

    queries: list[ApplicationQueryPlan] | None = Field(description="Its queries, in the order of the text.")
    removed: list[str] = Field(default_factory=list, description="Names of the queries that it ends.")
    relations: list[str] | None = Field(
        description="Full names of streams and changelogs declared by columns."
    )
    virtual_relations: list[str] | None = Field(None, description="Names of its virtual relations.")
    change: PlanChange | None = Field(
        None, description="The greatest change of its queries, and each of them; null for a new application."
    )

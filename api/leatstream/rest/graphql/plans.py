"""Plans of statements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import strawberry

from leatstream.rest.graphql.values import Property, properties_of


@strawberry.type(description="A column of a plan.")
class PlanColumn:
    """A column of a plan."""

    name: str
    type: str
    not_null: bool


@strawberry.type(description="A relation that is read.")
class PlanSource:
    """A relation that is read."""

    fqn: str
    kind: str
    store: str
    store_kind: str
    left_most: bool = strawberry.field(description="Whether sink properties are inferred from it.")


@strawberry.type(description="The relation that is written or created.")
class PlanSink:
    """The relation that is written or created."""

    fqn: str
    kind: str | None
    store: str | None
    store_kind: str | None
    entity: str | None = strawberry.field(description="Topic or table behind it.")
    entity_action: str | None = strawberry.field(description="create or reuse.")
    columns: list[PlanColumn]
    primary_key: list[str]
    properties: list[Property]


@strawberry.type(description="A join.")
class PlanJoin:
    """A join."""

    kind: str
    type: str
    left: str
    right: str
    before_ms: int | None = strawberry.field(description="Bound of an interval join, milliseconds.")
    after_ms: int | None = strawberry.field(description="Bound of an interval join, milliseconds.")


@strawberry.type(description="What a change does to the running job.")
class PlanChange:
    """What a change does to the running job."""

    class_: str = strawberry.field(
        name="class",
        description="none, hot, restart-keep-state, restart-from-offsets, new-state, blue-green or refused.",
    )
    reason: str


@strawberry.type(description="What a statement does. Fields that do not apply to it are null.")
class Plan:
    """What a statement does."""

    sources: list[PlanSource]
    sink: PlanSink | None
    columns: list[PlanColumn] | None = strawberry.field(description="Columns of a SELECT.")
    joins: list[PlanJoin]
    mode: str | None = strawberry.field(description="realtime or micro_batch.")
    mode_reason: str | None
    output_mode: str | None
    delivery: str | None
    driver: str | None
    change: PlanChange | None
    queries: list[ApplicationQuery] | None = strawberry.field(description="Of an application.")


@strawberry.type(description="What becomes of one query of an application.")
class ApplicationQuery:
    """What becomes of one query of an application."""

    name: str
    action: str = strawberry.field(description="create, keep or change.")
    plan: Plan


def plan_of(found: Mapping[str, Any] | None) -> Plan | None:
    """A plan as clients see it; None for a statement without one."""
    return _plan(found) if found else None


def _plan(found: Mapping[str, Any]) -> Plan:
    change, queries = found.get("change"), found.get("queries")
    single = {name: found.get(name) for name in ("mode", "mode_reason", "output_mode", "delivery", "driver")}
    columns = _columns(found["columns"]) if "changelog" in found else None
    return Plan(
        **single,
        sources=[PlanSource(**_members(PlanSource, source)) for source in found.get("sources") or ()],
        sink=_sink(found),
        columns=columns,
        joins=[_join(join) for join in found.get("joins") or ()],
        change=PlanChange(class_=change["class"], reason=change["reason"]) if change else None,
        queries=None if queries is None else [_of_application(one) for one in queries],
    )


def _of_application(one: Mapping[str, Any]) -> ApplicationQuery:
    return ApplicationQuery(name=one["name"], action=one["action"], plan=_plan(one["plan"]))


def _sink(plan: Mapping[str, Any]) -> PlanSink | None:
    # The plan of a declared relation is that of its sink alone.
    given = plan.get("sink") or (plan if "fqn" in plan else None)
    if given is None:
        return None
    shown = _members(PlanSink, given) | {
        "columns": _columns(given.get("columns") or ()),
        "primary_key": list(given.get("primary_key") or ()),
        "properties": properties_of(given.get("properties") or {}),
    }
    return PlanSink(**shown)


def _columns(given: Any) -> list[PlanColumn]:
    return [PlanColumn(name=c["name"], type=c["type"], not_null=c.get("not_null", False)) for c in given]


def _join(given: Mapping[str, Any]) -> PlanJoin:
    return PlanJoin(**_members(PlanJoin, {**given, **(given.get("within") or {})}))


def _members(shape: type[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: given.get(name) for name in shape.__dataclass_fields__}

"""What a query does now."""

from __future__ import annotations

from datetime import datetime

import strawberry

from leatstream.model import objects
from leatstream.model.objects import QueryState
from leatstream.rest.graphql.values import JSON, Position, position_of
from leatstream.rest.schemas.queries import QueryStatusView

strawberry.enum(QueryState)


@strawberry.type(description="Why a job failed.")
class JobError:
    """Why a job failed."""

    code: str
    detail: str
    retryable: bool
    hint: str | None
    record: str | None = strawberry.field(description="The record at fault: entity, partition and offset.")
    columns: list[str] | None
    expression: str | None
    position: Position | None


@strawberry.type(description="One aspect of a query's state.")
class Condition:
    """One aspect of a query's state."""

    type: str
    status: bool
    message: str | None


@strawberry.type(description="What a query does now.")
class QueryStatus:
    """What a query does now."""

    state: QueryState
    since: datetime | None
    message: str | None
    error: JobError | None
    conditions: list[Condition]
    observed_generation: int
    attempt: int
    restarts: int
    driver_id: str | None
    mode: str | None
    metrics: JSON = strawberry.field(description="Last progress.")


def status_of(query: objects.Query) -> QueryStatus:
    """The status of a query as clients see it: what REST shows."""
    shown = QueryStatusView.from_domain(query)
    given = shown.error
    error = None
    if given is not None:
        place = given.record
        record = f"{place.entity}:{place.partition}:{place.offset}" if place is not None else None
        error = JobError(
            code=given.code,
            detail=given.detail,
            retryable=given.retryable,
            hint=given.hint,
            record=record,
            columns=given.columns,
            expression=given.expression,
            position=position_of(given.position.model_dump() if given.position else None),
        )
    return QueryStatus(
        state=shown.state,
        since=shown.since,
        message=shown.message,
        error=error,
        conditions=[Condition(type=c.type, status=c.status, message=c.message) for c in shown.conditions],
        observed_generation=shown.observed_generation,
        attempt=query.status.attempt,
        restarts=shown.restarts,
        driver_id=query.status.driver_id,
        mode=query.plan.get("mode"),
        metrics=JSON(shown.metrics),
    )

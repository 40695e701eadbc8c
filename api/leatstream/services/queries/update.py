"""Writes what was decided for a query, unless it has moved on since it was read."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

from leatstream.errors import LeatstreamError
from leatstream.model.objects import Query, QueryState
from leatstream.services.environment import Environment
from leatstream.services.queries.retries import after_loss
from leatstream.services.queries.save import keep_query


@contextlib.contextmanager
def change_query(env: Environment, query: Query) -> Iterator[list[Query]]:
    """Read the query again for writing; the list is empty if it has moved on since ``query`` was read."""
    with env.open_unit() as unit:
        current = unit.queries.find_by_id(query.meta.id)
        same = current is not None and (
            current.meta.generation,
            current.status.attempt,
            current.status.state,
        ) == (
            query.meta.generation,
            query.status.attempt,
            query.status.state,
        )
        box = [current] if current is not None and same else []
        yield box
        changed = bool(box) and box[0] != current
        if changed:
            keep_query(unit, current, box[0], env.clock.now())
            unit.commit()
    if changed:
        env.changed.notify()


def not_started(env: Environment, query: Query, error: LeatstreamError) -> None:
    """What a query needs before its job can start could not be made: try again later, or give up."""
    now = env.clock.now()
    cause = {"code": error.code, "detail": error.detail, "retryable": error.retryable}
    hint = error.faults[0].hint
    if hint is not None:
        cause["hint"] = hint
    with change_query(env, query) as box:
        for current in box:
            status = after_loss(env.settings, current.status, now, error.detail, cause)
            if not error.retryable:
                status = replace(status, state=QueryState.FAILED, message=error.detail, error=cause)
            box[0] = replace(current, status=status)

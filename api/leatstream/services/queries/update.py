"""Updates a query, unless it has changed since it was read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from leatstream.errors import LeatstreamError
from leatstream.model.objects import Query, QueryState, QueryStatus
from leatstream.services.environment import Environment
from leatstream.services.queries.retries import after_loss
from leatstream.services.queries.save import keep_query


def update_query(env: Environment, query: Query, change: Callable[[Query], Query | None]) -> bool:
    """Read a query again, change it and write it, in one unit of work.

    Args:
        env: the environment.
        query: as it was read before.
        change: returns the changed query, or None to leave it as it is. It is not called if the query is
            deleted or has another generation, attempt or state than ``query``.

    Returns:
        Whether ``change`` was called and returned a query.
    """
    with env.open_unit() as unit:
        current = unit.queries.find_by_id(query.meta.id)
        if current is None or _version(current) != _version(query):
            return False
        changed = change(current)
        if changed is None:
            return False
        if changed == current:
            return True
        keep_query(unit, current, changed, env.clock.now())
        unit.commit()
    env.changed.notify()
    return True


def _version(query: Query) -> tuple[int, int, QueryState]:
    return query.meta.generation, query.status.attempt, query.status.state


def update_status(env: Environment, query: Query, change: Callable[[QueryStatus], QueryStatus]) -> bool:
    """``update_query`` for its status.

    Args:
        env: the environment.
        query: as it was read.
        change: gives the new status.
    """
    return update_query(env, query, lambda current: replace(current, status=change(current.status)))


def not_started(env: Environment, query: Query, error: LeatstreamError) -> None:
    """What a query needs before its job can start could not be made: try again later, or give up.

    Args:
        env: the environment.
        query: as it was read.
        error: what hindered it.
    """
    now = env.clock.now()
    cause = {"code": error.code, "detail": error.detail, "retryable": error.retryable}
    hint = error.faults[0].hint
    if hint is not None:
        cause["hint"] = hint

    def change(status: QueryStatus) -> QueryStatus:
        status = after_loss(env.settings, status, now, error.detail, cause)
        if error.retryable:
            return status
        return replace(status, state=QueryState.FAILED, message=error.detail, error=cause)

    update_status(env, query, change)

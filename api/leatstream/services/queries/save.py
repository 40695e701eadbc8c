"""Writes a query and, in the same unit of work, the log of what has changed."""

from __future__ import annotations

from datetime import datetime

from leatstream.model.objects import Query, QueryEvent, QueryState, QueryVersion
from leatstream.model.query_states import check_transition
from leatstream.plan.change import Change
from leatstream.ports import UnitOfWork
from leatstream.services.environment import Principal
from leatstream.services.queries.joint_jobs import follow, sampled


def keep_query(unit: UnitOfWork, before: Query | None, after: Query, now: datetime) -> None:
    """Write a query and the event of its change; ``before`` is None for a new one.

    What is part of its job is written with it: no reader sees one of them run and the other not.

    Args:
        unit: an open unit of work.
        before: as it was; None = it is new.
        after: as it is now.
        now: the time.

    Raises:
        InternalError: its state is not one that it can go to; nothing may be committed then.
    """
    check_transition(before, after)
    if before is None:
        unit.queries.add(after)
    else:
        unit.queries.update(after)
    note_event(unit, before, after, now)
    for follower, changed in follow(unit, before, after) if before is not None else ():
        keep_query(unit, follower, changed, now)
        sampled(unit, follower, changed)


def note_event(unit: UnitOfWork, before: Query | None, after: Query, now: datetime) -> None:
    """Note what has changed for the job; a change of figures only is no event.

    Args:
        unit: an open unit of work.
        before: as it was; None = it is new.
        after: as it is now.
        now: the time.
    """
    if before is not None and _told(before) == _told(after):
        return
    status = after.status
    error = status.error if status.error and status.state in _FAILING else None
    reason = str(error["detail"]) if error else status.message
    unit.query_log.add_event(
        after.meta.id,
        QueryEvent(
            at=now,
            state=status.state,
            attempt=status.attempt,
            generation=after.meta.generation,
            reason="being deleted" if after.deleting and not reason else reason,
            error=str(error["code"]) if error else None,
        ),
    )


RESTART_ASKED = "restart asked for"
_FAILING = (QueryState.FAILED, QueryState.LOST, QueryState.PENDING)


def _told(query: Query) -> tuple[object, ...]:
    status = query.status
    asked = status.message if (status.message or "").startswith(RESTART_ASKED) else None
    return (
        status.state,
        status.attempt,
        query.deleting,
        status.restarts,
        status.apart_from,
        asked,
        status.revoked_at,
    )


def note_version(
    unit: UnitOfWork, principal: Principal, query: Query, change: Change | None, now: datetime
) -> None:
    """Note a new generation and who wrote it.

    Args:
        unit: an open unit of work.
        principal: who asks.
        query: as it is now.
        change: what the write does to its job; None = nothing.
        now: the time.
    """
    unit.query_log.add_version(
        query.meta.id,
        QueryVersion(
            generation=query.meta.generation,
            at=now,
            by=principal.name,
            sql=query.sql,
            desired_state=query.desired_state,
            change=change.kind if change else None,
            reason=change.reason if change else None,
        ),
    )

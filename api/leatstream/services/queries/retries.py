"""What the end of a job makes of its query's status: stopped, tried again after a pause, or given up."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from leatstream.errors import STATE_UNREADABLE, sentence
from leatstream.model.objects import QueryState, QueryStatus
from leatstream.services.environment import RuntimeSettings

_STABLE_SECONDS = 60.0
# A full disk is waited for like an unreachable store: once there is room, the query continues.
_OUTAGES = frozenset(
    {
        "store-unreachable",
        "registry-unreachable",
        "secret-store-unreachable",
        "checkpoints-unreachable",
        "disk-full",
        "driver-not-started",
    }
)
# Of a driver that ended before it asked for work: a query that nobody had yet is not to blame, and a cluster
# that is unreachable for a night must not leave all queries failed.
DRIVER_NOT_STARTED: Mapping[str, object] = {
    "code": "driver-not-started",
    "detail": "The driver's process ended, or hung, while it started Spark.",
    "retryable": True,
    "hint": "Read the driver's log and its executors' logs; leatstream tries again.",
}


def ended(status: QueryStatus, state: QueryState, now: datetime) -> QueryStatus:
    """Status after the job has ended and its driver is not needed any more.

    Args:
        status: before.
        state: in which it ended.
        now: the time.
    """
    return replace(
        status,
        state=state,
        since=now,
        driver_id=None,
        pid=None,
        message=None,
        next_attempt_at=None,
        revoked_at=None,
    )


def seen_running(status: QueryStatus, now: datetime) -> QueryStatus:
    """Status after the job has reported that it runs; once it makes progress, an earlier fault is cleared.

    Not before: real-time mode runs before any batch is done, and the first cause of a row of faults is kept.
    """
    if status.state is QueryState.STARTING:
        status = replace(status, state=QueryState.RUNNING, since=now, message=None)
    if status.state is QueryState.RUNNING and _got_on(status, now):
        status = replace(status, error=None, restarts=0, outages=0)
    return status


def after_loss(
    settings: RuntimeSettings,
    status: QueryStatus,
    now: datetime,
    why: str,
    error: Mapping[str, object] | None = None,
) -> QueryStatus:
    """Status after a fault that a restart may cure: waiting for the next try, or failed after too many.

    It waits as lost if its driver vanished, as pending if the job itself reported a reason. The first cause
    of a row of faults is kept. An unreachable store, a full disk, or a cluster on which no driver starts, is
    waited for as long as it takes.

    Args:
        settings: of the running of jobs.
        status: before.
        now: the time.
        why: for people.
        error: what is known of the cause; None = its driver vanished.
    """
    cause = error or {"code": "driver-lost", "detail": why, "retryable": True}
    if _got_on(status, now):
        status = replace(status, restarts=0, outages=0)
    cleared = replace(status, driver_id=None, pid=None, since=now, revoked_at=None)
    if is_outage(cause):
        delay = backoff(settings, status.outages + 1)
        return replace(
            cleared,
            state=QueryState.PENDING,
            error=cause,
            message=f"{sentence(str(cause['detail']))} Try {status.outages + 2} in {delay:g} s.",
            next_attempt_at=now + timedelta(seconds=delay),
            restarts=0,
            outages=status.outages + 1,
        )
    restarts = status.restarts + 1
    cleared = replace(cleared, restarts=restarts, outages=0)
    if restarts > settings.max_restarts:
        first = _told_at_the_end(status.error or cause, cause)
        return replace(
            cleared,
            state=QueryState.FAILED,
            error=first,
            message=f"Given up after {settings.max_restarts} restarts in a row: {first['detail']}",
        )
    delay = backoff(settings, restarts)
    return replace(
        cleared,
        state=QueryState.PENDING if error else QueryState.LOST,
        error=status.error if restarts > 1 and status.error else cause,
        message=f"{sentence(str(cause['detail']))} Restart {restarts} in {delay:g} s.",
        next_attempt_at=now + timedelta(seconds=delay),
    )


def _told_at_the_end(first: Mapping[str, object], last: Mapping[str, object]) -> Mapping[str, object]:
    """The first cause of a row; of state that no restart could load, that it is damaged."""
    if last.get("condition") != STATE_UNREADABLE:
        return first
    unreadable = first if first.get("condition") == STATE_UNREADABLE else last
    return {**unreadable, "code": "checkpoint-damaged", "retryable": False}


def is_outage(cause: Mapping[str, object]) -> bool:
    """Whether a store or cluster is unreachable or a disk full: the query continues after that."""
    return bool({cause.get("code"), cause.get("condition")} & _OUTAGES)


def _got_on(status: QueryStatus, now: datetime) -> bool:
    """Whether the attempt that has ended did some work, so that its end is not one more of the same row."""
    if status.driver_id is None:
        return False
    committed = status.metrics.get("batch_id") is not None and status.metrics.get("input_rows_total")
    return bool(committed) or (
        status.state is QueryState.RUNNING and age(status.since, now) > _STABLE_SECONDS
    )


def backoff(settings: RuntimeSettings, tries: int) -> float:
    """Seconds to wait before the next try: doubling up to a limit.

    Spread by chance, so that queries which one fault has ended do not all come back at once.
    """
    longest = min(settings.backoff_initial * 2.0 ** min(tries - 1, 16), settings.backoff_maximum)
    return round(longest * (1 - settings.backoff_jitter * random.random()), 2)


def age(since: datetime | None, now: datetime) -> float:
    """Seconds since then; 0 if there is no such time."""
    return (now - since).total_seconds() if since else 0.0

"""Queries that are part of another one's job (docs/adr/0016): they have its status, and no own job."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from leatstream.errors import CatalogError
from leatstream.model.names import quote
from leatstream.model.objects import DesiredState, Query, QueryProgress, QueryState, QueryStatus
from leatstream.ports import UnitOfWork
from leatstream.services.queries.pulse import as_seen

_ENDED = (QueryState.FAILED, QueryState.COMPLETED)


def leader_of(query: Query) -> str | None:
    """Id of the query whose job this one is part of; None if it has a job of its own."""
    found = query.job.get("led_by")
    return str(found) if found else None


def led(unit: UnitOfWork, query: Query) -> Iterator[Query]:
    """The queries that are part of this one's job, those that are on their way out too."""
    for one in query.job.get("leads") or ():
        found = unit.queries.find_by_id(one)
        if found is not None:
            yield found


def refuse_alone(unit: UnitOfWork, query: Query) -> None:
    """CatalogError invalid-transition for a query that cannot change, stop or start without others."""
    if leader_of(query) is None and not query.job.get("leads"):
        return
    apps = unit.unfiltered.applications.page(limit=100_000)
    owner = quote(next((a.name for a in apps if query.name in a.queries), ""))
    raise CatalogError(
        "invalid-transition",
        f"Query {quote(query.name)} is one job with others of application {owner}: it changes, stops and "
        "starts with them.",
        hint=f"TERMINATE APPLICATION {owner}, RESTART APPLICATION {owner}, or put its whole text",
    )


def forget_led(unit: UnitOfWork, gone: Query) -> None:
    """Remove a deleted query from its job; a leader without other members stands alone."""
    leader = unit.queries.find_by_id(leader_of(gone) or "")
    if leader is not None:
        left = [one for one in leader.job.get("leads") or () if one != gone.meta.id]
        unit.queries.update(replace(leader, job={**leader.job, "leads": left}))


def led_status(follower: Query, before: QueryStatus, leader: Query) -> QueryStatus:
    """The status of a query that is part of a job, after that of the one that leads it has changed.

    Args:
        follower: the query.
        before: of the leader until now.
        leader: the one that leads, with its new status.
    """
    status, own = leader.status, follower.status
    runs = own.observed_generation
    began = status.driver_id is not None and status.attempt != before.attempt
    if began and follower.deleting:
        # The attempt that begins is without it.
        return replace(own, state=QueryState.STOPPED, since=status.since, message=None)
    if began or (status.state in _ENDED and status.state is not before.state):
        runs = follower.meta.generation
    return replace(
        status,
        observed_generation=runs,
        entity_ready=own.entity_ready or status.entity_ready,
        never_ran=own.never_ran and status.never_ran,
    )


def follow(unit: UnitOfWork, before: Query, leader: Query) -> Iterator[tuple[Query, Query]]:
    """Every query that is part of the job, as it was and as it is now, in the unit that keeps the leader.

    Args:
        unit: an open unit of work.
        before: the leader, as it was.
        leader: as it is now.
    """
    if before.status == leader.status:
        return
    for query in led(unit, leader):
        if query.deleting and query.status.driver_id is None and query.status.state is QueryState.STOPPED:
            continue
        yield query, replace(query, status=led_status(query, before.status, leader))


def sampled(unit: UnitOfWork, before: Query, after: Query) -> None:
    """The job's reports are stored for each of its queries.

    Args:
        unit: an open unit of work.
        before: a query of the job, as it was.
        after: as it is now.
    """
    at = after.status.progress_at
    if at is not None and at != before.status.progress_at:
        sample = QueryProgress(at=at, attempt=after.status.attempt, metrics=as_seen(after, at).status.metrics)
        unit.query_log.add_progress(after.meta.id, sample)


def awakened(query: Query, leader: Query, now: datetime) -> Query | None:
    """The leader, restarted because a query of its job changes or is deleted; None if it need not be.

    Its reconciler takes a job that runs an older generation down and starts the present one.

    Args:
        query: that changes or is deleted.
        leader: of its job.
        now: the time.
    """
    status = leader.status
    if leader.deleting or leader.desired_state is not DesiredState.RUNNING:
        return None
    stale = query.status.observed_generation != query.meta.generation
    if status.driver_id is not None:
        runs = query.status.driver_id == status.driver_id
        if not runs or not (stale or query.deleting) or status.observed_generation != leader.meta.generation:
            return None
        # The query may be new to the job, and so may be what it writes to.
        return replace(leader, status=replace(status, observed_generation=0, entity_ready=False))
    if status.state not in _ENDED or not stale or query.deleting:
        return None
    status = replace(status, state=QueryState.PENDING, since=now, error=None, message=None)
    status = replace(status, restarts=0, outages=0, next_attempt_at=None, entity_ready=False)
    return replace(leader, status=status)

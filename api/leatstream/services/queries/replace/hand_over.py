"""A query that writes into a topic takes over from another at one place of their sources (docs/adr/0019).

The new version runs silently beside the old one until it has caught up. Then it is put on hold, and after it
the old one, once that has read and given as much: each ends between two batches and says how far it has come.
One transaction swaps them, with that place in it, and the new one writes from there on. Before it only the
old one writes, after it only the new one. A job that does not end in order continues, and tries again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from pydantic import ValidationError

from leatstream.errors import CatalogError
from leatstream.model.names import quote
from leatstream.model.objects import DesiredState, Query, QueryState
from leatstream.plan.hand_over import HandOver, Reached, covers, is_past
from leatstream.plan.job_spec import Delivery, JobSpec, SourceSpec
from leatstream.ports import UnitOfWork
from leatstream.services.environment import Environment
from leatstream.services.queries.replace.swap import caught_up, has_room, hindrance, say, swap
from leatstream.services.queries.retries import age
from leatstream.services.queries.save import keep_query

_PATIENCE = 30.0  # seconds that the new version stands still until the old one has come as far
_PAUSE = 10.0  # seconds until it continues after that
_NEAR_SECONDS, _NEAR_RECORDS = 5.0, 1_000
# A job that is to stop gets twelve seconds for the batch at work (docs/driver-protocol.md).
_LONGEST_BATCH_MS = 8_000


class Step(StrEnum):
    """What a hand-over needs next."""

    WAIT = "wait"
    HOLD_GREEN = "hold_green"
    HOLD_BLUE = "hold_blue"
    RESUME = "resume"
    SWAP = "swap"


def next_step(green: Query, blue: Query, now: datetime) -> tuple[Step, str | None]:
    """The step that brings ``green`` nearer to the place of ``blue``, and the message for users.

    Args:
        green: the version that takes over.
        blue: the version before.
        now: the time.
    """
    if not green.on_hold:
        why = _far(green, blue)
        if why is not None:
            return Step.WAIT, why or None
        return Step.HOLD_GREEN, f"it ends between two batches, to take over from {blue.name}"
    if green.status.state is not QueryState.STOPPED:
        return Step.WAIT, None
    after = reached_of(green)
    if after is None:
        return Step.RESUME, "it continues: it did not end between two batches, and tries to take over again"
    if blue.status.state is QueryState.STOPPED:
        before = reached_of(blue)
        if before is None or not covers(before, after) or not _has_written(blue, before):
            return (
                Step.RESUME,
                f"it continues: {blue.name} had not come as far, and it tries to take over again",
            )
        return Step.SWAP, None
    if blue.on_hold:
        return Step.WAIT, None
    if blue.status.state is QueryState.RUNNING and _has_come_to(blue, after):
        return Step.HOLD_BLUE, f"it ends between two batches: {green.name} takes over"
    if age(green.status.since, now) > _PATIENCE:
        return Step.RESUME, f"it continues: {blue.name} did not come as far within {_PATIENCE:g} s"
    return Step.WAIT, None


def reached_of(query: Query) -> Reached | None:
    """How far a query has come that has ended between two batches of its present checkpoint."""
    found = _told(query)
    return found if found is not None and found.whole else None


def _told(query: Query) -> Reached | None:
    try:
        found = Reached.model_validate(query.status.reached)
    except ValidationError:
        return None
    return found if found.checkpoint == _checkpoint(query) else None


def _ended_at(query: Query) -> Reached | None:
    """Where a query has ended that may have failed; None where it is not known what it has written.

    One that delivers at least once may have written a part of the next batch, as with any fault.
    """
    found, own = _told(query), hand_over_of(query)
    if found is not None and own is not None and found.batch < own.batch:
        return Reached(**own.model_dump())  # it has written nothing yet
    once = query.job.get("delivery") == Delivery.EXACTLY_ONCE
    return None if found is None or (once and not found.whole) else found


def _checkpoint(query: Query) -> str:
    return f"g{query.checkpoint_generation}"


def _far(green: Query, blue: Query) -> str | None:
    """Why the hand-over cannot begin; empty where there is nothing to report, None if it can."""
    if not caught_up(green, blue):
        return ""
    status = blue.status
    if status.state is not QueryState.RUNNING or status.observed_generation != blue.meta.generation:
        return f"it waits: query {blue.name} does not run"
    rows = status.metrics.get("sources") or []
    lag = sum(int(row.get("lag") or 0) for row in rows)
    rate = float(status.metrics.get("processed_rows_per_second") or 0)
    if not rows or lag > max(_NEAR_RECORDS, rate * _NEAR_SECONDS):
        return f"it waits: query {blue.name} has much to read before"
    for query in (green, blue):
        took = float(query.status.metrics.get("batch_duration_ms") or 0)
        if took > _LONGEST_BATCH_MS:
            return f"it waits: a batch of {query.name} takes {took / 1000:g} s, and it is to end between two"
    return None


def _has_come_to(blue: Query, after: Reached) -> bool:
    """Whether the old version has read and given as much as the new one, by its last word."""
    metrics = blue.status.metrics
    ends = [{row["entity"]: row.get("end_offsets") or {}} for row in metrics.get("sources") or []]
    if not is_past(ends, after.offsets):
        return False
    job = JobSpec.model_validate(blue.job)
    if after.next_watermark_us is None or not job.has_watermark:
        return True
    watermark = metrics.get("watermark")
    at = datetime.fromisoformat(watermark).timestamp() if watermark else 0.0
    return round(at * 1_000_000) >= after.next_watermark_us


def _has_written(blue: Query, before: Reached) -> bool:
    """Whether the old version itself has come past the place where it took over."""
    own = hand_over_of(blue)
    return own is None or before.batch >= own.batch


def hand_over_of(query: Query) -> HandOver | None:
    """Where a query has taken over from another; None where that does not count (any more)."""
    found = HandOver.model_validate(query.hand_over) if query.hand_over is not None else None
    return found if found is not None and found.checkpoint == _checkpoint(query) else None


def hand_over(env: Environment, found: Query) -> None:
    """Do the next step of one hand-over, if there is one; every step is one transaction."""
    now = env.clock.now()
    with env.open_unit() as unit:
        green = unit.queries.find_by_id(found.meta.id)
        blue = unit.queries.find_by_id(found.beside or "")
        if green is None or blue is None or green.deleting or blue.deleting:
            return
        step, message = next_step(green, blue, now)
        why = hindrance(unit, green, blue) if step in (Step.HOLD_GREEN, Step.SWAP) else None
        if why is not None:
            step, message = (Step.WAIT if step is Step.HOLD_GREEN else Step.RESUME), why
        if not _do(env, unit, step, message, green, blue):
            return
        unit.commit()
    env.changed.notify()


def _do(
    env: Environment, unit: UnitOfWork, step: Step, message: str | None, green: Query, blue: Query
) -> bool:
    """Write a step down; whether there was one."""
    now = env.clock.now()
    if step is Step.WAIT:
        return message is not None and say(unit, green, message, now)
    if step in (Step.HOLD_GREEN, Step.HOLD_BLUE):
        if not has_room(unit, green, blue):
            return False
        held = green if step is Step.HOLD_GREEN else blue
        status = replace(held.status, message=message)
        keep_query(unit, held, replace(held, on_hold=True, status=status), now)
    elif step is Step.RESUME:
        if blue.on_hold:
            keep_query(unit, blue, _released(blue, now), now)
        keep_query(unit, green, _released(green, now, _PAUSE, message), now)
    else:
        before, after = reached_of(blue), reached_of(green)
        if before is None or after is None:
            return False
        _swap_at(env, unit, green, blue, before, after)
    return True


def _swap_at(
    env: Environment, unit: UnitOfWork, green: Query, blue: Query, before: Reached, after: Reached
) -> None:
    place = HandOver(
        checkpoint=_checkpoint(green),
        batch=after.batch + 1,
        offsets=before.offsets,
        watermark_us=before.watermark_us,
    )
    lead = _released(green, env.clock.now())
    swap(env, unit, green, blue, replace(lead, hand_over=place.model_dump(mode="json")))


def take_over_at_once(env: Environment, unit: UnitOfWork, green: Query, blue: Query) -> None:
    """Take over from a query that does not run, where that has ended; the caller commits.

    Args:
        env: the environment.
        unit: an open unit of work.
        green: the version that takes over.
        blue: the version before.

    Raises:
        CatalogError: invalid-transition, where nobody can tell where; has-dependents.
    """
    before, after = _ended_at(blue), reached_of(green)
    if blue.status.driver_id is not None or before is None or after is None or not covers(before, after):
        raise CatalogError(
            "invalid-transition",
            f"Query {quote(blue.name)} does not run, and it is not known where it has ended.",
            hint=f"RESTART QUERY {quote(blue.name)}, or TERMINATE it, and ROLLBACK it then",
        )
    why = hindrance(unit, green, blue)
    if why is not None:
        raise CatalogError("has-dependents", why)
    _swap_at(env, unit, green, blue, before, after)


def _released(query: Query, now: datetime, pause: float = 0.0, message: str | None = None) -> Query:
    """The query as its user wants it."""
    status = replace(query.status, message=message)
    if query.desired_state is DesiredState.RUNNING and status.state is QueryState.STOPPED:
        later = now + timedelta(seconds=pause) if pause else None
        status = replace(status, state=QueryState.PENDING, since=now, next_attempt_at=later)
    return replace(query, on_hold=False, status=status)


def let_go_on(env: Environment, found: Query) -> None:
    """A query on hold for another one continues if that was deleted or cancelled."""
    with env.open_unit() as unit:
        query = unit.queries.find_by_id(found.meta.id)
        if query is None or not query.on_hold or query.beside is not None:
            return
        queries = unit.queries.page(prefix=f"{query.name}__", limit=100_000)
        if any(one.beside == query.meta.id and one.on_hold and not one.deleting for one in queries):
            return
        keep_query(unit, query, _released(query, env.clock.now()), env.clock.now())
        unit.commit()
    env.changed.notify()


def taking_over_of(unit: UnitOfWork, query: Query, sources: Sequence[SourceSpec]) -> Mapping[str, Any]:
    """What a JobSpec says of a hand-over.

    A silent job takes rows as late as both versions do: it is to keep what the version before has not given.

    Args:
        unit: an open unit of work.
        query: whose job it is.
        sources: of the job.
    """
    if not query.is_silent:
        place = hand_over_of(query)
        return {"hand_over": place} if place is not None else {}
    blue = unit.queries.find_by_id(query.beside or "")
    left = [SourceSpec.model_validate(one) for one in blue.job["sources"]] if blue is not None else []
    patient = []
    for source in sources:
        other = next(
            (o for o in left if (o.store.name, o.entity) == (source.store.name, source.entity)), None
        )
        if other is not None:
            left.remove(other)
            delays = [d for d in (source.watermark_delay_ms, other.watermark_delay_ms) if d is not None]
            if source.watermark_delay_ms is not None:
                source = source.model_copy(update={"watermark_delay_ms": max(delays)})
        patient.append(source)
    return {"silent": True, "sources": patient}

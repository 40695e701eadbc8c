"""Brings jobs to what users want. ``decide`` is pure; ``reconcile`` does what it says.

Intent is in the catalog before any effect; every effect is idempotent; a crash anywhere heals at the next
pass.
"""

from __future__ import annotations

import contextlib
import logging
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from leatstream.errors import CatalogError, LeatstreamError
from leatstream.model.names import Fqn
from leatstream.model.objects import DesiredState, Query, QueryKind, QueryState, QueryStatus
from leatstream.services.environment import Environment, RuntimeSettings
from leatstream.services.query_notes import keep_query
from leatstream.services.query_origin import lay_checkpoint
from leatstream.services.query_removal import remove_query
from leatstream.sql.relation_properties import read_relation_properties

_log = logging.getLogger(__name__)
_STRAY_SECONDS = 15.0


class Action(StrEnum):
    """What a query needs now."""

    NONE = "none"
    LAUNCH = "launch"
    END_DRIVER = "end_driver"
    MARK_STOPPING = "mark_stopping"
    MARK_STOPPED = "mark_stopped"
    MARK_PENDING = "mark_pending"
    MARK_LOST = "mark_lost"
    FINALIZE = "finalize"


@dataclass(frozen=True, slots=True)
class Observed:
    """What is seen of a query's driver: whether the process is there, the time, and since when we listen.

    A heartbeat that could not be heard because this process was not there yet does not count as missed.
    """

    driver_alive: bool
    now: datetime
    listening_since: datetime | None = None


def decide(query: Query, observed: Observed, settings: RuntimeSettings) -> Action:
    """One action that brings the query nearer to what is wanted."""
    status = query.status
    has_driver = status.driver_id is not None
    if has_driver and not observed.driver_alive:
        if query.deleting:
            return Action.FINALIZE
        if query.desired_state is DesiredState.STOPPED:
            return Action.MARK_STOPPED
        # A job that was taken down to make way for a changed one is no loss.
        current = status.observed_generation == query.meta.generation
        return Action.MARK_LOST if current else Action.MARK_PENDING
    if query.deleting or query.desired_state is DesiredState.STOPPED:
        if not has_driver:
            if query.deleting:
                return Action.NONE if _too_early(status, observed) else Action.FINALIZE
            return Action.NONE if status.state is QueryState.STOPPED else Action.MARK_STOPPED
        return _take_down(status, observed, settings)
    if not has_driver:
        return _start(status, observed)
    if status.observed_generation != query.meta.generation:
        return _take_down(status, observed, settings)
    if status.state is QueryState.STOPPING:
        return _take_down(status, observed, settings)
    limit = settings.start_timeout if status.state is QueryState.STARTING else settings.heartbeat_timeout
    heard = max(filter(None, (status.heartbeat_at, observed.listening_since)), default=None)
    return Action.END_DRIVER if _age(heard, observed.now) > limit else Action.NONE


def _start(status: QueryStatus, observed: Observed) -> Action:
    if status.state in (QueryState.FAILED, QueryState.COMPLETED):
        return Action.NONE
    if status.state is QueryState.STOPPED:
        return Action.MARK_PENDING
    return Action.NONE if _too_early(status, observed) else Action.LAUNCH


def _too_early(status: QueryStatus, observed: Observed) -> bool:
    return status.next_attempt_at is not None and status.next_attempt_at > observed.now


def _take_down(status: QueryStatus, observed: Observed, settings: RuntimeSettings) -> Action:
    """The driver is told to stop in its heartbeat's answer; force comes after the grace."""
    if status.state is not QueryState.STOPPING:
        return Action.MARK_STOPPING
    return Action.END_DRIVER if _age(status.since, observed.now) > settings.stop_grace else Action.NONE


def _age(since: datetime | None, now: datetime) -> float:
    return (now - since).total_seconds() if since else 0.0


def reconcile_all(env: Environment) -> frozenset[str] | None:
    """One pass over this server's queries; a fault with one does not keep the others waiting.

    Returns:
        Ids of the queries that are this server's; None = all.
    """
    mine = env.leases.renew()
    with env.open_unit(write=False) as unit:
        queries = [
            query for query in unit.queries.page(limit=100_000) if mine is None or query.meta.id in mine
        ]
    for query in queries:
        try:
            reconcile(env, query)
        except Exception:  # whatever it is, the next pass sees the same state again
            _log.exception("query %s could not be reconciled", query.name)
    return mine


def release_strays(env: Environment) -> None:
    """End drivers that hold a query which is run by another or by none: left by a crash between two steps.

    A driver that has just reported its end is given the time to go by itself.
    """
    for driver, query_id, seconds in env.drivers.assignments():
        if seconds < _STRAY_SECONDS or env.selections.holds(driver, query_id):
            continue
        with env.open_unit(write=False) as unit:
            query = unit.queries.find_by_id(query_id)
        if query is None or query.status.driver_id != driver:
            env.drivers.end(driver)


def _end_driver(env: Environment, query: Query) -> None:
    """End a driver that is silent; a pass may take long, so it is asked once more whether it still is."""
    with env.open_unit(write=False) as unit:
        current = unit.queries.find_by_id(query.meta.id)
    driver = query.status.driver_id or ""
    if current is None or current.status.driver_id != driver:
        return
    observed = Observed(env.drivers.is_alive(driver), env.clock.now(), env.listening_since)
    if decide(current, observed, env.settings) is Action.END_DRIVER:
        env.drivers.end(driver)


def reconcile(env: Environment, query: Query) -> Action:
    """Do what one query needs now."""
    driver = query.status.driver_id
    alive = driver is not None and env.drivers.is_alive(driver)
    action = decide(query, Observed(alive, env.clock.now(), env.listening_since), env.settings)
    if action is Action.LAUNCH:
        _launch(env, query)
    elif action is Action.END_DRIVER:
        _end_driver(env, query)
    elif action is Action.FINALIZE:
        _finalize(env, query)
    elif action is not Action.NONE:
        _mark(env, query, action)
    return action


@contextlib.contextmanager
def _change(env: Environment, query: Query) -> Iterator[list[Query]]:
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


def _mark(env: Environment, query: Query, action: Action) -> None:
    now = env.clock.now()
    with _change(env, query) as box:
        for current in box:
            status = current.status
            if action is Action.MARK_STOPPING:
                status = replace(status, state=QueryState.STOPPING, since=now, message="stopping")
            elif action is Action.MARK_STOPPED:
                status = ended(status, QueryState.STOPPED, now)
            elif action is Action.MARK_PENDING:
                status = ended(status, QueryState.PENDING, now)
            elif action is Action.MARK_LOST:
                status = after_loss(env.settings, status, now, "the driver's process ended")
            box[0] = replace(current, status=status)
    if query.status.driver_id and action is not Action.MARK_STOPPING:
        env.drivers.end(query.status.driver_id)


def ended(status: QueryStatus, state: QueryState, now: datetime) -> QueryStatus:
    """Status after the job has ended and its driver is not needed any more."""
    return replace(
        status, state=state, since=now, driver_id=None, pid=None, message=None, next_attempt_at=None
    )


def after_loss(
    settings: RuntimeSettings,
    status: QueryStatus,
    now: datetime,
    why: str,
    error: dict[str, object] | None = None,
) -> QueryStatus:
    """Status after a fault that a restart may cure: waiting for the next try, or failed after too many.

    It waits as lost if its driver vanished, as pending if the job itself told why it ended. The first cause
    of a row of faults is kept.
    """
    cause = error or {"code": "driver-lost", "detail": why, "retryable": True}
    stable = status.state is QueryState.RUNNING and _age(status.since, now) > 60
    restarts = 1 if stable else status.restarts + 1
    cleared = replace(status, driver_id=None, pid=None, since=now, restarts=restarts)
    if restarts > settings.max_restarts:
        first = status.error or cause
        return replace(
            cleared,
            state=QueryState.FAILED,
            error=first,
            message=f"given up after {settings.max_restarts} restarts in a row: {first['detail']}",
        )
    delay = backoff(settings, restarts)
    return replace(
        cleared,
        state=QueryState.PENDING if error else QueryState.LOST,
        error=status.error if restarts > 1 and status.error else cause,
        message=f"{cause['detail']}; restart {restarts} in {delay:g} s",
        next_attempt_at=now + timedelta(seconds=delay),
    )


def backoff(settings: RuntimeSettings, tries: int) -> float:
    """Seconds to wait before the next try: doubling up to a limit.

    Spread by chance, so that queries which one fault has ended do not all come back at once.
    """
    longest = min(settings.backoff_initial * 2.0 ** min(tries - 1, 16), settings.backoff_maximum)
    return round(longest * (1 - settings.backoff_jitter * random.random()), 2)


def _launch(env: Environment, query: Query) -> None:
    try:
        if not query.status.entity_ready:
            _make_entity(env, query)
        lay_checkpoint(env, query)
    except LeatstreamError as error:
        now = env.clock.now()
        cause = {"code": error.code, "detail": error.detail, "retryable": error.retryable}
        hint = error.faults[0].hint
        if hint is not None:
            cause["hint"] = hint
        with _change(env, query) as box:
            for current in box:
                status = after_loss(env.settings, current.status, now, error.detail, cause)
                if not error.retryable:
                    status = replace(status, state=QueryState.FAILED, message=error.detail, error=cause)
                box[0] = replace(current, status=status)
        return
    driver = env.drivers.assign(query.meta.id)
    now = env.clock.now()
    with _change(env, query) as box:
        for current in box:
            status = replace(current.status, entity_ready=True)
            if driver is None:
                status = replace(status, message="waiting for a driver: the limit of drivers is reached")
            else:
                status = replace(
                    status,
                    state=QueryState.STARTING,
                    since=now,
                    message=None,
                    attempt=current.status.attempt + 1,
                    driver_id=driver,
                    pid=env.drivers.process_id(driver),
                    heartbeat_at=now,
                    observed_generation=current.meta.generation,
                    metrics={},
                )
            box[0] = replace(current, status=status)
        moved_on = not box
    if driver is None:
        env.leases.hand_over(query.meta.id)
    elif moved_on:
        env.drivers.end(driver)


def _make_entity(env: Environment, query: Query) -> None:
    """Create the sink's entity as the plan says; does nothing where it exists."""
    if not query.kind.makes_sink or query.kind is QueryKind.CREATE_MATERIALIZED_VIEW_AS:
        return
    with env.open_unit(write=False) as unit:
        relation = unit.relations.find(str(Fqn.parse(query.sink)))
        store = unit.stores.find(relation.store) if relation else None
    if relation is None or store is None:
        raise CatalogError("not-found", f"stream {query.sink} or its store is not in the catalog any more")
    connector = env.connect(store)
    if connector.find_entity(relation.entity, env.settings.store_timeout) is not None:
        return
    if connector.tables:
        connector.create_table(relation.entity, relation.columns, relation.primary_key)
        return
    properties = {
        p.name: int(relation.effective[p.name].value)
        for p in connector.entity_properties
        if p.name in relation.effective
    }
    configs = read_relation_properties(dict(relation.properties)).configs
    connector.create_entity(relation.entity, properties, configs)


def _finalize(env: Environment, query: Query) -> None:
    if query.status.driver_id:
        env.drivers.end(query.status.driver_id)
    try:
        remove_query(env, query)
    except LeatstreamError as error:
        now = env.clock.now()
        with _change(env, query) as box:
            for current in box:
                status = ended(current.status, QueryState.STOPPED, now)
                tries = current.status.restarts + 1
                box[0] = replace(
                    current,
                    status=replace(
                        status,
                        restarts=tries,
                        message=f"what it leaves cannot be dropped yet: {error.detail}",
                        next_attempt_at=now + timedelta(seconds=backoff(env.settings, tries)),
                    ),
                )

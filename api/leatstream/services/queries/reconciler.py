"""Brings jobs to what users want. ``decide`` is pure; ``reconcile`` does what it says.

Intent is in the catalog before any effect; every effect is idempotent; a crash anywhere heals at the next
pass.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from leatstream.errors import CatalogAway, CatalogError, EngineError, LeatstreamError
from leatstream.model.names import Fqn
from leatstream.model.objects import DesiredState, Query, QueryKind, QueryState, QueryStatus
from leatstream.services.environment import Environment, RuntimeSettings
from leatstream.services.queries.joint_jobs import awakened, leader_of, led
from leatstream.services.queries.losses import after_loss, age, backoff, ended
from leatstream.services.queries.notes import keep_query
from leatstream.services.queries.origin import awaits_checkpoint
from leatstream.services.queries.removal import remove_query
from leatstream.services.queries.shared_drivers import (
    APART,
    is_the_silent_one,
    note_crashes,
    shares,
    sharing_of,
    starts_in_turn,
    turn_of,
)
from leatstream.services.queries.taking_over import take_over
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
        return _take_down(query, observed, settings)
    if not has_driver:
        return _start(status, observed)
    if status.observed_generation != query.meta.generation:
        return _take_down(query, observed, settings)
    if status.state is QueryState.STOPPING:
        return _take_down(query, observed, settings)
    limit = settings.start_timeout if status.state is QueryState.STARTING else settings.heartbeat_timeout
    heard = max(filter(None, (status.heartbeat_at, observed.listening_since)), default=None)
    return Action.END_DRIVER if age(heard, observed.now) > limit else Action.NONE


def _start(status: QueryStatus, observed: Observed) -> Action:
    if status.state in (QueryState.FAILED, QueryState.COMPLETED):
        return Action.NONE
    if status.state is QueryState.STOPPED:
        return Action.MARK_PENDING
    return Action.NONE if _too_early(status, observed) else Action.LAUNCH


def _too_early(status: QueryStatus, observed: Observed) -> bool:
    return status.next_attempt_at is not None and status.next_attempt_at > observed.now


def _take_down(query: Query, observed: Observed, settings: RuntimeSettings) -> Action:
    """The driver is told to stop in its heartbeat's answer; force comes after the grace."""
    status = query.status
    if status.state is not QueryState.STOPPING:
        return Action.MARK_STOPPING
    # Among many a query is heard more rarely, and force would hit them all.
    grace = settings.stop_grace * (2 if shares(query) else 1)
    return Action.END_DRIVER if age(status.since, observed.now) > grace else Action.NONE


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
    note_crashes(env, queries)
    for query in queries:
        try:
            reconcile(env, query)
        except CatalogAway:
            raise
        except Exception:  # whatever it is, the next pass sees the same state again
            _log.exception("query %s could not be reconciled", query.name)
    take_over(env, queries)
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
            try:
                env.drivers.let_go(driver, query_id)
            except EngineError as error:  # such as a pod on a lost node: no reason to let the queries wait
                _log.warning("driver %s could not be ended: %s", driver, error.detail)


def _end_driver(env: Environment, query: Query) -> None:
    """End a driver that is silent; a pass may take long, so it is asked once more whether it still is."""
    with env.open_unit(write=False) as unit:
        current = unit.queries.find_by_id(query.meta.id)
    driver = query.status.driver_id or ""
    if current is None or current.status.driver_id != driver:
        return
    observed = Observed(env.drivers.runs(driver, query.meta.id), env.clock.now(), env.listening_since)
    if decide(current, observed, env.settings) is not Action.END_DRIVER:
        return
    with env.open_unit() as unit:
        if is_the_silent_one(unit, current, env.settings, observed.now):
            why = f"it hung in a shared driver; {APART}"
            status = replace(current.status, apart_from=driver, message=why)
            keep_query(unit, current, replace(current, status=status), observed.now)
            unit.commit()
    # A shared driver goes as a whole: nothing less makes sure that the query writes no more.
    env.drivers.end(driver)


def reconcile(env: Environment, query: Query) -> Action:
    """Do what one query needs now."""
    if leader_of(query) is not None:
        return _follow(env, query)
    driver = query.status.driver_id
    alive = driver is not None and env.drivers.runs(driver, query.meta.id)
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


def _follow(env: Environment, query: Query) -> Action:
    """Look after a query that is part of another's job: it only ends by itself."""
    if query.deleting and query.status.driver_id is None:
        if _too_early(query.status, Observed(False, env.clock.now())):
            return Action.NONE
        _finalize(env, query)
        return Action.FINALIZE
    with env.open_unit(write=False) as unit:
        leader = unit.queries.find_by_id(leader_of(query) or "")
    if leader is None:
        # Whoever leads goes when its driver has ended.
        _mark(env, query, Action.MARK_STOPPED)
        return Action.MARK_STOPPED
    if awakened(query, leader, env.clock.now()) is None:
        return Action.NONE
    with _change(env, leader) as box:
        for current in box:
            box[0] = awakened(query, current, env.clock.now()) or current
    return Action.NONE


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
        env.drivers.let_go(query.status.driver_id, query.meta.id)


def _launch(env: Environment, query: Query) -> None:
    try:
        if not query.status.entity_ready:
            _make_entities(env, query)
        if awaits_checkpoint(env, query):
            _await_checkpoint(env, query)
            return
    except LeatstreamError as error:
        not_started(env, query, error)
        return
    now = env.clock.now()
    with env.open_unit(write=False) as unit:
        sharing = sharing_of(unit, query)
        # All queries are read for the few that need it only: hundreds may wait here in one pass.
        first = turn_of(query, unit.queries.page(limit=100_000), now) if starts_in_turn(query) else None
    try:
        driver = env.drivers.assign(query.meta.id, sharing) if first is None else None
        why = env.drivers.why_none()
    except EngineError as error:  # such as a cluster that is away: no fault of the query's
        driver, why = None, error.detail
    with _change(env, query) as box:
        for current in box:
            status = replace(current.status, entity_ready=True)
            if first is not None:
                what = f"shared drivers died twice: their queries start one after another, now {first}"
                status = replace(status, message=f"waiting for its turn: {what}")
            elif driver is None:
                status = replace(status, message=f"waiting for a driver: {why}")
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
        if first is None:
            env.leases.hand_over(query.meta.id)
    elif moved_on:
        env.drivers.let_go(driver, query.meta.id)


def not_started(env: Environment, query: Query, error: LeatstreamError) -> None:
    """What a query needs before its job can start could not be made: try again later, or give up."""
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


def _await_checkpoint(env: Environment, query: Query) -> None:
    """A copy may take long: another thread makes it (``services.copying``), and this one says so."""
    env.awaited_copies.add(query.meta.id)
    origin = query.origin
    with _change(env, query) as box:
        for current in box:
            message = f"the checkpoint of {origin.name if origin else ''} is being copied"
            box[0] = replace(current, status=replace(current.status, message=message))


def _make_entities(env: Environment, query: Query) -> None:
    """Create the sinks' entities of a job."""
    with env.open_unit(write=False) as unit:
        others = [one for one in led(unit, query) if not one.deleting]
    for one in (query, *others):
        _make_entity(env, one)


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
        env.drivers.let_go(query.status.driver_id, query.meta.id)
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

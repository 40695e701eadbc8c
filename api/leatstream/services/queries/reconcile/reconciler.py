"""Brings jobs to what users want. ``decide`` is pure; ``reconcile`` does what it says.

Intent is in the catalog before any effect; every effect is idempotent; a crash anywhere heals at the next
pass.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import partial

from leatstream.errors import CatalogAway, EngineError, LeatstreamError
from leatstream.model.objects import Query, QueryState, QueryStatus
from leatstream.services.environment import Environment, RuntimeSettings
from leatstream.services.queries.checkpoints.origin import awaits_checkpoint
from leatstream.services.queries.joint_jobs import awakened, leader_of
from leatstream.services.queries.reconcile.revoked_rights import end_revoked
from leatstream.services.queries.reconcile.store_steps import (
    Aside,
    at_once,
    finalize,
    make_entities,
    place_of_entities,
    place_of_removal,
    show_version,
)
from leatstream.services.queries.replace.catch_up import take_over
from leatstream.services.queries.retries import DRIVER_NOT_STARTED, after_loss, age, ended
from leatstream.services.queries.rights import OwnersRights
from leatstream.services.queries.save import keep_query
from leatstream.services.queries.shared_drivers import (
    APART,
    HANDED,
    STARTS,
    WAITING,
    bring_back,
    is_the_silent_one,
    note_crashes,
    set_apart,
    shares,
    sharing_of,
    starts_in_turn,
    turn_of,
)
from leatstream.services.queries.update import not_started, update_query, update_status

_log = logging.getLogger(__name__)
_STRAY_SECONDS = 15.0
_TURN_SECONDS = 1.0


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
    ``serving`` are the seconds since the driver could begin with the query, 0 while it warms up.
    """

    driver_alive: bool
    now: datetime
    listening_since: datetime | None = None
    serving: float = math.inf


def decide(query: Query, observed: Observed, settings: RuntimeSettings) -> Action:
    """One action that brings the query nearer to what is wanted.

    Args:
        query: as the catalog has it.
        observed: what is known of its driver.
        settings: of the running of jobs.
    """
    status = query.status
    has_driver = status.driver_id is not None
    if has_driver and not observed.driver_alive:
        if query.deleting:
            return Action.FINALIZE
        if not query.is_wanted:
            return Action.MARK_STOPPED
        # A job that was taken down to make way for a changed one is no loss.
        current = status.observed_generation == query.meta.generation
        return Action.MARK_LOST if current else Action.MARK_PENDING
    if not query.is_wanted:
        if not has_driver:
            if query.deleting:
                return Action.NONE if _too_early(status, observed.now, settings) else Action.FINALIZE
            return Action.NONE if status.state is QueryState.STOPPED else Action.MARK_STOPPED
        return _take_down(query, observed, settings)
    if not has_driver:
        return _start(status, observed, settings)
    if status.observed_generation != query.meta.generation:
        return _take_down(query, observed, settings)
    if status.state is QueryState.STOPPING:
        return _take_down(query, observed, settings)
    heard = max(filter(None, (status.heartbeat_at, observed.listening_since)), default=None)
    silence, limit = age(heard, observed.now), settings.heartbeat_timeout
    if status.state is QueryState.STARTING:
        # How long a driver may warm up is the pool's to say: many at once take their time.
        silence, limit = min(silence, observed.serving), settings.start_timeout
    return Action.END_DRIVER if silence > limit else Action.NONE


def _start(status: QueryStatus, observed: Observed, settings: RuntimeSettings) -> Action:
    if status.state in (QueryState.FAILED, QueryState.COMPLETED):
        return Action.NONE
    if status.state is QueryState.STOPPED:
        return Action.MARK_PENDING
    return Action.NONE if _too_early(status, observed.now, settings) else Action.LAUNCH


def _too_early(status: QueryStatus, now: datetime, settings: RuntimeSettings) -> bool:
    """Whether a pause is not over; one that is longer than any was begun by a clock that was ahead."""
    left = age(now, status.next_attempt_at) if status.next_attempt_at else 0.0
    return 0 < left <= settings.backoff_maximum


def _take_down(query: Query, observed: Observed, settings: RuntimeSettings) -> Action:
    """The answer to its heartbeat orders the driver to stop; force comes after the grace."""
    status = query.status
    if status.state is not QueryState.STOPPING:
        return Action.MARK_STOPPING
    # Among many a query is heard more rarely, and force would hit them all.
    grace = settings.stop_grace * (2 if shares(query) else 1)
    return Action.END_DRIVER if age(status.since, observed.now) > grace else Action.NONE


def reconcile_all(env: Environment, aside: Aside = at_once) -> frozenset[str] | None:
    """One pass over this server's queries; a fault with one does not keep the others waiting.

    Args:
        env: the environment.
        aside: takes what may have to wait for a store or a node, for which the others shall not wait either.

    Returns:
        Ids of the queries that are this server's; None = all.
    """
    mine = env.leases.renew()
    with env.open_unit(write=False) as unit:
        queries = [
            query for query in unit.queries.page(limit=100_000) if mine is None or query.meta.id in mine
        ]
    note_crashes(env, queries)
    end_revoked(env, queries)
    # Who waits for a driver the longest gets the next one.
    queries.sort(key=lambda query: query.status.since or query.meta.created_at)
    for query in queries:
        try:
            reconcile(env, query, aside)
        except CatalogAway:
            raise
        except Exception:  # whatever it is, the next pass sees the same state again
            _log.exception("query %s could not be reconciled", query.name)
    bring_back(env, queries)
    take_over(env, queries)
    return mine


def release_strays(env: Environment, aside: Aside = at_once) -> None:
    """End drivers that hold a query which is run by another or by none: left by a crash between two steps.

    A driver that has just reported its end is given the time to go by itself.
    """
    for driver, query_id, seconds in env.drivers.assignments():
        if seconds < _STRAY_SECONDS or env.selections.holds(driver, query_id):
            continue
        with env.open_unit(write=False) as unit:
            query = unit.queries.find_by_id(query_id)
        if query is None or query.status.driver_id != driver:
            _let_go(env, driver, query_id, aside)


def _let_go(env: Environment, driver: str, query_id: str, aside: Aside) -> None:
    """Take a query from its driver, which ends unless it has others: a lost node takes its time for that."""

    def errand(_: LeatstreamError | None) -> None:
        try:
            env.drivers.let_go(driver, query_id)
        except EngineError as error:  # such as a pod on a lost node: no reason to let the queries wait
            _log.warning("driver %s could not be ended: %s", driver, error.detail)

    if env.drivers.role(driver) == "shared":
        errand(None)  # nothing is waited for, and later it might have been given the same query again
    else:
        aside(("driver", driver), query_id, errand)


def _end_driver(env: Environment, query: Query, _: LeatstreamError | None) -> None:
    """End a driver that is silent; much may have happened since, so it is asked again whether it still is."""
    driver = query.status.driver_id or ""
    # Looked at before the turn to write is taken, as a cluster may take its time to answer.
    alive, asked = env.drivers.runs(driver, query.meta.id), env.clock.now()
    with env.open_unit() as unit:
        # What was heard until now is in the catalog, however long this has waited for its turn.
        current = unit.queries.find_by_id(query.meta.id)
        if current is None or current.status.driver_id != driver:
            return
        now = env.clock.now()
        if age(asked, now) > _TURN_SECONDS:
            # A long turn delayed heartbeats as well: handle them first.
            env.listening_since = now
        observed = Observed(alive, now, env.listening_since, env.drivers.serving(driver))
        if decide(current, observed, env.settings) is not Action.END_DRIVER:
            return
        if is_the_silent_one(unit, current, env.settings, now):
            why = f"it hung in a shared driver; {APART}"
            status = replace(set_apart(current.status, driver), message=why)
            keep_query(unit, current, replace(current, status=status), now)
            unit.commit()
    # A shared driver is ended as a whole: nothing less makes sure that the query writes no more.
    env.drivers.end(driver)


def reconcile(env: Environment, query: Query, aside: Aside = at_once) -> Action:
    """Do what one query needs now; ``aside`` takes what may have to wait for others than the catalog.

    Args:
        env: the environment.
        query: as the catalog has it.
        aside: takes what may have to wait for others than the catalog.
    """
    if leader_of(query) is not None:
        return _follow(env, query, aside)
    if query.status.view_behind and not query.deleting:
        place = place_of_entities(env, query)
        if place is not None:
            aside(place, query.meta.id, partial(show_version, env, query))
    driver = query.status.driver_id
    alive = driver is not None and env.drivers.runs(driver, query.meta.id)
    serving = env.drivers.serving(driver) if driver is not None else 0.0
    action = decide(query, Observed(alive, env.clock.now(), env.listening_since, serving), env.settings)
    if action is Action.LAUNCH:
        if query.status.entity_ready or _has_entities(env, query, aside):
            _launch(env, query, aside)
    elif action is Action.END_DRIVER:
        aside(("driver", driver or ""), query.meta.id, partial(_end_driver, env, query))
    elif action is Action.FINALIZE:
        aside(place_of_removal(query), query.meta.id, partial(finalize, env, query))
    elif action is not Action.NONE:
        _mark(env, query, action)
    return action


def _follow(env: Environment, query: Query, aside: Aside) -> Action:
    """Look after a query that is part of another's job: it only ends by itself."""
    if query.deleting and query.status.driver_id is None:
        if _too_early(query.status, env.clock.now(), env.settings):
            return Action.NONE
        aside(place_of_removal(query), query.meta.id, partial(finalize, env, query))
        return Action.FINALIZE
    with env.open_unit(write=False) as unit:
        leader = unit.queries.find_by_id(leader_of(query) or "")
    if leader is None:
        # The leading query is removed when its driver has ended.
        _mark(env, query, Action.MARK_STOPPED)
        return Action.MARK_STOPPED
    if awakened(query, leader, env.clock.now()) is None:
        return Action.NONE
    update_query(env, leader, lambda current: awakened(query, current, env.clock.now()))
    return Action.NONE


def _mark(env: Environment, query: Query, action: Action) -> None:
    now, driver = env.clock.now(), query.status.driver_id
    unserved = driver is not None and env.drivers.never_served(driver)

    def change(status: QueryStatus) -> QueryStatus:
        if action is Action.MARK_STOPPING:
            return replace(status, state=QueryState.STOPPING, since=now, message="stopping")
        if driver is not None and not unserved:
            # What a job did before its driver vanished is not known.
            status = replace(status, never_ran=False)
        if action is Action.MARK_STOPPED:
            return ended(status, QueryState.STOPPED, now)
        if action is Action.MARK_PENDING:
            return ended(status, QueryState.PENDING, now)
        cause = DRIVER_NOT_STARTED if unserved else None
        return after_loss(env.settings, status, now, "the driver's process ended", cause)

    update_status(env, query, change)
    if driver and action is not Action.MARK_STOPPING:
        env.drivers.let_go(driver, query.meta.id)


def _has_entities(env: Environment, query: Query, aside: Aside) -> bool:
    """Whether what a job writes to exists; if not, its store is asked aside, and a later pass launches."""
    place = place_of_entities(env, query)
    if place is None:
        return True
    if not aside(place, query.meta.id, partial(make_entities, env, query)):
        return False
    with env.open_unit(write=False) as unit:
        current = unit.queries.find_by_id(query.meta.id)
    return current is not None and current.status.entity_ready


def _launch(env: Environment, query: Query, aside: Aside) -> None:
    if awaits_checkpoint(query):
        _await_checkpoint(env, query)
        return
    now = env.clock.now()
    with env.open_unit(write=False) as unit:
        refused = OwnersRights(unit).revoked(query)
        sharing = sharing_of(unit, query)
        # All queries are read for the few that need it only: hundreds may wait here in one pass.
        first = turn_of(query, unit.queries.page(limit=100_000), now) if starts_in_turn(query) else None
    if refused is not None:
        not_started(env, query, refused)
        return
    try:
        driver = env.drivers.assign(query.meta.id, sharing) if first is None else None
        why = env.drivers.why_none()
    except EngineError as error:  # such as an unreachable cluster: no fault of the query's
        driver, why = None, error.detail
    noted = query.status.entity_ready and query.status.message == f"{WAITING}{why}"
    if first is None and driver is None and noted:
        # There is nothing to report: hundreds may wait, and each would write.
        env.leases.hand_over(query.meta.id)
        return

    def change(current: Query) -> Query | None:
        if not current.is_wanted:
            return None  # nothing that is being removed may have a job, nor what was stopped meanwhile
        if driver is not None:
            return _starting(env, current, driver, now)
        what = f"{WAITING}{why}"
        if first is not None:
            cause = f"shared drivers died twice: their queries start one after another, now {first}"
            what = f"waiting for its turn: {cause}"
        return replace(current, status=replace(current.status, entity_ready=True, message=what))

    launched = update_query(env, query, change)
    if driver is None:
        if first is None:
            env.leases.hand_over(query.meta.id)
    elif not launched:
        _let_go(env, driver, query.meta.id, aside)


def _starting(env: Environment, query: Query, driver: str, now: datetime) -> Query:
    status = replace(
        query.status,
        entity_ready=True,
        state=QueryState.STARTING,
        since=now,
        message=HANDED if env.drivers.serving(driver) else STARTS,
        attempt=query.status.attempt + 1,
        driver_id=driver,
        pid=env.drivers.process_id(driver),
        heartbeat_at=now,
        observed_generation=query.meta.generation,
        metrics={},
        reached=None,
    )
    return replace(query, status=status)


def _await_checkpoint(env: Environment, query: Query) -> None:
    """A copy may take long: another thread makes it (``checkpoints.copies``), and this one says so."""
    env.awaited_copies.add(query.meta.id)
    origin = query.origin
    message = f"the checkpoint of {origin.name if origin else ''} is being copied"
    update_status(env, query, lambda status: replace(status, message=message))

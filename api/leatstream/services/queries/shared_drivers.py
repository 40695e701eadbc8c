"""Queries that share a driver: which one they get, and which of them is suspected when a driver dies.

A shared driver that dies takes all its queries down; they start again together. One that was the only one
in its first batch is suspected at once. Where that does not identify one, and the driver dies again soon,
they start one after another, so that the next death does. The suspect gets a driver of its own until a user
restarts it, and the death is put down to it and to no other. Where that leaves no room for those that share,
one that has run alone in peace comes back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from leatstream.model.objects import Query, QueryState, QueryStatus
from leatstream.plan.job_spec import Isolation
from leatstream.ports import Sharing, UnitOfWork
from leatstream.services.environment import Environment, RuntimeSettings
from leatstream.services.queries.joint_jobs import leader_of
from leatstream.services.queries.save import keep_query

# After so many deaths in a row with a query among the dead it starts alone.
_IN_TURN = 2
_SETTLED = 5.0  # seconds that a query runs before the next one may start
_STABLE = 60.0
_LONGEST_PEACE = 3600.0
# The JVM's own words; it mostly ends right after a job has reported them.
_NO_MEMORY = ("Java heap space", "OutOfMemoryError", "GC overhead limit", "array size exceeds VM limit")
APART = "it has a driver of its own from now on, until RESTART QUERY"
SUSPECTED = f"its shared driver died; {APART} or until others that share find no room"
BACK = "it shares a driver again: it has run alone in peace, and there is no room for others beside that"
WAITING = "waiting for a driver: "
STARTS, HANDED = "its driver is starting Spark", "its driver opens the sources"
FIRST_BATCH = "its driver is processing the first batch of existing records"


def shares(query: Query) -> bool:
    """Whether its job runs beside others: it wants to, and is under no suspicion."""
    return wants_to_share(query) and query.status.apart_from is None and leader_of(query) is None


def wants_to_share(query: Query) -> bool:
    """Whether its statement says so, and it runs no users' code, as queries planned by older versions may."""
    return query.job.get("driver") == Isolation.SHARED.value and not query.job.get("functions")


def sharing_of(unit: UnitOfWork, query: Query) -> Sharing | None:
    """With whom it shares: queries of one application are in one driver, as long as it has room."""
    if not shares(query):
        return None
    for application in unit.unfiltered.applications.page(limit=100_000):
        if query.name in application.queries:
            others = (unit.queries.find(name) for name in application.queries if name != query.name)
            near = (q.status.driver_id for q in others if q is not None and shares(q))
            return Sharing(next(filter(None, near), None))
    return Sharing()


def starts_in_turn(query: Query) -> bool:
    """Whether it may have to wait for others, because drivers have died with it again and again."""
    return shares(query) and query.status.crashes >= _IN_TURN


def turn_of(query: Query, queries: Iterable[Query], now: datetime) -> str | None:
    """The query that it waits for before it starts; None if it may start now.

    Args:
        query: that is to start.
        queries: all queries.
        now: the time.
    """
    if not starts_in_turn(query):
        return None
    for other in queries:
        status = other.status
        if other.meta.id == query.meta.id or not starts_in_turn(other):
            continue
        if status.state is QueryState.STARTING and _age(status, now) < _STABLE:
            return other.name
        if status.state is QueryState.RUNNING and _age(status, now) < _SETTLED:
            return other.name
    return None


def fills_memory(query: Query, error: Mapping[str, object]) -> bool:
    """Whether a query that shares its driver has reported that their common memory is full."""
    return shares(query) and any(word in str(error.get("detail")) for word in _NO_MEMORY)


def suspect_of(members: Sequence[Query], now: datetime) -> Query | None:
    """Whose doing the death of a shared driver was, if that is plain.

    Args:
        members: the queries that it had.
        now: the time.
    """
    # A query is STARTING until its first batch is done, and tries the same batch again after a death.
    unsettled = [
        q for q in members if _age(q.status, now) < _SETTLED or q.status.state is QueryState.STARTING
    ]
    if len(unsettled) != 1:
        return None
    (only,) = unsettled
    # One that runs, if only for a moment, is a weaker sign, which counts from the second death on; so is one
    # without others, as anything may have ended its driver. Both together count from the third on.
    weak = (only.status.state is not QueryState.STARTING) + (len(members) == 1)
    return only if only.status.crashes >= weak else None


def count_crash(status: QueryStatus, now: datetime) -> QueryStatus:
    """The status with one more death of its driver; one after a long peace is the first again."""
    peaceful = status.state is QueryState.RUNNING and _age(status, now) > _STABLE
    return replace(status, crashes=1 if peaceful else status.crashes + 1)


def note_crashes(env: Environment, queries: Sequence[Query]) -> None:
    """Before the queries of shared drivers that died are restarted: count it, and set the suspect apart."""
    dead: dict[str, list[Query]] = {}
    for query in queries:
        driver = query.status.driver_id
        if driver is None or leader_of(query) is not None:
            continue
        if shares(query) and env.drivers.has_crashed(driver):
            dead.setdefault(driver, []).append(query)
    now = env.clock.now()
    explained = {query.status.apart_from for query in queries}
    for driver, members in dead.items():
        if driver in explained:
            continue
        suspect = suspect_of(members, now)
        with env.open_unit() as unit:
            for member in members:
                current = unit.queries.find_by_id(member.meta.id)
                if current is None or current.status.driver_id != driver:
                    continue
                status = count_crash(current.status, now)
                if suspect is not None and suspect.meta.id == member.meta.id:
                    status = replace(status, apart_from=driver, message=SUSPECTED)
                keep_query(unit, current, replace(current, status=status), now)
            unit.commit()


def set_apart(status: QueryStatus, driver: str | None) -> QueryStatus:
    """The status of a query whose own words or silence tell against it: it does not come back by itself."""
    return replace(status, apart_from=driver, crashes=0)


def bring_back(env: Environment, queries: Sequence[Query]) -> None:
    """Where no shared driver finds room, let one that was set apart share again, the longest at peace first.

    Only one that was suspected because drivers died with it. The more did, the longer it must have been well,
    so that a guilty one comes back ever more rarely.
    """
    now = env.clock.now()
    if not any(shares(q) and (q.status.message or "").startswith(WAITING) for q in queries):
        return
    own = [
        q for q in queries if wants_to_share(q) and env.drivers.role(q.status.driver_id or "") == "dedicated"
    ]
    well = [q for q in own if q.status.apart_from and _is_well(q, now)]
    if not well or any(shares(q) for q in own):  # that one is on its way
        return
    oldest = max(well, key=lambda q: _age(q.status, now))
    with env.open_unit() as unit:
        current = unit.queries.find_by_id(oldest.meta.id)
        if (
            current is None
            or current.status.apart_from != oldest.status.apart_from
            or not _is_well(current, now)
        ):
            return
        # As when a person asks: the job of an older generation is stopped, and the present one started.
        status = replace(current.status, apart_from=None, observed_generation=0, message=BACK)
        keep_query(unit, current, replace(current, status=status), now)
        unit.commit()


def _is_well(query: Query, now: datetime) -> bool:
    deaths = query.status.crashes
    peace = min(_STABLE * 2.0 ** min(deaths - 1, 16), _LONGEST_PEACE)
    runs = query.is_wanted and query.status.state is QueryState.RUNNING
    return runs and deaths > 0 and _age(query.status, now) >= peace


def is_the_silent_one(unit: UnitOfWork, query: Query, settings: RuntimeSettings, now: datetime) -> bool:
    """Whether others in the same driver are still heard: then it is the query that hangs, not the driver.

    Args:
        unit: an open unit of work.
        query: whose driver is silent.
        settings: of the running of jobs.
        now: the time.
    """
    if not shares(query):
        return False
    others = [
        q
        for q in unit.unfiltered.queries.page(limit=100_000)
        if q.status.driver_id == query.status.driver_id and q.meta.id != query.meta.id
    ]
    heard = (q.status.heartbeat_at for q in others)
    return any(at is not None and (now - at).total_seconds() < settings.heartbeat_timeout for at in heard)


def _age(status: QueryStatus, now: datetime) -> float:
    return (now - status.since).total_seconds() if status.since else 0.0

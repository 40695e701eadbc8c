"""Ends jobs whose owner has lost a privilege that they need.

Every change of roles, grants and owners is in the audit log: its newest number says whether to look at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from leatstream.errors import AccessError
from leatstream.model.objects import Query, QueryState, QueryStatus
from leatstream.services.environment import Environment
from leatstream.services.queries.joint_jobs import leader_of
from leatstream.services.queries.retries import age
from leatstream.services.queries.rights import OwnersRights
from leatstream.services.queries.update import update_status

_PAUSE_SECONDS = 5.0  # a busy server makes many changes, and each look reads every running query's relations
_LONGEST_SECONDS = 60.0
_RUNS = (QueryState.STARTING, QueryState.RUNNING)


def end_revoked(env: Environment, queries: Sequence[Query]) -> None:
    """Check the rights of running queries after a change, and end the jobs that may not continue.

    An ended job is started again by its reconciler, which refuses that with the reason (``_launch``).

    Args:
        env: the environment.
        queries: that this server looks after.
    """
    running = [
        query
        for query in queries
        if query.status.state in _RUNS and query.is_wanted and leader_of(query) is None
    ]
    now, looks = env.clock.now(), env.rights_looks
    over = any(_is_over(env, query, now) for query in running)
    if not over and looks.at is not None and 0 <= age(looks.at, now) < _PAUSE_SECONDS:
        return
    with env.open_unit(write=False) as unit:
        newest = unit.audit.page(limit=1)
        number = newest[0].number if newest else 0
        if not over and looks.number == number and age(looks.at, now) < _LONGEST_SECONDS:
            return
        rights = OwnersRights(unit)
        refused = {query.meta.id: rights.revoked(query) for query in running}
    looks.number, looks.at = number, now
    for query in running:
        _judge(env, query, refused[query.meta.id], now)


def _is_over(env: Environment, query: Query, now: datetime) -> bool:
    since = query.status.revoked_at
    return since is not None and age(since, now) >= env.settings.revoked_grace


def _judge(env: Environment, query: Query, refused: AccessError | None, now: datetime) -> None:
    since, grace = query.status.revoked_at, env.settings.revoked_grace
    if refused is None:
        if since is not None:
            update_status(env, query, lambda status: replace(status, revoked_at=None, message=None))
        return
    over = grace <= 0 or _is_over(env, query, now)
    if since is not None and not over:
        return

    def change(status: QueryStatus) -> QueryStatus:
        if over:
            message = f"stopping: {refused.detail}"
            return replace(status, state=QueryState.STOPPING, since=now, message=message, revoked_at=None)
        message = f"{refused.detail} The job ends in {grace:g} s. {refused.faults[0].hint}"
        return replace(status, message=message, revoked_at=now)

    update_status(env, query, change)

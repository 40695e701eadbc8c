"""Starting again every query that one cause has ended."""

from __future__ import annotations

from dataclasses import dataclass

from leatstream.errors import RequestError
from leatstream.model.objects import Query, QueryState
from leatstream.plan.record_place import RecordPlace
from leatstream.services.environment import Environment, Principal
from leatstream.services.environment.authorization import OPERATE, authorize
from leatstream.services.queries.joint_jobs import leader_of
from leatstream.services.queries.restart import restart_query
from leatstream.services.queries.skipping import failed_at


def causes_of(query: Query) -> tuple[str, ...]:
    """The words for why a query has failed, the most exact first: record, condition, code."""
    error = query.status.error or {}
    found = (failed_at(query), error.get("condition"), error.get("code"))
    return tuple(str(one) for one in found if one)


@dataclass(frozen=True, slots=True)
class Restarted:
    """Names of the queries that start again, and the causes of those that have failed otherwise."""

    queries: tuple[str, ...]
    other_causes: tuple[str, ...]


def restart_failed(env: Environment, principal: Principal, cause: str, *, skip: bool = False) -> Restarted:
    """Restart, from their checkpoints, all failed queries of one cause.

    Args:
        env: the environment.
        principal: who asks.
        cause: a record such as ``orders:3:42``, or the code or condition of ``status.error``.
        skip: whether the record, which ``cause`` is then, is left out from now on.

    Returns:
        What was done, which may be nothing; of queries that are one job, the one that leads is named.

    Raises:
        RequestError: validation, if a record is to be skipped and ``cause`` is none.
    """
    authorize(principal, OPERATE, "queries")
    wanted = check_cause(cause, skip=skip)
    failed = _failed(env)
    meant = [query for query in failed if wanted in causes_of(query)]
    for query in meant:
        restart_query(env, principal, query.name, within=(query.name,), skip=wanted if skip else None)
    others = sorted({causes_of(query)[0] for query in failed if query not in meant and causes_of(query)})
    return Restarted(tuple(query.name for query in meant), tuple(others))


def check_cause(cause: str, *, skip: bool) -> str:
    """The cause in its one spelling; RequestError validation, if it names no record that could be skipped."""
    place = RecordPlace.parse(cause.strip())
    if skip and place is None:
        raise RequestError(
            "validation",
            f"{cause!r} names no record that could be skipped.",
            pointer="#/failed_by",
            hint="A record is written topic:partition:offset, such as orders:3:42.",
        )
    return str(place or cause.strip())


def _failed(env: Environment) -> list[Query]:
    with env.open_unit(write=False) as unit:
        queries = unit.queries.page(limit=100_000)
    return [
        q for q in queries if q.status.state is QueryState.FAILED and not q.deleting and leader_of(q) is None
    ]

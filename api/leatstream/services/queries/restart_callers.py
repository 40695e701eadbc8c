"""New code of a function source, and the queries that run the old one."""

from __future__ import annotations

import hashlib

from leatstream.model.objects import DesiredState, Query
from leatstream.ports import UnitOfWork
from leatstream.services.environment import Environment, Principal
from leatstream.services.queries.restart import restart_query


def callers_of_source(env: Environment, name: str, content: str) -> list[str]:
    """Names of the queries that shall run and call functions of a source with other code than this.

    Args:
        env: the environment.
        name: of the source.
        content: its new text.
    """
    digest = hashlib.sha256(content.encode()).hexdigest()
    with env.open_unit(write=False) as unit:
        return [query.name for query in _callers(unit, name, digest)]


def restart_callers(env: Environment, principal: Principal, name: str, content: str) -> list[str]:
    """Start them again, from their checkpoints, with the code that the source has now; their names.

    Args:
        env: the environment.
        principal: who asks.
        name: of the source.
        content: its new text.
    """
    names = callers_of_source(env, name, content)
    for query in names:
        restart_query(env, principal, query, within=(query,))
    return names


def _callers(unit: UnitOfWork, source: str, digest: str) -> list[Query]:
    return [
        query
        for query in unit.queries.page(limit=100_000)
        if query.desired_state is DesiredState.RUNNING
        and not query.deleting
        and any(
            one["source"] == source and one["digest"] != digest for one in query.job.get("functions") or ()
        )
    ]

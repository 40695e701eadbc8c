"""What happened to a query: the events of its job, and the versions of what was written."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from leatstream.model.objects import QueryEvent, QueryProgress, QueryVersion
from leatstream.services.environment import Environment, Principal
from leatstream.services.environment.authorization import READ, authorize
from leatstream.services.queries.catalog import require_query

MOST = 200


def query_events(
    env: Environment, principal: Principal, name: str, limit: int = MOST
) -> Sequence[QueryEvent]:
    """The newest events of a query's job, oldest first; CatalogError not-found.

    Args:
        env: the environment.
        principal: who asks.
        name: of the query.
        limit: the most events.
    """
    authorize(principal, READ, "query", name)
    with env.open_unit(write=False) as unit:
        return unit.query_log.events(require_query(unit, name).meta.id, limit)


def query_progress(
    env: Environment,
    principal: Principal,
    name: str,
    limit: int = MOST,
    since: datetime | None = None,
) -> Sequence[QueryProgress]:
    """What a query's job reported in the last day, oldest first; CatalogError not-found.

    Of the last hour that is a moment every 15 seconds, before it the one with the highest lag of each five
    minutes.

    Args:
        env: the environment.
        principal: who asks.
        name: of the query.
        limit: the most moments.
        since: only moments after this one, UTC without an offset; None = as far back as they are kept.
    """
    authorize(principal, READ, "query", name)
    with env.open_unit(write=False) as unit:
        after = since if since is None or since.tzinfo else since.replace(tzinfo=UTC)
        return unit.query_log.progress(require_query(unit, name).meta.id, limit, after)


def query_history(
    env: Environment, principal: Principal, name: str, limit: int = MOST
) -> Sequence[QueryVersion]:
    """The newest versions of a query, oldest first; CatalogError not-found.

    Args:
        env: the environment.
        principal: who asks.
        name: of the query.
        limit: the most versions.
    """
    authorize(principal, READ, "query", name)
    with env.open_unit(write=False) as unit:
        return unit.query_log.versions(require_query(unit, name).meta.id, limit)

"""The end of an application: its queries end first, the last of them takes it along (``queries.removal``)."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace

from leatstream.errors import CatalogError, LeatstreamError, not_found
from leatstream.model.names import Fqn, quote
from leatstream.model.registered import Application
from leatstream.services.environment import Environment, Precondition, Principal
from leatstream.services.environment.authorization import WRITE, authorize
from leatstream.services.queries.removal import delete_query, remove_query, wait_gone
from leatstream.services.relations import relations
from leatstream.services.staging.atomic import all_or_nothing

_LOG = logging.getLogger(__name__)


def refuse_deleting(application: Application | None) -> None:
    """Raise invalid-transition for an application that is being deleted."""
    if application is not None and application.deleting:
        raise CatalogError(
            "invalid-transition",
            f"Application {quote(application.name)} is being deleted.",
            hint="Wait until it is gone.",
        )


def delete_application(
    env: Environment,
    principal: Principal,
    name: str,
    pre: Precondition = Precondition(),  # noqa: B008
) -> Application | None:
    """End and delete its queries and the streams it made; topics stay.

    Args:
        env: the environment.
        principal: who asks.
        name: of the application.
        pre: precondition.

    Returns:
        None if it is deleted, else the application while its queries are ending.

    Raises:
        CatalogError: not-found; has-dependents, others use what it made: nothing has been ended then.
    """
    authorize(principal, WRITE, "application", name)

    def work(inner: Environment) -> Application:
        return _delete(inner, principal, name, pre)

    going = work(env) if env.staged else all_or_nothing(env, work)
    if env.staged:
        return going
    end_queries(env, going.queries)
    with env.open_unit(write=False) as unit:
        return unit.applications.find_by_id(going.meta.id)


def _delete(env: Environment, principal: Principal, name: str, pre: Precondition) -> Application:
    with env.open_unit() as unit:
        found = unit.applications.find(name)
        if found is None:
            raise not_found("application", quote(name))
        pre.check(found.meta.generation, "application", quote(name))
        if found.deleting:
            return found
        going = replace(found, deleting=True)
        there = [q.name for q in map(unit.queries.find, found.queries) if q is not None and not q.deleting]
        if there:
            unit.applications.update(going)
        else:
            unit.applications.delete(found.meta.id)
        unit.commit()
    for query in reversed(there):
        delete_query(env, principal, query)
    for relation in reversed(found.relations):
        try:
            relations.delete_relation(env, principal, Fqn.parse(relation))
        except CatalogError as error:
            if error.code != "not-found":
                raise
    return going


def end_queries(env: Environment, names: Iterable[str]) -> None:
    """Remove the queries that are being deleted and have no job; the reconciler removes the others."""
    with env.open_unit(write=False) as unit:
        found = [unit.queries.find(name) for name in names]
    for query in found:
        if query is None or not query.deleting or query.status.driver_id is not None:
            continue
        try:
            remove_query(env, query)
        except LeatstreamError as error:
            _LOG.warning("query %s is not gone yet: %s", query.name, error.detail)
    env.changed.notify()


def drop_application(env: Environment, principal: Principal, name: str, deadline: float) -> bool:
    """DROP APPLICATION; whether it is already deleted.

    Args:
        env: the environment.
        principal: who asks.
        name: of the application.
        deadline: until when to wait, on the monotonic clock.
    """
    going = delete_application(env, principal, name)
    if going is None:
        return True
    return wait_gone(env, lambda unit: unit.applications.find_by_id(going.meta.id) is not None, deadline)

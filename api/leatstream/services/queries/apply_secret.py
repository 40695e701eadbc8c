"""A rotated secret is applied to what uses it: stores connect again, and running queries start again."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from leatstream.model.access import Privilege
from leatstream.model.names import quote
from leatstream.model.objects import DesiredState, Query, QueryState
from leatstream.plan.job_spec import JobSpec
from leatstream.ports import UnitOfWork
from leatstream.services.environment import Environment, Principal
from leatstream.services.environment.authorization import OPERATE, authorize
from leatstream.services.environment.desk import desk_of
from leatstream.services.nouns.named_secrets import connect_again, require_secret, stores_with
from leatstream.services.nouns.stores import ask_store
from leatstream.services.queries.joint_jobs import leader_of, led
from leatstream.services.queries.restart import restart_query


@dataclass(frozen=True, slots=True)
class Applied:
    """What uses the secret and has its present value from now on.

    Attributes:
        stores: names of those that were connected again.
        queries: names of those that start again; of queries that are one job, the one that leads.
        left: how many more queries keep the old value, as the principal may not operate them.
    """

    stores: tuple[str, ...]
    queries: tuple[str, ...]
    left: int


def apply_secret(env: Environment, principal: Principal, name: str, *, dry_run: bool = False) -> Applied:
    """Connect stores again, and start queries again from their checkpoints, with the secret's present value.

    Args:
        env: the environment.
        principal: who asks.
        name: of the secret.
        dry_run: change nothing, only say what would start again.

    Raises:
        CatalogError: not-found.
        SecretStoreError: the secret refers to a secret store that does not give the value; nothing is done.
    """
    authorize(principal, OPERATE, "secret", name)
    with env.open_unit(write=False) as unit:
        outside = require_secret(unit, name).outside
    if outside is not None:
        env.outside.value(outside, fresh=True)
    with env.open_unit(write=not dry_run) as unit:
        stores = stores_with(unit, name) if dry_run else connect_again(unit, name)
        seen = {store.name for store in stores if unit.stores.find(store.name) is not None}
        concerned = {store.name for store in stores} | _described_by(unit, name)
        using = [query for query in _running(unit) if _uses(unit, query, concerned)]
        queries = [query.name for query in using if _may_operate(unit, query)]
        found = Applied(tuple(sorted(seen)), tuple(queries), len(using) - len(queries))
        if dry_run:
            return found
        unit.commit()
    for store in stores:
        ask_store(env, store)
    for query in queries:
        restart_query(env, principal, query, within=(query,))
    return found


def _described_by(unit: UnitOfWork, secret: str) -> set[str]:
    """Names of the stores whose schema registry uses the secret."""
    registries = {
        one.name
        for one in unit.unfiltered.schema_registries.page(limit=100_000)
        if secret in one.secret_names.values()
    }
    if not registries:
        return set()
    stores = unit.unfiltered.stores.page(limit=100_000)
    return {one.name for one in stores if one.schema_registry in registries}


def _running(unit: UnitOfWork) -> list[Query]:
    """The queries with a job of their own that shall run; those that have failed may do so for the secret."""
    return [
        query
        for query in unit.unfiltered.queries.page(limit=100_000)
        if query.desired_state is DesiredState.RUNNING
        and not query.deleting
        and query.status.state is not QueryState.COMPLETED
        and leader_of(query) is None
    ]


def _uses(unit: UnitOfWork, query: Query, stores: Collection[str]) -> bool:
    jobs = [JobSpec.model_validate(one.job) for one in (query, *led(unit.unfiltered, query))]
    return any(store.name in stores for job in jobs for store in job.stores())


def _may_operate(unit: UnitOfWork, query: Query) -> bool:
    desk = desk_of(unit)
    return desk is None or desk.may(Privilege.OPERATE, "query", quote(query.name), query.meta.owner)

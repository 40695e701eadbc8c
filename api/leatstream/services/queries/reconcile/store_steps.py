"""Steps of queries' lives that wait for a store or a node, which a pass has done aside.

A pass looks after all queries of a server, and drivers and SELECTs wait for its end: it may wait for nobody
but the catalog. So it hands such a step on, with the place on which it depends: what waits for another place
is not held up, and what waits for the same one learns from the first that it is unreachable.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Protocol

from leatstream.errors import CatalogError, LeatstreamError
from leatstream.model.names import Fqn
from leatstream.model.objects import Query, QueryState, QueryStatus, RelationKind
from leatstream.ports import UnitOfWork
from leatstream.services.environment import Environment
from leatstream.services.nouns.entity_drops import drop_unless_used
from leatstream.services.queries.joint_jobs import led
from leatstream.services.queries.removal import remove_query
from leatstream.services.queries.retries import backoff, ended, is_outage
from leatstream.services.queries.stored_views import catch_up_view, make_stored_view
from leatstream.services.queries.update import not_started, update_status
from leatstream.sql.relation_properties import read_relation_properties

# What is to be done, and the names of the stores, or the driver, for which it may have to wait.
Place = tuple[str, ...]
# It gets the error that showed its place unreachable, or returns one; it does not call that place again.
Errand = Callable[[LeatstreamError | None], LeatstreamError | None]


class Aside(Protocol):
    """Has errands done. Every one may be left undone: the next pass sees the same state again."""

    def __call__(self, place: Place, query_id: str, errand: Errand) -> bool:
        """Take an errand, unless the query has one at this place already; whether it is done by now."""


def at_once(place: Place, query_id: str, errand: Errand) -> bool:
    """Do it while the caller waits.

    Args:
        place: that it waits for.
        query_id: whose errand it is.
        errand: that is done.
    """
    errand(None)
    return True


def place_of_removal(query: Query) -> Place:
    """Where a query leaves something: its sink's store and those of its sources."""
    return "removal", _sink_store(query), *sorted({s["store"]["name"] for s in query.job.get("sources", ())})


def place_of_entities(env: Environment, query: Query) -> Place | None:
    """Where a job needs entities of its own before it can start; None if it needs none."""
    with env.open_unit(write=False) as unit:
        stores = {_sink_store(one) for one in _makers(unit, query)}
    return ("entities", *sorted(stores)) if stores else None


def _sink_store(query: Query) -> str:
    return str((query.job.get("sink") or {}).get("store", {}).get("name", ""))


def _makers(unit: UnitOfWork, query: Query) -> list[Query]:
    """The queries of a job that make the entity which they write to."""
    job = (query, *(one for one in led(unit, query) if not one.deleting))
    # A view has a store only where that holds it.
    return [one for one in job if one.kind.makes_sink and _sink_store(one)]


def make_entities(
    env: Environment, query: Query, outage: LeatstreamError | None = None
) -> LeatstreamError | None:
    """Create the sinks' entities of a job, and note that they exist.

    Args:
        env: the environment.
        query: whose sinks they are.
        outage: of the store, found just before; it is not asked again.
    """
    with env.open_unit(write=False) as unit:
        current = unit.queries.find_by_id(query.meta.id)
        makers = _makers(unit, query)
    if current != query:
        return None  # it has moved on while it waited for its turn
    try:
        if outage is not None:
            raise outage
        for one in makers:
            _make_entity(env, one)
    except LeatstreamError as error:
        not_started(env, query, error)
        return _if_away(error)
    update_status(env, query, lambda status: replace(status, entity_ready=True))
    return None


def show_version(
    env: Environment, query: Query, outage: LeatstreamError | None = None
) -> LeatstreamError | None:
    """Have the store's view show the version that has taken over in the catalog.

    Args:
        env: the environment.
        query: that has taken over.
        outage: of the store, found just before; it is not asked again.
    """
    try:
        catch_up_view(env, query, outage)
    except LeatstreamError as error:
        return _if_away(error)
    return None


def _make_entity(env: Environment, query: Query) -> None:
    """Create the sink's entity as the plan says; does nothing where it exists."""
    with env.open_unit(write=False) as unit:
        relation = unit.relations.find(str(Fqn.parse(query.sink)))
        store = unit.stores.find(relation.store) if relation else None
    if relation is None or store is None:
        raise CatalogError("not-found", f"Stream {query.sink} or its store is not in the catalog any more.")
    if relation.kind is RelationKind.MATERIALIZED_VIEW:
        make_stored_view(env, query, relation, store)
        return
    connector = env.connect(store)
    if connector.find_entity(relation.entity, env.settings.store_timeout) is not None:
        return
    if connector.tables:
        connector.create_table(relation.entity, relation.columns, relation.primary_key)
    else:
        properties = {
            p.name: int(relation.effective[p.name].value)
            for p in connector.entity_properties
            if p.name in relation.effective
        }
        configs = read_relation_properties(dict(relation.properties)).configs
        connector.create_entity(relation.entity, properties, configs)
    with env.open_unit(write=False) as unit:
        current = unit.queries.find_by_id(query.meta.id)
    if current is None or (current.deleting and current.delete_sink_entity):
        # Its DELETE was faster, and found nothing to drop.
        entity = relation.entity
        drop_unless_used(env, store.name, entity, lambda: connector.drop_entity(entity), relation)


def finalize(env: Environment, query: Query, outage: LeatstreamError | None = None) -> LeatstreamError | None:
    """Remove a query whose job has ended; what cannot be dropped yet is tried again after a pause.

    Args:
        env: the environment.
        query: to be removed.
        outage: of the store, found just before; it is not asked again.
    """
    with env.open_unit(write=False) as unit:
        current = unit.queries.find_by_id(query.meta.id)
    if current is None or current.status.next_attempt_at != query.status.next_attempt_at:
        return None  # it was deleted, or has been tried, since the pass saw it
    if query.status.driver_id:
        env.drivers.let_go(query.status.driver_id, query.meta.id)
    try:
        if outage is not None:
            raise outage
        remove_query(env, query)
    except LeatstreamError as error:
        _put_off(env, query, error)
        return _if_away(error)
    return None


def _put_off(env: Environment, query: Query, error: LeatstreamError) -> None:
    now = env.clock.now()

    def change(status: QueryStatus) -> QueryStatus:
        tries = status.restarts + 1
        return replace(
            ended(status, QueryState.STOPPED, now),
            restarts=tries,
            message=f"what it leaves cannot be dropped yet: {error.detail}",
            next_attempt_at=now + timedelta(seconds=backoff(env.settings, tries)),
        )

    update_status(env, query, change)


def _if_away(error: LeatstreamError) -> LeatstreamError | None:
    return error if is_outage({"code": error.code}) else None

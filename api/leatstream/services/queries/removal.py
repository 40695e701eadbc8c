"""The end of a query: what it leaves behind is removed, then its rows.

Its deletion has been committed before (``Query.deleting``). Every step may be repeated, so a crash or a
store that does not answer only delays the end.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from leatstream.errors import CatalogError, LeatstreamError
from leatstream.model.access import Privilege
from leatstream.model.names import Fqn, quote
from leatstream.model.objects import (
    DesiredState,
    Query,
    QueryKind,
    RelationKind,
)
from leatstream.ports import UnitOfWork
from leatstream.services.environment import (
    Environment,
    Precondition,
    Principal,
    view_table,
)
from leatstream.services.environment.authorization import WRITE, authorize
from leatstream.services.environment.desk import denied, desk_of, require_ownership
from leatstream.services.nouns.application_owners import query_owner
from leatstream.services.nouns.dependents import refuse_dependents
from leatstream.services.nouns.entity_drops import drop_unless_used, relations_on
from leatstream.services.planning.change_feeds import forget_readers
from leatstream.services.queries.catalog import require_query
from leatstream.services.queries.joint_jobs import forget_led
from leatstream.services.queries.save import keep_query
from leatstream.services.queries.stored_views import drop_stored_rows, is_stored_view
from leatstream.services.relations.relations import query_dependents

_LOG = logging.getLogger(__name__)
_REMOVING: set[str] = set()
_FREE = threading.Condition()
_FORGET_SECONDS, _FORGET_SINK_SECONDS = 3.0, 20.0


def remove_query(env: Environment, query: Query) -> None:
    """Remove a query whose job has ended: its topic if asked, its checkpoints, its relation, itself.

    Nobody removes the same query beside it: by the time that the slower one dropped the topic, it might have
    been created again by the next query of this name. It waits for no other removal.

    Raises:
        StoreError: the topic or a replication slot could not be dropped; nothing else has been removed then.
        CheckpointError: its checkpoints could not be removed.
    """
    with _alone(query.meta.id):
        with env.open_unit(write=False) as unit:
            current = unit.queries.find_by_id(query.meta.id)
        if current is not None and current.deleting:
            _remove(env, current)
    env.changed.notify()


@contextmanager
def _alone(query_id: str) -> Iterator[None]:
    with _FREE:
        _FREE.wait_for(lambda: query_id not in _REMOVING)
        _REMOVING.add(query_id)
    try:
        yield
    finally:
        with _FREE:
            _REMOVING.discard(query_id)
            _FREE.notify_all()


def _remove(env: Environment, query: Query) -> None:
    if query.kind is QueryKind.CREATE_MATERIALIZED_VIEW_AS:
        _drop_view(env, query)
    elif query.delete_sink_entity and query.kind.makes_sink:
        _drop_entity(env, query)
    forget_readers(env, query)
    _forget_offsets(env, query)
    _forget_batches(env, query)
    _remove_checkpoints(env, query)
    with env.open_unit() as unit:
        current = unit.queries.find_by_id(query.meta.id)
        if current is not None and current.deleting:
            relation = unit.relations.find(current.sink)
            if relation is not None and relation.created_by_query == current.meta.id:
                unit.relations.delete(relation.meta.id)
            forget_led(unit, current)
            unit.queries.delete(current.meta.id)
            unit.query_log.delete_of(current.meta.id)
            _end_application(unit, current.name)
            unit.commit()


def _remove_checkpoints(env: Environment, query: Query) -> None:
    """An unreachable file system is waited for: later nobody would know what lies there."""
    try:
        env.checkpoints.remove(f"queries/{query.meta.id}")
    except OSError as error:  # of a disk, which another try would not mend
        _LOG.warning("checkpoints of query %s stay: %s", query.name, error)


def _end_application(unit: UnitOfWork, name: str) -> None:
    """The last query of an application that shall go takes it along."""
    for application in unit.unfiltered.applications.page(limit=100_000):
        if application.deleting and name in application.queries:
            left = [q for q in map(unit.queries.find, application.queries) if q is not None and q.deleting]
            if not left:
                unit.applications.delete(application.meta.id)


def wait_gone(env: Environment, there: Callable[[UnitOfWork], bool], deadline: float) -> bool:
    """Wait until something no longer exists; whether that is so.

    Args:
        env: the environment.
        there: looks for it.
        deadline: until when, on the monotonic clock.
    """
    seen = env.changed.value
    while True:
        with env.open_unit(write=False) as unit:
            if not there(unit):
                return True
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        seen = env.changed.wait(seen, left)


def _forget_offsets(env: Environment, query: Query) -> None:
    """Lag tools must not show a deleted query; a store that does not answer does not hold it back."""
    with env.open_unit(write=False) as unit:
        names = dict.fromkeys(source["store"]["name"] for source in query.job.get("sources", ()))
        stores = [store for store in map(unit.stores.find, names) if store is not None]
    for store in stores:
        try:
            env.connect(store).forget_offsets(query.name, _FORGET_SECONDS)
        except LeatstreamError as error:
            _LOG.warning("progress of query %s stays in store %s: %s", query.name, store.name, error.detail)


def _forget_batches(env: Environment, query: Query) -> None:
    """What the sink's store remembers of the query's batches is small; an unreachable store keeps it."""
    sink = query.job.get("sink") or {}
    with env.open_unit(write=False) as unit:
        store = unit.stores.find(sink.get("store", {}).get("name", ""))
    if store is None:
        return
    try:
        env.connect(store).forget_sink(query.meta.id, str(sink.get("entity", "")), _FORGET_SINK_SECONDS)
    except LeatstreamError as error:
        _LOG.warning("batches of query %s stay in store %s: %s", query.name, store.name, error.detail)


def _drop_view(env: Environment, query: Query) -> None:
    """Remove a view's rows from leatstream's own database, or the view from the store that holds it."""
    if is_stored_view(query):
        drop_stored_rows(env, query)
    else:
        env.views.drop(view_table(query))


def _drop_entity(env: Environment, query: Query) -> None:
    with env.open_unit(write=False) as unit:
        relation = unit.relations.find(query.sink)
        if relation is None or relation.created_by_query != query.meta.id:
            return
        store = unit.stores.find(relation.store)
    if store is None:
        return
    entity, connector = relation.entity, env.connect(store)
    # Asked at DELETE as well, but its job may have taken minutes to end, its store hours to come back.
    others = drop_unless_used(env, store.name, entity, lambda: connector.drop_entity(entity), relation)
    if others:
        message = "topic %s of query %s stays: declared on it by now: %s"
        _LOG.warning(message, entity, query.name, ", ".join(str(one.fqn) for one in others))


def delete_query(
    env: Environment,
    principal: Principal,
    name: str,
    delete_entity: bool = False,
    pre: Precondition = Precondition(),  # noqa: B008
) -> Query | None:
    """End and delete a query, its checkpoints, and the stream that it made. The topic stays unless asked.

    Args:
        env: the environment.
        principal: who asks.
        name: exact name.
        delete_entity: also delete the sink's entity; so does ``delete_sink_entity`` of the query.
        pre: precondition.

    Returns:
        None if it is deleted, else the query while its job is stopping or its topic cannot be dropped yet.
    """
    authorize(principal, WRITE, "query", name)
    with env.open_unit() as unit:
        query = require_query(unit, name)
        pre.check(query.meta.generation, "query", name)
        require_ownership(unit.queries, query)
        owner = query_owner(unit, name)
        if owner is not None:
            raise CatalogError(
                "has-dependents",
                f"Query {quote(name)} belongs to application {quote(owner)}, which changes and deletes it.",
                hint=f"DROP APPLICATION {quote(owner)}, or TERMINATE QUERY {quote(name)} to stop it",
            )
        if query.kind.makes_sink and query.beside is None:
            others = [d for d in query_dependents(unit, Fqn.parse(query.sink)) if d != f"query {query.name}"]
            refuse_dependents(f"{query.sink}, which query {quote(name)} makes,", others, unit)
            if delete_entity or query.delete_sink_entity:
                _refuse_shared_entity(unit, query)
                _require_dropping(unit, query)
        before = query
        query = replace(
            query,
            deleting=True,
            delete_sink_entity=delete_entity or query.delete_sink_entity,
            desired_state=DesiredState.STOPPED,
        )
        keep_query(unit, before, query, env.clock.now())
        for one in _companions(unit, query):
            going = replace(one, deleting=True, desired_state=DesiredState.STOPPED)
            keep_query(unit, one, going, env.clock.now())
        unit.commit()
    if query.status.driver_id is not None or env.staged:
        env.changed.notify()
        return query
    try:
        remove_query(env, query)
    except LeatstreamError:
        env.changed.notify()  # the reconciler tries again and shows why in the status
        return query
    return None


def _companions(unit: UnitOfWork, query: Query) -> list[Query]:
    """Those that stand beside it: what is to take over from it, and what it has taken over from."""
    if query.beside is not None:
        return []
    queries = unit.queries.page(prefix=f"{query.name}__", limit=100_000)
    return [one for one in queries if one.beside == query.meta.id and not one.deleting]


def _require_dropping(unit: UnitOfWork, query: Query) -> None:
    """AccessError where the topic was there before the query, and the principal may not drop it."""
    desk, sink = desk_of(unit), unit.unfiltered.relations.find(query.sink)
    reused = query.plan.get("sink", {}).get("entity_action") == "reuse"
    if desk is None or sink is None or not reused:
        return
    store = unit.unfiltered.stores.find(sink.store)
    owner = None if store is None else store.meta.owner
    missing = desk.missing_on_entity(sink.store, sink.entity, [Privilege.DROP_ENTITY], owner)
    if missing:
        raise denied(desk.who.role, missing)


def _refuse_shared_entity(unit: UnitOfWork, query: Query) -> None:
    """A topic on which other streams stand does not go with this query."""
    mine = unit.relations.find(query.sink)
    if mine is None or mine.kind is RelationKind.MATERIALIZED_VIEW:
        return
    others = [r for r in relations_on(unit, mine.store, mine.entity) if r != mine]
    refuse_dependents(f"topic {mine.entity}", [f"stream {r.fqn}" for r in others], unit)

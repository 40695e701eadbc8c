"""Dropping an entity that nobody else stands on, in a store that no transaction of ours reaches.

One transaction checks that nobody does and notes the deletion. Code that declares a relation on the entity
looks at the notes in a transaction of its own. It is refused while the entity is being dropped, and
afterwards if the entity was deleted after the code had looked at the store. So one of the two sees the other,
whichever comes first, and no transaction waits for a store.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from leatstream.errors import CatalogAway, CatalogError, LeatstreamError
from leatstream.model.names import quote
from leatstream.model.objects import Meta, Relation
from leatstream.model.registered import EntityDrop
from leatstream.ports import UnitOfWork
from leatstream.services.environment import Environment, new_id, next_meta, rows_version

_LOG = logging.getLogger(__name__)
_LONGEST = timedelta(minutes=2)  # of a call that drops; who takes longer has died
_KEPT = timedelta(days=1)  # much longer than any plan is made

ViewRows = Callable[[str, str], str]
Seen = Mapping[str, int]
"""Which drops were known before stores were asked; see ``drops_seen``."""


def relations_on(unit: UnitOfWork, store: str, entity: str) -> list[Relation]:
    """Every relation that stands on an entity.

    Args:
        unit: an open unit of work.
        store: name of the entity's store.
        entity: its name.
    """
    return [
        r for r in unit.unfiltered.relations.page(limit=100_000) if (r.store, r.entity) == (store, entity)
    ]


def _users(unit: UnitOfWork, store: str, entity: str, view_rows: ViewRows | None) -> list[Relation]:
    """The relations that stand on an entity, and the materialized views of whose versions it holds rows."""
    found = relations_on(unit, store, entity)
    if view_rows is None:
        return found
    for query in unit.unfiltered.queries.page(limit=100_000):
        sink = query.job.get("sink") or {}
        if not sink.get("stored_view") or sink["store"]["name"] != store:
            continue
        view = unit.unfiltered.relations.find(query.sink)
        if (
            view is not None
            and view not in found
            and view_rows(sink["entity"], rows_version(query)) == entity
        ):
            found.append(view)
    return found


def drop_unless_used(
    env: Environment,
    store: str,
    entity: str,
    drop: Callable[[], None],
    own: Relation | None = None,
    view_rows: ViewRows | None = None,
) -> list[Relation]:
    """Drop an entity, unless relations other than ``own`` stand on it: those are given, and nothing is done.

    Args:
        env: the environment.
        store: name of the entity's store.
        entity: its name.
        drop: drops it in the store.
        own: a relation on it that does not count.
        view_rows: gives the entity with the rows of a materialized view's version, such as
            ``Connector.view_rows``; None = those of no view.

    Raises:
        StoreError: what ``drop`` raises.
        CatalogAway: nothing was noted, and so nothing dropped.
    """
    with env.open_unit() as unit:
        others = [one for one in _users(unit, store, entity, view_rows) if one != own]
        if others:
            return others
        _forget_old(unit, env.clock.now())
        _note(env, unit, store, entity, 1)
        unit.commit()
    try:
        drop()
    finally:
        _end(env, store, entity)
    return []


def drops_seen(unit: UnitOfWork) -> Seen:
    """What ``require_not_dropped`` compares with; to be asked before the store is looked at."""
    return {_key(one.store, one.entity): one.meta.generation for one in _all(unit)}


def require_not_dropped(unit: UnitOfWork, now: datetime, relation: Relation, seen: Seen) -> None:
    """CatalogError stale for a new relation on an entity that is being dropped, or went since ``seen``.

    Args:
        unit: an open unit of work.
        now: the time.
        relation: that is new.
        seen: the drops known before stores were asked.
    """
    key = _key(relation.store, relation.entity)
    found = unit.entity_drops.find(key)
    if found is None:
        return
    if _at_work(found, now) or found.meta.generation != seen.get(key):
        raise CatalogError(
            "stale",
            f"{quote(relation.entity)} of store {quote(relation.store)} is being dropped, or was dropped "
            "while this was planned.",
            hint="Send it again.",
        )


def _end(env: Environment, store: str, entity: str) -> None:
    try:
        with env.open_unit() as unit:
            _note(env, unit, store, entity, -1)
            unit.commit()
    except (LeatstreamError, CatalogAway) as error:  # the note loses its weight by itself
        _LOG.warning("that %s of store %s is dropped could not be noted: %s", entity, store, error)


def _note(env: Environment, unit: UnitOfWork, store: str, entity: str, more: int) -> None:
    now = env.clock.now()
    found = unit.entity_drops.find(_key(store, entity))
    if found is None:
        meta = Meta(id=new_id("drop"), generation=1, created_at=now, updated_at=now, created_by="", owner="")
        unit.entity_drops.add(EntityDrop(meta=meta, store=store, entity=entity, at_work=max(0, more)))
    else:
        count = max(0, _at_work(found, now) + more)
        unit.entity_drops.update(replace(found, meta=next_meta(found.meta, now), at_work=count))


def _at_work(note: EntityDrop, now: datetime) -> int:
    """How many calls may still drop the entity."""
    return note.at_work if now - note.meta.updated_at < _LONGEST else 0


def _forget_old(unit: UnitOfWork, now: datetime) -> None:
    for one in _all(unit):
        if now - one.meta.updated_at > _KEPT:
            unit.entity_drops.delete(one.meta.id)


def _all(unit: UnitOfWork) -> list[EntityDrop]:
    return list(unit.entity_drops.page(limit=100_000))


def _key(store: str, entity: str) -> str:
    return EntityDrop.key_of(store, entity)

"""The end of a query: what it leaves behind is taken away, then its rows.

That it shall go has been committed before (``Query.deleting``). Every step may be repeated, so a crash or a
store that does not answer only delays the end.
"""

from __future__ import annotations

import shutil
import threading

from leatstream.model.objects import Query, QueryKind
from leatstream.services.environment import Environment, view_table

_ALONE = threading.Lock()


def remove_query(env: Environment, query: Query) -> None:
    """Take away a query whose job has ended: its topic if asked, its checkpoints, its relation, itself.

    One at a time, so that a topic made anew by the next query of this name is not taken for the old one.

    Raises:
        StoreError: the topic could not be dropped; nothing else has been removed then.
    """
    with _ALONE:
        with env.open_unit(write=False) as unit:
            current = unit.queries.find_by_id(query.meta.id)
        if current is not None and current.deleting:
            _remove(env, current)
    env.changed.notify()


def _remove(env: Environment, query: Query) -> None:
    if query.delete_sink_entity and query.kind.makes_sink:
        _drop_entity(env, query)
    if query.kind is QueryKind.CREATE_MATERIALIZED_VIEW_AS:
        env.views.drop(view_table(query))
    root = env.settings.checkpoint_root
    if "://" not in root:
        shutil.rmtree(f"{root}/queries/{query.meta.id}", ignore_errors=True)
    with env.open_unit() as unit:
        current = unit.queries.find_by_id(query.meta.id)
        if current is not None and current.deleting:
            relation = unit.relations.find(current.sink)
            if relation is not None and relation.created_by_query == current.meta.id:
                unit.relations.delete(relation.meta.id)
            unit.queries.delete(current.meta.id)
            unit.query_log.delete_of(current.meta.id)
            unit.commit()


def _drop_entity(env: Environment, query: Query) -> None:
    with env.open_unit(write=False) as unit:
        relation = unit.relations.find(query.sink)
        mine = relation is not None and relation.created_by_query == query.meta.id
        store = unit.stores.find(relation.store) if relation is not None and mine else None
    if relation is not None and store is not None:
        env.connect(store).drop_entity(relation.entity)

"""Lets a query that has caught up take the place of the one that it stands beside: see ``blue_green``."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import replace

from leatstream.errors import CatalogAway
from leatstream.model.objects import Query
from leatstream.services.environment import Environment
from leatstream.services.queries.replace.hand_over import hand_over, let_go_on
from leatstream.services.queries.replace.swap import caught_up, has_room, hindrance, say, swap
from leatstream.services.queries.save import keep_query

_LOG = logging.getLogger(__name__)


def take_over(env: Environment, queries: Collection[Query]) -> None:
    """Swap what has caught up, and let go of what has been kept long enough: part of each pass."""
    for query in queries:
        try:
            if query.beside is not None and not query.deleting:
                _go_on(env, query)
            elif query.on_hold:
                let_go_on(env, query)
        except CatalogAway:
            raise
        except Exception:  # whatever it is, the next pass sees the same state again
            _LOG.exception("query %s could not take over", query.name)


def _go_on(env: Environment, query: Query) -> None:
    if query.kept_until is not None:
        _expire(env, query)
    elif query.is_silent:
        hand_over(env, query)
    else:
        _swap(env, query)


def _swap(env: Environment, found: Query) -> None:
    """Of a view the rows are swapped, while both jobs go on."""
    with env.open_unit() as unit:
        green = unit.queries.find_by_id(found.meta.id)
        blue = unit.queries.find_by_id(found.beside or "")
        if green is None or blue is None or green.deleting or blue.deleting or not caught_up(green, blue):
            return
        if green.beside_relation is None or not has_room(unit, green, blue):
            return
        why = hindrance(unit, green, blue)
        if why is None:
            swap(env, unit, green, blue, green)
        elif not say(unit, green, why, env.clock.now()):
            return
        unit.commit()
    env.changed.notify()


def _expire(env: Environment, found: Query) -> None:
    if found.kept_until is None or found.kept_until > env.clock.now():
        return
    with env.open_unit() as unit:
        kept = unit.queries.find_by_id(found.meta.id)
        if kept is not None and kept.kept_until is not None and not kept.deleting:
            keep_query(unit, kept, replace(kept, deleting=True), env.clock.now())
            unit.commit()
    env.changed.notify()

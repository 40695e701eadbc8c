"""Lets a query that has caught up take the place of the one that it stands beside: see ``blue_green``."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, timedelta

from leatstream.errors import CatalogAway
from leatstream.model.names import Fqn
from leatstream.model.objects import DesiredState, Meta, Query, QueryEvent, QueryState
from leatstream.plan.change import Change
from leatstream.ports import UnitOfWork
from leatstream.services.environment import Environment, Principal, next_meta
from leatstream.services.queries.notes import keep_query, note_version
from leatstream.services.queries.replacement import BLUE
from leatstream.services.relations import query_dependents

_LOG = logging.getLogger(__name__)
SWAPPED = Change("blue-green", "it took over when it had read all that the version before it had")


def take_over(env: Environment, queries: Collection[Query]) -> None:
    """Swap what has caught up, and let go of what has been kept long enough: part of each pass."""
    for query in queries:
        try:
            if query.beside is not None and not query.deleting:
                (_swap if query.kept_until is None else _expire)(env, query)
        except CatalogAway:
            raise
        except Exception:  # whatever it is, the next pass sees the same state again
            _LOG.exception("query %s could not take over", query.name)


def caught_up(green: Query, blue: Query) -> bool:
    """Whether nothing is missing from the new view that the old one has, as far as their jobs have told.

    Where the old one has told nothing of a source, all that is there must have been read.
    """
    status = green.status
    if status.state is not QueryState.RUNNING or status.observed_generation != green.meta.generation:
        return False
    rows = status.metrics.get("sources") or []
    if len(rows) < len(green.job.get("sources", ())):
        return False
    before = {row["relation"]: row for row in reversed(blue.status.metrics.get("sources") or [])}
    return all(_not_behind(row, before.get(row["relation"])) for row in rows)


def _not_behind(row: dict[str, object], before: dict[str, object] | None) -> bool:
    ends, known = row.get("end_offsets") or {}, (before or {}).get("end_offsets") or {}
    if not isinstance(ends, dict) or not isinstance(known, dict) or not known:
        return row.get("lag") == 0
    return all(int(ends.get(partition, -1)) >= int(end) for partition, end in known.items())


def _swap(env: Environment, found: Query) -> None:
    with env.open_unit() as unit:
        green = unit.queries.find_by_id(found.meta.id)
        blue = unit.queries.find_by_id(found.beside or "")
        if green is None or blue is None or green.deleting or blue.deleting or not caught_up(green, blue):
            return
        relation, sink = unit.relations.find(green.sink), green.beside_relation
        older = unit.queries.find(blue.name + BLUE)
        if relation is None or sink is None or (older is not None and older.meta.id != green.meta.id):
            return  # the one that was kept before is on its way out
        now = env.clock.now()
        others = [] if set(relation.columns) <= set(sink.columns) else _readers(unit, blue)
        if others:
            message = f"it waits: columns that it does not make are read by {', '.join(others)}"
            if green.status.message != message:
                keep_query(unit, green, replace(green, status=replace(green.status, message=message)), now)
                unit.commit()
            return
        kept, lead = _kept(env, green, replace(blue, beside_relation=relation), now), _lead(green, blue, now)
        keep_query(unit, blue, kept, now)
        keep_query(unit, green, lead, now)
        columns = {column.name for column in sink.columns}
        unit.relations.update(
            replace(
                sink,
                meta=next_meta(relation.meta, now),
                created_by_query=lead.meta.id,
                indexes=tuple(i for i in relation.indexes if columns.issuperset(i.columns)),
            )
        )
        unit.query_log.add_handed_on(blue.meta.id, lead.meta.id)
        note_version(unit, Principal(green.meta.created_by, green.meta.owner), lead, SWAPPED, now)
        for query, reason in ((kept, f"query {lead.name} goes on in its place"), (lead, "it has taken over")):
            _note(unit, query, reason, now)
        unit.commit()
    env.changed.notify()


def _kept(env: Environment, green: Query, blue: Query, now: datetime) -> Query:
    """The one that had the name: it stops, and keeps its rows and its checkpoint."""
    until = now + timedelta(seconds=env.settings.keep_replaced)
    same = blue.status.observed_generation == blue.meta.generation
    status = replace(blue.status, observed_generation=blue.meta.generation + 1) if same else blue.status
    return replace(
        blue,
        name=blue.name + BLUE,
        beside=green.meta.id,
        kept_until=until,
        desired_state=DesiredState.STOPPED,
        meta=next_meta(blue.meta, now),
        status=replace(status, next_attempt_at=None),
    )


def _lead(green: Query, blue: Query, now: datetime) -> Query:
    """The one that takes the name over: a version of the same query to people, whose job is not touched."""
    generation = blue.meta.generation + 1
    # Who stopped the query while it was being replaced meant what bears its name.
    halted = blue.desired_state is DesiredState.STOPPED and blue.meta.updated_at > green.meta.updated_at
    return replace(
        green,
        name=blue.name,
        beside=None,
        beside_relation=None,
        desired_state=DesiredState.STOPPED if halted else green.desired_state,
        comment=green.comment if green.comment is not None else blue.comment,
        meta=Meta(
            id=green.meta.id,
            generation=generation,
            created_at=blue.meta.created_at,
            updated_at=now,
            created_by=blue.meta.created_by,
            owner=blue.meta.owner,
        ),
        status=replace(green.status, observed_generation=generation, message=None),
    )


def _expire(env: Environment, found: Query) -> None:
    if found.kept_until is None or found.kept_until > env.clock.now():
        return
    with env.open_unit() as unit:
        kept = unit.queries.find_by_id(found.meta.id)
        if kept is not None and kept.kept_until is not None and not kept.deleting:
            keep_query(unit, kept, replace(kept, deleting=True), env.clock.now())
            unit.commit()
    env.changed.notify()


def _readers(unit: UnitOfWork, query: Query) -> list[str]:
    return [d for d in query_dependents(unit, Fqn.parse(query.sink)) if d != f"query {query.name}"]


def _note(unit: UnitOfWork, query: Query, reason: str, now: datetime) -> None:
    event = QueryEvent(
        at=now,
        state=query.status.state,
        attempt=query.status.attempt,
        generation=query.meta.generation,
        reason=reason,
    )
    unit.query_log.add_event(query.meta.id, event)

"""Two queries swap their places, in one transaction: see ``blue_green``."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from leatstream.model.names import Fqn
from leatstream.model.objects import DesiredState, Meta, Query, QueryEvent, QueryState, Relation
from leatstream.plan.change import Change
from leatstream.ports import UnitOfWork
from leatstream.services.environment import Environment, Principal, next_meta
from leatstream.services.queries.replace.in_place import BLUE
from leatstream.services.queries.save import keep_query, note_version
from leatstream.services.queries.stored_views import is_stored_view
from leatstream.services.relations.relations import query_dependents

SWAPPED = Change("blue-green", "it took over when it had read all that the version before it had")


def caught_up(green: Query, blue: Query) -> bool:
    """Whether the new query has read what the old one has, as far as their jobs have reported.

    Where the old one has reported nothing of a source, everything in it must have been read.
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


def hindrance(unit: UnitOfWork, green: Query, blue: Query) -> str | None:
    """Who holds the swap back, as it makes no column that they read; None: nobody.

    Args:
        unit: an open unit of work.
        green: the version that takes over.
        blue: the version before.
    """
    relation, sink = unit.relations.find(green.sink), green.beside_relation
    if relation is None or sink is None or set(relation.columns) <= set(sink.columns):
        return None
    dependents = query_dependents(unit, Fqn.parse(blue.sink))
    others = [one for one in dependents if one != f"query {blue.name}"]
    return f"it waits: columns that it does not make are read by {', '.join(others)}" if others else None


def has_room(unit: UnitOfWork, green: Query, blue: Query) -> bool:
    """Whether the one that was kept before is deleted; its deletion has begun.

    Args:
        unit: an open unit of work.
        green: the version that takes over.
        blue: the version before.
    """
    older = unit.queries.find(blue.name + BLUE)
    return older is None or older.meta.id == green.meta.id


def say(unit: UnitOfWork, query: Query, message: str, now: datetime) -> bool:
    """Tell people something of a query; whether that is new.

    Args:
        unit: an open unit of work.
        query: whose message it is.
        message: for people.
        now: the time.
    """
    if query.status.message == message:
        return False
    keep_query(unit, query, replace(query, status=replace(query.status, message=message)), now)
    return True


def swap(env: Environment, unit: UnitOfWork, green: Query, blue: Query, lead: Query) -> None:
    """Give the name, and what the relation shows, from one query to another; the caller commits.

    Args:
        env: the environment.
        unit: an open unit of work.
        green: the one that takes over, as it is.
        blue: the one that has the name.
        lead: what ``green`` becomes, but for its name and what people know by the name.
    """
    now, relation = env.clock.now(), unit.relations.find(green.sink)
    if relation is None:
        return
    kept, lead = _kept(env, green, blue, relation, now), _lead(lead, blue, now)
    keep_query(unit, blue, kept, now)
    keep_query(unit, green, lead, now)
    if green.kind.makes_sink and green.beside_relation is not None:
        _show(unit, relation, green.beside_relation, lead, now)
    unit.query_log.add_handed_on(blue.meta.id, lead.meta.id)
    note_version(unit, Principal(green.meta.created_by, green.meta.owner), lead, SWAPPED, now)
    for query, reason in ((kept, f"query {lead.name} continues in its place"), (lead, "it has taken over")):
        _note(unit, query, reason, now)


def _show(unit: UnitOfWork, relation: Relation, sink: Relation, lead: Query, now: datetime) -> None:
    columns = {column.name for column in sink.columns}
    unit.relations.update(
        replace(
            sink,
            meta=next_meta(relation.meta, now),
            created_by_query=lead.meta.id,
            indexes=tuple(i for i in relation.indexes if columns.issuperset(i.columns)),
        )
    )


def _kept(env: Environment, green: Query, blue: Query, relation: Relation, now: datetime) -> Query:
    """The one that had the name: it stops, and keeps its rows and its checkpoint."""
    until = now + timedelta(seconds=env.settings.keep_replaced)
    same = blue.status.observed_generation == blue.meta.generation
    status = replace(blue.status, observed_generation=blue.meta.generation + 1) if same else blue.status
    return replace(
        blue,
        name=blue.name + BLUE,
        beside=green.meta.id,
        beside_relation=relation,
        kept_until=until,
        on_hold=False,
        desired_state=DesiredState.STOPPED,
        meta=next_meta(blue.meta, now),
        status=replace(status, next_attempt_at=None, view_behind=False),
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
        status=replace(
            green.status,
            observed_generation=generation,
            message=None,
            view_behind=is_stored_view(green),
        ),
    )


def _note(unit: UnitOfWork, query: Query, reason: str, now: datetime) -> None:
    event = QueryEvent(
        at=now,
        state=query.status.state,
        attempt=query.status.attempt,
        generation=query.meta.generation,
        reason=reason,
    )
    unit.query_log.add_event(query.meta.id, event)

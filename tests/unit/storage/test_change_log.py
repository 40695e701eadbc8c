"""What units of work add to the feed of changes, in which order, and what is deleted of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from concurrent_changes import assert_nothing_is_missed, follow_concurrent_writers

from leatstream.model.access import KINDS, AccountKind
from leatstream.model.changes import BEGINNING, CHANGE_KINDS, Change
from leatstream.model.objects import (
    Database,
    Meta,
    Query,
    QueryEvent,
    QueryKind,
    QueryState,
    Store,
    StoreState,
)
from leatstream.storage import change_log
from leatstream.storage.unit_of_work import SqlUnits, open_units

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def meta(object_id: str, generation: int = 1, owner: str = "sysadmin") -> Meta:
    return Meta(
        id=object_id, generation=generation, created_at=NOW, updated_at=NOW, created_by="ann", owner=owner
    )


def database(name: str, generation: int = 1, owner: str = "sysadmin") -> Database:
    return Database(meta=meta(name, generation, owner), name=name)


def query() -> Query:
    return Query(
        meta=meta("qry_1"),
        name="q",
        kind=QueryKind.INSERT_INTO,
        sql="",
        statement_hash="",
        context={},
        sources=(),
        sink="d.s.r",
    )


def event(state: QueryState, reason: str | None = None, error: str | None = None) -> QueryEvent:
    return QueryEvent(at=NOW, state=state, attempt=1, generation=1, reason=reason, error=error)


def feed(units: SqlUnits, after: str = BEGINNING) -> list[Change]:
    with units(write=False) as unit:
        return list(unit.changes.after(after, 1000))


def told(changes: list[Change]) -> list[tuple[str, str, str]]:
    return [(str(one.type), one.kind, one.key) for one in changes]


def test_kinds_are_those_that_can_be_granted_on_and_those_of_access() -> None:
    assert (*KINDS, "role", *AccountKind, "api_token", "savepoint") == CHANGE_KINDS


def test_each_unit_adds_what_it_has_changed_in_all(units: SqlUnits) -> None:
    """Made and changed at once is made; made and deleted at once is nothing; given up is nothing."""
    with units() as unit:
        unit.databases.add(database("a"))
        unit.databases.update(database("a", 2))
        unit.databases.add(database("b"))
        unit.databases.delete("b")
        unit.commit()
    with units() as unit:
        unit.databases.update(database("a", 3))
        unit.databases.update(replace(database("a", 3), comment="x"))
    with units() as unit:
        unit.databases.update(database("a", 2, "other"))
        unit.commit()
    with units() as unit:
        unit.databases.delete("a")
        unit.databases.delete("missing")
        unit.commit()
    found = feed(units)
    assert told(found) == [
        ("created", "database", "a"),
        ("changed", "database", "a"),
        ("deleted", "database", "a"),
    ]
    assert [(one.generation, one.owner) for one in found] == [(2, "sysadmin"), (2, "other"), (2, "other")]


def test_what_heartbeats_write_is_no_change(units: SqlUnits) -> None:
    with units() as unit:
        unit.queries.add(query())
        unit.query_log.add_event("qry_1", event(QueryState.PENDING))
        unit.commit()
    last = feed(units)[-1]
    assert (told([last]), last.state) == ([("created", "query", "q")], "pending")
    with units() as unit:
        known = unit.queries.find("q")
        assert known is not None
        unit.queries.update(replace(known, status=replace(known.status, metrics={"rows": 1})))
        unit.commit()
    assert feed(units, last.id) == []


def test_a_rename_is_a_change_although_the_generation_stays(units: SqlUnits) -> None:
    with units() as unit:
        unit.queries.add(query())
        unit.commit()
    with units() as unit:
        unit.queries.update(replace(query(), name="p"))
        unit.commit()
    assert told(feed(units)) == [("created", "query", "q"), ("changed", "query", "p")]


def test_states_of_queries_have_their_cause(units: SqlUnits) -> None:
    with units() as unit:
        unit.queries.add(query())
        unit.commit()
    place = feed(units)[-1].id
    with units() as unit:
        unit.query_log.add_event("qry_1", event(QueryState.STARTING))
        unit.query_log.add_event("qry_1", event(QueryState.FAILED, "x" * 1000, "source-gone"))
        unit.query_log.add_event("qry_unknown", event(QueryState.FAILED))
        unit.commit()
    starting, failed = feed(units, place)
    assert (starting.type, starting.key, starting.state) == ("state", "q", "starting")
    assert (failed.state, failed.error, len(failed.message or "")) == ("failed", "source-gone", 500)
    with units() as unit:
        unit.query_log.add_event("qry_1", event(QueryState.STOPPED))
        unit.queries.delete("qry_1")
        unit.commit()
    assert told(feed(units, failed.id)) == [("deleted", "query", "q")]


def test_states_of_stores(units: SqlUnits) -> None:
    store = Store(meta=meta("sto_1"), name="k", kind="kafka", config={})
    with units() as unit:
        unit.stores.add(store)
        unit.commit()
    for state in (StoreState.READY, StoreState.READY, StoreState.ERRORED):
        with units() as unit:
            unit.stores.update(replace(store, state=state, message=f"{state}!"))
            unit.commit()
    assert [(str(one.type), one.state, one.message) for one in feed(units)] == [
        ("created", "pending", None),
        ("state", "ready", "ready!"),
        ("state", "errored", "errored!"),
    ]


def test_ids_grow_although_the_clock_goes_back(units: SqlUnits, monkeypatch: pytest.MonkeyPatch) -> None:
    """As between servers, one of whose clocks is behind."""
    times = iter([5000.0, 4000.0, 4000.0, 6000.0])
    monkeypatch.setattr(change_log, "_now", lambda: next(times))
    for name in ("a", "b", "c", "d"):
        with units() as unit:
            unit.databases.add(database(name))
            unit.commit()
    found = feed(units)
    assert [one.key for one in found] == ["a", "b", "c", "d"]
    assert [int(one.id[4:16], 16) for one in found] == [5_000_000, 5_000_001, 5_000_002, 6_000_000]


def test_old_changes_are_deleted_but_not_the_newest(units: SqlUnits) -> None:
    for name in ("a", "b", "c"):
        with units() as unit:
            unit.databases.add(database(name))
            unit.commit()
    with units() as unit:
        assert not unit.changes.exceeds(3)
        assert unit.changes.exceeds(2)
        assert unit.changes.delete_old(NOW, 2) == 1
        unit.commit()
    newest = feed(units)[-1]
    assert [one.key for one in feed(units)] == ["b", "c"]
    with units() as unit:
        assert unit.changes.delete_old(datetime.now(UTC) + timedelta(days=1), 2) == 1
        unit.commit()
    assert [one.id for one in feed(units)] == [newest.id]


def test_deletion_leaves_no_gap_although_clocks_differ(
    units: SqlUnits, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter([5000.0, 4000.0, 6000.0])
    monkeypatch.setattr(change_log, "_now", lambda: next(times))
    for name in ("a", "b", "c"):
        with units() as unit:
            unit.databases.add(database(name))
            unit.commit()
    with units() as unit:
        unit.changes.delete_old(datetime.fromtimestamp(4500, UTC), 10)
        unit.commit()
    assert [one.key for one in feed(units)] == ["c"], "a reader that knows a would miss b"


def test_readers_miss_nothing_while_others_write(
    units: SqlUnits, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = [units, open_units(url)]
    assert_nothing_is_missed(servers, follow_concurrent_writers(servers, monkeypatch))
    servers[1].close()

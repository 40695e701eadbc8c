"""Who is suspected when a shared driver dies, and who starts when after that."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from leatstream.model.objects import Meta, Query, QueryKind, QueryState, QueryStatus
from leatstream.services.queries.shared_drivers import count_crash, suspect_of, turn_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def query(
    name: str, state: QueryState, seconds: float, crashes: int = 0, apart_from: str | None = None
) -> Query:
    since = NOW - timedelta(seconds=seconds)
    meta = Meta(id=name, generation=1, created_at=NOW, updated_at=NOW, created_by="a", owner="sysadmin")
    return Query(
        meta=meta,
        name=name,
        kind=QueryKind.INSERT_INTO,
        sql="",
        statement_hash="",
        context={},
        sources=(),
        sink="d.s.r",
        job={"driver": "shared"},
        status=QueryStatus(state=state, since=since, crashes=crashes, apart_from=apart_from),
    )


OLD = query("old", QueryState.RUNNING, 100)
YOUNG = query("young", QueryState.STARTING, 3)


def suspect(*members: Query) -> str | None:
    found = suspect_of(members, NOW)
    return found.name if found else None


def test_the_only_one_that_started_is_suspected() -> None:
    assert suspect(OLD, YOUNG) == "young"
    # One that has only just started is so at the second death.
    assert suspect(OLD, replace(OLD, name="other"), query("q", QueryState.RUNNING, 1, crashes=1)) == "q"
    assert suspect(OLD, replace(OLD, name="other"), query("q", QueryState.RUNNING, 1)) is None


def test_none_is_suspected_where_it_is_not_plain() -> None:
    assert suspect(OLD, replace(OLD, name="other")) is None
    assert suspect(OLD, YOUNG, replace(YOUNG, name="other")) is None
    # One that has just done its first batch may as well die of the second.
    assert suspect(query("q", QueryState.RUNNING, 1, crashes=1), replace(YOUNG, name="other")) is None


def test_alone_in_its_driver_a_query_is_suspected_the_second_time() -> None:
    assert suspect(YOUNG) is None
    assert suspect(replace(OLD, name="settled")) is None
    assert suspect(query("again", QueryState.STARTING, 3, crashes=1)) == "again"
    assert suspect(query("runs", QueryState.RUNNING, 3, crashes=1)) is None
    assert suspect(query("runs", QueryState.RUNNING, 3, crashes=2)) == "runs"


def test_a_death_after_a_long_peace_is_the_first_one_again() -> None:
    assert count_crash(query("q", QueryState.STARTING, 100, 1).status, NOW).crashes == 2
    assert count_crash(query("q", QueryState.RUNNING, 30, 1).status, NOW).crashes == 2
    assert count_crash(query("q", QueryState.RUNNING, 100, 5).status, NOW).crashes == 1


def test_after_two_deaths_queries_start_one_after_another() -> None:
    waiting = query("w", QueryState.PENDING, 0, 2)
    starting, running = query("s", QueryState.STARTING, 1, 2), query("r", QueryState.RUNNING, 1, 2)
    assert turn_of(waiting, [waiting, starting], NOW) == "s"
    assert turn_of(waiting, [waiting, running], NOW) == "r"
    assert turn_of(waiting, [waiting, query("r", QueryState.RUNNING, 6, 2)], NOW) is None
    assert turn_of(waiting, [waiting, query("s", QueryState.STARTING, 61, 2)], NOW) is None, "for no longer"
    assert turn_of(waiting, [query("n", QueryState.STARTING, 1, 1)], NOW) is None, (
        "one that is new does not count"
    )
    assert turn_of(waiting, [query("a", QueryState.STARTING, 1, 2, apart_from="d")], NOW) is None
    assert turn_of(query("w", QueryState.PENDING, 0, 1), [starting], NOW) is None

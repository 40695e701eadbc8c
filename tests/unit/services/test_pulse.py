"""How old figures are, with a clock that the test moves."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from leatstream.model.objects import DesiredState, Meta, Query, QueryKind, QueryState, QueryStatus
from leatstream.services.queries.pulse import age_of, as_seen, waits_for, with_pulse

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
META = Meta(id="qry_1", generation=1, created_at=NOW, updated_at=NOW, created_by="ann", owner="ann")


def query(state: QueryState = QueryState.RUNNING, **pulse: Any) -> Query:
    metrics = with_pulse({"input_rows_per_second": 9.0}, pulse, NOW)
    status = QueryStatus(state=state, metrics=metrics)
    return Query(
        meta=META,
        name="q",
        kind=QueryKind.CREATE_STREAM_AS,
        sql="",
        statement_hash="",
        context={},
        sources=(),
        sink="d.s.o",
        desired_state=DesiredState.RUNNING,
        status=status,
    )


def test_figures_age_between_heartbeats() -> None:
    found = query(age_seconds=2.0, rhythm_seconds=20.0, waits_for=None)
    assert age_of(found, NOW) == 2
    assert age_of(found, NOW + timedelta(seconds=7)) == 9
    seen = as_seen(found, NOW + timedelta(seconds=7)).status
    assert (seen.metrics["age_seconds"], seen.metrics["input_rows_per_second"], seen.message) == (
        9,
        9.0,
        None,
    )


def test_a_lag_ages_too_and_that_of_an_earlier_attempt_has_no_age() -> None:
    found = query(age_seconds=0.5, lag_age_seconds=3.0)
    assert as_seen(found, NOW + timedelta(seconds=2.25)).status.metrics["lag_age_seconds"] == 5.25
    begins_again = with_pulse(found.status.metrics, {"age_seconds": 0.1, "lag_age_seconds": None}, NOW)
    seen = as_seen(replace(found, status=replace(found.status, metrics=begins_again)), NOW)
    assert seen.status.metrics["lag_age_seconds"] is None
    assert "lag_age_seconds" not in as_seen(query(age_seconds=0.5), NOW).status.metrics


def test_a_driver_that_says_no_more_is_told_after_the_rhythm() -> None:
    found = query(age_seconds=0.0, rhythm_seconds=20.0, waits_for=None)
    assert waits_for(found, NOW + timedelta(seconds=34)) is None
    late = NOW + timedelta(seconds=36)
    assert waits_for(found, late) == "its driver has said nothing of it"
    seen = as_seen(found, late).status
    assert seen.metrics["input_rows_per_second"] is None
    assert seen.message == "no progress for 36 s: its driver has said nothing of it"


def test_a_clock_that_was_set_back_makes_no_negative_age() -> None:
    assert age_of(query(age_seconds=0.0), NOW - timedelta(seconds=90)) == 0


def test_only_a_query_that_runs_stands_still() -> None:
    for state in set(QueryState) - {QueryState.RUNNING}:
        found = query(state, age_seconds=500.0, rhythm_seconds=20.0, waits_for="x")
        assert waits_for(found, NOW) is None


def test_a_driver_of_an_earlier_release_has_no_pulse() -> None:
    found = query()
    assert as_seen(found, NOW) is found

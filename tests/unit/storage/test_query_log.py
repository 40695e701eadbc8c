"""What is kept of the progress of a query: the last hour whole, the last day in steps, peaks included."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from leatstream.model.objects import QueryProgress
from leatstream.ports import UnitOfWork
from leatstream.storage.query_log import COARSE, KEPT_COARSE, KEPT_PROGRESS
from leatstream.storage.unit_of_work import SqlUnits

START = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
STEP = timedelta(seconds=15)


def report(unit: UnitOfWork, at: datetime, lag: int, query: str = "qry_1") -> None:
    metrics = {"sources": [{"lag": lag}]}
    unit.query_log.add_progress(query, QueryProgress(at=at, attempt=1, metrics=metrics))


def lag(one: QueryProgress) -> int:
    found: int = one.metrics["sources"][0]["lag"]
    return found


def test_a_peak_of_three_hours_ago_is_still_there(units: SqlUnits) -> None:
    """It lasted for one report of 15 seconds, and lay between two steps."""
    peak = START + timedelta(minutes=32)
    with units() as unit:
        for number in range(4 * 60 * 3):
            at = START + number * STEP
            report(unit, at, 5_000 if at == peak else 1)
        report(unit, START, 7, "qry_2")
        found = unit.query_log.progress("qry_1", 600)
    assert [one.at for one in found if lag(one) == 5_000] == [peak]
    times = [one.at for one in found]
    assert times == sorted(set(times))
    assert times[-1] == START + (4 * 60 * 3 - 1) * STEP
    fine = times[-KEPT_PROGRESS:]
    assert {later - one for one, later in pairwise(fine)} == {STEP}
    coarse = times[: -KEPT_PROGRESS + 1]
    assert max(later - one for one, later in pairwise(coarse)) <= 2 * COARSE
    assert times[0] == START


def test_a_part_is_the_newest(units: SqlUnits) -> None:
    with units() as unit:
        for number in range(300):
            report(unit, START + number * STEP, number)
        newest = [lag(one) for one in unit.query_log.progress("qry_1", 3)]
        behind = [lag(one) for one in unit.query_log.progress("qry_1", 600, START + 297 * STEP)]
        hour = unit.query_log.progress("qry_1", 600, START + 59 * STEP)
        last = unit.query_log.progress("qry_1", 600, START + 299 * STEP)
    assert (newest, behind, last) == ([297, 298, 299], [298, 299], [])
    assert [lag(one) for one in hour] == list(range(60, 300))


def test_a_day_is_kept(units: SqlUnits) -> None:
    with units() as unit:
        for number in range(KEPT_COARSE + 40):
            report(unit, START + number * COARSE, number)
        found = [lag(one) for one in unit.query_log.progress("qry_1", 10_000)]
    assert found == list(range(40, KEPT_COARSE + 40))

"""A server waits for the database of its catalog, and not for ever."""

from __future__ import annotations

import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from own_clock import set_clock

from leatstream.errors import StackError
from leatstream.storage import arrival

URL = "postgresql://leat:hunter2@127.0.0.1/catalog"


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[float]]:
    """Has the database refuse so often, while a clock of its own runs; the pauses made."""

    def set_up(refusals: int, error: BaseException | None = None) -> list[float]:
        left, now, pauses = [refusals], [100.0], list[float]()
        cause = error or psycopg.OperationalError("connection refused\n\tIs the server running?")

        def connect() -> Any:
            left[0] -= 1
            if left[0] >= 0:
                raise sa.exc.OperationalError("", {}, cause)
            return sa.create_engine("sqlite://").connect()

        def sleep(seconds: float) -> None:
            pauses.append(seconds)
            now[0] += seconds

        engine = SimpleNamespace(connect=connect, dispose=lambda: None)
        monkeypatch.setattr(arrival, "make_engine", lambda _: engine)
        set_clock(monkeypatch, arrival, monotonic=lambda: now[0], sleep=sleep)
        return pauses

    return set_up


def test_a_database_that_starts_late_is_waited_for(
    database: Callable[..., list[float]], caplog: pytest.LogCaptureFixture
) -> None:
    pauses = database(refusals=30)
    with caplog.at_level(logging.WARNING):
        arrival.await_database(URL, 60)
    assert len(pauses) == 30
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 3 * sum(pauses) // 15, "one each five seconds"
    assert all("connection refused" in line and "\n" not in line for line in lines)
    assert "hunter2" not in caplog.text


def test_one_that_stays_away_is_an_error_of_one_line(database: Callable[..., list[float]]) -> None:
    pauses = database(refusals=10_000)
    with pytest.raises(StackError, match=r"has not answered for 60 s: connection refused") as told:
        arrival.await_database(URL, 60)
    assert 59 <= sum(pauses) <= 60
    assert told.value.code == "part-failed"
    assert "\n" not in told.value.detail
    assert told.value.__context__ is None


def test_who_may_not_wait_is_told_at_once(database: Callable[..., list[float]]) -> None:
    pauses = database(refusals=1)
    with pytest.raises(StackError, match="has not answered"):
        arrival.await_database(URL, 0)
    assert pauses == []


def test_what_the_database_itself_refuses_is_not_waited_for(database: Callable[..., list[float]]) -> None:
    pauses = database(5, psycopg.errors.InsufficientPrivilege("no"))
    with pytest.raises(sa.exc.OperationalError):
        arrival.await_database(URL, 60)
    assert pauses == []


def test_a_file_is_there() -> None:
    arrival.await_database("sqlite:////no/such/directory/catalog.db", 60)

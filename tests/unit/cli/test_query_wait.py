"""``leat query wait``."""

from __future__ import annotations

from typing import Any

import pytest

from leatstream.cli import catching_up, waiting


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catching_up, "_LOOK", 0.0)


def query(
    state: str = "running", *lags: int | None, age: float | None = 0.0, **status: Any
) -> dict[str, Any]:
    sources = [{"relation": f"s{at}", "lag": lag} for at, lag in enumerate(lags)]
    metrics = {"sources": sources, "lag_age_seconds": age} if sources else {}
    return {"name": "q", "desired_state": "running", "status": {"state": state, "metrics": metrics} | status}


def test_it_waits_until_little_is_left_to_read(service: Any, leat: Any) -> None:
    for answer in (query("starting"), query(), query(), query("running", 900, 200), query("running", 9, 1)):
        service.answer("GET", "/v1/queries/q", answer)
    result = leat("query", "wait", "q", "--max-lag", "10")
    assert (result.status, result.err) == (0, "Query q has caught up: 10 records are left to read.\n")


@pytest.mark.parametrize("lag", [0, None])
@pytest.mark.parametrize("age", [3600.0, None])
def test_a_lag_from_before_the_wait_does_not_count(
    service: Any, leat: Any, lag: int | None, age: float | None
) -> None:
    """It may be of an earlier attempt, or of before the records came that are to be waited for."""
    for answer in (query(), query("running", lag, age=age), query("running", 7), query("running", 0)):
        service.answer("GET", "/v1/queries/q", answer)
    result = leat("query", "wait", "q", "--max-lag", "0")
    assert (result.status, result.err) == (0, "Query q has caught up: 0 records are left to read.\n")


def test_a_driver_of_an_earlier_release_does_not_say_how_old_its_lag_is(service: Any, leat: Any) -> None:
    answer = query("running", 0)
    del answer["status"]["metrics"]["lag_age_seconds"]
    service.answer("GET", "/v1/queries/q", answer)
    assert leat("query", "wait", "q", "--max-lag", "0").status == 0


def test_without_names_it_waits_for_all_that_shall_run(service: Any, leat: Any) -> None:
    stopped = query("stopped") | {"name": "off", "desired_state": "stopped"}
    service.answer("GET", "/v1/queries", {"items": [query(), stopped], "next_page_token": None})
    service.answer("GET", "/v1/queries/q", query())
    result = leat("query", "wait")
    assert (result.status, result.err) == (0, "Query q runs.\n")


def test_a_source_without_a_lag_is_not_waited_for(service: Any, leat: Any) -> None:
    service.answer("GET", "/v1/queries/q", query("running", None))
    result = leat("query", "wait", "q", "--max-lag", "0")
    assert (result.status, "do not report a lag" in result.err) == (0, True)


def test_one_that_fails_meanwhile_ends_the_wait(service: Any, leat: Any) -> None:
    service.answer("GET", "/v1/queries/q", query("running", 5))
    service.answer("GET", "/v1/queries/q", query("running", 5))
    service.answer("GET", "/v1/queries/q", query("failed", error={"detail": "topic is gone"}))
    result = leat("query", "wait", "q", "--max-lag", "0")
    assert (result.status, "topic is gone" in result.err) == (1, True)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (query("running", 5), "5 records are left to read"),
        (query(), "it has not looked up the ends of its sources"),
        (query("running", 0, age=3600.0), "it has not looked up the ends of its sources"),
    ],
)
def test_the_time_is_over(service: Any, leat: Any, answer: dict[str, Any], said: str) -> None:
    service.answer("GET", "/v1/queries/q", answer)
    result = leat("query", "wait", "q", "--max-lag", "0", "--timeout", "0")
    assert (result.status, said in result.err) == (7, True)


def test_a_completed_query_has_nothing_left(service: Any, leat: Any) -> None:
    service.answer("GET", "/v1/queries/q", query("completed", 5))
    assert leat("query", "wait", "q", "--max-lag", "0").status == 0


@pytest.mark.parametrize(
    ("written", "seconds"), [("90", 90), ("1.5", 1.5), ("90s", 90), ("2m", 120), ("500ms", 0.5), (120.0, 120)]
)
def test_a_time_is_written_as_in_rest(written: Any, seconds: float) -> None:
    assert waiting.seconds(written) == seconds


@pytest.mark.parametrize("written", ["soon", "-1", "1h", "", "2 m"])
def test_what_is_no_time_is_refused_with_examples(leat: Any, written: str) -> None:
    result = leat("query", "wait", "q", f"--timeout={written}")
    assert result.status == 2
    assert "such as 90, 90s, 2m" in " ".join(result.err.replace("│", " ").split())

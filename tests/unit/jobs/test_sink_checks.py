"""When a job notices that its sink was deleted."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.jobs.test_failures import SPEC

from leatstream.errors import StoreError
from leatstream.plan.job_spec import SinkSpec, StoreRef
from leatstream_jobs.attempt import source_checks
from leatstream_jobs.attempt.sink_checks import SinkChecks


class Store:
    """Answers by its turn; an error is raised."""

    def __init__(self, *answers: str | StoreError | None) -> None:
        self.answers = list(answers)

    def connect(self, _: StoreRef) -> Any:
        return self

    def incarnation(self, entity: str, timeout: float) -> str | None:
        answer = self.answers.pop(0)
        if isinstance(answer, StoreError):
            raise answer
        return answer


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_checks, "SOURCE_CHECK", 0.0)


def looks(store: Store, sink: SinkSpec) -> list[str | None]:
    """The condition of each look, until one fails or the store has given all its answers."""
    checks, found = SinkChecks([sink], lambda *_: None), list[str | None]()
    while store.answers:
        failure = checks.look(store.connect)
        found.append(failure.condition if failure is not None else None)
        if failure is not None:
            assert (failure.code, failure.retryable) == ("job-failed", False)
            break
    return found


AWAY = StoreError("store-unreachable", "No broker answers.")


@pytest.mark.parametrize(
    ("answers", "found"),
    [
        (["1", None, None, "2"], [None, None, "SINK_ENTITY_GONE"]),
        ([None, "1", None], [None, None, None]),
        ([AWAY, AWAY, None, AWAY, None], [None, None, None, None, "SINK_ENTITY_GONE"]),
        (["1", "2"], [None, None]),
    ],
)
def test_a_sink_that_is_missing_twice_is_gone(
    answers: list[str | StoreError | None], found: list[str | None]
) -> None:
    assert looks(Store(*answers), SPEC.sink) == found


def test_a_look_that_may_cost_money_is_left_out() -> None:
    warehouse = SPEC.sink.model_copy(update={"store": StoreRef(name="w", kind="snowflake", config={})})
    checks = SinkChecks([warehouse], lambda *_: None)
    assert checks.look(Store().connect) is None


def test_stores_are_not_asked_at_each_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_checks, "SOURCE_CHECK", 600.0)
    store = Store("1")
    checks = SinkChecks([SPEC.sink], lambda *_: None)
    assert [checks.look(store.connect) for _ in range(3)] == [None] * 3
    assert store.answers == []

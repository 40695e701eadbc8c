"""How a query is let end: what may begin, and what is cut off, moment by moment."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from leatstream_jobs.batches.last_batch import let_end, stop

GROUP = "the-run"


class Books:
    """The scheduler's jobs (each with group and batch), and what is asked of them.

    Attributes:
        jobs: what each look finds; the last is found from then on.
        done: what was done, in order.
    """

    def __init__(self, *jobs: list[tuple[str, int]]) -> None:
        self.jobs = list(jobs)
        self.done: list[str] = []

    def iterator(self) -> Any:
        found = iter(self.jobs.pop(0) if len(self.jobs) > 1 else self.jobs[0])
        waiting = [next(found, None)]

        def take() -> Any:
            group, batch = waiting.pop() or ("", 0)
            waiting.append(next(found, None))
            told = {"spark.jobGroup.id": group, "streaming.sql.batchId": str(batch)}
            return SimpleNamespace(properties=lambda: SimpleNamespace(getProperty=told.get))

        return SimpleNamespace(hasNext=lambda: waiting[0] is not None, next=take)

    def cancel(self, group: str) -> None:
        assert group == GROUP
        self.done.append("cancel")


def world(books: Books, batch: int = 3) -> tuple[Any, Any]:
    """A session and a query whose thread works off a batch when its state has been told."""
    scheduler = SimpleNamespace(activeJobs=lambda: books)
    context = SimpleNamespace(dagScheduler=lambda: scheduler, cancelJobGroupAndFutureJobs=books.cancel)
    spark = SimpleNamespace(sparkContext=SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: context)))
    active = SimpleNamespace(getClass=lambda: SimpleNamespace(getName=lambda: "a.b.ACTIVE$"))
    state = SimpleNamespace(get=lambda: active, set=books.done.append)
    field = SimpleNamespace(get=lambda _: "ended")
    loader = SimpleNamespace(loadClass=lambda _: SimpleNamespace(getField=lambda _: field))
    execution = SimpleNamespace(
        state=lambda: state,
        getClass=lambda: SimpleNamespace(getClassLoader=lambda: loader),
        getLatestExecutionContext=lambda: SimpleNamespace(batchId=lambda: batch),
    )
    java = SimpleNamespace(streamingQuery=lambda: execution)
    query = SimpleNamespace(runId=GROUP, _jsq=java, stop=lambda: books.done.append("stop"))
    return spark, query


@pytest.mark.parametrize(
    ("jobs", "batch", "done"),
    [
        pytest.param([[]], 3, ["cancel", "ended"], id="between two batches no job may begin"),
        pytest.param([[("another", 3)]], 3, ["cancel", "ended"], id="another query's job is none of its own"),
        pytest.param([[(GROUP, 3)], []], 3, ["ended"], id="a batch at work ends, with jobs to come"),
        pytest.param([[(GROUP, 3)], []], 4, ["ended", "cancel"], id="the next one had begun without a job"),
        pytest.param([[(GROUP, 3)], [(GROUP, 4)]], 4, ["ended"], id="the next one had begun with a job"),
    ],
)
def test_the_batch_at_work_ends_and_no_other_begins(
    jobs: list[list[tuple[str, int]]], batch: int, done: list[str]
) -> None:
    books = Books(*jobs)
    let_end(*world(books, batch))
    assert books.done == done


@pytest.mark.parametrize(("number", "done"), [(3, ["ended"]), (None, ["cancel", "ended"])])
def test_a_batch_between_two_of_its_jobs_ends(number: int | None, done: list[str]) -> None:
    books, batches = Books([]), SimpleNamespace(number=number)
    let_end(*world(books), batches)  # type: ignore[arg-type]
    assert books.done == done


@pytest.mark.parametrize(("jobs", "done"), [([], ["stop"]), ([(GROUP, 3)], ["stop", "cancel"])])
def test_no_job_outlives_its_query(jobs: list[tuple[str, int]], done: list[str]) -> None:
    """As one that the query's thread had left behind when it ended by itself."""
    books = Books(jobs)
    stop(*world(books))
    assert books.done == done

"""How a process with many queries ends when its JVM does, without Spark; with it: tests/e2e."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from leatstream_jobs.attempt.failures import Link, spark_has_stopped
from leatstream_jobs.driver import shared_driver
from leatstream_jobs.driver.shared_driver import Seat, SharedDriver
from leatstream_jobs.runtime.protocol import Client, Contact, EndsWithProcess


class Ended(BaseException):
    """In place of the end of the process."""


class Jvm:
    """A process that ends when it is told to, or when it has been asked so often."""

    def __init__(self, looks: int = 0) -> None:
        self.looks = looks

    def poll(self) -> int | None:
        self.looks -= 1
        return 52 if self.looks < 0 else None


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    transport: Any = SimpleNamespace(another=SimpleNamespace)
    made: Any = SharedDriver(
        Client(transport, "d", Contact(1)),
        role="shared",
        slots=1,
        work_dir=tmp_path,
        warm_up_kafka=None,
    )

    def end_all(why: str) -> None:
        raise Ended(why)

    monkeypatch.setattr(made, "end_all", end_all)
    return made


class Stuck:
    """A query that cannot be stopped, as nothing is there to stop it."""

    def stop(self) -> None:
        raise RuntimeError("connection refused")


def test_who_has_ended_the_jvm_may_still_say_so(driver: Any) -> None:
    told: list[str] = []
    may_tell = threading.Event()

    def tells() -> None:
        may_tell.wait(10)
        told.append("Java heap space")

    thread = threading.Thread(target=tells)
    driver.running["q"] = 1, thread
    driver._jvm = Jvm()
    thread.start()
    threading.Timer(0.1, may_tell.set).start()
    with pytest.raises(Ended, match="JVM has ended"):
        driver._watch()
    assert told == ["Java heap space"]


def test_one_that_hangs_does_not_keep_the_process(driver: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_driver, "_LAST_WORDS", 0.05)
    released = threading.Event()
    thread = threading.Thread(target=released.wait, args=(30,))
    driver.running["q"] = 1, thread
    driver._jvm = Jvm()
    thread.start()
    with pytest.raises(Ended):
        driver._watch()
    assert thread.is_alive()
    released.set()


def test_what_cannot_be_stopped_ends_all_unless_the_jvm_is_going(
    driver: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark, stuck = SimpleNamespace(), Stuck()
    seat: Any = Seat(driver, "q")
    driver._jvm = Jvm(looks=2)
    seat.cut_off(spark, stuck)
    driver._jvm = Jvm(looks=1_000_000)
    monkeypatch.setattr(shared_driver, "_LAST_WORDS", 0.05)
    with pytest.raises(Ended, match="did not stop"):
        seat.cut_off(spark, stuck)


def test_an_attempt_beside_it_has_nothing_to_tell(driver: Any) -> None:
    driver._jvm = Jvm()
    with pytest.raises(EndsWithProcess):
        Seat(driver, "q").jvm_lost()
    driver._jvm = Jvm(looks=1_000_000)
    with pytest.raises(Ended, match="Spark has stopped"):
        Seat(driver, "q").jvm_lost()


@pytest.mark.parametrize(
    "message",
    [
        "Job 7 cancelled because SparkContext was shut down",
        "SparkContext has been shutdown",
        "Cannot call methods on a stopped SparkContext.",
    ],
)
def test_a_batch_that_the_jvm_s_end_cuts_off_is_no_fault_of_its_query(message: str) -> None:
    chain = [
        Link("org.apache.spark.sql.streaming.StreamingQueryException", "it ended"),
        Link("org.apache.spark.SparkException", message),
    ]
    assert spark_has_stopped(chain)
    assert not spark_has_stopped([Link("java.lang.OutOfMemoryError", "Java heap space")])

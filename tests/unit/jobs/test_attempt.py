"""What an attempt does without Spark; with it: tests/integration/jobs."""

from __future__ import annotations

import sys
import weakref
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from leatstream.errors import JobError
from leatstream.plan.job_spec import ColumnSpec, FunctionSpec, JobSpec, Mode, SinkSpec, SourceSpec, StoreRef
from leatstream_jobs.attempt.attempt import Attempt
from leatstream_jobs.attempt.failures import Link
from leatstream_jobs.attempt.host import Host
from leatstream_jobs.driver.loop import Driver, LogTail
from leatstream_jobs.driver.shared_driver import Seat, SharedDriver
from leatstream_jobs.functions import user_functions
from leatstream_jobs.runtime.protocol import ApiUnreachable, Client, Contact, EndsWithProcess, Fenced

STORE = StoreRef(name="s", kind="kafka", config={})
COLUMNS = [ColumnSpec(name="a", type="BIGINT")]
SOURCE = SourceSpec(
    view="leat_src_0", relation="d.s.r", store=STORE, entity="t", columns=COLUMNS, value_format="json"
)
SPEC = JobSpec(
    query_id="q",
    query_name="q",
    generation=1,
    attempt=1,
    fencing_token="f",
    sql="",
    sources=[SOURCE],
    sink=SinkSpec(relation="d.s.o", store=STORE, entity="o", columns=COLUMNS, value_format="json"),
    mode=Mode.MICRO_BATCH,
    mode_reason="",
    checkpoint="file:///c",
)


class Store:
    """A source's store."""

    def incarnation(self, entity: str, timeout: float) -> str:
        return f"{entity} the first"

    def watch_source(self, source: SourceSpec) -> None:
        return None


class Disk:
    """Where the sources' identities are kept; full at first."""

    def __init__(self) -> None:
        self.tries: list[dict[str, str]] = []

    def write(self, identities: dict[str, str]) -> None:
        self.tries.append(dict(identities))
        if len(self.tries) == 1:
            raise RuntimeError("No space left on device")


def test_a_job_outlives_a_disk_that_is_full_for_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    driver: Any = Heard()
    spark: Any = SimpleNamespace()
    monkeypatch.setattr("leatstream_jobs.attempt.source_checks.SOURCE_CHECK", 0.0)
    attempt: Any = Attempt(driver, spark, SPEC.model_dump(mode="json"))
    disk = attempt._sources._known = Disk()
    attempt._state = "running"
    started = SimpleNamespace(scans=[SimpleNamespace(source=SOURCE, connector=Store())])
    for _ in range(3):
        attempt._check_sources(started)
        assert attempt._failure is None
    assert disk.tries == [{"leat_src_0": "t the first"}] * 2, "kept once"


class Watched:
    """A running query."""

    isActive = True

    def __init__(self) -> None:
        self.stopped = 0
        nothing = SimpleNamespace(isDefined=lambda: False)
        self._jsq = SimpleNamespace(recentProgress=list, exception=lambda: nothing)

    def stop(self) -> None:
        self.stopped += 1


class Faulty(Store):
    """A store whose connector has a fault of its own."""

    def incarnation(self, entity: str, timeout: float) -> str:
        raise KeyError("of our own")


class Heard:
    """The API's side, and what a driver has besides."""

    query_name: str | None = None
    heartbeat_seconds, look_seconds, stop_seconds, stop_asked = 1.0, 0.0, 0.0, False

    def __init__(self, lonely: bool = False) -> None:
        self.lonely, self.cut, self.beats = lonely, 0, []  # type: ignore[var-annotated]
        self.client, self.tail = self, LogTail()
        self.contact = Contact(-1.0 if lonely else 60.0)

    def heartbeat(self, body: dict[str, Any]) -> str:
        self.beats.append(body)
        if self.lonely:
            raise ApiUnreachable("it is away")
        return "continue"

    def cut_off(self, spark: Any, query: Any) -> None:
        self.cut += 1

    def connector(self, *_: Any) -> Store:
        return Store()


def watched(monkeypatch: pytest.MonkeyPatch, host: Heard, store: Store) -> tuple[Any, Watched]:
    """An attempt whose query runs."""
    gateway = SimpleNamespace(sparkContext=SimpleNamespace(_gateway=None))
    attempt: Any = Attempt(host, gateway, SPEC.model_dump(mode="json"))  # type: ignore[arg-type]
    query = Watched()
    scans = [SimpleNamespace(source=SOURCE, connector=store)]

    def start() -> Any:
        attempt._state = "running"
        attempt._started = SimpleNamespace(query=query, scans=scans, batches=None)
        return attempt._started

    monkeypatch.setattr(attempt, "_start", start)
    monkeypatch.setattr(attempt, "_look", lambda _: None)
    monkeypatch.setattr("leatstream_jobs.attempt.attempt.stop", lambda _, stopped: stopped.stop())
    return attempt, query


def test_a_fault_of_our_own_ends_the_query_and_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    host = Heard()
    attempt, query = watched(monkeypatch, host, Faulty())
    assert attempt.run() == 1
    assert (query.stopped, host.beats[-1]["state"], host.cut) == (1, "failed", 0)
    assert host.beats[-1]["error"]["code"] == "job-failed"


def test_a_batch_that_is_cut_off_by_the_end_of_its_process_is_not_told_as_its_own_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host: Any = Heard()
    attempt, query = watched(monkeypatch, host, Store())
    lost: list[int] = []

    def jvm_lost() -> None:
        lost.append(len(host.beats))
        raise EndsWithProcess

    host.jvm_lost = jvm_lost
    link = Link("org.apache.spark.SparkException", "Job 7 cancelled because SparkContext was shut down")
    monkeypatch.setattr("leatstream_jobs.attempt.attempt.chain_of", lambda _: [link])
    query.isActive = False
    query._jsq.exception = lambda: SimpleNamespace(isDefined=lambda: True, get=lambda: None)
    assert attempt.run() == 1
    assert (lost, [beat["state"] for beat in host.beats]) == ([1], ["starting"])


def test_no_query_goes_on_that_nobody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    host = Heard()
    attempt, _ = watched(monkeypatch, host, Faulty())

    def broken(_: object) -> Any:
        raise TypeError("while the fault is told")

    monkeypatch.setattr(attempt._diagnosis, "of_error", broken)
    with pytest.raises(TypeError):
        attempt.run()
    assert host.cut == 1


def test_an_orphan_is_cut_off_before_it_speaks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another may have its place by the time that it has stopped in order."""
    host = Heard(lonely=True)
    attempt, query = watched(monkeypatch, host, Store())
    said: list[int] = []
    monkeypatch.setattr(host, "cut_off", lambda *_: said.append(len(host.beats)))
    attempt.run()
    assert said == [1], "only the beat that it began with; the API's silence would cost ten seconds more"
    assert query.stopped == 0


def test_a_query_that_is_not_wanted_any_more_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its DELETE may have removed what a first batch would make again."""
    host = Heard()
    attempt, _ = watched(monkeypatch, host, Store())
    host.heartbeat = lambda body: host.beats.append(body) or "stop"  # type: ignore[method-assign,func-returns-value]
    monkeypatch.setattr(attempt, "_start", lambda: pytest.fail("it started"))
    assert attempt.run() == 0
    assert [beat["state"] for beat in host.beats] == ["starting", "stopped"]


@pytest.mark.parametrize("fails", [True, False])
def test_a_last_batch_that_fails_is_not_told_as_whole(monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    """Who takes over would write anew what the failed batch has written already."""
    host = Keeping()
    attempt, query = watched(monkeypatch, host, Store())
    told: list[bool] = []
    query._jsq.exception = lambda: SimpleNamespace(isDefined=lambda: fails, get=lambda: None)
    monkeypatch.setattr(
        "leatstream_jobs.attempt.attempt.chain_of", lambda _: [Link("a.b.TimeoutException", "")]
    )
    monkeypatch.setattr("leatstream_jobs.attempt.attempt.let_end", lambda *_: None)
    monkeypatch.setattr("leatstream_jobs.attempt.attempt.works", lambda _: False)
    monkeypatch.setattr(attempt, "_how_far", lambda *, in_order: told.append(in_order))
    attempt.run()
    assert told == [not fails]


class Keeping(Heard):
    """An API that has the query stop, and keeps a driver that says that it is free."""

    free: bool | None = True

    def heartbeat(self, body: dict[str, Any]) -> str:
        super().heartbeat(body)
        return "stay" if body.get("free") else "stop" if len(self.beats) > 1 else "continue"

    def is_free(self, _spark: Any) -> bool:
        if self.free is None:
            raise ConnectionError("the JVM does not answer")
        return self.free


@pytest.mark.parametrize("free", [True, False, None])
def test_a_driver_stays_if_nothing_is_left_of_the_query(
    monkeypatch: pytest.MonkeyPatch, free: bool | None
) -> None:
    host = Keeping()
    host.free = free
    attempt, query = watched(monkeypatch, host, Store())
    monkeypatch.setattr("leatstream_jobs.attempt.attempt.let_end", lambda *_: None)
    monkeypatch.setattr("leatstream_jobs.attempt.attempt.works", lambda _: False)
    assert attempt.run() == 0
    assert query.stopped == 1
    assert ("free" in host.beats[-1], attempt.may_stay) == (free is True, free is True)
    assert not any("free" in beat for beat in host.beats[:-1])


def test_a_driver_stays_whose_end_was_heard_but_not_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The API has given it to another query meanwhile, which would lose it."""
    host = Keeping()
    attempt, _ = watched(monkeypatch, host, Store())
    monkeypatch.setattr("leatstream_jobs.attempt.attempt.let_end", lambda *_: None)
    monkeypatch.setattr("leatstream_jobs.attempt.attempt.works", lambda _: False)
    answers: list[Exception] = [ApiUnreachable("lost"), Fenced("the query has no driver any more")]

    def heartbeat(body: dict[str, Any]) -> str:
        if body.get("free"):
            raise answers.pop(0)
        return "stop"

    monkeypatch.setattr(host, "heartbeat", heartbeat)
    assert attempt.run() == 0
    assert (attempt.may_stay, answers) == (True, [])


def test_a_driver_does_not_stay_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    host = Keeping()
    attempt, _ = watched(monkeypatch, host, Faulty())
    host.heartbeat = lambda body: host.beats.append(body) or "continue"  # type: ignore[method-assign,func-returns-value]
    assert attempt.run() == 1
    assert not attempt.may_stay
    assert "free" not in host.beats[-1]


def test_what_runs_attempts_has_what_they_ask_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, str(request.config.rootpath / "tests/integration/jobs")])
    import attempts  # the one that tests with Spark use, which run more rarely than this one

    transport: Any = SimpleNamespace(another=SimpleNamespace)
    usual: Any = {"role": "shared", "slots": 1, "work_dir": tmp_path, "warm_up_kafka": None}
    shared = SharedDriver(Client(transport, "d", Contact(1.0)), **usual)
    alone = Driver(Client(transport, "d", Contact(1.0)), **usual)
    nobody: Any = None
    needed = {name for name in (*Host.__annotations__, *vars(Host)) if not name.startswith("_")}
    assert {"client", "heartbeat_seconds", "connector"} <= needed
    for host in (alone, Seat(shared, "q"), attempts.Host(nobody)):
        assert needed - set(dir(host)) == set(), type(host)


def a_driver(place: Path) -> Driver:
    client: Any = Client(SimpleNamespace(), "d", Contact(1.0))  # type: ignore[arg-type]
    usual: Any = {"slots": 1, "warm_up_kafka": None}
    return Driver(client, role="dedicated", work_dir=place, **usual)


def test_a_driver_that_has_run_users_code_takes_no_other_query(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    driver = a_driver(tmp_path)
    spark: Any = SimpleNamespace()
    monkeypatch.setattr("leatstream_jobs.runtime.session.free_of_queries", lambda _: True)
    monkeypatch.setattr(user_functions, "_registered", set())
    assert driver.is_free(spark)
    spec = FunctionSpec(
        name="f",
        function="f",
        source="s",
        file="s.py",
        handler="f",
        digest="0",
        arguments=[],
        returns="INT",
        aggregate=False,
        timeout_seconds=1,
    )
    with pytest.raises(JobError):
        user_functions.register(spark, [spec], {}, tmp_path)
    assert not driver.is_free(spark)


@pytest.mark.parametrize("ran", [True, False])
def test_a_select_with_users_code_is_a_drivers_last(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ran: bool
) -> None:
    driver: Any = a_driver(tmp_path)
    work = [{"kind": "exit"}, {"kind": "select", "spec": {}}]
    monkeypatch.setattr(driver, "_ask", lambda _: work.pop())
    monkeypatch.setattr(
        "leatstream_jobs.driver.selecting.Selecting", lambda *_: SimpleNamespace(run=lambda: None)
    )
    monkeypatch.setattr(user_functions, "_registered", {"digest"} if ran else set())
    assert driver._serve(SimpleNamespace()) == 0
    assert len(work) == (1 if ran else 0)


def test_nothing_of_a_query_is_held_when_its_memory_is_given_back(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made: list[weakref.ref[Any]] = []

    class Short:
        may_stay = True

        def __init__(self, *_: Any) -> None:
            made.append(weakref.ref(self))

        def run(self) -> int:
            return 0

    monkeypatch.setattr("leatstream_jobs.attempt.attempt.Attempt", Short)
    seen: list[bool] = []
    monkeypatch.setattr(
        "leatstream_jobs.runtime.session.collect_garbage", lambda _: seen.append(made[0]() is None)
    )
    driver: Any = a_driver(tmp_path)
    monkeypatch.setattr("leatstream_jobs.runtime.session.own_session", lambda spark: spark)
    assert driver._run(SimpleNamespace(), {}) is None
    assert seen == [True]

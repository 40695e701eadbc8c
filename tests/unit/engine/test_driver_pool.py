"""The pool over processes that only sleep."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from leatstream.engine.admission import Admission
from leatstream.engine.driver_pool import DriverPool
from leatstream.engine.processes import DRIVER_MARK, LocalLauncher
from leatstream.errors import EngineError
from leatstream.ports import Sharing

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


class Sleepers:
    """Starts what only sleeps, in place of drivers."""

    def __init__(self, directory: Path) -> None:
        self.work_dir = self.log_dir = directory
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self, driver_id: str, role: str, token: str) -> subprocess.Popen[bytes]:
        self.started.append(subprocess.Popen(SLEEP, start_new_session=True))
        return self.started[-1]


class Catalog:
    """Units that take everything, until it is away."""

    away = False

    def __call__(self, *, write: bool = True) -> AbstractContextManager[Any]:
        return self._open()

    @contextmanager
    def _open(self) -> Iterator[Any]:
        if self.away:
            raise ConnectionError("the catalog is away")
        rows = SimpleNamespace(add=lambda _: None, update=lambda _: None, delete=lambda _: None, list=list)
        yield SimpleNamespace(drivers=rows, commit=lambda: None)


def test_a_server_that_ends_without_its_catalog_leaves_no_driver(tmp_path: Path) -> None:
    catalog, command = Catalog(), Sleepers(tmp_path)
    made: Any = command
    clock: Any = SimpleNamespace(now=lambda: datetime(2026, 1, 1, tzinfo=UTC))
    pool = DriverPool(catalog, clock, LocalLauncher(made), warm=1, limit=2, server="srv_1", wake=lambda: None)
    try:
        pool.maintain()
        assert len(command.started) == 2, "an analyzer and a warm one"
        catalog.away = True
        pool.close()
        assert [process.poll() is None for process in command.started] == [False, False]
    finally:
        for process in command.started:
            process.kill()
            process.wait()


class Obedient(Sleepers):
    """Starts what ends a moment after SIGTERM, or, if it is stubborn, only by force."""

    def __init__(self, directory: Path, stubborn: bool) -> None:
        super().__init__(directory)
        self.stubborn = stubborn

    def start(self, driver_id: str, role: str, token: str) -> subprocess.Popen[bytes]:
        ready, told = self.work_dir / f"{driver_id}.ready", self.work_dir / f"{driver_id}.told"
        lines = ["import pathlib, signal, sys, time", "def end(*_):", f"    open({str(told)!r}, 'w').close()"]
        lines += ["" if self.stubborn else "    time.sleep(0.2); sys.exit()", "signal.signal(15, end)"]
        lines += [f"open({str(ready)!r}, 'w').close()", "while True: time.sleep(0.05)"]
        argv = [sys.executable, "-c", "\n".join(lines)]
        self.started.append(subprocess.Popen(argv, start_new_session=True))
        return self.started[-1]


@pytest.mark.parametrize("stubborn", [False, True])
def test_drivers_at_work_are_told_to_end_and_waited_for(
    tmp_path: Path, stubborn: bool, eventually: Callable[..., Any]
) -> None:
    command, clock = (
        Obedient(tmp_path, stubborn),
        SimpleNamespace(now=lambda: datetime(2026, 1, 1, tzinfo=UTC)),
    )
    made: Any = command
    arguments: Any = (Catalog(), clock, LocalLauncher(made))
    pool = DriverPool(*arguments, warm=1, limit=3, server="srv_1", wake=lambda: None)
    try:
        busy, selecting = pool.assign("qry_1"), pool.assign("stm_1")
        assert busy is not None
        assert selecting is not None
        pool.maintain()
        eventually(lambda: len(list(tmp_path.glob("*.ready"))) == len(command.started), 20)
        pool.close(grace=0.5 if stubborn else 20)
        assert [p.poll() is not None for p in command.started] == [True] * len(command.started)
        # Only a query's batch is worth waiting for: the others are ended at once.
        assert [path.stem for path in tmp_path.glob("*.told")] == [busy]
        assert command.started[0].returncode == (-9 if stubborn else 0)
        assert not pool.ready()
    finally:
        for process in command.started:
            process.kill()
            process.wait()


class Slow:
    """A launcher whose drivers are all dead, and end only when they are let."""

    def __init__(self) -> None:
        self.gone: list[str] = []
        self.bounded: str | None = None
        self.ending, self.let = threading.Event(), threading.Event()

    for_one_query = False

    def start(self, driver_id: str, role: str, token: str, query_id: str | None = None) -> int:
        return 1

    def is_alive(self, driver_id: str, pid: int) -> bool:
        return bool(self.gone)

    def end(self, driver_id: str, pid: int, grace: float) -> None:
        self.ending.set()
        assert self.let.wait(20)
        self.gone.append(driver_id)

    def clear(self, driver_id: str) -> None:
        pass

    def end_strangers(self, known: Any) -> None:
        pass

    def bound_log(self, driver_id: str) -> None:
        self.bounded = driver_id


def test_others_are_heard_while_a_dead_driver_takes_long_to_go() -> None:
    launcher: Any = Slow()
    clock: Any = SimpleNamespace(now=lambda: datetime(2026, 1, 1, tzinfo=UTC))
    pool = DriverPool(Catalog(), clock, launcher, warm=0, limit=3, server="srv_1", wake=lambda: None)
    pool.maintain()
    analyzer = next(iter(pool._drivers))
    reaper = threading.Thread(target=pool.maintain, daemon=True)
    reaper.start()
    assert launcher.ending.wait(20)
    caller = threading.Thread(target=pool.report, args=(analyzer, "idle", 1), daemon=True)
    caller.start()
    caller.join(20)
    heard = not caller.is_alive()
    launcher.let.set()
    reaper.join(20)
    assert heard
    assert analyzer in launcher.gone
    assert len(pool._drivers) == 1, "another has its place"


class Living(Slow):
    """A launcher whose drivers live until they are ended, at once."""

    def __init__(self) -> None:
        super().__init__()
        self.let.set()

    def is_alive(self, driver_id: str, pid: int) -> bool:
        return driver_id not in self.gone


def waiting_pool(launcher: Any, **more: Any) -> DriverPool:
    clock: Any = SimpleNamespace(now=lambda: datetime(2026, 1, 1, tzinfo=UTC))
    options: Any = {"warm": 1, "limit": 9, "server": "srv_1", "wake": lambda: None, **more}
    return DriverPool(Catalog(), clock, launcher, **options)


def test_the_logs_of_drivers_that_run_are_looked_after() -> None:
    launcher = Living()
    pool = waiting_pool(launcher, warm=0)
    pool.maintain()
    assert launcher.bounded is None
    pool.maintain()
    assert launcher.bounded in pool._drivers


class OfOneQuery(Living):
    """A launcher whose drivers see the files of one query."""

    for_one_query = True

    def __init__(self) -> None:
        super().__init__()
        self.started_for: list[tuple[str, str | None]] = []

    def start(self, driver_id: str, role: str, token: str, query_id: str | None = None) -> int:
        self.started_for.append((role, query_id))
        return 1


def test_a_driver_of_one_query_serves_no_other() -> None:
    launcher = OfOneQuery()
    pool = waiting_pool(launcher, warm=0)
    first = pool.assign("qry_1")
    assert first is not None
    assert not pool.keep(first, "qry_1"), "its files are mounted once and for all"
    second = pool.assign("qry_2")
    assert second not in (None, first)
    assert launcher.started_for == [("dedicated", "qry_1"), ("dedicated", "qry_2")]
    pool.maintain()
    assert launcher.gone == []


def test_a_driver_of_before_that_sees_all_files_ends() -> None:
    launcher = OfOneQuery()
    launcher.for_one_query = False
    pool = waiting_pool(launcher)
    pool.maintain()
    pool.maintain()
    (warm,) = [d for d in pool._drivers.values() if d.row.role == "dedicated"]
    launcher.for_one_query = True
    assert pool.assign("qry_1") != warm.row.id
    pool.maintain()
    assert set(launcher.gone) == {warm.row.id}


def test_a_driver_serves_one_query_after_another() -> None:
    woken: list[int] = []
    pool = waiting_pool(Living(), wake=lambda: woken.append(1))
    driver = pool.assign("qry_1")
    assert driver is not None
    assert pool.runs(driver, "qry_1")
    assert pool.keep(driver, "qry_1")
    assert woken, "somebody may wait for a driver"
    assert not pool.runs(driver, "qry_1")
    assert pool.assigned(driver) is None
    assert pool.keep(driver, "qry_1"), "it has not heard the answer"
    assert pool.assign("qry_2") == driver
    assert pool.keep(driver, "qry_1")
    assert pool.runs(driver, "qry_2"), "what it repeats of the first does not touch the second"
    pool.let_go(driver, "qry_1")  # late: it has another one by now
    assert pool.runs(driver, "qry_2")
    pool.let_go(driver, "qry_2")
    assert not pool.is_alive(driver)


def test_as_many_wait_as_are_kept_warm_and_one_more() -> None:
    pool = waiting_pool(Living())
    queries = {f"qry_{i}": pool.assign(f"qry_{i}") or "" for i in range(4)}
    assert [pool.keep(driver, query) for query, driver in queries.items()] == [True, True, False, False]


def test_a_driver_ends_after_many_queries() -> None:
    pool = waiting_pool(Living())
    drivers = []
    while not drivers or drivers[-1] == drivers[0]:
        drivers.append(pool.assign("qry_1"))
        if not pool.keep(drivers[-1] or "", "qry_1"):
            pool.let_go(drivers[-1] or "", "qry_1")
    assert len(drivers) == 26, "it had 25"


def test_shared_drivers_and_those_of_a_pool_that_closes_are_not_kept() -> None:
    pool = waiting_pool(Living())
    shared = pool.assign("qry_1", Sharing(near=None))
    alone = pool.assign("qry_2")
    assert not pool.keep(shared or "", "qry_1")
    assert not pool.keep("drv_unknown", "qry_1")
    pool.close()
    assert not pool.keep(alone or "", "qry_2")


class Unreachable(Living):
    """A launcher whose drivers are on a node that does not answer."""

    def end(self, driver_id: str, pid: int, grace: float) -> None:
        raise EngineError("engine-unavailable", "the node does not answer")


def test_who_cannot_be_ended_with_its_server_is_told() -> None:
    """Another server may not take its query over until it has missed this one for long enough."""
    pool = waiting_pool(Unreachable())
    pool.assign("qry_1", Sharing(near=None))
    pool.assign("qry_2")
    assert pool.close() == {"qry_1", "qry_2"}
    other = waiting_pool(Living())
    other.assign("qry_1")
    assert other.close() == frozenset()


@pytest.mark.parametrize(("left", "makes_room"), [(1100, True), (900, False)])
def test_a_warm_driver_makes_room_for_a_shared_one_only_where_that_is_enough(
    left: int, makes_room: bool
) -> None:
    """It was ended at every pass, and started again, for as long as the query waited."""
    launcher, mb = Living(), 1 << 20
    pool = waiting_pool(launcher, heap=lambda role: (1536 if role == "shared" else 512) * mb)
    gone = launcher.gone
    pool._admission = Admission(
        9,
        lambda role: (1536 if role == "shared" else 512) * mb,
        available=lambda: (left + 896 * len(gone)) * mb,
        resident=lambda _: 896 * mb,
        at_once=9,
    )
    pool.maintain()
    pool._awaited = 0.0
    warm = next(d for d in pool._drivers.values() if d.row.role == "dedicated")
    pool.report(warm.row.id, "idle", 1)
    assert (pool.assign("qry_1", Sharing(near=None)) is not None) == makes_room
    assert (warm.row.id in launcher.gone) == makes_room
    assert makes_room or "memory for no other driver" in pool.why_none()


def test_what_was_started_and_never_written_down_is_ended(tmp_path: Path) -> None:
    """A server may be killed between the two, and its catalog be restored from a backup."""
    command = Sleepers(tmp_path)
    (tmp_path / "drv_stranger").mkdir()
    (tmp_path / "drv_stranger.token").write_text("t")
    environment = {**os.environ, DRIVER_MARK: "drv_stranger"}
    process = subprocess.Popen(SLEEP, start_new_session=True, env=environment)
    made: Any = command
    try:
        clock: Any = SimpleNamespace(now=lambda: datetime(2026, 1, 1, tzinfo=UTC))
        pool = DriverPool(
            Catalog(), clock, LocalLauncher(made), warm=0, limit=2, server="srv_1", wake=lambda: None
        )
        assert pool.adopt() == 0
        process.wait(20)  # else it would sleep for a minute
        assert list(tmp_path.iterdir()) == []
    finally:
        process.kill()
        process.wait()


def test_nobody_waits_for_the_pool_while_the_catalog_is_written() -> None:
    """A thread that writes to the catalog may need the pool before it is done."""
    let, writing = threading.Event(), threading.Event()

    class Busy(Catalog):
        def __call__(self, *, write: bool = True) -> AbstractContextManager[Any]:
            if keeping.is_alive():
                writing.set()
                assert let.wait(20)
            return super().__call__(write=write)

    pool = waiting_pool(Living())
    pool._processes._open_unit = Busy()
    keeping = threading.Thread(target=lambda: kept.append(pool.keep(driver or "", "qry_1")))
    kept: list[bool] = []
    driver = pool.assign("qry_1")
    keeping.start()
    assert writing.wait(20)
    others = threading.Thread(
        target=lambda: [pool.report(driver or "", "idle", 1), pool.let_go("drv_x", "q")]
    )
    others.start()
    others.join(10)
    assert not others.is_alive()
    assert pool.runs(driver or "", "qry_1"), "until the catalog knows"
    let.set()
    keeping.join(20)
    assert kept == [True]
    assert pool.assign("qry_2") == driver


def test_a_select_that_is_taken_back_twice_leaves_the_next_query_alone() -> None:
    """Two polls of one driver may be under way: one is repeated when its connection breaks."""
    gates = {name: threading.Event() for name in ("first", "second")}

    class Gated(Catalog):
        def __call__(self, *, write: bool = True) -> AbstractContextManager[Any]:
            gate = gates.get(threading.current_thread().name)
            assert gate is None or gate.wait(20)
            return super().__call__(write=write)

    pool = waiting_pool(Living(), warm=5)
    driver = pool.assign("stm_1") or ""
    pool._processes._open_unit = Gated()
    first, second = (
        threading.Thread(target=pool.release, args=(driver, "stm_1"), name=name, daemon=True)
        for name in gates
    )
    first.start()
    second.start()
    gates["first"].set()
    first.join(20)
    assert pool.assign("qry_2") == driver
    gates["second"].set()
    second.join(20)
    assert pool.runs(driver, "qry_2")
    assert pool.assign("qry_3") != driver
    pool.release(driver, "stm_1")
    assert pool.runs(driver, "qry_2")


def test_a_driver_that_could_not_be_taken_back_is_asked_again() -> None:
    pool = waiting_pool(Living(), warm=5)
    driver = pool.assign("stm_1") or ""
    pool._processes._open_unit = catalog = Catalog()
    catalog.away = True
    with pytest.raises(ConnectionError):
        pool.release(driver, "stm_1")
    catalog.away = False
    pool.release(driver, "stm_1")
    assert pool.assign("qry_2") == driver


def test_a_driver_that_leaves_its_query_is_no_stray_yet() -> None:
    pool = waiting_pool(Living())
    driver = pool.assign("qry_1") or ""
    pool._drivers[driver].given -= 60
    left: list[float] = []

    class Looked(Catalog):
        def __call__(self, *, write: bool = True) -> AbstractContextManager[Any]:
            left.extend(seconds for _, _, seconds in pool.assignments())
            return super().__call__(write=write)

    pool._processes._open_unit = Looked()
    assert pool.keep(driver, "qry_1")
    assert [seconds < 15 for seconds in left] == [True]


def test_nobody_waits_for_the_pool_while_a_cluster_is_asked_who_is_there() -> None:
    """Its answer may take many seconds; a thread that writes to the catalog may need the pool meanwhile."""
    asked, let = threading.Event(), threading.Event()

    class Cluster(Living):
        def is_alive(self, driver_id: str, pid: int) -> bool:
            if threading.current_thread().name == "asks":
                asked.set()
                assert let.wait(20)
            return super().is_alive(driver_id, pid)

    pool = waiting_pool(Cluster(), seats=1)
    alone, shared = pool.assign("qry_1") or "", pool.assign("qry_2", Sharing(near=None)) or ""
    pool.maintain()
    kept: list[bool] = []
    asks = threading.Thread(target=lambda: kept.append(pool.keep(alone, "qry_1")), name="asks", daemon=True)
    asks.start()
    assert asked.wait(20)
    others = threading.Thread(target=lambda: [pool.let_go(shared, "qry_2"), pool.report(shared, "idle", 1)])
    others.start()
    others.join(10)
    free = not others.is_alive()
    let.set()
    asks.join(20)
    assert free
    assert kept == [True]


CHANGES: dict[str, Callable[[DriverPool, str, str], Any]] = {
    "a driver for one query": lambda pool, alone, shared: pool.assign("qry_9"),
    "a new shared driver": lambda pool, alone, shared: pool.assign("qry_9", Sharing(near=None)),
    "a pass": lambda pool, alone, shared: pool.maintain(),
    "an end": lambda pool, alone, shared: pool.end(alone),
    "an end for want of work": lambda pool, alone, shared: pool.let_go(alone, "qry_1"),
    "the end of all": lambda pool, alone, shared: pool.close(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_who_writes_the_catalog_never_waits_for_a_change_of_drivers(change: str) -> None:
    """Else the change waits for the writer and the writer for the change, for ever."""
    turn, wanted = threading.Lock(), threading.Event()

    class OneWriter(Catalog):
        @contextmanager
        def _open(self) -> Iterator[Any]:
            if threading.current_thread() is changing:
                wanted.set()
            assert turn.acquire(timeout=20)
            try:
                with super()._open() as unit:
                    yield unit
            finally:
                turn.release()

    pool = waiting_pool(Living(), seats=1)
    alone = pool.assign("qry_1") or ""
    shared = pool.assign("qry_2", Sharing(near=None)) or ""
    changing = threading.Thread(target=CHANGES[change], args=(pool, alone, shared), daemon=True)
    pool._processes._open_unit = catalog = OneWriter()
    done = threading.Event()

    def write() -> None:
        with catalog():
            changing.start()
            assert wanted.wait(20)
            pool.let_go(shared, "qry_2")
            pool.report(shared, "idle", 1)
            done.set()

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    went_on = done.wait(5)
    writer.join(30)
    changing.join(30)
    assert went_on
    assert not changing.is_alive()
    assert pool.shares(shared) == []


def test_what_the_catalog_could_not_take_is_undone() -> None:
    launcher = Living()
    pool = waiting_pool(launcher)
    pool._processes._open_unit = catalog = Catalog()
    catalog.away = True
    for sharing in (None, Sharing(near=None)):
        with pytest.raises(ConnectionError):
            pool.assign("qry_1", sharing)
    assert len(launcher.gone) == 2, "what was started has ended"
    assert not pool._drivers
    catalog.away = False
    driver = pool.assign("qry_1") or ""
    assert pool.keep(driver, "qry_1")
    catalog.away = True
    with pytest.raises(ConnectionError):
        pool.assign("qry_2")
    catalog.away = False
    assert pool.assign("qry_3") == driver, "it waits for work as before"


def test_a_driver_that_has_ended_is_cleared_away_once_the_catalog_is_back() -> None:
    deleted: list[str] = []

    class Rows(Catalog):
        @contextmanager
        def _open(self) -> Iterator[Any]:
            with super()._open() as unit:
                unit.drivers.delete = deleted.append
                yield unit

    pool = waiting_pool(Living(), warm=0)
    pool._processes._open_unit = catalog = Rows()
    driver = pool.assign("qry_1") or ""
    catalog.away = True
    with pytest.raises(ConnectionError):
        pool.end(driver)
    assert not pool.is_alive(driver)
    catalog.away = False
    pool.maintain()
    assert deleted == [driver]


def test_a_driver_whose_end_is_wanted_while_it_leaves_its_query_gets_no_other() -> None:
    pool = waiting_pool(Living())
    driver = pool.assign("qry_1") or ""
    meanwhile: list[None] = []

    class Meanwhile(Catalog):
        def __call__(self, *, write: bool = True) -> AbstractContextManager[Any]:
            if not meanwhile:
                meanwhile.append(None)
                pool._drivers[driver].ends = True  # as let_go says before it ends the process
            return super().__call__(write=write)

    pool._processes._open_unit = Meanwhile()
    pool.keep(driver, "qry_1")
    assert meanwhile
    assert pool.assign("qry_2") != driver


def test_a_machine_starts_few_drivers_at_a_time() -> None:
    """A dozen JVMs at once take a dozen times as long each: better one query after another."""
    pool = waiting_pool(Living(), heap=lambda role: 1)
    started = max(2, os.cpu_count() or 1)
    first, *others = [pool.assign(f"qry_{i}") or "" for i in range(started)]
    assert all([first, *others])
    assert pool.assign("qry_more") is None
    assert pool.why_none() == f"{started} other drivers are starting"
    assert pool.serving(first) == 0.0, "the time a query's start may take has not begun"
    pool.report(first, "idle", 1)
    assert pool.assign("qry_more") is not None
    assert pool.assign("qry_even_more") is None
    assert pool.assign("stm_1") is not None, "nobody lets a SELECT wait: it would be refused"


def test_a_driver_that_hangs_while_it_starts_is_ended_with_its_query() -> None:
    launcher = Living()
    pool = waiting_pool(launcher)
    driver, warm = pool.assign("qry_1") or "", pool.assign("qry_2") or ""
    pool.report(warm, "idle", 1)
    for one in pool._drivers.values():
        one.heard -= 241
    pool.maintain()
    assert driver in launcher.gone
    assert warm not in launcher.gone, "its heartbeats tell of it, not its questions for work"


def test_of_a_driver_that_ended_is_known_whether_it_could_take_anything() -> None:
    """Also when it has been cleared away, and of one that was ended as it hung."""
    launcher = Living()
    pool = waiting_pool(launcher, warm=0)
    served, ended, hung = (pool.assign(f"qry_{i}") or "" for i in range(3))
    assert not any(map(pool.never_served, (served, ended, hung)))
    pool.report(served, "warming", 1)
    pool.report(served, "idle", 1)
    launcher.gone += [served, ended]
    assert (pool.never_served(served), pool.never_served(ended)) == (False, True)
    pool._drivers[hung].heard -= 241
    pool.maintain()
    assert not any(map(pool.is_alive, (served, ended, hung)))
    assert list(map(pool.never_served, (served, ended, hung))) == [False, True, True]
    assert not pool.never_served("drv_of_another_server")


def test_a_shared_driver_that_never_served_has_not_crashed_with_its_queries() -> None:
    launcher = Living()
    pool = waiting_pool(launcher, warm=0)
    cold = pool.assign("qry_1", Sharing(near=None)) or ""
    launcher.gone.append(cold)
    for _ in range(2):
        assert (pool.has_crashed(cold), pool.never_served(cold)) == (False, True)
        pool.maintain()
    busy = pool.assign("qry_2", Sharing(near=None)) or ""
    pool.report(busy, "idle", 1)
    launcher.gone.append(busy)
    for _ in range(2):
        assert (pool.has_crashed(busy), pool.never_served(busy)) == (True, False)
        pool.maintain()


def test_a_server_whose_drivers_all_have_queries_is_ready_and_only_not_warm() -> None:
    """It answers requests: who asks for a warm driver is told so, and nobody turns away from the server."""
    pool = waiting_pool(Living(), limit=1)
    pool.maintain()
    assert not pool.ready(), "statements cannot be checked yet"
    analyzer, spare = sorted(pool._drivers, key=lambda one: pool.role(one) or "")
    assert (pool.role(analyzer), pool.role(spare)) == ("analyzer", "dedicated")
    pool.report(analyzer, "idle", 1)
    assert (pool.ready(), pool.warm()) == (True, False)
    pool.report(spare, "idle", 2)
    assert (pool.ready(), pool.warm()) == (True, True)
    assert pool.assign("qry_1") == spare
    pool.maintain()
    assert (pool.ready(), pool.warm()) == (True, False)
    pool.close()
    assert not pool.ready()


def test_where_no_driver_is_kept_warm_none_is_missed() -> None:
    pool = waiting_pool(Living(), warm=0)
    assert (pool.ready(), pool.warm()) == (False, True)

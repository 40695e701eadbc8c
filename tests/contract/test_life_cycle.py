"""The life of queries as a state machine: users, drivers that die or come late, an API that is killed anywhere.

Real services and a real catalog; a crash ends the API before or after any of its effects, and a new one takes
over. Whatever happens, no two drivers work for one query, and in the end all is as users want it.
"""

from __future__ import annotations

import contextlib
import importlib.util
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from leatstream.connectors.base import Entity
from leatstream.errors import CatalogError, EngineError, InternalError, StoreError
from leatstream.model.objects import DesiredState, QueryState
from leatstream.model.query_states import TRANSITIONS, WITH_DRIVER, is_legal
from leatstream.services import drivers, queries
from leatstream.services.environment import Context, Environment, Principal
from leatstream.services.query_definition import QueryDefinition
from leatstream.services.query_notes import keep_query
from leatstream.services.query_removal import delete_query
from leatstream.services.query_restart import StartWish, restart_query
from leatstream.services.reconciler import reconcile, release_strays
from leatstream.services.statements import execute

ANN = Principal("ann", "sysadmin")
NAMES = ("q1", "q2")
LIMIT = 3
STATEMENTS = ("SELECT * FROM a", "SELECT * FROM a WHERE n > 1", "SELECT * FROM a WHERE n > 2")


def _fakes() -> Any:
    name = "leatstream_contract_fakes"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name("fakes.py"))
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


class Crash(BaseException):
    """The API is killed here; nothing in the product catches it."""


@dataclass
class Fuse:
    """Kills the API at the nth effect, before or after it has happened."""

    left: int | None = None
    after: bool = False

    def through(self, effect: Callable[[], Any]) -> Any:
        if self.left is None:
            return effect()
        self.left -= 1
        if self.left > 0:
            return effect()
        self.left = None
        if self.after:
            effect()
        raise Crash


@dataclass
class Process:
    """A driver: what it was given in the pool, and the attempt that it works for."""

    query_id: str | None = None
    spec: Any = None
    working: bool = False
    alive: bool = True
    given: datetime | None = None


class HandClock:
    """Time that goes on when told to."""

    def __init__(self) -> None:
        self.time = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time


@dataclass
class Processes:
    """The pool's port over processes in memory, which outlive the API."""

    fuse: Fuse
    clock: HandClock
    all: dict[str, Process] = field(default_factory=dict)
    made: int = 0
    is_ready: bool = True

    def maintain(self) -> None:
        """Clear the dead away; start new ones up to the limit."""
        self.all = {name: p for name, p in self.all.items() if p.alive}
        while len(self.all) < LIMIT:
            self.made += 1
            self.all[f"d{self.made}"] = Process()

    def report(self, driver_id: str, state: str, pid: int) -> None:
        """Nothing is kept."""

    def role(self, driver_id: str) -> str | None:
        return "dedicated" if driver_id in self.all else None

    def assigned(self, driver_id: str) -> str | None:
        process = self.all.get(driver_id)
        return process.query_id if process else None

    def assign(self, query_id: str) -> str | None:
        def give() -> str | None:
            for name, process in self.all.items():
                if process.alive and process.query_id is None:
                    process.query_id, process.given = query_id, self.clock.now()
                    return name
            return None

        found: str | None = self.fuse.through(give)
        return found

    def assignments(self) -> list[tuple[str, str, float]]:
        found = []
        for name, process in self.all.items():
            if process.alive and process.query_id is not None and process.given is not None:
                age = (self.clock.now() - process.given).total_seconds()
                found.append((name, process.query_id, age))
        return found

    def process_id(self, driver_id: str) -> int | None:
        return 4242 if driver_id in self.all else None

    def is_alive(self, driver_id: str) -> bool:
        return driver_id in self.all and self.all[driver_id].alive

    def end(self, driver_id: str, *, grace: float = 0.0) -> None:
        def kill() -> None:
            if driver_id in self.all:
                self.all[driver_id].alive = self.all[driver_id].working = False

        self.fuse.through(kill)


SET_UP = """CREATE STORE k WITH ('type'=KAFKA, 'uris'='b:1', 'tls.disabled'=TRUE); CREATE DATABASE d; USE DATABASE d;
CREATE STREAM a (n BIGINT) WITH ('topic'='a', 'store'='k', 'value.format'='json');"""
CONTEXT = Context(database="d", store="k")
ENDS = (QueryState.RUNNING, QueryState.FAILED, QueryState.COMPLETED)
FAULTS = {
    "cured": {"code": "job-failed", "detail": "x", "retryable": True},
    "for good": {"code": "undecodable-record", "detail": "x", "retryable": False},
}


class Life(RuleBasedStateMachine):
    """One catalog, some drivers, and everything that can happen to them."""

    @initialize()
    def begin(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="leat-life-"))
        self.world = _fakes().make_world(self.directory)
        self.world.cluster.entities["a"] = Entity("a", {"topic.partitions": 1, "topic.replicas": 1})
        self.fuse = Fuse()
        self.clock = HandClock()
        self.processes = Processes(self.fuse, self.clock)
        self.late: list[tuple[str, dict[str, Any]]] = []
        self.ids: set[str] = set()
        self.env = self._open()
        execute(self.env, ANN, SET_UP, Context())
        self.processes.maintain()
        for name in NAMES:
            self.put(name, STATEMENTS[0], DesiredState.RUNNING)

    def teardown(self) -> None:
        if not hasattr(self, "env"):
            return
        try:
            self._settle()
        finally:
            self.world.units.close()
            shutil.rmtree(self.directory)

    # What users do

    @rule(name=st.sampled_from(NAMES), sql=st.sampled_from(STATEMENTS), desired=st.sampled_from(DesiredState))
    def put(self, name: str, sql: str, desired: DesiredState) -> None:
        body = QueryDefinition(f"CREATE STREAM s_{name} AS {sql}", CONTEXT, desired)
        self._user(lambda: queries.put_query(self.env, ANN, name, body))

    @rule(name=st.sampled_from(NAMES), desired=st.sampled_from(DesiredState))
    def wish(self, name: str, desired: DesiredState) -> None:
        self._user(lambda: queries.patch_query(self.env, ANN, name, {"desired_state": desired}))

    @rule(name=st.sampled_from(NAMES), place=st.sampled_from((None, "earliest")))
    def restart(self, name: str, place: str | None) -> None:
        wish = StartWish(place) if place is not None else None
        self._user(lambda: restart_query(self.env, ANN, name, wish))

    @rule(name=st.sampled_from(NAMES), entity=st.booleans())
    def delete(self, name: str, entity: bool) -> None:
        self._user(lambda: delete_query(self.env, ANN, name, entity))

    # What the API does, and how it ends

    @rule()
    def look(self) -> None:
        self._pass()

    @rule()
    def go_on(self) -> None:
        """A second in which nothing goes wrong."""
        self._second(1.0)

    @rule(effect=st.integers(1, 6), after=st.booleans())
    def crash(self, effect: int, after: bool) -> None:
        """A pass that does not come to its end, if it has so many effects."""
        self.fuse.left, self.fuse.after = effect, after
        try:
            self._pass()
        except Crash:
            self.env = self._open()
        self.fuse.left = None
        for driver in sorted(self.processes.all):
            self._poll(driver)

    @rule(name=st.sampled_from(NAMES), what=st.sampled_from(("beat", "fail", "restart", "delete")))
    def look_late(self, name: str, what: str) -> None:
        """A pass that acts on what it has read before something else happened."""
        read = self._queries()
        if what in ("beat", "fail"):
            for driver in sorted(self.processes.all):
                self._poll(driver)
                self._beat(driver) if what == "beat" else self._report(
                    driver, "failed", error=FAULTS["cured"]
                )
        else:
            self.restart(name, place="earliest") if what == "restart" else self.delete(name, entity=False)
        for query in read:
            reconcile(self.env, query)

    @rule(seconds=st.sampled_from((0.5, 5, 25, 200)))
    def wait(self, seconds: float) -> None:
        self.clock.time += timedelta(seconds=seconds)

    @rule(up=st.booleans())
    def store(self, up: bool) -> None:
        self.world.cluster.up = up

    # What drivers do

    @rule()
    def refill(self) -> None:
        self.processes.maintain()

    @rule(number=st.integers(0, LIMIT - 1))
    def poll(self, number: int) -> None:
        self._poll(sorted(self.processes.all)[number % len(self.processes.all)])

    @rule(number=st.integers(0, LIMIT - 1))
    def kill(self, number: int) -> None:
        process = self.processes.all[self._driver(number)]
        process.alive = process.working = False

    @rule(number=st.integers(0, LIMIT - 1))
    def beat(self, number: int) -> None:
        self._beat(self._driver(number))

    @rule(number=st.integers(0, LIMIT - 1))
    def complete(self, number: int) -> None:
        self._report(self._driver(number), "completed")

    @rule(number=st.integers(0, LIMIT - 1), fault=st.sampled_from(sorted(FAULTS)))
    def fail(self, number: int, fault: str) -> None:
        self._report(self._driver(number), "failed", error=FAULTS[fault])

    @precondition(lambda self: self.late)
    @rule(number=st.integers(0, 1 << 16), state=st.sampled_from(("running", "stopped", "failed")))
    def late_report(self, number: int, state: str) -> None:
        """A report of an attempt that is over, from a driver that was slow, not dead."""
        driver, report = self.late[number % len(self.late)]
        query = self._find(report["query_id"])
        if (
            query is not None
            and query.status.attempt == report["attempt"]
            and query.status.driver_id == driver
        ):
            return  # not over yet
        with pytest.raises(EngineError):
            drivers.heartbeat(self.env, driver, {**report, "state": state})

    # What must always hold

    @invariant()
    def at_most_one_driver_works_for_a_query(self) -> None:
        if not hasattr(self, "env"):
            return
        working = [p.spec["query_id"] for p in self.processes.all.values() if p.working]
        assert len(working) == len(set(working)), working

    @invariant()
    def a_driver_is_held_in_the_states_that_have_one(self) -> None:
        if not hasattr(self, "env"):
            return
        for query in self._queries():
            self.ids.add(query.meta.id)
            assert (query.status.driver_id is not None) == (query.status.state in WITH_DRIVER)

    def _open(self) -> Environment:
        """An API process; the one before is gone with all it had in memory."""
        units, fuse = self.world.units, self.fuse

        @contextlib.contextmanager
        def open_unit(*, write: bool = True) -> Iterator[Any]:
            with units(write=write) as unit:
                commit = unit.commit
                unit.commit = lambda: fuse.through(commit)
                yield unit

        now = self.clock.now()
        return replace(
            self.world.env, open_unit=open_unit, drivers=self.processes, clock=self.clock, listening_since=now
        )

    def _user(self, act: Callable[[], Any]) -> None:
        """A user's wish; what is refused by its state is refused in words."""
        with contextlib.suppress(CatalogError, StoreError):
            act()

    def _pass(self) -> None:
        release_strays(self.env)
        for query in self._queries():
            reconcile(self.env, query)

    def _queries(self) -> list[Any]:
        with self.world.units(write=False) as unit:
            return list(unit.queries.page(limit=100))

    def _find(self, query_id: str) -> Any:
        with self.world.units(write=False) as unit:
            return unit.queries.find_by_id(query_id)

    def _driver(self, number: int) -> str:
        """One of the drivers, rather one that works."""
        found = sorted(self.processes.all, key=lambda name: (not self.processes.all[name].working, name))
        return found[number % len(found)]

    def _poll(self, driver: str) -> None:
        process = self.processes.all[driver]
        if not process.alive or process.spec is not None:
            return
        work = drivers.poll(self.env, driver, {"state": "idle"})
        if work is not None and work["kind"] == "run":
            process.spec, process.working = work["spec"], True
            Path(work["spec"]["checkpoint"]).mkdir(parents=True, exist_ok=True)
        elif work is not None:
            process.alive = False

    def _beat(self, driver: str) -> None:
        """A heartbeat, and obedience: what is told to stop stops, and says so."""
        if self._report(driver, "running") == "stop":
            self._report(driver, "stopped")

    def _report(self, driver: str, state: str, **more: Any) -> str | None:
        process = self.processes.all[driver]
        if not process.working:
            return None
        known = {name: process.spec[name] for name in ("query_id", "attempt", "fencing_token")}
        if state != "running":
            process.alive = process.working = False  # nothing is written after the last report
        self.late.append((driver, known))
        try:
            return drivers.heartbeat(self.env, driver, {**known, "state": state, **more})["directive"]
        except EngineError:
            process.alive = process.working = False
            return None

    def _second(self, seconds: float) -> None:
        self.clock.time += timedelta(seconds=seconds)
        for driver in sorted(self.processes.all):
            self._beat(driver)
        self._pass()
        self.processes.maintain()
        for driver in sorted(self.processes.all):
            self._poll(driver)
            self._beat(driver)

    def _settle(self) -> None:
        """Nothing is in the way any more: within some rounds all is as it is wanted."""
        self.fuse.left, self.world.cluster.up = None, True
        for _ in range(12):
            self._second(20.0)
        running = set()
        for query in self._queries():
            state, wanted = query.status.state, query.desired_state
            assert not query.deleting, query.name
            if wanted is DesiredState.STOPPED:
                assert state is QueryState.STOPPED, (query.name, state)
            else:
                assert state in ENDS, (query.name, state)
            if state is QueryState.RUNNING:
                assert query.status.observed_generation == query.meta.generation
                running.add(query.meta.id)
        assert {p.spec["query_id"] for p in self.processes.all.values() if p.working} == running
        self._nothing_is_left_of({*self.ids} - {q.meta.id for q in self._queries()})

    def _nothing_is_left_of(self, gone: set[str]) -> None:
        with self.world.units(write=False) as unit:
            sinks = {r.created_by_query for r in unit.relations.page(limit=100)}
            for query_id in gone:
                assert unit.query_log.events(query_id, 1) == []
                assert query_id not in sinks
                assert not (self.directory / "checkpoints" / "queries" / query_id).exists()


Life.TestCase.settings = settings(
    max_examples=40,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
TestLife = Life.TestCase


def test_a_status_that_the_table_does_not_have_is_not_kept(fresh: Any) -> None:
    fresh.cluster.entities["a"] = Entity("a", {"topic.partitions": 1, "topic.replicas": 1})
    execute(fresh.env, ANN, SET_UP, Context())
    body = QueryDefinition("CREATE STREAM b AS SELECT * FROM a", CONTEXT)
    query = queries.create_query(fresh.env, ANN, "q", body).item
    for state, driver in ((QueryState.RUNNING, "d1"), (QueryState.STARTING, None)):
        changed = replace(query, status=replace(query.status, state=state, driver_id=driver))
        with fresh.env.open_unit() as unit, pytest.raises(InternalError):
            keep_query(unit, query, changed, fresh.env.clock.now())
    assert queries.get_query(fresh.env, ANN, "q").status.state is QueryState.PENDING


def test_the_table_leads_from_every_state_to_every_other() -> None:
    for start in QueryState:
        reached, edge = {start}, [start]
        while edge:
            before = edge.pop()
            more = {t.after for t in TRANSITIONS if t.before is before} - reached
            reached |= more
            edge += more
        assert reached == set(QueryState), start
    assert len({(t.before, t.after) for t in TRANSITIONS}) == len(TRANSITIONS)
    assert not is_legal(QueryState.STOPPED, QueryState.RUNNING)

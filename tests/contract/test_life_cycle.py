"""The life of queries as a state machine: users, drivers that die or come late, an API that is killed anywhere.

Real services and a real catalog; a crash ends the API before or after any of its effects, and a new one takes
over. Whatever happens, no two drivers work for one query, and in the end all is as users want it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import fakes
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from scratch import memory_directory

from leatstream.connectors.entities import Entity
from leatstream.errors import CatalogError, EngineError, InternalError, StoreError
from leatstream.model.objects import DesiredState, QueryState
from leatstream.model.query_states import TRANSITIONS, WITH_DRIVER, is_legal
from leatstream.ports import Sharing
from leatstream.services import driver_calls as drivers
from leatstream.services.environment import Context, Environment, Principal
from leatstream.services.queries import catalog as queries
from leatstream.services.queries.definition import QueryDefinition
from leatstream.services.queries.reconcile.reconciler import reconcile, release_strays
from leatstream.services.queries.removal import delete_query
from leatstream.services.queries.replace.blue_green import replace_beside, rollback
from leatstream.services.queries.replace.catch_up import take_over
from leatstream.services.queries.restart import StartWish, restart_query
from leatstream.services.queries.save import keep_query
from leatstream.services.queries.shared_drivers import note_crashes
from leatstream.services.statements.execution import execute

ANN = Principal("ann", "sysadmin")
NAMES = ("q1", "q2")
LIMIT = 5
STATEMENTS = ("SELECT * FROM a", "SELECT * FROM a WHERE n > 1", "SELECT * FROM a WHERE n > 2")


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

    def note_use(self, driver_id: str, use: Any) -> None:
        """Nothing is kept."""

    def role(self, driver_id: str) -> str | None:
        return "dedicated" if driver_id in self.all else None

    def assigned(self, driver_id: str) -> str | None:
        process = self.all.get(driver_id)
        return process.query_id if process else None

    def shares(self, driver_id: str) -> list[str]:
        return []

    def assign(self, query_id: str, sharing: Sharing | None = None) -> str | None:
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

    def serving(self, driver_id: str) -> float:
        return 3600.0

    def process_id(self, driver_id: str) -> int | None:
        return 4242 if driver_id in self.all else None

    def why_none(self) -> str:
        return "the limit of drivers is reached"

    def is_alive(self, driver_id: str) -> bool:
        return driver_id in self.all and self.all[driver_id].alive

    def runs(self, driver_id: str, query_id: str) -> bool:
        return self.is_alive(driver_id)

    def has_crashed(self, driver_id: str) -> bool:
        return driver_id in self.all and not self.all[driver_id].alive

    def never_served(self, driver_id: str) -> bool:
        return False

    def let_go(self, driver_id: str, query_id: str) -> None:
        self.end(driver_id)

    def end(self, driver_id: str, *, grace: float = 0.0) -> None:
        def kill() -> None:
            if driver_id in self.all:
                self.all[driver_id].alive = self.all[driver_id].working = False

        self.fuse.through(kill)


@dataclass
class SharedProcesses(Processes):
    """Two drivers that queries share. ``all`` has the drivers and, as ``driver/number``, what they work on."""

    seats: dict[str, dict[str, datetime]] = field(default_factory=dict)
    crashed: set[str] = field(default_factory=set)

    def maintain(self) -> None:
        self.all = {name: p for name, p in self.all.items() if p.alive}
        self.seats = {name: seats for name, seats in self.seats.items() if name in self.all}
        while len(self.seats) < 2:
            self.made += 1
            self.all[f"s{self.made}"], self.seats[f"s{self.made}"] = Process(), {}

    def role(self, driver_id: str) -> str | None:
        return "shared" if driver_id in self.seats else None

    def shares(self, driver_id: str) -> list[str]:
        return list(self.seats.get(driver_id, {}))

    def runs(self, driver_id: str, query_id: str) -> bool:
        return self.is_alive(driver_id) and query_id in self.seats[driver_id]

    def has_crashed(self, driver_id: str) -> bool:
        return driver_id in self.crashed

    def assign(self, query_id: str, sharing: Sharing | None = None) -> str | None:
        def give() -> str | None:
            living = [name for name in self.seats if self.all[name].alive]
            for name in living[: 1 if sharing is not None else None]:
                self.seats[name][query_id] = self.clock.now()
                return name
            return None

        found: str | None = self.fuse.through(give)
        return found

    def assignments(self) -> list[tuple[str, str, float]]:
        now = self.clock.now()
        return [(d, q, (now - at).total_seconds()) for d, s in self.seats.items() for q, at in s.items()]

    def let_go(self, driver_id: str, query_id: str) -> None:
        self.fuse.through(lambda: self.seats.get(driver_id, {}).pop(query_id, None))

    def end(self, driver_id: str, *, grace: float = 0.0) -> None:
        self.fuse.through(lambda: self.kill(driver_id))

    def kill(self, driver_id: str) -> None:
        """The process goes, with all it works on."""
        for name, process in self.all.items():
            if name.split("/")[0] == driver_id:
                process.alive = process.working = False


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

    suffix = ""

    @initialize()
    def begin(self) -> None:
        self.scratch = memory_directory()
        self.directory = Path(self.scratch.name)
        self.world = fakes.make_world(self.directory)
        self.world.cluster.entities["a"] = Entity("a", {"topic.partitions": 1, "topic.replicas": 1})
        self.fuse = Fuse()
        self.clock = HandClock()
        self.processes = self._processes()
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
            self.scratch.cleanup()

    # What users do

    @rule(name=st.sampled_from(NAMES), sql=st.sampled_from(STATEMENTS), desired=st.sampled_from(DesiredState))
    def put(self, name: str, sql: str, desired: DesiredState) -> None:
        body = QueryDefinition(f"CREATE STREAM s_{name} AS {sql}{self.suffix}", CONTEXT, desired)
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
        self._kill(self._driver(number))

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

    def _processes(self) -> Processes:
        return Processes(self.fuse, self.clock)

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
        note_crashes(self.env, self._queries())
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

    def _kill(self, driver: str) -> None:
        process = self.processes.all[driver]
        process.alive = process.working = False

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
        driver = driver.split("/")[0]
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

VIEW = "CREATE MATERIALIZED VIEW v AS {}"
PARTS = ("v", "v__green", "v__blue")
READ = {"relation": "d.public.a", "entity": "a", "end_offsets": {"0": 1}, "lag": 0}


class Swaps(Life):
    """The same with a materialized view whose query is replaced by one beside it, and back."""

    view, statements = VIEW, STATEMENTS

    @initialize()
    def begin(self) -> None:
        super().begin()
        body = QueryDefinition(self.view.format(self.statements[0]), CONTEXT)
        queries.create_query(self.env, ANN, "v", body)
        self.replace_beside(1)

    @rule(number=st.integers(0, 2))
    def replace_beside(self, number: int) -> None:
        body = QueryDefinition(self.view.format(self.statements[number]), CONTEXT)
        self._user(lambda: replace_beside(self.env, ANN, "v", body))

    @rule()
    def rollback(self) -> None:
        self._user(lambda: rollback(self.env, ANN, "v"))

    @rule(name=st.sampled_from(PARTS), desired=st.sampled_from(DesiredState))
    def wish_of_a_part(self, name: str, desired: DesiredState) -> None:
        self.wish(name, desired)

    @rule(name=st.sampled_from(PARTS))
    def delete_a_part(self, name: str) -> None:
        self.delete(name, entity=False)

    @rule()
    def make_it_anew(self) -> None:
        body = QueryDefinition(self.view.format(self.statements[0]), CONTEXT)
        self._user(lambda: queries.create_query(self.env, ANN, "v", body))

    @rule()
    def a_day(self) -> None:
        self.clock.time += timedelta(days=2)

    @rule(what=st.sampled_from(("rollback", "delete", "swap")))
    def take_over_late(self, what: str) -> None:
        """A pass that acts on what it has read before something else happened."""
        read = self._queries()
        if what == "rollback":
            self.rollback()
        elif what == "delete":
            self.delete("v__green", entity=False)
        else:
            take_over(self.env, read)
        take_over(self.env, read)

    @invariant()
    def the_view_shows_the_rows_of_the_query_that_has_its_name(self) -> None:
        if not hasattr(self, "env"):
            return
        with self.world.units(write=False) as unit:
            relation, lead = unit.relations.find("d.public.v"), unit.queries.find("v")
        assert (relation.created_by_query if relation else None) == (lead.meta.id if lead else None)

    def _pass(self) -> None:
        super()._pass()
        take_over(self.env, self._queries())

    def _report(self, driver: str, state: str, **more: Any) -> str | None:
        spec = self.processes.all[driver].spec
        told = {"progress": {"sources": [READ]}} if spec is not None and spec["sink"]["view"] else {}
        return super()._report(driver, state, **told, **more)

    def _settle(self) -> None:
        super()._settle()
        known = {query.name: query for query in self._queries()}
        lead, green = known.get("v"), known.get("v__green")
        waits = green is not None and green.is_silent and lead.status.state is not QueryState.RUNNING
        assert green is None or waits or green.status.state is not QueryState.RUNNING, "it has not taken over"
        # All of them go together.
        self._user(lambda: delete_query(self.env, ANN, "v"))
        super()._settle()
        assert not {query.name for query in self._queries()} & ({"v"} if "v" in known else set())


Swaps.TestCase.settings = settings(Life.TestCase.settings, max_examples=12)
TestSwaps = Swaps.TestCase


DISTINCT = "CREATE STREAM v AS SELECT DISTINCT n FROM a WITH ('starting.position'='earliest'){}"
FILTERS = ("", " WHERE n > 1", " WHERE n > 2")


class HandsOver(Swaps):
    """The same with a stream: of all records each is written by one version, in whatever moment the API dies.

    A job works one batch off between two words to the API, and what it has committed stays with its checkpoint.
    """

    view, statements = DISTINCT, FILTERS

    @initialize()
    def begin(self) -> None:
        self.records = self.written = 0
        self.committed: dict[str, tuple[int, int]] = {}
        super().begin()

    @rule()
    def make_it_anew(self) -> None:
        before = {query.name for query in self._queries()}
        super().make_it_anew()
        if "v" not in before:
            self.written = 0  # another query has begun with the first record

    @rule(count=st.integers(1, 5))
    def send(self, count: int) -> None:
        self.records += count

    @rule(seconds=st.sampled_from((1.0, 5.0)))
    def go_on_for_a_while(self, seconds: float) -> None:
        for _ in range(6):
            self.records += 1
            self._second(seconds)

    def lead(self) -> Any:
        with self.world.units(write=False) as unit:
            return unit.queries.find("v")

    def kill_the_driver_of(self, name: str) -> None:
        for driver in [q.status.driver_id for q in self._queries() if q.name == name]:
            if driver in self.processes.all:
                self._kill(driver)

    def second_in_which_the_api_dies(self, effect: int | None, *, after: bool) -> None:
        """Within a pass, after so many of its effects; None: it does not."""
        self.records += 1
        self.clock.time += timedelta(seconds=5)
        for driver in sorted(self.processes.all):
            self._beat(driver)
        self._pass() if effect is None else self.crash(effect, after)
        self.processes.maintain()
        for driver in sorted(self.processes.all):
            self._poll(driver)

    def _report(self, driver: str, state: str, **more: Any) -> str | None:
        spec, working = self.processes.all[driver].spec, self.processes.all[driver].working
        if not working or spec["sink"]["relation"] != "d.public.v":
            return Life._report(self, driver, state, **more)
        if state == "running":
            self._batch(spec)
        batch, end = self.committed.get(spec["checkpoint"], (-1, 0))
        if batch >= 0:
            more["progress"] = {"sources": [{**READ, "end_offsets": {"0": end}}]}
            if state != "running":
                told = {"checkpoint": "g1", "batch": batch, "offsets": [{"a": {"0": end}}]}
                more["reached"] = told | {"whole": state == "stopped"}
        return Life._report(self, driver, state, **more)

    def _batch(self, spec: dict[str, Any]) -> None:
        batch, start = self.committed.get(spec["checkpoint"], (-1, 0))
        end, silent, place = self.records, spec["silent"], spec["hand_over"]
        if place is not None and batch < place["batch"]:
            assert (batch, place["checkpoint"]) == (place["batch"] - 1, "g1")
            end, silent = place["offsets"][0]["a"]["0"], True
        assert end >= start, "it has read records that the version before had not"
        if not silent:
            assert start == self.written, "another version has written them, or none"
            self.written = end
        self.committed[spec["checkpoint"]] = (batch + 1, end)

    def _settle(self) -> None:
        self.records += 1
        super()._settle()


@pytest.mark.parametrize(("effect", "after"), [(1, True), (2, False)])
def test_a_hand_over_outlives_a_death_at_every_step(effect: int, after: bool) -> None:
    """Every other pass of the API ends within a step, and in each hand-over a driver dies a step later."""
    life = HandsOver()
    life.begin()
    life.wish("q1", DesiredState.STOPPED)
    life.wish("q2", DesiredState.STOPPED)
    for step in range(6):
        for victim in ("v", "v__green"):
            before, seconds = life.lead().meta.id, 0
            if before not in {query.beside for query in life._queries()}:
                life.replace_beside(1)
            while life.lead().meta.id == before or life.lead().status.state is not QueryState.RUNNING:
                if seconds == step:
                    life.kill_the_driver_of(victim)
                dies = (seconds + step) % 2 == 0
                life.second_in_which_the_api_dies(effect if dies else None, after=after)
                seconds += 1
                assert seconds < 60, [(q.name, q.status.state, q.status.message) for q in life._queries()]
            life.rollback()
    life.teardown()


HandsOver.TestCase.settings = settings(Life.TestCase.settings, max_examples=6)
TestHandsOver = HandsOver.TestCase


class SharedLife(Life):
    """The same where both queries share drivers, which die with all they have."""

    suffix = " QUERY WITH ('query.driver'='shared')"
    processes: SharedProcesses

    def _processes(self) -> Processes:
        return SharedProcesses(self.fuse, self.clock)

    def _kill(self, driver: str) -> None:
        self.processes.crashed.add(driver.split("/")[0])
        self.processes.kill(driver.split("/")[0])

    def _poll(self, driver: str) -> None:
        """Whatever is new for the driver, and what is over goes."""
        processes = self.processes
        for name in [n for n, p in processes.all.items() if "/" in n and not p.working]:
            del processes.all[name]
        if driver not in processes.seats or not processes.all[driver].alive:
            return
        own = [p for n, p in processes.all.items() if n.startswith(f"{driver}/")]
        running = {p.spec["query_id"]: p.spec["attempt"] for p in own}
        work = drivers.poll(self.env, driver, {"state": "idle", "running": running})
        if work is not None and work["spec"]["query_id"] in running:
            # An attempt waits for the one before it, which hears here that it is over.
            for name in [n for n, p in processes.all.items() if p.spec == self._spec_of(own, work)]:
                self._beat(name)
        elif work is not None:
            processes.made += 1
            processes.all[f"{driver}/{processes.made}"] = Process(spec=work["spec"], working=True)
            Path(work["spec"]["checkpoint"]).mkdir(parents=True, exist_ok=True)

    def _spec_of(self, own: list[Process], work: dict[str, Any]) -> Any:
        return next(p.spec for p in own if p.spec["query_id"] == work["spec"]["query_id"])

    def _second(self, seconds: float) -> None:
        super()._second(seconds)
        for driver in sorted(self.processes.all):
            self._poll(driver)
        for driver in sorted(self.processes.all):
            self._beat(driver)


SharedLife.TestCase.settings = settings(Life.TestCase.settings, max_examples=10, stateful_step_count=25)
TestSharedLife = SharedLife.TestCase


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

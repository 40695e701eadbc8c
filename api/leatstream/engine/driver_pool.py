"""A pool of drivers: one analyzer, some warm, one per query or shared. A launcher knows where they run."""

from __future__ import annotations

import hmac
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from leatstream.engine.admission import Admission
from leatstream.engine.driver_notes import DriverNotes
from leatstream.engine.driver_processes import DriverProcesses
from leatstream.engine.ended_drivers import End, EndedDrivers, end_of
from leatstream.engine.pooled_driver import PooledDriver, State
from leatstream.errors import EngineError
from leatstream.ports import Clock, Launcher, OpenUnit, Sharing
from leatstream.services.environment.authorization import hash_token
from leatstream.services.selects.interactive import is_selection

_log = logging.getLogger(__name__)
_REFILL_DELAY = 3.0
_LOOK = 0.05
_EMPTY = 60.0  # seconds after which a shared driver without queries ends
_QUERIES_IN_TURN = 25  # of one driver: what they leave in its JVM stays bounded


class DriverPool:
    """Driver processes (``ports.Drivers``). ``maintain`` must be called now and then.

    Code that holds the catalog's write lock may call the pool. So ``_lock`` guards only
    what is in memory and nothing is waited for with it; ``_changing`` is for those who start or end drivers
    and write that down, and is never wanted by ``report``, ``keep`` or a shared driver's ``let_go``.

    Args:
        open_unit: units of work; drivers are remembered in the catalog, so that a restarted API adopts them.
        clock: the time.
        launcher: starts and ends them.
        warm: how many idle drivers to keep ready.
        limit: most drivers for queries at a time.
        heap: bytes that the heap of a driver of a role may have; None where drivers run elsewhere.
        seats: most queries of a shared driver.
        server: id of this server; drivers of others are left alone.
        wake: called when a driver may have new work.
    """

    def __init__(
        self,
        open_unit: OpenUnit,
        clock: Clock,
        launcher: Launcher,
        *,
        warm: int,
        limit: int,
        server: str,
        wake: Callable[[], None],
        heap: Callable[[str], int] | None = None,
        seats: int = 50,
    ) -> None:
        self._processes = DriverProcesses(open_unit, clock, launcher, server)
        self._notes = DriverNotes(open_unit, clock, launcher)
        self._warm = warm
        self._admission = Admission(limit, heap)
        self._seats = seats
        self._why = ""
        self._ended = EndedDrivers()
        self._wake = wake
        self._lock = threading.Lock()
        self._changing = threading.RLock()
        self._drivers: dict[str, PooledDriver] = {}
        self._closed = False
        self._awaited = 0.0  # when a driver was ended last to make room for a shared one

    def adopt(self) -> int:
        """Take back the drivers that outlived the last API process, and end all others. How many."""
        self._drivers = {driver.row.id: driver for driver in self._processes.left_over()}
        for driver in self._drivers.values():
            driver.warmed = driver.heard  # its progress is unknown; a time-out then counts from now
        for driver in list(self._drivers.values()):
            if not self._processes.alive(driver):
                self._forget(driver)
        self._processes.end_strangers(set(self._drivers))
        return len(self._drivers)

    def maintain(self) -> None:
        """Reap the dead, keep one analyzer and the warm ones; one start at a time, as starting costs CPU."""
        # All are looked at before the first is ended: that may take long, and they can be heard meanwhile.
        for driver in self._unwanted():
            self._try_forget(driver)
        for driver in list(self._drivers.values()):
            self._processes.bound_log(driver)
        with self._changing:
            if self._closed:
                return
            self._processes.clear()
            roles = [d for d in self._drivers.values() if d.row.role == "analyzer"]
            if not roles:
                self._start("analyzer")
            starting = [d for d in self._drivers.values() if d.state in ("starting", "warming")]
            free = [d for d in self._drivers.values() if d.waits_for_work()]
            # Starting a JVM takes all the CPU a small machine has; a query that starts comes first.
            since = max((d.given for d in self._drivers.values()), default=0.0)
            since = max(since, self._awaited)
            if time.monotonic() - since < _REFILL_DELAY:
                return
            if len(free) < self._warm and len(starting) < 2 and self._may_start("dedicated"):
                self._start("dedicated")

    def _unwanted(self) -> list[PooledDriver]:
        """Drivers that are dead, hang, or are shared by none any more."""
        found = []
        for driver in () if self._closed else list(self._drivers.values()):
            shared, alive = driver.row.role == "shared", self._processes.alive(driver)
            self._ended.note(driver, alive=alive)
            empty = shared and not driver.queries and driver.state == "idle"
            # Of before the setting: it sees the files of all queries.
            astray = self._processes.for_one_query and driver.waits_for_work()
            if not alive or astray or driver.silent() or (empty and time.monotonic() - driver.given > _EMPTY):
                found.append(driver)
        return found

    def _may_start(self, role: str, *, waited_for: bool = False, without: PooledDriver | None = None) -> bool:
        drivers = [(d.row.role, d.row.pid) for d in list(self._drivers.values()) if d is not without]
        crowded = None if waited_for else self._crowded()  # a SELECT would be refused: somebody waits for it
        spare = without.row.pid if without is not None else None
        self._why = crowded or self._admission.refusal(drivers, role, spare) or ""
        return not self._why

    def _crowded(self) -> str | None:
        cold = sum(d.warmed is None and d.row.role != "analyzer" for d in list(self._drivers.values()))
        return self._admission.crowded(cold)

    def _start(self, role: str, query_id: str | None = None) -> PooledDriver:
        driver = self._processes.launch(role, query_id)
        self._drivers[driver.row.id] = driver  # it may ask before the catalog knows
        try:
            self._processes.add(driver.row)
        except BaseException:
            del self._drivers[driver.row.id]
            raise
        return driver

    def _forget(self, driver: PooledDriver) -> None:
        """Remove what a dead driver leaves: its JVM, its row, its scratch directory."""
        self._processes.end(driver)
        self._drivers.pop(driver.row.id, None)
        self._processes.clear(driver)

    def _try_forget(self, driver: PooledDriver) -> None:
        try:
            self._processes.end(driver)
            with self._changing:
                self._forget(driver)
        except EngineError as error:  # an unreachable cluster must not block the others
            _log.warning("driver %s was not cleaned up: %s", driver.row.id, error.detail)

    def authenticate(self, driver_id: str, token: str) -> bool:
        """Whether this is the token the driver was started with."""
        driver = self._drivers.get(driver_id)
        if driver is None or not hmac.compare_digest(driver.row.token_hash, hash_token(token)):
            return False
        driver.called = time.monotonic()
        return True

    def note_use(self, driver_id: str, use: Mapping[str, Any]) -> None:
        """What a driver reports of its use of the machine."""
        driver = self._drivers.get(driver_id)
        if driver is not None and use:
            driver.use = use

    def note(self) -> None:
        """Write down for people what drivers do; must be called now and then."""
        if not self._closed:
            self._notes.write(list(self._drivers.values()))

    def report(self, driver_id: str, state: str, pid: int) -> None:
        """A polling driver's own word on whether it is warm."""
        with self._lock:
            driver = self._drivers.get(driver_id)
            if driver is None:
                return
            driver.heard = time.monotonic()
            if state == "idle" and driver.warmed is None:
                driver.warmed = driver.heard
            if driver.state in ("assigned", "leaving"):
                return
            was, driver.state = driver.state, "idle" if state == "idle" else "warming"
        if state == "idle" and was != "idle":
            self._wake()

    def role(self, driver_id: str) -> str | None:
        """``dedicated``, ``shared`` or ``analyzer``; None for one that should not be there."""
        driver = self._drivers.get(driver_id)
        return driver.row.role if driver else None

    def assigned(self, driver_id: str) -> str | None:
        """Id of the query this driver was given."""
        driver = self._drivers.get(driver_id)
        return driver.row.query_id if driver else None

    def shares(self, driver_id: str) -> list[str]:
        """Ids of the queries that a shared driver was given, in that order."""
        driver = self._drivers.get(driver_id)
        return list(driver.queries) if driver else []

    def assign(self, query_id: str, sharing: Sharing | None = None) -> str | None:
        """Give a driver to a query: an idle one, else one that is warming, else a new one below the limit."""
        with self._changing:
            if self._closed:
                return None
            if sharing is not None:
                return self._seat(query_id, sharing)
            free = [
                d for d in self._drivers.values() if self._may_get(d, query_id) and self._processes.alive(d)
            ]
            free.sort(key=lambda d: (d.state != "idle", d.row.created_at))
            if free:
                driver = free[0]
            elif self._may_start("dedicated", waited_for=is_selection(query_id)):
                driver = self._start("dedicated", query_id)
            else:
                return None
            with self._lock:
                row, state = driver.row, driver.state
                driver.row = replace(row, query_id=query_id)
                driver.state = "assigned"
                driver.given = time.monotonic()
            try:
                self._processes.update(driver.row)
            except BaseException:  # the next call gets another one, or this one
                with self._lock:
                    driver.row, driver.state = row, state
                raise
            return driver.row.id

    def _may_get(self, driver: PooledDriver, query_id: str) -> bool:
        """Whether a driver is free for a query."""
        if self._processes.for_one_query:  # that could not be given to it before
            return driver.row.query_id == query_id and driver.state in ("starting", "warming", "idle")
        return driver.waits_for_work()

    def _seat(self, query_id: str, sharing: Sharing) -> str | None:
        """A place in a shared driver: the one that is named, else the fullest, so that few are needed."""
        shared = [d for d in self._drivers.values() if d.row.role == "shared" and self._processes.alive(d)]
        found = next((d for d in shared if query_id in d.queries), None)
        free = [d for d in shared if len(d.queries) < self._seats]
        free.sort(key=lambda d: (d.row.id != sharing.near, -len(d.queries), d.row.id))
        driver = found or next(iter(free), None)
        if driver is None:
            if not self._may_start("shared"):
                # A warm driver that waits for nothing in particular makes room, where that is room enough.
                idle = (d for d in self._drivers.values() if d.state == "idle" and d.waits_for_work())
                spare = next(idle, None)
                if spare is None or not self._may_start("shared", without=spare):
                    return None
                self._try_forget(spare)
                if not self._may_start("shared"):
                    self._awaited = time.monotonic()  # what it held may be free in a moment
                    return None
            driver = self._start("shared")
        with self._lock:
            driver.given = driver.queries[query_id] = time.monotonic()
        return driver.row.id

    def why_none(self) -> str:
        """What kept ``assign`` from giving a driver."""
        return self._why or "the pool is closing"

    def let_go(self, driver_id: str, query_id: str) -> None:
        """The driver is done with a query: it ends, unless it has others, or another one by now."""
        with self._lock:
            driver = self._drivers.get(driver_id)
            if driver is not None and driver.row.role == "shared":
                driver.queries.pop(query_id, None)
                driver.given = time.monotonic()
                return
            if driver is None or driver.row.query_id != query_id:
                return
            driver.leave()
            driver.ends = True
        self.end(driver_id)

    def keep(self, driver_id: str, query_id: str) -> bool:
        """Have a driver whose query has ended in order wait for another one; False if it is to end.

        It may ask again, when the answer did not reach it.
        """
        alive = self._living()
        with self._lock:
            driver = self._drivers.get(driver_id)
            if driver is None or driver.row.role != "dedicated" or self._processes.for_one_query:
                return False
            if driver.row.query_id != query_id or (driver.state == "leaving" and not driver.ends):
                return True
            if driver.state != "assigned" or self._closed or not self._has_room(alive):
                return False
            driver.served += 1
            if driver.served >= _QUERIES_IN_TURN:
                return False
            driver.leave()
        self._free(driver, "warming")  # until it asks for work itself
        return True

    def _living(self) -> set[str]:
        """Ids of the existing ones; asked without a lock, as on a cluster the answer may take long."""
        return {d.row.id for d in list(self._drivers.values()) if self._processes.alive(d)}

    def _has_room(self, alive: set[str]) -> bool:
        """One more than are kept warm may wait, so that queries one after another start no JVM each."""
        free = [d for d in list(self._drivers.values()) if d.waits_for_work() or d.state == "leaving"]
        return sum(driver.row.id in alive for driver in free) <= self._warm

    def _free(self, driver: PooledDriver, state: State) -> None:
        """What is left to do for a driver that is leaving its query; without a lock."""
        row = replace(driver.row, query_id=None)
        try:
            self._processes.update(row)
        except BaseException:
            with self._lock:
                driver.state = "assigned"  # it gets the answer again, or ends as a stray
            raise
        with self._lock:
            if not driver.ends:  # as nobody has it ended meanwhile
                driver.row, driver.state, driver.heard = row, state, time.monotonic()
        self._wake()

    def release(self, driver_id: str, query_id: str) -> None:
        """Take a query back from a driver, which waits for work again; nothing, if it has another by now."""
        alive = self._living()
        with self._lock:
            driver = self._drivers.get(driver_id)
            if driver is None or self._closed or driver.row.query_id != query_id:
                return
            if driver.state != "assigned":
                return
            room = self._has_room(alive)
            driver.leave()
        if room:
            self._free(driver, "idle")
        else:
            self.end(driver_id)

    def assignments(self) -> list[tuple[str, str, float]]:
        """Driver, id of the query it was given, and seconds since then."""
        now = time.monotonic()
        drivers = list(self._drivers.values())
        alone = [(d.row.id, d.row.query_id, now - d.given) for d in drivers if d.row.query_id is not None]
        return [
            *alone,
            *((d.row.id, q, now - given) for d in drivers for q, given in list(d.queries.items())),
        ]

    def serving(self, driver_id: str) -> float:
        """Seconds since it could take its newest query; 0 while it warms up, or is not known."""
        driver = self._drivers.get(driver_id)
        return driver.serving() if driver is not None else 0.0

    def process_id(self, driver_id: str) -> int | None:
        """Its process id; None for a driver that is not known."""
        driver = self._drivers.get(driver_id)
        return driver.row.pid or None if driver else None

    def is_alive(self, driver_id: str) -> bool:
        """Whether its process exists."""
        driver = self._drivers.get(driver_id)
        return driver is not None and self._processes.alive(driver)

    def runs(self, driver_id: str, query_id: str) -> bool:
        """Whether its process exists and still has the query."""
        driver = self._drivers.get(driver_id)
        if driver is None or not self._processes.alive(driver):
            return False
        return query_id in driver.queries if driver.row.role == "shared" else driver.row.query_id == query_id

    def has_crashed(self, driver_id: str) -> bool:
        """Whether a shared driver has ended by itself since this server started."""
        return self._end_of(driver_id) == "crashed"

    def never_served(self, driver_id: str) -> bool:
        """Whether it has ended, or was ended as it hung, before it asked for work."""
        return self._end_of(driver_id) == "unserved"

    def _end_of(self, driver_id: str) -> End | None:
        driver = self._drivers.get(driver_id)
        if driver is None or self._processes.alive(driver):
            return self._ended.of(driver_id)
        return end_of(driver, alive=False)  # nobody has removed it yet

    def end(self, driver_id: str, *, grace: float = 0.0) -> None:
        """End the process and its children; returns when they have ended."""
        driver = self._drivers.get(driver_id)
        if driver is None:
            return
        self._processes.end(driver, grace)
        with self._changing:
            self._forget(driver)

    def ready(self) -> bool:
        """Whether statements can be checked and run; a server whose drivers all have queries is ready."""
        analyzers = (d for d in list(self._drivers.values()) if d.row.role == "analyzer")
        return not self._closed and any(analyzer.state == "idle" for analyzer in analyzers)

    def warm(self) -> bool:
        """Whether a warm driver waits for a query, or none is kept."""
        drivers = list(self._drivers.values())
        return self._warm == 0 or any(d.row.role == "dedicated" and d.state == "idle" for d in drivers)

    def close(self, grace: float = 0.0) -> frozenset[str]:
        """End every driver; running queries go on from their checkpoints at the next start.

        Args:
            grace: seconds for drivers that run a query to bring the batch at work to its end; what is cut off
                is repeated later. Meanwhile they must be answered, as before.

        Returns:
            Ids of the queries whose drivers could not be ended, such as pods on a lost node: they may go on
            until they miss this server for too long.
        """
        with self._changing:
            self._closed = True
            drivers = list(self._drivers.values())
        self._wait_for_batches([d for d in drivers if d.has_batches()], grace)
        with self._changing:
            return self._forget_all(drivers)

    def _forget_all(self, drivers: list[PooledDriver]) -> frozenset[str]:
        """All processes first, then the catalog in one go: without one, too, no driver stays."""
        ended, left = [], set[str]()
        for driver in drivers:
            try:
                self._processes.end(driver)
            except Exception as error:
                _log.warning("driver %s was not ended: %s", driver.row.id, type(error).__name__)
                left.update(driver.queries, [driver.row.query_id] if driver.row.query_id else [])
            else:
                self._drivers.pop(driver.row.id, None)
                ended.append(driver)
        try:
            self._processes.clear(*ended)
        except Exception as error:  # the next server removes them
            _log.warning("drivers were ended, but not cleaned up: %s", type(error).__name__)
        return frozenset(left)

    def _wait_for_batches(self, drivers: list[PooledDriver], grace: float) -> None:
        """Tell drivers to end and wait until they have, or ``grace`` seconds."""
        if grace <= 0:
            return
        for driver in drivers:
            self._processes.ask_to_end(driver, grace)
        end = time.monotonic() + grace
        while any(self._processes.alive(driver) for driver in drivers):
            if time.monotonic() >= end:
                _log.warning("drivers were still at work after %g s; they are cut off", grace)
                return
            time.sleep(_LOOK)

"""A pool of driver processes on this machine: one analyzer, a few kept warm, one per running query."""

from __future__ import annotations

import hmac
import logging
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

import psutil

from leatstream.engine.processes import DriverCommand, end_driver, is_running
from leatstream.ports import Clock, DriverRow, OpenUnit
from leatstream.services.authorization import hash_token, mint_token
from leatstream.services.environment import new_id

_log = logging.getLogger(__name__)
State = Literal["starting", "warming", "idle", "assigned"]
_START_SILENCE, _SILENCE = 240.0, 120.0  # seconds
_LOGS_KEPT = 40
_REFILL_DELAY = 3.0


@dataclass(slots=True)
class _Driver:
    """A driver that is or was there; ``process`` is None for one adopted from before a restart.

    Attributes:
        heard: when it last asked for work (monotonic seconds).
        given: when it was given its query.
    """

    row: DriverRow
    state: State
    process: subprocess.Popen[bytes] | None = None
    heard: float = field(default_factory=time.monotonic)
    given: float = 0.0

    def alive(self) -> bool:
        if self.process is not None:
            return self.process.poll() is None
        return is_running(self.row.id, self.row.pid)

    def silent(self) -> bool:
        """Whether a driver that waits for work has not asked for any for too long: it hangs."""
        limit = _START_SILENCE if self.state == "starting" else _SILENCE
        return self.state != "assigned" and time.monotonic() - self.heard > limit


class LocalPool:
    """Driver processes (``ports.Drivers``). ``maintain`` must be called now and then.

    Args:
        open_unit: units of work; drivers are remembered in the catalog, so that a restarted API adopts them.
        clock: the time.
        command: how to start one.
        warm: how many idle drivers to keep ready.
        limit: most dedicated drivers at a time.
        server: id of this server; drivers of others are left alone.
        wake: called when a driver may have new work.
    """

    def __init__(
        self,
        open_unit: OpenUnit,
        clock: Clock,
        command: DriverCommand,
        *,
        warm: int,
        limit: int,
        server: str,
        wake: Callable[[], None],
    ) -> None:
        self._open_unit = open_unit
        self._clock = clock
        self._command = command
        self._warm = warm
        self._limit = limit
        self._server = server
        self._wake = wake
        self._lock = threading.RLock()
        self._drivers: dict[str, _Driver] = {}
        self._closed = False

    def adopt(self) -> int:
        """Take back the drivers that outlived the last API process; forget the dead. How many."""
        with self._open_unit(write=False) as unit:
            for row in unit.drivers.list():
                if row.server not in (None, self._server):
                    continue
                driver = _Driver(row, "assigned" if row.query_id else "warming")
                self._drivers[row.id] = driver
        for driver in list(self._drivers.values()):
            if not driver.alive():
                self._forget(driver)
        return len(self._drivers)

    def maintain(self) -> None:
        """Reap the dead, keep one analyzer and the warm ones; one start at a time, as starting costs CPU."""
        with self._lock:
            if self._closed:
                return
            for driver in list(self._drivers.values()):
                if not driver.alive() or driver.silent():
                    self._forget(driver)
            roles = [d for d in self._drivers.values() if d.row.role == "analyzer"]
            if not roles:
                self._start("analyzer")
            starting = [d for d in self._drivers.values() if d.state in ("starting", "warming")]
            free = [d for d in self._dedicated() if d.row.query_id is None]
            # Starting a JVM takes all the CPU a small machine has; a query that starts comes first.
            since = max((d.given for d in self._drivers.values()), default=0.0)
            if time.monotonic() - since < _REFILL_DELAY:
                return
            if len(free) < self._warm and len(self._dedicated()) < self._limit and len(starting) < 2:
                self._start("dedicated")

    def _dedicated(self) -> list[_Driver]:
        return [d for d in self._drivers.values() if d.row.role == "dedicated"]

    def _start(self, role: str) -> _Driver:
        token, _, token_hash = mint_token()
        driver_id = new_id("drv")
        process = self._command.start(driver_id, role, token)
        row = DriverRow(
            id=driver_id,
            role=role,
            token_hash=token_hash,
            pid=process.pid,
            started_at=psutil.Process(process.pid).create_time(),
            created_at=self._clock.now(),
            server=self._server,
        )
        driver = _Driver(row, "starting", process)
        self._drivers[driver_id] = driver
        with self._open_unit() as unit:
            unit.drivers.add(row)
            unit.commit()
        return driver

    def _forget(self, driver: _Driver) -> None:
        """Clear away what a dead driver leaves: its JVM, its row, its scratch directory."""
        if driver.process is not None:
            driver.process.kill()  # a child so young that its environment cannot be read yet goes too
        end_driver(driver.row.id, driver.row.pid, 0)
        if driver.process is not None:
            driver.process.wait()
        self._drivers.pop(driver.row.id, None)
        with self._open_unit() as unit:
            unit.drivers.delete(driver.row.id)
            unit.commit()
        shutil.rmtree(self._command.work_dir / driver.row.id, ignore_errors=True)
        (self._command.work_dir / f"{driver.row.id}.token").unlink(missing_ok=True)
        logs = sorted(self._command.log_dir.glob("drv_*.log"))  # ids sort by time
        for old in logs[:-_LOGS_KEPT]:
            old.unlink(missing_ok=True)

    def authenticate(self, driver_id: str, token: str) -> bool:
        """Whether this is the token the driver was started with."""
        driver = self._drivers.get(driver_id)
        return driver is not None and hmac.compare_digest(driver.row.token_hash, hash_token(token))

    def report(self, driver_id: str, state: str, pid: int) -> None:
        """A polling driver's own word on whether it is warm."""
        with self._lock:
            driver = self._drivers.get(driver_id)
            if driver is None:
                return
            driver.heard = time.monotonic()
            if driver.state == "assigned":
                return
            was, driver.state = driver.state, "idle" if state == "idle" else "warming"
        if state == "idle" and was != "idle":
            self._wake()

    def role(self, driver_id: str) -> str | None:
        """``dedicated`` or ``analyzer``; None for one that should not be there."""
        driver = self._drivers.get(driver_id)
        return driver.row.role if driver else None

    def assigned(self, driver_id: str) -> str | None:
        """Id of the query this driver was given."""
        driver = self._drivers.get(driver_id)
        return driver.row.query_id if driver else None

    def assign(self, query_id: str) -> str | None:
        """Give a driver to a query: an idle one, else one that is warming, else a new one below the limit."""
        with self._lock:
            if self._closed:
                return None
            free = [d for d in self._dedicated() if d.row.query_id is None and d.alive()]
            free.sort(key=lambda d: (d.state != "idle", d.row.created_at))
            if free:
                driver = free[0]
            elif len(self._dedicated()) < self._limit:
                driver = self._start("dedicated")
            else:
                return None
            driver.row = replace(driver.row, query_id=query_id)
            driver.state = "assigned"
            driver.given = time.monotonic()
            with self._open_unit() as unit:
                unit.drivers.update(driver.row)
                unit.commit()
            return driver.row.id

    def release(self, driver_id: str) -> None:
        """Take a driver's query back from it: it waits for work again."""
        with self._lock:
            driver = self._drivers.get(driver_id)
            if driver is None or self._closed:
                return
            others = [d for d in self._dedicated() if d.row.query_id is None and d.alive()]
            if len(others) > self._warm:
                # One more than are kept warm may wait, so that SELECTs one after another start no JVM each.
                self._forget(driver)
                return
            driver.row = replace(driver.row, query_id=None)
            driver.state, driver.heard = "idle", time.monotonic()
            with self._open_unit() as unit:
                unit.drivers.update(driver.row)
                unit.commit()
        self._wake()

    def assignments(self) -> list[tuple[str, str, float]]:
        """Driver, id of the query it was given, and seconds since then."""
        now = time.monotonic()
        drivers = list(self._drivers.values())
        return [(d.row.id, d.row.query_id, now - d.given) for d in drivers if d.row.query_id is not None]

    def process_id(self, driver_id: str) -> int | None:
        """Its process id; None for a driver that is not known."""
        driver = self._drivers.get(driver_id)
        return driver.row.pid if driver else None

    def is_alive(self, driver_id: str) -> bool:
        """Whether its process is there."""
        driver = self._drivers.get(driver_id)
        return driver is not None and driver.alive()

    def end(self, driver_id: str, *, grace: float = 0.0) -> None:
        """End the process and its children; returns when they are gone."""
        with self._lock:
            driver = self._drivers.get(driver_id)
        if driver is None:
            return
        end_driver(driver.row.id, driver.row.pid, grace)
        with self._lock:
            self._forget(driver)

    def ready(self) -> bool:
        """Whether an analyzer and, if any are kept, a warm driver wait for work."""
        drivers = list(self._drivers.values())
        analyzer = any(d.row.role == "analyzer" and d.state == "idle" for d in drivers)
        warm = sum(d.row.role == "dedicated" and d.state == "idle" for d in drivers)
        return analyzer and (warm > 0 or self._warm == 0)

    def close(self) -> None:
        """End every driver; running queries go on from their checkpoints at the next start."""
        with self._lock:
            self._closed = True
            drivers = list(self._drivers.values())
        with self._lock:
            for driver in drivers:
                try:
                    self._forget(driver)
                except Exception as error:  # without a catalog, too, no driver stays
                    _log.warning("driver %s was not cleared away: %s", driver.row.id, type(error).__name__)

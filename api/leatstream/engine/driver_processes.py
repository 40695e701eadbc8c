"""Starts and ends the pool's drivers, and keeps in the catalog what the next server needs of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from leatstream.engine.pooled_driver import PooledDriver
from leatstream.ports import Clock, DriverRow, DriverRows, Launcher, OpenUnit
from leatstream.services.environment import new_id
from leatstream.services.environment.authorization import mint_token
from leatstream.services.queries.joint_jobs import leader_of


class DriverProcesses:
    """Processes and their rows. The caller must not start and end processes concurrently.

    Args:
        open_unit: units of work.
        clock: the time.
        launcher: starts and ends processes.
        server: id of this server, whose drivers they are.
    """

    def __init__(self, open_unit: OpenUnit, clock: Clock, launcher: Launcher, server: str) -> None:
        self._open_unit = open_unit
        self._clock = clock
        self._launcher = launcher
        self._server = server
        self._gone: set[str] = set()

    def left_over(self) -> list[PooledDriver]:
        """Drivers of this server's last run, dead ones too."""
        found = []
        with self._open_unit(write=False) as unit:
            for row in unit.drivers.list():
                if row.server not in (None, self._server):
                    continue
                driver = PooledDriver(row, "assigned" if row.query_id else "warming")
                if row.role == "shared":
                    # The catalog says what it runs; it reports that itself as well.
                    queries = unit.queries.page(limit=100_000)
                    mine = (q for q in queries if q.status.driver_id == row.id and leader_of(q) is None)
                    driver.queries = {q.meta.id: 0.0 for q in mine}
                found.append(driver)
        return found

    def end_strangers(self, known: Collection[str]) -> None:
        """End what was started and never written down, or is not in the catalog any more."""
        self._launcher.end_strangers(known)

    @property
    def for_one_query(self) -> bool:
        """Whether dedicated drivers see the files of one query alone."""
        return self._launcher.for_one_query

    def launch(self, role: str, query_id: str | None = None) -> PooledDriver:
        """Start a process, perhaps for one query; the catalog does not know it yet."""
        token, _, token_hash = mint_token()
        driver_id = new_id("drv")
        pid = self._launcher.start(driver_id, role, token, query_id)
        now = self._clock.now()
        row = DriverRow(
            id=driver_id,
            role=role,
            token_hash=token_hash,
            pid=pid,
            started_at=now.timestamp(),
            created_at=now,
            server=self._server,
            query_id=query_id if self.for_one_query else None,
        )
        return PooledDriver(row, "starting")

    def add(self, row: DriverRow) -> None:
        """Write down one that was launched. If that fails, it ends: the next server would not find it."""
        try:
            with self._writing() as rows:
                rows.add(row)
        except BaseException:
            self._launcher.end(row.id, row.pid, 0)
            self._launcher.clear(row.id)
            raise

    def update(self, row: DriverRow) -> None:
        """Write down what a driver does now."""
        with self._writing() as rows:
            rows.update(row)

    def alive(self, driver: PooledDriver) -> bool:
        """Whether its process exists; on a cluster the answer may take long."""
        return self._launcher.is_alive(driver.row.id, driver.row.pid)

    def bound_log(self, driver: PooledDriver) -> None:
        """See that its log does not grow without end."""
        self._launcher.bound_log(driver.row.id)

    def ask_to_end(self, driver: PooledDriver, grace: float) -> None:
        """Tell it to end after its batch, within ``grace`` seconds."""
        self._launcher.ask_to_end(driver.row.id, driver.row.pid, grace)

    def end(self, driver: PooledDriver, grace: float = 0.0) -> None:
        """End a process; returns when it has ended, or EngineError. Its row and directory are left."""
        self._launcher.end(driver.row.id, driver.row.pid, grace)

    def clear(self, *ended: PooledDriver) -> None:
        """Remove rows and directories, also those that could not be removed before."""
        self._gone.update(driver.row.id for driver in ended)
        gone = sorted(self._gone)
        if not gone:
            return
        with self._writing() as rows:
            for driver_id in gone:
                rows.delete(driver_id)
        for driver_id in gone:
            self._launcher.clear(driver_id)
        self._gone.difference_update(gone)

    @contextmanager
    def _writing(self) -> Iterator[DriverRows]:
        with self._open_unit() as unit:
            yield unit.drivers
            unit.commit()

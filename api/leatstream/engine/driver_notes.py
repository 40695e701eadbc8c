"""What a server writes down of its drivers for people, so that every server of a catalog can show it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from leatstream.engine.pooled_driver import PooledDriver
from leatstream.ports import Clock, Launcher, OpenUnit

_EVERY = 15.0  # seconds between two notes of figures; a new state is written down at once
_FIGURES = ("heard_at", "memory_bytes", "heap_bytes", "cpu_seconds_total")


def stage_of(driver: PooledDriver) -> str:
    """What a driver does, in one word for people."""
    if driver.warmed is None:
        return "warming" if driver.state == "warming" else "starting"
    if driver.state == "assigned" or driver.queries:
        return "running"
    return driver.state


class DriverNotes:
    """Writes the reports of drivers.

    Args:
        open_unit: units of work.
        clock: the time.
        launcher: of the drivers.
    """

    def __init__(self, open_unit: OpenUnit, clock: Clock, launcher: Launcher) -> None:
        self._open_unit = open_unit
        self._clock = clock
        self._launcher = launcher
        self._written: dict[str, Mapping[str, Any]] = {}
        self._due = 0.0

    def write(self, drivers: Sequence[PooledDriver]) -> None:
        """Write down what has changed, and from time to time the figures."""
        reports = {driver.row.id: self._report(driver) for driver in drivers}
        due = time.monotonic() >= self._due
        news = {
            i: one
            for i, one in reports.items()
            if one != (before := self._before(i)) and (due or _lasting(one) != _lasting(before))
        }
        if news:
            with self._open_unit() as unit:
                for driver_id, report in news.items():
                    unit.drivers.note(driver_id, report)
                unit.commit()
        self._written = {i: news.get(i, self._before(i)) for i in reports}
        if due:
            self._due = time.monotonic() + _EVERY

    def _before(self, driver_id: str) -> Mapping[str, Any]:
        return self._written.get(driver_id, {})

    def _report(self, driver: PooledDriver) -> dict[str, Any]:
        now = self._clock.now()
        before = self._before(driver.row.id) or driver.row.report  # the latter of one that was adopted
        state = stage_of(driver)
        heard = before.get("heard_at")
        if driver.called is not None:
            heard = (now - timedelta(seconds=time.monotonic() - driver.called)).isoformat(timespec="seconds")
        return {
            **self._launcher.place(driver.row.id, driver.row.role),
            "state": state,
            "since": before.get("since") if before.get("state") == state else now.isoformat(),
            "heard_at": heard,
            "served": driver.served,
            **{name: driver.use.get(name, before.get(name)) for name in _FIGURES[1:]},
        }


def _lasting(report: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in report.items() if name not in _FIGURES}

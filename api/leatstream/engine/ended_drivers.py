"""How drivers have ended by themselves, for callers that ask after their removal."""

from __future__ import annotations

from typing import Literal

from leatstream.engine.pooled_driver import PooledDriver

_KEPT = 200

End = Literal["crashed", "unserved"]
"""A shared one that had served, or any that ended, or hung, before it asked for work."""


def end_of(driver: PooledDriver, *, alive: bool) -> End | None:
    """What there is to tell of a driver's end; None of one that is well, or of which nothing is asked."""
    if driver.warmed is None:  # until then no query can have done anything to it
        return "unserved" if not alive or driver.silent() else None
    return "crashed" if driver.row.role == "shared" and not alive else None


class EndedDrivers:
    """Remembers the newest two hundred."""

    def __init__(self) -> None:
        self._ends: dict[str, End] = {}

    def note(self, driver: PooledDriver, *, alive: bool) -> None:
        """Remember a driver's end, if there is one."""
        end = end_of(driver, alive=alive)
        if end is not None:
            self._ends = dict([*self._ends.items(), (driver.row.id, end)][-_KEPT:])

    def of(self, driver_id: str) -> End | None:
        """How it ended; None where that is not known."""
        return self._ends.get(driver_id)

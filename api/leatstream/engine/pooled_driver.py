"""What the pool knows of one driver."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from leatstream.ports import DriverRow
from leatstream.services.selects.interactive import is_selection

State = Literal["starting", "warming", "idle", "assigned", "leaving"]
_START_SILENCE, _SILENCE = 240.0, 120.0  # seconds


@dataclass(slots=True)
class PooledDriver:
    """A driver that is or was there.

    Attributes:
        heard: when it last asked for work (monotonic seconds).
        given: when it was given its query, or its newest, or began to leave it.
        queries: of a shared driver, each with when it was given.
        state: ``leaving`` while its query is taken from it.
        served: how many queries it had, one after another.
        ends: whether it is to end with the query that it leaves.
        warmed: when it first asked for work; None while it starts, whatever it was given by then.
        called: when any call of it came last; None before the first.
        use: what it last reported of its use of the machine.
    """

    row: DriverRow
    state: State
    heard: float = field(default_factory=time.monotonic)
    given: float = 0.0
    queries: dict[str, float] = field(default_factory=dict)
    served: int = 0
    ends: bool = False
    warmed: float | None = None
    called: float | None = None
    use: Mapping[str, Any] = field(default_factory=dict)

    def silent(self) -> bool:
        """Whether a driver that starts or waits for work has not been heard for too long: it hangs."""
        if self.state == "leaving" or (self.state == "assigned" and self.warmed is not None):
            return False
        limit = _START_SILENCE if self.state in ("starting", "assigned") else _SILENCE
        return time.monotonic() - self.heard > limit

    def serving(self) -> float:
        """Seconds since it could take its newest query; 0 while it warms up."""
        return time.monotonic() - max(self.given, self.warmed) if self.warmed is not None else 0.0

    def waits_for_work(self) -> bool:
        """Whether it is for one query at a time, and has none."""
        return self.row.role == "dedicated" and self.row.query_id is None

    def leave(self) -> None:
        """Its query leaves it: until the catalog knows, it still belongs to that query."""
        self.state, self.given = "leaving", time.monotonic()

    def has_batches(self) -> bool:
        """Whether its end would cut off a batch; an interactive SELECT has none that is kept."""
        alone = self.row.query_id
        return bool(self.queries) or (alone is not None and not is_selection(alone))

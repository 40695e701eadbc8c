"""The drivers of all servers of the catalog, for people on call.

The answer is what their servers have written down (``engine.driver_notes``), so every server gives the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from leatstream.model.access import Privilege
from leatstream.model.objects import Query
from leatstream.ports import DriverRow
from leatstream.services.environment import Environment, Page, Principal
from leatstream.services.environment.authorization import require
from leatstream.services.environment.pages import ANY, Only, make_page
from leatstream.services.selects.interactive import is_selection

# Seconds without a call after which a driver counts as silent. An idle one calls every 20 s.
_SILENT, _SILENT_AT_START = 60.0, 240.0


@dataclass(frozen=True, slots=True)
class SeenDriver:
    """A driver, and those of its queries that the caller sees.

    Attributes:
        row: what the catalog keeps of it.
        state: what it does now.
        queries: that it runs, by name.
    """

    row: DriverRow
    state: str
    queries: Sequence[Query]

    @property
    def name(self) -> str:
        """Its id."""
        return self.row.id

    @property
    def selects(self) -> bool:
        """Whether it runs an interactive SELECT."""
        return self.row.query_id is not None and is_selection(self.row.query_id)


def list_drivers(
    env: Environment, principal: Principal, page_size: int, page_token: str | None, only: Only = ANY
) -> Page[SeenDriver]:
    """Drivers by id, the oldest first.

    Args:
        env: the environment.
        principal: who asks.
        page_size: the most of one page.
        page_token: of the page wanted; None = the first.
        only: what is wanted of them: ``state``, ``role``, ``server``.
    """
    require(principal, Privilege.MONITOR, "list drivers")
    with env.open_unit(write=False) as unit:
        rows = sorted(unit.drivers.list(), key=lambda row: row.id)
        queries = unit.queries.page(limit=100_000)
    runs: dict[str, list[Query]] = {}
    for query in queries:
        if query.status.driver_id is not None:
            runs.setdefault(query.status.driver_id, []).append(query)
    now = env.clock.now()
    drivers = [SeenDriver(row, _state(row, now), runs.get(row.id, ())) for row in rows]
    return make_page(
        lambda after, limit: [one for one in drivers if one.name > after][:limit],
        lambda one: one.name,
        "drivers",
        page_size,
        page_token,
        only,
        _has,
    )


def _has(driver: SeenDriver) -> dict[str, Any]:
    return {"state": driver.state, "role": driver.row.role, "server": driver.row.server}


def _state(row: DriverRow, now: datetime) -> str:
    state, heard = row.report.get("state", "starting"), row.report.get("heard_at")
    at = datetime.fromisoformat(heard) if heard else row.created_at
    limit = _SILENT_AT_START if state in ("starting", "warming") else _SILENT
    return "silent" if (now - at).total_seconds() > limit else str(state)

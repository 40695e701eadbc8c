"""Drivers, as people see them."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from leatstream.model.objects import QueryState
from leatstream.rest.schemas.base import View
from leatstream.services.drivers import SeenDriver
from leatstream.services.environment import Page

DriverState = Literal["starting", "warming", "idle", "running", "leaving", "silent"]
DriverRole = Literal["dedicated", "shared", "analyzer"]


class DriverQueryView(View):
    """A query that a driver runs."""

    name: str
    state: QueryState
    restarts: int = Field(description="Starts of the query's job after its first one.")


class DriverView(View):
    """A driver: the Spark process that runs queries."""

    id: str = Field(examples=["drv_0198a7c0f2b1a1b2c3d4e5f60718"])
    role: DriverRole = Field(
        description="dedicated: one query at a time. shared: several. analyzer: checks statements."
    )
    state: DriverState = Field(
        description="What it does. idle: it waits for work. leaving: its query is taken from it. silent: "
        "it has not called its server for too long."
    )
    since: datetime | None = Field(
        description="When it began to do that; null until its server has noted it."
    )
    created_at: datetime = Field(description="When it was started.")
    heard_at: datetime | None = Field(description="When it last called its server; at most 15 s behind.")
    server: str | None = Field(description="Id of the server that it belongs to.")
    launcher: str | None = Field(description="What started it.", examples=["local"])
    host: str | None = Field(description="The machine it runs on, where that is its server's.")
    pid: int | None = Field(description="Its process id on that machine; null for a pod.")
    pod: str | None = Field(description="Name of its pod.")
    queries: list[DriverQueryView] = Field(description="Those of its queries that the caller sees.")
    selects: bool = Field(description="Whether it runs an interactive SELECT.")
    served: int = Field(description="Queries that it has run to their end before the present one.")
    heap_limit_bytes: int | None = Field(description="The most that its heap may have.")
    heap_bytes: int | None = Field(description="Use of its heap, garbage included.")
    memory_bytes: int | None = Field(description="Resident memory, with its JVM and Python workers.")
    cpu_seconds_total: float | None = Field(description="Processor time since its start.")

    @classmethod
    def from_domain(cls, seen: SeenDriver) -> DriverView:
        """The answer for a driver."""
        row, report = seen.row, seen.row.report
        own = ("since", "heard_at", "launcher", "host", "pod")
        figures = ("heap_limit_bytes", "heap_bytes", "memory_bytes", "cpu_seconds_total")
        queries = [
            DriverQueryView(name=q.name, state=q.status.state, restarts=q.status.starts_again)
            for q in seen.queries
        ]
        return cls.model_validate(
            {
                **{name: report.get(name) for name in (*own, *figures)},
                "id": row.id,
                "role": row.role,
                "state": seen.state,
                "created_at": row.created_at,
                "server": row.server,
                "pid": row.pid or None,
                "queries": queries,
                "selects": seen.selects,
                "served": report.get("served", 0),
            }
        )


class DriverList(View):
    """One page of drivers."""

    items: list[DriverView]
    next_page_token: str | None = None

    @classmethod
    def from_domain(cls, page: Page[SeenDriver]) -> DriverList:
        """The answer for a page."""
        items = [DriverView.from_domain(item) for item in page.items]
        return cls(items=items, next_page_token=page.next_page_token)

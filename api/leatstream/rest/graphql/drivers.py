"""Drivers: the Spark processes that run queries."""

from __future__ import annotations

from datetime import datetime
from enum import Enum

import strawberry

from leatstream.rest.graphql.catalog import Query, query_of
from leatstream.rest.graphql.values import Long
from leatstream.rest.schemas.drivers import DriverView
from leatstream.services.drivers import SeenDriver


@strawberry.enum(
    description="What a driver does. IDLE: it waits for work. LEAVING: its query is taken from it. SILENT: "
    "it has not called its server for too long."
)
class DriverState(Enum):
    """What a driver does."""

    STARTING = "starting"
    WARMING = "warming"
    IDLE = "idle"
    RUNNING = "running"
    LEAVING = "leaving"
    SILENT = "silent"


@strawberry.enum(
    description="DEDICATED: one query at a time. SHARED: several queries. ANALYZER: checks statements."
)
class DriverRole(Enum):
    """What a driver is for."""

    DEDICATED = "dedicated"
    SHARED = "shared"
    ANALYZER = "analyzer"


@strawberry.type(description="A driver: the Spark process that runs queries.")
class Driver:
    """A driver: the Spark process that runs queries."""

    id: strawberry.ID
    role: DriverRole
    state: DriverState
    since: datetime | None = strawberry.field(description="When it began to do that, once that is noted.")
    created_at: datetime = strawberry.field(description="When it was started.")
    heard_at: datetime | None = strawberry.field(description="When it last called its server.")
    server: str | None = strawberry.field(description="Id of the server that it belongs to.")
    launcher: str | None = strawberry.field(description="What started it, such as local.")
    host: str | None = strawberry.field(description="The machine it runs on, where that is its server's.")
    pid: int | None = strawberry.field(description="Its process id on that machine; null for a pod.")
    pod: str | None
    queries: list[Query] = strawberry.field(description="Those of its queries that the caller sees.")
    selects: bool = strawberry.field(description="Whether it runs an interactive SELECT.")
    served: int = strawberry.field(description="Queries that it has run to their end before.")
    heap_limit_bytes: Long | None = strawberry.field(description="The most that its heap may have.")
    heap_bytes: Long | None = strawberry.field(description="Use of its heap, garbage included.")
    memory_bytes: Long | None = strawberry.field(
        description="Resident memory, with its JVM and Python workers."
    )
    cpu_seconds_total: float | None = strawberry.field(description="Processor time since its start.")


def driver_of(seen: SeenDriver) -> Driver:
    """A driver as clients see it: what REST shows, with its queries as objects."""
    shown = DriverView.from_domain(seen)
    given = {name: getattr(shown, name) for name in Driver.__dataclass_fields__ if name != "queries"}
    enums = {"role": DriverRole(shown.role), "state": DriverState(shown.state)}
    return Driver(**given | enums, queries=[query_of(query) for query in seen.queries])
